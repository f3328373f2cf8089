"""Displays that share a time: what their order in the file has to do with actions, contexts and outcomes.

Nothing is known of the order in which they were shown, so under any honest rule all orders of such a group are equally
likely; means and variances of the sums below are those over all orders, exact for every group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Values are looked at in groups of so many: fewer may honestly stand in order, as the places of one page.
CROWD = 20
# Cells of (group, action) are counted in a table up to so many a display, else found by sorting.
_CELLS_A_DISPLAY = 8


@dataclass(eq=False)
class _Groups:
    """Sums within groups of displays that share a time; sparse in (group, action).

    Parameters
    ----------
    size, repeats
        Number of displays of each group, and of neighbours in it with one action, shape (G,).
    group, action, count, place
        Group, action, number of displays, and sum of their places in the group (0 first) of each cell, shape (cells,).
    x, xx, xplace
        Sums of the values, of their squares, and of values times place, of each value and group, shape (V, G); 0 for
        groups below `CROWD` that are neither the first nor the last.
    last
        Action of the last display, with which the next call may go on.
    """

    size: Floats
    repeats: Floats
    group: Ints
    action: Ints
    count: Floats
    place: Floats
    x: Floats
    xx: Floats
    xplace: Floats
    last: int

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


@dataclass(eq=False)
class TieSums:
    """Sums over all groups of displays that share a time, each with its variance over all orders of every group.

    Parameters
    ----------
    actions, values
        Number of actions K, and number V of values of each display that places are compared with.
    tied, crowd
        Number of displays in groups of two and more, and the sum of the squares of these groups' sizes.
    pairs, repeats, usual, repeats_variance
        Number of neighbours in groups of three and more, of those with one action, of those that chance makes, and the
        variance of that number.
    shift, shift_variance, varied
        Sum of the places of each action's displays, from -1/2 to 1/2 of the group, its variance, and the sum of squares
        within groups of being that action, shape (K,).
    value_shift, value_variance, value_varied
        Sum of the places, its variance, and sum of squares of each value instead of each action, over groups of `CROWD`
        and more, shape (V,).
    places, crowd_places
        Sum of the squares of all places, and of those in groups of `CROWD` and more.
    crowded
        Number of displays in groups of `CROWD` and more.
    """

    actions: int
    values: int
    tied: float = 0.0
    crowd: float = 0.0
    pairs: float = 0.0
    repeats: float = 0.0
    usual: float = 0.0
    repeats_variance: float = 0.0
    places: float = 0.0
    crowd_places: float = 0.0
    crowded: float = 0.0
    shift: Floats = field(init=False)
    shift_variance: Floats = field(init=False)
    varied: Floats = field(init=False)
    value_shift: Floats = field(init=False)
    value_variance: Floats = field(init=False)
    value_varied: Floats = field(init=False)
    _time: int | None = None
    _open: _Groups | None = None

    def __post_init__(self) -> None:
        """Start from zero."""
        self.shift, self.shift_variance, self.varied = np.zeros((3, self.actions))
        self.value_shift, self.value_variance, self.value_varied = np.zeros((3, self.values))

    def add(self, time: Ints, action: Ints, values: Floats) -> None:
        """Add the log's next displays, with times in ticks; a group may go on in the next call.

        Times and actions have shape (n,). The values that places are compared with have one row a value, shape (V, n).
        """
        start = np.flatnonzero(np.diff(time, prepend=time[0] - 1))
        ends = int(time[-1])
        if len(start) == len(time) and self._time != time[0]:
            # No two share a time; the last one may share its own with the next.
            self._finish()
            self._open, self._time = _sums(action[-1:], values[:, -1:], np.zeros(1, np.int64), self.actions), ends
            return
        found = _sums(action, values, start, self.actions)
        if self._open is not None and self._time == time[0]:
            joined = self._open.followed_by(found.part(slice(0, 1)), int(action[0]))
            found = found.part(slice(1, None))
        else:
            joined = None
        if not len(found.size):
            self._open = joined
            return
        if joined is not None:
            self._open = joined
        self._finish()
        self._close(found.part(slice(0, -1)))
        self._open, self._time = found.part(slice(-1, None)), ends

    def finish(self) -> None:
        """Count the last group, which nothing follows."""
        self._finish()

    def _finish(self) -> None:
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
        k = self.actions
        self.shift += np.bincount(g.action, (g.place + 0.5 * g.count) / size - 0.5 * g.count, minlength=k)
        self.shift_variance += np.bincount(g.action, (size + 1.0) / (12.0 * size) * varied, minlength=k)
        self.varied += np.bincount(g.action, varied, minlength=k)
        if large.any():
            m, x = n[large], g.x[:, large]
            spread = np.maximum(g.xx[:, large] - x**2 / m, 0.0)
            self.value_shift += ((g.xplace[:, large] + 0.5 * x) / m - 0.5 * x).sum(axis=1)
            self.value_variance += ((m + 1.0) / (12.0 * m) * spread).sum(axis=1)
            self.value_varied += spread.sum(axis=1)


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
