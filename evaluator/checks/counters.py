"""What the pass over a log counts of its rows: pairs that are equal or near, and displays that share a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.checks.coordinates import Hashes
from evaluator.streams import STEP, mixed

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
# Two displays are near within so many seconds, or rounds; a copy is looked for among so many that share its vector.
NEAR_S, _NEAR_ROUNDS, NEIGHBOURS = 10.0, 10, 4
_LAGS = (1, 2)
# Chance pairs a row beyond which times are too coarse to tell copies.
_CROWDED_TIMES = 1.0
# Displays of one time among which more than `_CROWDED_TIMES` pairs a row are equal were sent together: they show no
# copies.
_SENT_TOGETHER = 20
# Standard errors by which more rows share a time than neighbouring times lead to expect, where rows come together.
_TOGETHER = 6.0
# Values are looked at in groups of so many: fewer may honestly stand in order, as the places of one page.
CROWD = 20
# Cells of (group, action) are counted in a table up to so many a display, else found by sorting.
_CELLS_A_DISPLAY = 8


@dataclass
class EqualRowPairs:
    """Counts of equal rows at one time, and of rows equal but for a time one or two steps later.

    Arrivals that do not know of each other make as many pairs within a time as half of those between neighbouring
    times, so what exceeds that is not chance. Where rows may come `in_batches`, as mails of one second do, neighbouring
    times are empty: as many of the pairs of one time are equal by chance as of any other pairs. Where a clock spreads
    rows evenly over time, fewer share a time than neighbouring times let expect, and fewer are equal in proportion.
    """

    # Whether rows of one time may belong together although they are not the same.
    in_batches: bool = False
    rows: int = 0  # Number of rows counted so far
    same: float = 0.0  # Number of pairs of equal rows at one time
    apart: float = 0.0  # Number of pairs of equal rows one step apart, the mean over `_LAGS`
    rows_again: int = 0  # Number of rows that repeat an earlier one at the same time
    # Number of rows that were sent together, so many that no copies show; no other number counts them.
    crowd: int = 0
    # Number of pairs of rows, equal or not, as `same` and `apart`.
    together: float = 0.0
    together_apart: float = 0.0
    # Number of equal pairs among pairs of rows far apart, and of these.
    alike: float = 0.0
    any_pairs: float = 0.0
    # Ticks of which all times are whole multiples, as far as seen; 0 before the first rows.
    step: int = 0

    def add(self, time: Ints, key: Hashes) -> None:
        """Count the pairs within some rows: time in ticks, and hash of the rest of each row, shape (n,)."""
        self.rows += len(time)
        if len(time) < 2:
            return
        if self.step == 0:
            self.step = max(int(np.gcd.reduce(np.diff(np.sort(time)))), 1)
        ticks = (time // self.step).astype(np.uint64)
        times, of, size = np.unique(ticks, return_inverse=True, return_counts=True)
        codes, at, count = np.unique(mixed(key) + ticks * STEP, return_index=True, return_counts=True)
        pairs = np.bincount(of[at], count * (count - 1) / 2, minlength=len(times))
        crowd = (size >= _SENT_TOGETHER) & (pairs > _CROWDED_TIMES * size)
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
        for lag in _LAGS:
            near = np.minimum(np.searchsorted(times, times + np.uint64(lag)), len(times) - 1)
            self.together_apart += float((size * size[near])[times[near] == times + np.uint64(lag)].sum()) / len(_LAGS)
            later = codes + np.array([lag], np.uint64) * STEP
            at = np.minimum(np.searchsorted(codes, later), len(codes) - 1)
            self.apart += float((count * count[at])[codes[at] == later].sum()) / len(_LAGS)

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
        return self.expected > _CROWDED_TIMES * self.rows or self.crowd > self.rows / 2

    @property
    def z(self) -> float:
        """Excess in standard errors.

        With m pairs expected, the difference has variance 2 m times 3 / 4 when counts are Poisson: terms of first order
        cancel between a time and its neighbours.
        """
        return (self.same - self.expected) / math.sqrt(1.5 * self.expected + 1.0)


class NearPairs:
    """Pairs of displays with one vector that follow each other closely, and those of them with one action.

    Given what was shown before, the next display with the same vector has the same action with the propensity of that
    action, so the differences of `same` and `expected` add up to a martingale, whatever vectors there are and however
    often visitors come again.
    """

    def __init__(self, tick_seconds: float | None) -> None:
        # Ticks within which displays are near; 0 where ticks are too long to tell.
        self.near = _NEAR_ROUNDS if tick_seconds is None else int(NEAR_S / tick_seconds)
        # Number of pairs of displays that are near, and of neighbours that are not; of those pairs with one action; how
        # many of these their propensities make expected; variance of the difference of these two: shape (2,) each.
        self.pairs, self.same, self.expected, self.variance = np.zeros((4, 2))

    def add(self, time: Ints, key: Hashes, action: Ints, p: Floats) -> None:
        """Count the pairs within some rows, in order of time; pairs of one time are left to `EqualRowPairs`.

        Time in ticks, hash of the vector, action, and probability with which it was shown, of each display: shape (n,).
        """
        order = np.argsort(key, kind="stable")
        time, key, action = time[order], key[order], action[order]
        p = np.minimum(p[order], 1.0)
        n = len(time)
        earlier: list[tuple[Flags, Ints, Floats]] = []
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


class TieSums:
    """Sums over all groups of displays that share a time, each with its variance over all orders of every group.

    Of K actions, and of V values of each display that places are compared with.
    """

    def __init__(self, actions: int, values: int) -> None:
        self._actions = actions
        # Number of displays in groups of two and more, and the sum of the squares of these groups' sizes.
        self.tied = self.crowd = 0.0
        # Number of neighbours in groups of three and more, of those with one action, of those that chance makes, and
        # the variance of that number.
        self.pairs = self.repeats = self.usual = self.repeats_variance = 0.0
        # Sum of the squares of all places, and of those in groups of `CROWD` and more; number of displays in these.
        self.places = self.crowd_places = self.crowded = 0.0
        # Sum of the places of each action's displays, from -1/2 to 1/2 of the group, its variance, and the sum of
        # squares within groups of being that action, shape (K,).
        self.shift, self.shift_variance, self.varied = np.zeros((3, actions))
        # The same of each value instead of each action, over groups of `CROWD` and more, shape (V,).
        self.value_shift, self.value_variance, self.value_varied = np.zeros((3, values))
        self._time: int | None = None
        self._open: _Groups | None = None

    def add(self, time: Ints, action: Ints, values: Floats) -> None:
        """Add the log's next displays, with times in ticks; a group may go on in the next call.

        Times and actions have shape (n,). The values that places are compared with have one row a value, shape (V, n).
        """
        start = np.flatnonzero(np.diff(time, prepend=time[0] - 1))
        ends = int(time[-1])
        if len(start) == len(time) and self._time != time[0]:
            # No two share a time; the last one may share its own with the next.
            self.finish()
            self._open, self._time = _sums(action[-1:], values[:, -1:], np.zeros(1, np.int64), self._actions), ends
            return
        found = _sums(action, values, start, self._actions)
        if self._open is not None and self._time == time[0]:
            self._open = self._open.followed_by(found.part(slice(0, 1)), int(action[0]))
            found = found.part(slice(1, None))
            if not len(found.size):
                return
        self.finish()
        self._close(found.part(slice(0, -1)))
        self._open, self._time = found.part(slice(-1, None)), ends

    def finish(self) -> None:
        """Count the last group, which nothing follows."""
        if self._open is not None:
            self._close(self._open)
        self._open = None

    def _close(self, g: _Groups) -> None:
        tied = g.size > 1
        if not tied.any():
            return
        n = g.size
        self.tied += float(n[tied].sum())
        self.crowd += float((n[tied] ** 2).sum())
        places, large = (n * n - 1.0) / (12.0 * n), n >= CROWD
        self.places += float(places.sum())
        self.crowd_places += float(places[large].sum())
        self.crowded += float(n[large].sum())
        # Runs of actions in random order: Barton and David (1957); neighbours of one action are n minus the runs.
        second = np.bincount(g.group, g.count**2, minlength=len(n))
        third = np.bincount(g.group, g.count**3, minlength=len(n))
        of = n > 2
        m, m2, m3 = n[of], second[of], third[of]
        self.pairs += float((m - 1.0).sum())
        self.repeats += float(g.repeats[of].sum())
        self.usual += float((m2 / m - 1.0).sum())
        self.repeats_variance += float(((m2 * (m2 + m * (m + 1.0)) - 2.0 * m * m3 - m**3) / (m * m * (m - 1.0))).sum())
        # Places (i + 1/2) / n - 1/2 have mean 0 and square sum (n^2 - 1) / 12n; a sum of them over chosen displays has
        # that over n - 1 times the square sum of what chooses as its variance.
        size = n[g.group]
        varied = g.count - g.count**2 / size
        k = self._actions
        self.shift += np.bincount(g.action, (g.place + 0.5 * g.count) / size - 0.5 * g.count, minlength=k)
        self.shift_variance += np.bincount(g.action, (size + 1.0) / (12.0 * size) * varied, minlength=k)
        self.varied += np.bincount(g.action, varied, minlength=k)
        if large.any():
            m, x = n[large], g.x[:, large]
            spread = np.maximum(g.xx[:, large] - x**2 / m, 0.0)
            self.value_shift += ((g.xplace[:, large] + 0.5 * x) / m - 0.5 * x).sum(axis=1)
            self.value_variance += ((m + 1.0) / (12.0 * m) * spread).sum(axis=1)
            self.value_varied += spread.sum(axis=1)


@dataclass(eq=False)
class _Groups:
    """Sums within groups of displays that share a time; sparse in (group, action)."""

    # Number of displays of each group, and of neighbours in it with one action, shape (G,).
    size: Floats
    repeats: Floats
    # Group, action, number of displays, and sum of their places in the group (0 first) of each cell, shape (cells,).
    group: Ints
    action: Ints
    count: Floats
    place: Floats
    # Sums of the values, of their squares, and of values times place, of each value and group, shape (V, G); 0 for
    # groups below `CROWD` that are neither the first nor the last.
    x: Floats
    xx: Floats
    xplace: Floats
    last: int  # Action of the last display, with which the next call may go on

    def part(self, groups: slice) -> _Groups:
        """Return some groups, numbered from 0."""
        first, end, _ = groups.indices(len(self.size))
        cells = slice(*np.searchsorted(self.group, [first, end]).tolist())
        return _Groups(
            self.size[groups], self.repeats[groups], self.group[cells] - first, self.action[cells], self.count[cells],
            self.place[cells], self.x[:, groups], self.xx[:, groups], self.xplace[:, groups], self.last,
        )  # fmt: skip

    def followed_by(self, later: _Groups, first: int) -> _Groups:
        """Return this one group continued by the displays of another one, the first of which has this action."""
        n = self.size[0]
        actions, of = np.unique(np.concatenate((self.action, later.action)), return_inverse=True)
        count = np.concatenate((self.count, later.count))
        place = np.concatenate((self.place, later.place + n * later.count))
        return _Groups(
            self.size + later.size,
            self.repeats + later.repeats + (self.last == first),
            np.zeros(len(actions), np.int64),
            actions,
            np.bincount(of, count).astype(np.float64, copy=False),
            np.bincount(of, place).astype(np.float64, copy=False),
            self.x + later.x,
            self.xx + later.xx,
            self.xplace + later.xplace + n * later.x,
            later.last,
        )


def _sums(action: Ints, values: Floats, start: Ints, k: int) -> _Groups:
    """Return the sums of groups that begin at these displays."""
    n, groups = len(action), len(start)
    size = np.diff(start, append=n)
    of = np.repeat(np.arange(groups), size)
    place = (np.arange(n) - np.repeat(start, size)).astype(np.float64)
    repeat = np.zeros(n)
    repeat[1:] = (action[1:] == action[:-1]) & (place[1:] > 0)
    cell = of * k + action
    if groups * k <= _CELLS_A_DISPLAY * n:
        counts = np.bincount(cell)
        cells = np.flatnonzero(counts)
        count, places = counts[cells], np.bincount(cell, place)[cells]
    else:
        cells, at, count = np.unique(cell, return_inverse=True, return_counts=True)
        places = np.bincount(at, place)
    looked = size >= CROWD
    looked[[0, -1]] = True  # they may go on in other batches
    sums = np.zeros((3, len(values), groups))
    if len(values):
        rows = np.repeat(looked, size)
        at, there = size[looked], values[:, rows]
        first = np.cumsum(at) - at
        for out, terms in zip(sums, (there, there**2, there * place[rows]), strict=True):
            out[:, looked] = np.add.reduceat(terms, first, axis=1)
    return _Groups(
        size.astype(np.float64),
        np.add.reduceat(repeat, start),
        cells // k,
        cells % k,
        count.astype(np.float64),
        places.astype(np.float64, copy=False),
        sums[0],
        sums[1],
        sums[2],
        int(action[-1]),
    )
