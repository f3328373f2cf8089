"""Contexts cut into groups, vectors that many displays share, and pairs of rows that are the same."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.encoder import Coordinate
from evaluator.log.schema import Columns, is_uneven, to_numpy
from evaluator.log.vectors_of_displays import display_vectors
from evaluator.streams import STEP, mixed

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Coordinates beyond this many are not looked at: those that vary most are.
MOST = 32
BINS = 5
SAMPLE = 20_000
# A vector is looked at if it has this share of the displays of a sample, and so many of them; at most so many vectors.
SHARE, _FEWEST, _MOST = 0.01, 30, 100
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
# Two displays are near within so many seconds, or rounds; a copy is looked for among so many that share its vector.
NEAR_S, NEAR_ROUNDS, NEIGHBOURS = 10.0, 10, 4


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates of the contexts, cut at quantiles of a sample of displays. Outcomes and actions play no part in it.

    Parameters
    ----------
    column
        ``context`` or ``action_set``, of which the mean over the actions is the context; None for a log without either.
    kept
        Numbers of the coordinates that are looked at, shape (C,).
    of
        Number of coordinates that a context has.
    edges
        Inner edges of the bins of each kept coordinate, C arrays of shape (bins - 1,).
    center, scale
        Mean and standard deviation of each kept coordinate in the sample, shape (C,).
    frequent
        Hashes of the vectors that many displays of the sample share, shape (V,).
    meaning
        What each kept coordinate stands for, C of them, no two of one name.
    """

    column: str | None
    kept: Ints
    of: int
    edges: tuple[Floats, ...]
    center: Floats
    scale: Floats
    frequent: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))
    meaning: tuple[Coordinate, ...] = ()

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns of the displays."""
        return () if self.column is None else (self.column,)

    def values(self, displays: Columns) -> Floats:
        """Return the kept coordinates of some displays, shape (n, C)."""
        if self.column is None:
            return np.zeros((len(displays["action"]), 0))
        array = displays[self.column]
        if self.column == "action_set":
            array = array.mean(axis=1)
        return array[:, self.kept].astype(np.float64, copy=False)

    def bins(self, j: int, values: Floats) -> Ints:
        """Return the bin of each value of coordinate j (of the kept ones), shape (n,)."""
        out = np.zeros(len(values), np.int64)
        for edge in self.edges[j]:  # four at most: faster than a search
            out += values >= edge
        return out

    def name(self, j: int) -> str:
        """Return what coordinate j (of the kept ones) is called."""
        return self.meaning[j].name

    def bin_name(self, j: int, b: int) -> str:
        """Return what a bin of coordinate j is called, in the units of its column."""
        edges, told = self.edges[j], self.meaning[j]
        if told.without:  # one-hot: it has one edge
            return told.name if b else told.without
        numbers = [_number_words(edge * told.unit + told.centre) for edge in edges.tolist()]
        if b == 0:
            return f"{told.name} < {numbers[0]}"
        # Two edges next to each other have one value between them, the first.
        if b == len(edges):
            above_one = b > 1 and edges[-1] == np.nextafter(edges[-2], np.inf)
            return f"{told.name} > {numbers[-2]}" if above_one else f"{told.name} >= {numbers[-1]}"
        if edges[b] == np.nextafter(edges[b - 1], np.inf):
            return f"{told.name} = {numbers[b - 1]}"
        return f"{numbers[b - 1]} <= {told.name} < {numbers[b]}"


def cut_contexts(log: Log) -> Coordinates:
    """Return the coordinates of a log's contexts and their bins, from displays evenly spaced over the log."""
    column = display_vectors(log, first="context")
    none = np.zeros(0)
    if column is None or is_uneven(log.schema.field(column).type):  # vectors of some actions alone are no context
        return Coordinates(None, np.zeros(0, np.int64), 0, (), none, none)
    n = min(len(log), SAMPLE)
    sample = to_numpy(log.take(np.arange(n, dtype=np.int64) * len(log) // n, [column])[column])
    often = frequent(sample)
    sample = sample.astype(np.float64)
    if column == "action_set":
        sample = sample.mean(axis=1)
    found = [(j, edges) for j in range(sample.shape[1]) if len(edges := _edges(sample[:, j]))]
    found.sort(key=lambda pair: -float(sample[:, pair[0]].var()))
    found = sorted(found[:MOST], key=lambda pair: pair[0])
    kept = np.array([j for j, _ in found], np.int64)
    chosen = sample[:, kept]
    return Coordinates(
        column,
        kept,
        sample.shape[1],
        tuple(edges for _, edges in found),
        chosen.mean(axis=0),
        chosen.std(axis=0),
        often,
        _meaning(log, column, kept, sample.shape[1]),
    )


def _meaning(log: Log, column: str, kept: Ints, dimensions: int) -> tuple[Coordinate, ...]:
    """Return what the kept coordinates stand for: their places where the log does not say."""
    nameless = {j: Coordinate(f"context[{j}]") for j in kept.tolist()}
    encoder = log.meta.encoder if column == "context" else None
    if encoder is None or encoder.dimensions != dimensions:
        return tuple(nameless.values())
    told = encoder.coordinates()
    often = Counter(told[j].name for j in nameless)
    # Labels that are shortened, and columns with " = " in their names, can give one name twice.
    return tuple(told[j] if often[told[j].name] == 1 else plain for j, plain in nameless.items())


def _number_words(number: float) -> str:
    """Return a number with the six digits that a coordinate (float32) tells surely.

    >>> _number_words(29.990000724), _number_words(1234567.0)
    ('29.99', '1234570')
    """
    plain = 1e-4 < abs(number) < 1e9
    return np.format_float_positional(number, 6, fractional=False, trim="-") if plain else f"{number:.6g}"


def _edges(values: Floats) -> Floats:
    distinct = np.unique(values)
    if len(distinct) <= BINS:
        return distinct[1:]
    edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS))
    # Mostly one value: it, what is below it, and what is above it.
    return np.append(edges, np.nextafter(edges[-1], np.inf)) if len(edges) == 1 else edges


@dataclass(frozen=True, eq=False)
class CommonVectors:
    """Vectors with a good share of the displays.

    Parameters
    ----------
    codes
        Hashes of these vectors, sorted, shape (V,).
    shown, judged, converted
        Number of displays of each vector, of those old enough to be judged, and of these that converted, shape (V +
        1,): the last place is for all other vectors.
    """

    codes: Hashes
    shown: Floats
    judged: Floats
    converted: Floats

    def add(self, key: Hashes, judged: int, converted: npt.NDArray[np.bool_]) -> None:
        """Count some displays, of which the first `judged` can be judged; key, converted: shape (n,)."""
        of = len(self.shown)
        at = np.zeros(len(key), np.int64)
        if of > 1:
            at = np.minimum(np.searchsorted(self.codes, key), of - 2)
            at = np.where(self.codes[at] == key, at, of - 1)
        self.shown[:] += np.bincount(at, minlength=of)
        self.judged[:] += np.bincount(at[:judged], minlength=of)
        self.converted[:] += np.bincount(at[converted], minlength=of)


def frequent(sample: npt.NDArray[np.float32]) -> Hashes:
    """Return the hashes of the vectors that are frequent among some displays, shape (n, ...), sorted."""
    found, count = np.unique(hashes(sample), return_counts=True)
    often = np.flatnonzero(count >= max(SHARE * len(sample), _FEWEST))
    return np.sort(found[often[np.argsort(-count[often], kind="stable")[:_MOST]]])


def no_counts(codes: Hashes) -> CommonVectors:
    """Return vectors of which nothing is counted yet."""
    return CommonVectors(codes, *np.zeros((3, len(codes) + 1)))


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
