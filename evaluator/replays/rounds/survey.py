"""What every replay of a log must know before its first round, found in one pass over times and actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from evaluator.errors import LogError
from evaluator.log import Log, LogMeta
from evaluator.log.reward_kinds import RewardKind, cost_events, reward_kinds
from evaluator.log.schema import POSITION, Columns, to_numpy
from evaluator.log.times import FEW_SHARE, TOLD_APART, Counts, TrafficCount, counted_by, delays_within_stamps
from evaluator.log.vectors_of_displays import Dwarfing, dwarfing_column
from evaluator.streams import STEP, mixed

T = TypeVar("T")
# So many displays at the most have their times kept: spans of longer logs are known up to two parts in so many.
_MARKS = 65_536
# Time stamps are looked at for these units, in seconds, from the coarsest on.
_STAMPS = (86400.0, 3600.0, 1800.0, 900.0, 600.0, 300.0, 60.0, 1.0)
# Rounding of a product of numbers that are exact.
_EXACT = 1e-9


@dataclass(frozen=True, eq=False)
class Survey:
    """A log seen once. Memory: what its conversions take.

    Parameters
    ----------
    log
        Log that was seen.
    shown
        Number of displays of each action, shape (K,).
    smallest, largest
        Smallest and largest logged propensity of each action, shape (K,); nan for actions never shown, and everywhere
        on a log without propensities.
    inverse
        Sums of 1/p and of 1/p² over the displays of each action, shape (2, K); nan on a log without propensities.
    rate
        Number of displays of the traffic per tick; nan when all displays share one time. The traffic is the log itself,
        or what `evaluator.log.times` counts; a sampling rate of the log's metadata is left to the clock.
    kept
        Share of the traffic's displays that are in the log; 1 where the log is all of it.
    display
        Number of each conversion's display in the log, shape (c,).
    position
        Number of that display in the traffic, shape (c,); the same array where the log is all of it.
    shown_at
        Time of that display in ticks, shape (c,).
    delay
        Delay of each conversion in displays of the traffic, shape (c,): how many follow its display no later than it;
        where stamps are coarse beside the delays, drawn within them (`evaluator.log.times`).
    limit
        Longest delay that would have been seen of each conversion, in displays of the traffic, shape (c,): how many
        follow its display no later than the end of its follow-up. None where every display was followed to its end.
    mark, marked_at
        Numbers in the traffic of some displays, the first and the last among them, and their times in ticks, shape
        (q,).
    marked_action
        Actions of the displays that are marked, shape (q,).
    sample, sample_action
        Rows of some conversions, no refunds, evenly taken, and the actions of their displays, shape (s,).
    stamp
        Ticks that the time stamps tell apart: those of a day, an hour, 30, 15, 10, 5 or 1 minutes or a second where all
        times are whole ones, else 1.
    kinds
        Kinds of the conversions that come after their display, sales first.
    ends
        Delays in displays of the traffic as they are if conversions come at the beginning of their stamp, and if they
        come at its end, shape (c,) each; None where stamps are fine: at least ten of them in half of the delays, or
        shared by fewer than ten displays.
    """

    log: Log
    shown: npt.NDArray[np.int64]
    smallest: npt.NDArray[np.float64]
    largest: npt.NDArray[np.float64]
    inverse: npt.NDArray[np.float64]
    rate: float
    kept: float
    display: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    shown_at: npt.NDArray[np.int64]
    delay: npt.NDArray[np.int64]
    limit: npt.NDArray[np.int64] | None
    mark: npt.NDArray[np.int64]
    marked_at: npt.NDArray[np.int64]
    marked_action: npt.NDArray[np.int32]
    sample: npt.NDArray[np.int64]
    sample_action: npt.NDArray[np.int32]
    stamp: int
    kinds: Sequence[RewardKind]
    ends: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None

    _until: dict[int, int] = field(default_factory=dict, repr=False)
    _shown_first: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict, repr=False)
    _made: dict[tuple[object, ...], Any] = field(default_factory=dict, repr=False)

    def once(self, by: tuple[object, ...], made: Callable[[], T]) -> T:
        """Return what is `made` of the survey once for all plans that share `by`, which begins with its name."""
        if by not in self._made:
            self._made[by] = made()
        found: T = self._made[by]
        return found

    def displays_until(self, time: int) -> int:
        """Return how many displays were shown no later than a time in ticks; one pass for all who ask the same."""
        if time not in self._until:
            self._until[time] = int(displays_until(self.log, np.array([time]))[0][0])
        return self._until[time]

    def traffic_by(self, time: int) -> int:
        """Return the displays of the traffic until a time in ticks, past the last display as the mean rate brings."""
        end = int(self.marked_at[-1])
        inside = np.array([min(time, end)])
        count = traffic_until(self.log, inside)[0] if counted_by(self.log.schema) else self.displays_until(inside[0])
        return int(_past_the_end(np.atleast_1d(count), np.array([time]), end, self.rate)[0])

    def displays_numbered_until(self, position: int) -> int:
        """Return how many displays have at most this number in the traffic: the first ones."""
        if not counted_by(self.log.schema):
            return min(max(position + 1, 0), len(self.log))
        count = TrafficCount(self.log.schema)
        batches = self.log.batches(count.columns)
        return sum(
            int(np.count_nonzero(count.read(first, batch, len(batch[count.columns[0]])) - 1 <= position))
            for first, batch in batches
        )

    @cached_property
    def dwarfing(self) -> Dwarfing | None:
        """The column of the vectors that dwarfs another, looked for once for all policies that read them."""
        return dwarfing_column(self.log)

    @property
    def delay_ticks(self) -> npt.NDArray[np.int64]:
        """Delay of each conversion in ticks, shape (c,)."""
        when: npt.NDArray[np.int64] = to_numpy(self.log.conversions["time"]).astype(np.int64, copy=False)
        return when - self.shown_at

    def limit_ticks(self) -> npt.NDArray[np.int64] | None:
        """Return the longest delay, in ticks, that would have been seen of each conversion's display, shape (c,).

        None where every display was followed to its end.
        """
        ends = _followed_until(self.log, self.kinds, self.shown_at)
        if ends is None:
            longest = self.log.meta.attribution_window
            return None if longest is None else np.full(len(self.shown_at), longest, np.int64)
        return ends - self.shown_at

    def blurs(self, ticks: float) -> bool:
        """Return whether the time stamps are so coarse that they hardly tell delays of so many ticks apart."""
        return self.log.meta.tick_seconds is not None and ticks < TOLD_APART * self.stamp

    def longest_span(self, ticks: int) -> int:
        """Return the most displays that follow one within so many ticks, those past the end at the mean rate.

        Exact where all displays are marks; else an upper bound, by less than two of their distances. It is at least
        the `delay` of every conversion that came within so many ticks.
        """
        # Of the displays after a mark up to the next one, none was shown later than that one, none has a lower number.
        first = np.concatenate([self.mark[:1], self.mark[:-1] + 1])
        until = self.marked_at + ticks
        # As many displays came until then as the first later mark has before it.
        before = np.append(self.mark, self.mark[-1] + 1)
        count = before[np.searchsorted(self.marked_at, until, side="right")]
        count = _past_the_end(count, until, int(self.marked_at[-1]), self.rate)
        return int((count - 1 - first).max())

    def shown_first(self, displays: int) -> npt.NDArray[np.int64]:
        """Return how often each action is shown among the first displays, shape (K,); reads those that come after."""
        if displays not in self._shown_first:
            shown = self.shown.copy()
            if displays < len(self.log):
                for _, batch in self.log.after(displays).batches(["action"]):
                    shown -= np.bincount(batch["action"], minlength=len(shown))
            self._shown_first[displays] = shown
        return self._shown_first[displays]


def survey(log: Log) -> Survey:
    """Return what one pass over a log finds; errors as of `surveys`."""
    return surveys([log])[0]


def surveys(logs: Sequence[Log]) -> list[Survey]:
    """Return what one pass finds of logs that have the same displays, and events of their own.

    Raise LogError if conversions are past the last display and all displays share one time: there is no traffic rate.
    """
    log = logs[0]
    k, columns = log.n_actions, ["action"] + ["propensity"] * (log.meta.propensity != "absent")
    shown = np.zeros(k, np.int64)
    smallest, largest = np.full(k, np.inf), np.full(k, -np.inf)
    inverse: npt.NDArray[np.float64] | None = None  # until an action has had two propensities
    counted = bool(counted_by(log.schema))
    events = [_PassingEvents(of, counted=counted) for of in logs]
    step = max(-(-len(log) // _MARKS), 1)
    marks: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32]]] = []
    stamps = _Stamps(log.meta.tick_seconds)
    start, end, last, span = 0, 0, 0, (0, len(log) - 1)
    for first, batch, passing in _pass(log, columns, counted=counted):
        time, action = batch["time"], batch["action"].astype(np.intp, copy=False)
        stamps.see(time)
        counts = np.bincount(action, minlength=k)
        if "propensity" in batch:
            of_constant = _of_constant(shown, smallest)
            np.minimum.at(smallest, action, batch["propensity"])
            np.maximum.at(largest, action, batch["propensity"])
            if inverse is None and (smallest < largest).any():
                inverse = of_constant
            if inverse is not None:
                with np.errstate(over="ignore"):  # of propensities next to 0, which are named elsewhere
                    once = 1.0 / batch["propensity"]
                    inverse += [np.bincount(action, power, k) for power in (once, once * once)]
        shown += counts
        at = np.arange(-first % step, len(time), step)
        number = first + at
        every = None if passing.counts is None else passing.counts[-len(time) :] - 1
        if every is not None:
            span = (int(every[0]) if first == 0 else span[0]), int(every[-1])
            number = every[at]
        for of in events:
            of.read(first, batch, every, passing)
        marks.append((number, time[at], batch["action"][at]))
        start, end, last = (int(time[0]) if first == 0 else start), int(time[-1]), int(action[-1])
    passed = span[1] - span[0]
    rate = passed / (end - start) if end > start else float("nan")
    never = shown == 0
    if inverse is None:
        inverse = np.full((2, k), np.nan) if log.meta.propensity == "absent" else _of_constant(shown, smallest)
    smallest[never | np.isinf(smallest)] = largest[never | np.isinf(largest)] = np.nan
    mark = np.concatenate([*(number for number, _, _ in marks), [span[1]]])
    marked_at = np.concatenate([*(time for _, time, _ in marks), [end]])
    marked_action = np.concatenate([*(action for _, _, action in marks), np.array([last], np.int32)])
    found: list[Survey] = []
    asked: tuple[dict[int, int], dict[int, npt.NDArray[np.int64]]] = {}, {}  # of the displays, which are the same
    events.reverse()
    while events:  # each is let go of before the next one is counted: there may be millions of each kind
        of = events.pop()
        delay, limit = of.followed(span[1] + 1, end, rate)
        one = Survey(
            of.log, shown, smallest, largest, inverse, rate, (len(log) - 1) / passed if passed else 1.0, of.display,
            of.position, of.shown_at, delay, limit, mark, marked_at, marked_action, of.sample, of.sample_action,
            stamps.with_times(of.times).ticks, of.kinds, _until=asked[0], _shown_first=asked[1],
        )  # fmt: skip
        few = (rate * one.stamp if end > start else passed) < FEW_SHARE
        fine = few or not of.own.any() or not one.blurs(float(np.median(one.delay_ticks[of.own])))
        found.append(one if fine else _within_stamps(one, of.own))
    return found


class _Passing(NamedTuple):
    """Times of displays that go by, shape (n,), and the displays of the traffic up to and with each, if those count.

    Where they do, the last display of the batch before comes first.
    """

    first: int
    time: npt.NDArray[np.int64]
    counts: Counts | None


def _pass(log: Log, columns: Sequence[str], *, counted: bool) -> Iterator[tuple[int, Columns, _Passing]]:
    """Yield the displays of a log, batch by batch, with the displays of the traffic where these are `counted`."""
    traffic = TrafficCount(log.schema)
    before: tuple[int, int] | None = None
    for first, batch in log.batches(list(dict.fromkeys(["time", *columns, *(traffic.columns if counted else ())]))):
        time, counts = batch["time"], None
        if counted:
            counts = traffic.read(first, batch, len(time))
            last = int(time[-1]), int(counts[-1])
            shown, total = (int(time[0]), int(counts[0])) if before is None else before
            before, time, counts = last, np.append(shown, time), np.append(total, counts)
        yield first, batch, _Passing(first, time, counts)


class _CountUntil:
    """How many displays there are no later than rising times, shape (n,), counted while the displays go by."""

    def __init__(self, when: npt.NDArray[np.int64], *, between: bool) -> None:
        self.when = when
        self.counts = np.zeros(len(when), np.int64)
        self._between = between
        self._done = 0

    def read(self, passing: _Passing, known: int | None = None) -> None:
        """Count the next displays; of the times so many are `known`, None for all."""
        shown, counts = passing.time, passing.counts
        # Times from the batch's last display on may count displays of the next batch too.
        end = self._done + int(np.searchsorted(self.when[self._done : known], shown[-1], side="left"))
        when = self.when[self._done : end]
        self.counts[self._done : end] = (
            passing.first + np.searchsorted(shown, when, side="right")
            if counts is None
            else _counted(when, shown, counts, self._between)
        )
        self._done = end

    def finished(self, total: int) -> npt.NDArray[np.int64]:
        """Return the counts, once all displays have gone by."""
        self.counts[self._done :] = total
        return self.counts


class _PassingEvents:
    """The events of a log while its displays go by: their displays, and how many followed these by some times."""

    def __init__(self, log: Log, *, counted: bool) -> None:
        self.log = log
        self.kinds = reward_kinds(log)
        self.display = to_numpy(log.conversions["display_id"]).astype(np.int64, copy=False)
        self.times = to_numpy(log.conversions["time"]).astype(np.int64, copy=False)
        self.shown_at = np.empty(len(self.display), np.int64)
        self.position = np.empty(len(self.display), np.int64) if counted else self.display
        sold, n = self.kinds[0].at, len(self.display)
        step = max(-(-(n if isinstance(sold, slice) else len(sold)) // _MARKS), 1)
        self.sample = np.arange(0, n, step) if isinstance(sold, slice) else sold[::step]
        self.sample_action = np.empty(len(self.sample), np.int32)
        self._costs = cost_events(log.conversions)
        # Events that are no costs, which come at once.
        self.own = np.ones(len(self.display), np.bool_) if self._costs is None else ~self._costs
        self._between = POSITION in counted_by(log.schema) if counted else False
        self._order = _order(self.times)
        self._until = _CountUntil(self.times[self._order], between=self._between)
        # Of each rule how long displays were followed for it, which rises with the display.
        self._ends = self._followed()

    def _followed(self) -> list[tuple[LogMeta | RewardKind, slice | npt.NDArray[np.int64], _CountUntil]]:
        known = [kind.observed_until for kind in self.kinds if kind.observed_until is not None]
        if not known:
            return []
        # Where some kinds only were followed to the end, that is the last time that anything was followed until.
        self._last = max(*known, int(self.times.max(initial=0)))
        others = [kind for kind in self.kinds if not kind.of_conversions]
        rules: list[LogMeta | RewardKind] = [self.log.meta, *others]
        at: list[slice | npt.NDArray[np.int64]] = [slice(None)]
        if others:
            rest = ~np.any([kind.marked(len(self.times)) for kind in others], axis=0)
            at = [np.flatnonzero(rest), *(kind.at for kind in others)]
        return [
            (of, rows, _CountUntil(np.empty(len(self.display[rows]), np.int64), between=self._between))
            for of, rows in zip(rules, at, strict=True)
        ]

    def read(self, first: int, batch: Columns, every: Counts | None, passing: _Passing) -> None:
        """Take in the next displays and, where they are counted, their numbers in the traffic."""
        time = batch["time"]
        low, high = np.searchsorted(self.display, [first, first + len(time)])
        at = self.display[low:high] - first
        self.shown_at[low:high] = time[at]
        sampled = slice(*np.searchsorted(self.sample, [low, high]))
        self.sample_action[sampled] = batch["action"][self.display[self.sample[sampled]] - first]
        if every is not None:
            self.position[low:high] = every[at]
        self._until.read(passing)
        for of, rows, until in self._ends:
            begin, known = (low, high) if isinstance(rows, slice) else np.searchsorted(rows, [low, high])
            mine = slice(begin, known) if isinstance(rows, slice) else rows[begin:known]
            until.when[begin:known] = _ended(of, self.shown_at[mine], self._last)
            until.read(passing, int(known))

    def followed(self, total: int, end: int, rate: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
        """Return `delay` and `limit` of the survey: the traffic had so many displays in `total`, until its `end`."""
        counts = self._until.finished(total)
        if not isinstance(self._order, slice):
            counts = np.empty_like(self.times)
            counts[self._order] = self._until.counts
        del self._until, self._order
        delay = _past_the_end(counts, self.times, end, rate)
        delay -= 1
        delay -= self.position
        if self._costs is not None:
            delay[self._costs] = 0  # at once, however many displays share the time
        if not self._ends:
            return delay, None
        limit = np.empty_like(self.times)
        for _, rows, until in self._ends:
            limit[rows] = _past_the_end(until.finished(total), until.when, end, rate)
        return delay, limit - 1 - self.position


def _order(times: npt.NDArray[np.int64]) -> slice | npt.NDArray[np.int64]:
    """Return what puts times in order, which they mostly are in."""
    return slice(None) if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable")


def _followed_until(
    log: Log, kinds: Sequence[RewardKind], shown_at: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64] | None:
    """Return until when each event's display was followed for its kind, in ticks, shape (c,); None for to the end.

    Where some kinds only were followed to the end, that is the last time that anything was followed until.
    """
    known = [kind.observed_until for kind in kinds if kind.observed_until is not None]
    if not known:
        return None
    last = max(*known, int(to_numpy(log.conversions["time"]).max(initial=0)), int(shown_at.max(initial=0)))
    ends = _ended(log.meta, shown_at, last)
    for kind in kinds:
        if not kind.of_conversions:
            ends[kind.at] = _ended(kind, shown_at[kind.at], last)
    return ends


def _ended(of: LogMeta | RewardKind, shown_at: npt.NDArray[np.int64], last: int) -> npt.NDArray[np.int64]:
    until, longest = of.observed_until, of.attribution_window
    if until is None or longest is None:
        return np.full(len(shown_at), last if until is None else until)
    return np.minimum(until, shown_at + longest)


def _within_stamps(found: Survey, own: npt.NDArray[np.bool_]) -> Survey:
    """Return the survey with the delays of conversions, those that are no costs, drawn within their time stamps.

    Displays are taken to be spread evenly over their stamp, in the log's order. A draw follows from the number of the
    display alone. Cost: one more pass over the times of the displays.
    """
    log, stamp = found.log, found.stamp
    start, end = int(found.marked_at[0]), int(found.marked_at[-1])
    edges = np.arange(start + stamp, end + stamp + 1, stamp) - 1
    before = traffic_until(log, edges)[0]
    before = np.concatenate([found.mark[:1], before]).astype(np.float64)
    shared = (before[-1] - before[0]) / len(edges)
    number = np.arange(len(before))
    of, at = (found.shown_at - start) // stamp, (found.shown_at + found.delay_ticks - start) // stamp
    place = found.position + 0.5
    shown = of + np.minimum((place - before[of]) / np.maximum(before[of + 1] - before[of], 1.0), 1.0)

    def followed_by(when: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        beyond = np.maximum(when - number[-1], 0.0) * shared
        count = np.floor(np.interp(when, number, before) + beyond - place)
        return np.asarray(np.maximum(count, 0.0), np.int64)

    first = np.searchsorted(found.display, found.display)
    with np.errstate(over="ignore"):
        key = mixed(found.display.astype(np.uint64) + STEP) + (np.arange(len(first)) - first).astype(np.uint64)
    uniform = np.asarray((mixed(key + STEP) >> np.uint64(11)) * 2.0**-53, np.float64)
    apart = np.maximum(at - of, 0)
    later = np.zeros(len(apart))
    for kind in found.kinds:
        later[kind.at] = delays_within_stamps(apart[kind.at], uniform[kind.at])
    drawn = followed_by(shown + later)
    begun = followed_by(np.where(apart > 0, at, shown).astype(np.float64))
    limit = drawn if found.limit is None else found.limit
    return replace(
        found,
        delay=np.where(own, np.minimum(drawn, limit), found.delay),
        ends=(np.where(own, np.minimum(begun, found.delay), found.delay), found.delay),
    )


class _Stamps:
    """The coarsest unit of which all times seen are multiples, counted from the first."""

    def __init__(self, tick_seconds: float | None) -> None:
        units = [] if tick_seconds is None else [round(unit / tick_seconds) for unit in _STAMPS]
        self._units = [unit for unit in units if unit > 1]
        self._from: int | None = None

    def see(self, time: npt.NDArray[np.int64]) -> None:
        """Look at some times. Cost: one pass for each unit that may still be the one, mostly none."""
        if len(time):
            self._from = int(time[0]) if self._from is None else self._from
            # A few first: they rule out most units.
            for some in (time[:100], time):
                self._units = [unit for unit in self._units if not np.any((some - self._from) % unit)]

    def with_times(self, time: npt.NDArray[np.int64]) -> _Stamps:
        """Return what the times say that were seen and these, which are looked at for the result alone."""
        other = copy(self)
        other.see(time)
        return other

    @property
    def ticks(self) -> int:
        """The unit in ticks."""
        return self._units[0] if self._units else 1


def _of_constant(shown: npt.NDArray[np.int64], p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the sums of 1/p and 1/p² of actions with one propensity each, inf where never shown; shape (2, K)."""
    with np.errstate(over="ignore"):
        return np.array([shown / p, shown / p**2])


def displays_until(log: Log, *times: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Return how many displays were shown no later than each time, arrays of the shapes given, in one pass."""
    return _shown_until(log, times, counted=False)


def traffic_until(log: Log, *times: npt.NDArray[np.int64]) -> list[Counts]:
    """Return how many displays of the traffic came no later than each time, arrays of the shapes given, in one pass.

    Where displays were dropped between two of the log, as many of these as an even pace between the two makes
    expected: the error is below the number of displays dropped there, and 0 on average while the pace is steady; none
    where times number the displays. Displays that stand for several count when they are shown.
    """
    return _shown_until(log, times, counted=bool(counted_by(log.schema)))


def _shown_until(log: Log, times: Sequence[npt.NDArray[np.int64]], *, counted: bool) -> list[Counts]:
    """Return the counts at each time: of the traffic where it is `counted`, else of the log's own displays."""
    order = [_order(when) for when in times]
    between = POSITION in counted_by(log.schema)
    until = [_CountUntil(when[at], between=between) for when, at in zip(times, order, strict=True)]
    total = 0
    for first, batch, passing in _pass(log, [], counted=counted):
        for of in until:
            of.read(passing)
        total = first + len(batch["time"]) if passing.counts is None else int(passing.counts[-1])
    found = []
    for at, of in zip(order, until, strict=True):
        counts = np.empty_like(of.counts)
        counts[at] = of.finished(total)
        found.append(counts)
    return found


def _past_the_end(
    count: npt.NDArray[np.int64], when: npt.NDArray[np.int64], end: int, rate: float
) -> npt.NDArray[np.int64]:
    """Return the counts with the displays that the log's mean traffic rate would have brought after its last one."""
    past = when > end
    if not past.any():
        return count
    if not np.isfinite(rate):
        raise LogError(
            "displays.time: all displays share one time: no traffic rate for the conversions that come later.",
            remedy="give the displays their times, or number them (unit = 'round').",
        )
    beyond = np.where(past, np.floor((when - end) * rate), 0.0)
    return count + beyond.astype(np.int64)


def position_of(log: Log, display: int) -> int:
    """Return the number of a display in the traffic, counted from 0."""
    count = TrafficCount(log.schema)
    if not count.columns:
        return display
    for first, batch in log.batches(count.columns):
        n = len(batch[count.columns[0]])
        counts = count.read(first, batch, n)
        if display < first + n:
            return int(counts[display - first]) - 1
    raise IndexError(f"The log has no display {display}.")


def _counted(when: npt.NDArray[np.int64], shown: npt.NDArray[np.int64], counts: Counts, between: bool) -> Counts:
    """Return the counts at times that all lie before the last display."""
    after = np.searchsorted(shown, when, side="right")
    last = np.maximum(after - 1, 0)
    if not between:
        return np.asarray(counts[last])
    dropped = np.maximum(counts[after] - counts[last] - 1, 0)
    part = np.clip((when - shown[last]) / np.maximum(shown[after] - shown[last], 1), 0.0, 1.0)
    return np.asarray(counts[last] + np.ceil(dropped * part - _EXACT).astype(np.int64))
