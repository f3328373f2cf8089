"""Displays that follow another one of their vector within seconds, and what they show."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evaluator.checks.row_pairs import Hashes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Two displays are near within so many seconds, or rounds; a copy is looked for among so many that share its vector.
NEAR_S, NEAR_ROUNDS, NEIGHBOURS = 10.0, 10, 4


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
