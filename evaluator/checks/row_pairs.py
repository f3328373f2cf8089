"""Pairs of rows that are the same but for their numbers: more of them than chance makes are copies or repeats."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.streams import STEP, mixed

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

LAGS = (1, 2)
# Chance pairs a row beyond which times are too coarse to tell copies.
CROWDED = 1.0
# Displays of one time among which more than `CROWDED` pairs a row are equal were sent together: no copies show there.
CROWD = 20
# Standard errors by which more rows share a time than neighbouring times lead to expect, where rows come together.
_TOGETHER = 6.0
_WORDS = 64
# Rows that are hashed at once.
_CACHED = 2_048
Floats = npt.NDArray[np.float64]

# Two displays are near within so many seconds, or rounds; a copy is looked for among so many that share its vector.
NEAR_S, NEAR_ROUNDS, NEIGHBOURS = 10.0, 10, 4


@dataclass
class EqualRowPairs:
    """Counts of equal rows at one time, and of rows equal but for a time one or two steps later.

    Arrivals that do not know of each other make as many pairs within a time as half of those between neighbouring
    times, so what exceeds that is not chance. Where rows may come `in_batches`, as mails of one second do, neighbouring
    times are empty: as many of the pairs of one time are equal by chance as of any other pairs. Where a clock spreads
    rows evenly over time, fewer share a time than neighbouring times let expect, and fewer are equal in proportion.

    Parameters
    ----------
    in_batches
        Whether rows of one time may belong together although they are not the same.
    rows
        Number of rows counted so far.
    same
        Number of pairs of equal rows at one time.
    apart
        Number of pairs of equal rows one step apart, the mean over `LAGS`.
    rows_again
        Number of rows that repeat an earlier one at the same time.
    crowd
        Number of rows that were sent together, so many that no copies show; no other number counts them.
    together, together_apart
        Number of pairs of rows, equal or not, as `same` and `apart`.
    alike, any_pairs
        Number of equal pairs among pairs of rows far apart, and of these.
    step
        Ticks of which all times are whole multiples, as far as seen; 0 before the first rows.
    """

    in_batches: bool = False
    rows: int = 0
    same: float = 0.0
    apart: float = 0.0
    rows_again: int = 0
    crowd: int = 0
    together: float = 0.0
    together_apart: float = 0.0
    alike: float = 0.0
    any_pairs: float = 0.0
    step: int = 0

    def add(self, time: Ints, key: Hashes) -> None:
        """Count the pairs within some rows.

        Parameters
        ----------
        time, key
            Time in ticks, and hash of the rest of each row, shape (n,).
        """
        self.rows += len(time)
        if len(time) < 2:
            return
        if self.step == 0:
            self.step = max(int(np.gcd.reduce(np.diff(np.sort(time)))), 1)
        ticks = (time // self.step).astype(np.uint64)
        times, of, size = np.unique(ticks, return_inverse=True, return_counts=True)
        codes, at, count = np.unique(mixed(key) + ticks * STEP, return_index=True, return_counts=True)
        pairs = np.bincount(of[at], count * (count - 1) / 2, minlength=len(times))
        crowd = (size >= CROWD) & (pairs > CROWDED * size)
        if crowd.any():
            self.crowd += int(size[crowd].sum())
            times, size, key = times[~crowd], size[~crowd], key[~crowd[of]]
            codes, count = codes[~crowd[of[at]]], count[~crowd[of[at]]]
            if not len(codes):
                return
        half = len(key) // 2
        self.alike += float(np.count_nonzero(key[:half] == key[half : 2 * half]))
        self.any_pairs += half
        self.together += float((size * (size - 1) // 2).sum())
        self.rows_again += int((count - 1).sum())
        self.same += float((count * (count - 1) // 2).sum())
        for lag in LAGS:
            near = np.minimum(np.searchsorted(times, times + np.uint64(lag)), len(times) - 1)
            self.together_apart += float((size * size[near])[times[near] == times + np.uint64(lag)].sum()) / len(LAGS)
            later = codes + np.array([lag], np.uint64) * STEP
            at = np.minimum(np.searchsorted(codes, later), len(codes) - 1)
            self.apart += float((count * count[at])[codes[at] == later].sum()) / len(LAGS)

    @property
    def expected(self) -> float:
        """Pairs at one time that chance makes."""
        usual = self.together_apart / 2.0
        # A clock that spreads its rows evenly, as one of rounds or of minutes, brings fewer together than chance does.
        if self.together < usual - _TOGETHER * math.sqrt(1.5 * usual + 1.0):
            return self.apart / 2.0 * self.together / usual
        if not self.in_batches or self.together <= usual + _TOGETHER * math.sqrt(1.5 * usual + 1.0):
            return self.apart / 2.0
        return max(self.apart / 2.0, self.together * self.alike / max(self.any_pairs, 1.0))

    @property
    def excess(self) -> float:
        """Pairs beyond those, in shares of the rows."""
        return (self.same - self.expected) / max(self.rows, 1)

    @property
    def crowded(self) -> bool:
        """Whether too many rows share a time by chance."""
        return self.expected > CROWDED * self.rows or self.crowd > self.rows / 2

    @property
    def z(self) -> float:
        """Excess in standard errors.

        With m pairs expected, the difference has variance 2 m times 3 / 4 when counts are Poisson: terms of first order
        cancel between a time and its neighbours.
        """
        return (self.same - self.expected) / math.sqrt(1.5 * self.expected + 1.0)


def hashes(rows: npt.NDArray[Any]) -> Hashes:
    """Return a hash of each row, shape (n,), of its first 256 bytes."""
    words = np.ascontiguousarray(rows.reshape(len(rows), -1)).view(np.uint32)[:, :_WORDS]
    hashed = np.zeros(len(rows), np.uint64)
    # Of so few rows at a time that they stay in a cache.
    for first in range(0, len(rows), _CACHED):
        out = hashed[first : first + _CACHED]
        for column in words[first : first + _CACHED].T.astype(np.uint64, order="C"):
            out ^= column
            out *= STEP
            out ^= out >> np.uint64(29)
    return hashed


@dataclass
class NearPairs:
    """Pairs of displays with one vector that follow each other closely, and those of them with one action.

    Given what was shown before, the next display with the same vector has the same action with the propensity of that
    action, so the differences of `same` and `expected` add up to a martingale, whatever vectors there are and however
    often visitors come again.

    Parameters
    ----------
    near
        Ticks within which displays are near.
    pairs
        Number of pairs of displays that are near, and of neighbours that are not, shape (2,).
    same, expected
        Number of those pairs with one action, and how many their propensities make expected, shape (2,).
    variance
        Variance of `same` minus `expected`, shape (2,).
    """

    near: int
    pairs: Floats = field(default_factory=lambda: np.zeros(2))
    same: Floats = field(default_factory=lambda: np.zeros(2))
    expected: Floats = field(default_factory=lambda: np.zeros(2))
    variance: Floats = field(default_factory=lambda: np.zeros(2))

    def add(self, time: Ints, key: Hashes, action: Ints, p: Floats) -> None:
        """Count the pairs within some rows, in order of time; pairs of one time are left to `EqualRowPairs`.

        Parameters
        ----------
        time, key, action, p
            Time in ticks, hash of the vector, action, and probability with which it was shown, of each display, shape
            (n,).
        """
        order = np.argsort(key, kind="stable")
        time, key, action = time[order], key[order], action[order]
        p = np.minimum(p[order], 1.0)
        n = len(time)
        earlier: list[tuple[npt.NDArray[np.bool_], Ints, Floats]] = []
        for lag in range(1, min(NEIGHBOURS, n - 1) + 1):
            gap = time[lag:] - time[:-lag]
            paired = np.zeros(n, bool)
            paired[lag:] = (key[lag:] == key[:-lag]) & (gap > 0)
            close = paired.copy()
            close[lag:] &= gap <= self.near
            of, chance = np.roll(action, lag), np.roll(p, lag)
            # Far ones are a standard of comparison: of these, next neighbours are enough.
            for row, used in enumerate((close, paired & ~close)):
                if row == 1 and lag > 1:
                    continue
                self.pairs[row] += np.count_nonzero(used)
                self.same[row] += np.count_nonzero(used & (action == of))
                self.expected[row] += chance[used].sum()
                self.variance[row] += (chance * (1.0 - chance))[used].sum()
            for other, its_action, its_chance in earlier:
                both = close & other
                alike = both & (its_action == of)
                self.variance[0] += 2.0 * (chance[alike].sum() - (chance * its_chance)[both].sum())
            earlier.append((close, of, chance))

    @property
    def z(self) -> Floats:
        """Same minus expected, in standard errors, shape (2,)."""
        return (self.same - self.expected) / np.sqrt(np.maximum(self.variance, 1.0))


def near_ticks(tick_seconds: float | None) -> int:
    """Return within how many ticks displays are near; 0 where ticks are too long to tell."""
    return NEAR_ROUNDS if tick_seconds is None else int(NEAR_S / tick_seconds)
