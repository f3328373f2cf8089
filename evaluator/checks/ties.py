"""Displays that share a time: what their order in the file has to do with actions, contexts and outcomes.

Nothing is known of the order in which they were shown, so under any honest rule all orders of such a group are equally
likely; means and variances of the sums in `TieSums` are those over all orders, exact for every group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from evaluator.checks.result import SERIOUS, Check, CheckResult, Verdict, not_applicable
from evaluator.checks.significance import Floats, Ints, normal_tail, p_words
from evaluator.estimates.simultaneous import holm

if TYPE_CHECKING:
    from evaluator.checks.tables import Tables

# Values are looked at in groups of so many: fewer may honestly stand in order, as the places of one page.
CROWD = 20
# Cells of (group, action) are counted in a table up to so many a display, else found by sorting.
_CELLS_A_DISPLAY = 8
# Below this share of displays that share their time, their order changes no decision; nor does an order by which places
# are shifted less than this (correlation), or neighbours are alike less than this beyond chance.
FEW_TIED, WEAK = 0.05, 0.05
# Sums over fewer displays are not normal enough to be tested; their fourth part bounds the variance of neighbours.
_FEWEST = 25.0


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


def order_within_ties(t: Tables, level: float) -> CheckResult:
    """Test that displays with one time stand in random order: by action, by context, by outcome (normal, Holm).

    Fewer than `CROWD` at a time may honestly stand in order, as the places of one page, whose contexts and outcomes
    differ: by them, and by the actions of a logger that looks at contexts, only larger groups are tested.
    """
    ties, logged = t.ties, t.logged
    n = len(logged.survey.log)
    share, crowd = ties.tied / n, ties.crowd / max(ties.tied, 1.0)
    numbers = {"tied_share": share, "displays_at_a_time": crowd}
    if not ties.tied:
        return not_applicable("no two displays share a time")
    if share < FEW_TIED:
        return _quiet(f"{share:.1%} of the displays share their time", numbers, "Too few for their order to matter.")
    tests = _tests(t, crowd >= CROWD)
    if not tests:
        return not_applicable("too few displays share a time, or they are all alike, for a test")
    adjusted = holm([normal_tail(test.z) for test in tests]).tolist()
    p, (by, what, z, effect) = min(
        zip(adjusted, tests, strict=True), key=lambda one: (one[0] > level or one[1].effect < WEAK, -one[1].effect)
    )
    numbers |= {"tests": len(tests), "z": z, "effect": effect}
    many = f"{share:.0%} share their time, {crowd:,.0f} at a time"
    if p > level or effect < WEAK:
        least = min(adjusted)
        random = "Displays with one time stand in random order, as far as it can tell."
        return _quiet(f"{many}; smallest p {p_words(least)}", numbers, random, p_value=least)
    grave = crowd >= CROWD and effect >= SERIOUS and by != "context"
    verdict: Verdict = "fail" if grave else "warn"
    return CheckResult(
        verdict=verdict, number=f"{what}, effect {effect:.2f}, p {p_words(p)}; {many}", statistic=z, p_value=p,
        effect=effect, numbers={**numbers, "where": what},
        what=f"Displays with one time stand in the file in an order that goes with their {by} ({what}): the file was "
        "sorted after the fact, or its times are cut too coarsely. A replay takes the order of the file for that of "
        "time: it meets such displays in long runs, accepts few of them, and delays counted in displays are artefacts.",
        remedy="Give times as fine as they were logged. Otherwise let chance order the displays of one time: leave out "
        'ties = "file" under [time] of the spec, or pass a Log made by hand through evaluator.log.shuffle_ties.',
    )  # fmt: skip


class _OrderTest(NamedTuple):
    by: Literal["action", "context", "outcome"]
    what: str
    z: float
    effect: float


def _tests(t: Tables, crowded: bool) -> list[_OrderTest]:
    """Return each test: what is ordered, z, and its effect, 0 for chance, 1 for a complete order."""
    ties, constant = t.ties, t.logged.constant is not None
    tests = []
    if constant or crowded:
        if ties.repeats_variance >= _FEWEST / 4.0 and ties.pairs >= FEW_TIED * len(t.logged.survey.log):
            beyond = ties.repeats - ties.usual
            effect = beyond / max(ties.pairs - ties.usual, 1.0)
            z = beyond / math.sqrt(ties.repeats_variance)
            tests.append(_OrderTest("action", "action: equal ones side by side", z, effect))
        for a, label in enumerate(t.logged.survey.log.labels):
            if ties.varied[a] >= _FEWEST:
                moments = ties.shift[a], ties.shift_variance[a], ties.varied[a]
                what = f"action: {label} {_where(ties.shift[a])}"
                tests.append(_OrderTest("action", what, *_shifted(*moments, ties.places)))
    if ties.crowded >= FEW_TIED * len(t.logged.survey.log):
        coordinates = t.logged.coordinates
        for j in np.flatnonzero(ties.value_varied >= _FEWEST).tolist():
            of_context, side = j < len(coordinates), _where(ties.value_shift[j])
            what = f"outcome: conversions {side}"
            if of_context:
                told = coordinates.meaning[j]
                what = f"{told.name}: {side}" if told.without else f"{told.name}: large values {side}"
            shifted = _shifted(ties.value_shift[j], ties.value_variance[j], ties.value_varied[j], ties.crowd_places)
            tests.append(_OrderTest("context" if of_context else "outcome", what, *shifted))
    return tests


def _where(shift: float) -> str:
    return "first" if shift < 0 else "last"


def _shifted(shift: float, variance: float, varied: float, places: float) -> tuple[float, float]:
    """Return z, and the correlation with the place."""
    return float(shift / math.sqrt(variance)), float(abs(shift) / math.sqrt(varied * places))


def _quiet(number: str, numbers: dict[str, float], means: str, p_value: float | None = None) -> CheckResult:
    return CheckResult(verdict="pass", number=number, numbers=numbers, what=means, p_value=p_value)


ORDER_WITHIN_TIES = Check(
    name="order within ties", finds="files sorted by action, context or outcome within one time", run=order_within_ties,
    of_all=True,
)  # fmt: skip
