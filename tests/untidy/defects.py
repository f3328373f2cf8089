"""From the traffic to the rows of a log, and what goes wrong on the way: one function a defect."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tests.untidy.settings import DAY_S, HOUR_S
from tests.untidy.traffic import Traffic

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# What a refund takes back of a conversion's value: sending it costs too.
REFUND = 1.5


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a log before it is one.

    Parameters
    ----------
    of
        Number of each display in the traffic, shape (n,).
    time
        Seconds, shape (n,); not decreasing.
    action, propensity
        Shape (n,).
    conversion_of, conversion_time, conversion_value
        Row of each conversion's display, its seconds and its value, shape (c,).
    until
        Seconds up to which the log was followed.
    """

    of: Ints
    time: Ints
    action: Ints
    propensity: Floats
    conversion_of: Ints
    conversion_time: Ints
    conversion_value: Floats
    until: int

    def displays(self, rows: Ints) -> Rows:
        """Return some displays, in the order given, repeated if need be, with all of their conversions."""
        order = np.argsort(self.conversion_of, kind="stable")
        of = self.conversion_of[order]
        low, high = np.searchsorted(of, rows), np.searchsorted(of, rows, side="right")
        count = high - low
        at = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(low, count)
        kept = order[at]
        return replace(
            self,
            of=self.of[rows],
            time=self.time[rows],
            action=self.action[rows],
            propensity=self.propensity[rows],
            conversion_of=np.repeat(np.arange(len(rows)), count),
            conversion_time=self.conversion_time[kept],
            conversion_value=self.conversion_value[kept],
        )

    def conversions(self, kept: npt.NDArray[np.bool_] | Ints) -> Rows:
        """Return all displays with some of the conversions."""
        return replace(
            self,
            conversion_of=self.conversion_of[kept],
            conversion_time=self.conversion_time[kept],
            conversion_value=self.conversion_value[kept],
        )


def rows_of(traffic: Traffic, seed: int) -> Rows:
    """Return the log's rows with every defect that was set, in the order in which they happen to a log."""
    untidy, rng = traffic.untidy, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(78,)))
    rows = _ideal(traffic)
    if untidy.refunded:
        rows = _refunded(rows, untidy.refunded, rng)
    rows = _followed(rows, untidy.attribution_s)
    if untidy.sampled < 1:
        rows = rows.displays(np.flatnonzero(rng.random(len(rows.of)) < untidy.sampled))
    middle = int(rows.time[len(rows.time) // 2])
    if untidy.outage_h or untidy.gap_h:
        rows = _out(rows, middle, middle + int((untidy.outage_h or untidy.gap_h) * HOUR_S), displays=untidy.gap_h > 0)
    if untidy.copied:
        twice = rows.conversion_of[rng.random(len(rows.conversion_of)) < untidy.copied]
        rows = rows.displays(np.sort(np.concatenate([np.arange(len(rows.of)), twice])))
    if untidy.conversions_copied:
        twice = rng.random(len(rows.conversion_of)) < untidy.conversions_copied
        rows = rows.conversions(np.concatenate([np.arange(len(twice)), np.flatnonzero(twice)]))
    if untidy.stamp_s > 1:
        stamp = untidy.stamp_s
        time, sold = rows.time // stamp * stamp, rows.conversion_time // stamp * stamp
        rows = replace(rows, time=time, conversion_time=sold, until=rows.until // stamp * stamp)
    if untidy.by_action:
        rows = rows.displays(np.lexsort((rows.action, rows.time)))
    if untidy.stray_h:
        rows = _stray(rows, int(untidy.stray_h * HOUR_S))
    return rows


def claimed(traffic: Traffic) -> Floats:
    """Return the probability of the shown action as the log claims it, shape (n,)."""
    untidy, at = traffic.untidy, np.arange(len(traffic.time))
    fixed = np.full(untidy.n_actions, 1.0 / untidy.n_actions) if untidy.logger is None else np.array(untidy.logger)
    if untidy.claim == "right":
        return traffic.logger[at, traffic.action]
    if untidy.claim == "swapped":
        fixed = fixed[[untidy.n_actions - 1, *range(1, untidy.n_actions - 1), 0]]
    return np.asarray(fixed[traffic.action])  # constant and stale: those of the beginning


def _ideal(traffic: Traffic) -> Rows:
    """Return the whole traffic; a conversion comes as late after its display as drawn, to the second."""
    time = traffic.time.astype(np.int64)
    sold = np.flatnonzero(traffic.converts)
    when = time[sold] + traffic.delay[sold].astype(np.int64)
    return Rows(
        np.arange(len(time)), time, traffic.action, claimed(traffic), sold, when, traffic.value[sold], int(time[-1])
    )


def _followed(rows: Rows, attribution_s: int | None) -> Rows:
    """Leave out what the log never sees: later than its end, or than the attribution window."""
    longest = np.inf if attribution_s is None else attribution_s
    late = rows.conversion_time - rows.time[rows.conversion_of] > longest
    return rows.conversions(~late & (rows.conversion_time <= rows.until))


def _refunded(rows: Rows, share: float, rng: np.random.Generator) -> Rows:
    later = rng.integers(1, DAY_S // 2, len(rows.conversion_of))
    back = np.flatnonzero(rng.random(len(rows.conversion_of)) < share)
    return replace(
        rows,
        conversion_of=np.append(rows.conversion_of, rows.conversion_of[back]),
        conversion_time=np.append(rows.conversion_time, rows.conversion_time[back] + later[back]),
        conversion_value=np.append(rows.conversion_value, -REFUND * rows.conversion_value[back]),
    )


def _out(rows: Rows, start: int, end: int, *, displays: bool) -> Rows:
    """Lose the conversions of some time, and its displays if need be."""
    rows = rows.conversions((rows.conversion_time < start) | (rows.conversion_time >= end))
    if not displays:
        return rows
    return rows.displays(np.flatnonzero((rows.time < start) | (rows.time >= end)))


def _stray(rows: Rows, late: int) -> Rows:
    """Add one conversion long after the last display, of a display shortly before it."""
    return replace(
        rows,
        conversion_of=np.append(rows.conversion_of, len(rows.of) - 1),
        conversion_time=np.append(rows.conversion_time, rows.until + late),
        conversion_value=np.append(rows.conversion_value, 1.0),
    )
