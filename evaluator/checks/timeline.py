"""The log's time: its periods and hours, how long it followed its displays, and whether it stopped unsaid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.times import (
    DAY,
    TENTH,
    TENTHS,
    dated,
    has_days,
    part_of,
    tenths,
    ticks_a_day,
    time_words,
    weekday_names,
)
from evaluator.replays.rounds.survey import Survey

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_MOST_PERIODS = 40
# Hours beyond this many (a century) come from times in the wrong unit.
MOST_HOURS = 1_000_000
HOURS, WEEKDAYS = "hour of the day", "day of the week"
# Why a log `about_a_day` is not tested for drift.
TOO_SHORT = "fewer than three days: hours of the day cannot be told from a drift"
# Shifts in time are of whole weeks, or of whole days, where the log has two of them; below so many days it has none.
_DAY, _FEWEST_DAYS = 86_400.0, 1.25
# Rates are compared within a follow-up that this share of the displays had.
JUDGED = 0.8
# Share of the conversions that are missing: nothing to speak of, and too many.
FEW_MISSING, MANY_MISSING = 0.001, 0.01
# Conversions at the end of the log that may stand alone after all others.
STRAYS = 3


@dataclass(frozen=True, eq=False)
class Timeline:
    """When displays were shown."""

    # Name of a period: ``day``, ``block of 3 days`` or ``tenth`` of the displays.
    period: str
    # Number of the first display of each period, and one past the last display, shape (P + 1,).
    edges: Ints
    # Number of displays of each hour from the first to the last, shape (H,); None for logs of rounds, of ticks longer
    # than an hour, or of absurd spans.
    hours: Ints | None
    hour: int  # Ticks in an hour, at least one
    hour_of_day: int  # Hour of the day, 0 to 23, of the first hour
    # Time of the first and of the last display, in ticks.
    start: int
    end: int
    # Times, in ticks, of the displays that were asked for by number, shape (q,).
    asked: Ints
    # Time at which each period ends, in ticks, shape (P,); None where periods are tenths.
    ends: Ints | None
    # Whether the log covers each period but for an hour, shape (P,). Times of day are alike in these; all tenths count.
    whole: Flags
    # What displays at times that come again are told apart by, and the names of the groups: the hours of the day where
    # the log covers a day, and the days of the week where it covers two weeks.
    rhythms: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rhythm_ticks: tuple[int, ...] = ()  # Number of ticks that one group of each rhythm lasts
    tick_seconds: float | None = None  # Length of a tick in seconds; None where periods are tenths

    @property
    def periods(self) -> int:
        """Number of periods."""
        return len(self.edges) - 1

    def period_of(self, displays: Ints) -> Ints:
        """Return the period of some displays, given their numbers."""
        return part_of(self.edges, displays)

    def rhythms_of(self, time: Ints) -> list[Ints]:
        """Return the group of displays shown at these times, for each rhythm."""
        return [time // ticks % len(names) for ticks, (_, names) in zip(self.rhythm_ticks, self.rhythms, strict=True)]

    @property
    def about_a_day(self) -> bool:
        """Whether the log has times of day and too few days to tell what goes with them from what drifts."""
        return self.ends is None and bool(self.rhythms or self.hours is not None)

    @property
    def hours_of_day(self) -> int:
        """Hours of the day that times are told apart by: 24, or 1 where the log does not tell them."""
        return 24 if any(what == HOURS for what, _ in self.rhythms) else 1

    def hour_of(self, time: Ints) -> Ints:
        """Return the hour of the day of displays shown at these times; 0 where the log does not tell them."""
        return time // self.hour % 24 if self.hours_of_day == 24 else np.zeros(len(time), np.int64)

    def name(self, d: int) -> str:
        """Return what a period is called: by its dates where the log has them, else counted from 1."""
        if self.ends is None or not dated(self.start, self.tick_seconds):
            return f"{self.period} {d + 1}"
        first = self.start if d == 0 else self.ends[d - 1]
        days = [time_words(time, self.tick_seconds, start=self.start)[:10] for time in (first, self.ends[d] - 1)]
        return days[0] if days[0] == days[1] else " to ".join(days)


def read_timeline(log: Log, asked: Ints) -> Timeline:
    """Return the timeline of a log, and the times of the displays `asked`."""
    seconds = log.meta.tick_seconds
    hour = None if seconds is None else max(round(3600.0 / seconds), 1)
    order = np.argsort(asked, kind="stable")
    sorted_asked, times = asked[order], np.empty(len(asked), np.int64)
    by_hour: dict[int, int] = {}
    start = end = 0
    for first, batch in log.batches(["time"]):
        time = batch["time"]
        start, end = (int(time[0]) if first == 0 else start), int(time[-1])
        low, high = np.searchsorted(sorted_asked, [first, first + len(time)])
        times[low:high] = time[sorted_asked[low:high] - first]
        if hour is not None:
            for number, count in zip(*(found.tolist() for found in np.unique(time // hour, return_counts=True)),
                                     strict=True):  # fmt: skip
                by_hour[number] = by_hour.get(number, 0) + count
    back = np.empty_like(times)
    back[order] = times
    parts, whole = tenths(len(log)), np.ones(TENTHS, bool)
    day_ticks = ticks_a_day(log.meta)
    if hour is None or day_ticks is None or max(by_hour) - min(by_hour) >= MOST_HOURS:
        return Timeline(TENTH, parts, None, hour or 1, 0, start, end, back, None, whole)
    origin = min(by_hour)
    hours = np.zeros(max(by_hour) - origin + 1, np.int64)
    for number, count in by_hour.items():
        hours[number - origin] = count
    seconds = seconds or 1.0
    per_day = max(day_ticks // hour, 1)
    day = (np.arange(len(hours)) + origin) // per_day
    days = np.bincount(day - day[0], hours).astype(np.int64)
    by_hours = hours if seconds <= 3600.0 else None
    rhythms = _rhythms(start, end, hour, day_ticks, seconds)
    if not has_days(len(days)):
        return Timeline(TENTH, parts, by_hours, hour, origin % 24, start, end, back, None, whole, *rhythms)
    together = -(-len(days) // _MOST_PERIODS)
    starts = np.arange(0, len(days), together)
    edges = np.concatenate(([0], np.cumsum(np.add.reduceat(days, starts))))
    name = DAY if together == 1 else f"block of {together} days"
    ends = (start // day_ticks + np.append(starts[1:], len(days))) * day_ticks
    whole = np.ones(len(ends), bool)
    whole[0] = start % day_ticks <= hour
    whole[-1] &= end + hour >= ends[-1]
    return Timeline(name, edges, by_hours, hour, origin % 24, start, end, back, ends, whole, *rhythms, seconds)


def _rhythms(
    start: int, end: int, hour: int, day: int, seconds: float
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[int, ...]]:
    """Return the names of what comes again and of its groups, and the ticks of one group of each."""
    names: list[tuple[str, tuple[str, ...]]] = []
    ticks = []
    if seconds <= 3600.0 and end - start >= day:
        names.append((HOURS, tuple(f"{h:02d}:00 to {h + 1:02d}:00" for h in range(24))))
        ticks.append(hour)
    if seconds <= 86_400.0 and end - start >= 14 * day:
        names.append((WEEKDAYS, weekday_names(start, seconds)))
        ticks.append(day)
    return tuple(names), tuple(ticks)


@dataclass(frozen=True, eq=False)
class FollowUp:
    """How far the log saw."""

    delay: Ints  # Delay of each conversion in ticks, shape (c,)
    # Time of the last conversion that is no stray, in ticks; None without conversions.
    last: int | None
    # Row numbers of conversions that stand alone after all others, shape (r,): they only seem to follow the displays
    # for longer.
    strays: Ints
    # Number of conversions that were to be expected after the last one (but the strays), had all displays been followed
    # as the log says.
    beyond: int
    # Probability of at least as many missing conversions when the log says the truth.
    p_value: float
    # Whether times of day, at some of which nothing comes, cannot be the reason; False for logs of about a day.
    by_day: bool
    stopped: bool  # Whether the log stopped looking without saying so
    # Time up to which displays were followed, in ticks: as the log says, or the last conversion when it `stopped`; None
    # where every display was followed to its end.
    until: int | None
    # Longest delay, in ticks, of the conversions that rates count; None counts all.
    horizon: int | None
    # Number of displays, the first ones, that were followed for as long as `horizon`.
    mature: int

    def counted(self, display: Ints) -> Flags:
        """Return which conversions a comparison of rates counts, shape (c,)."""
        within = display < self.mature
        return within if self.horizon is None else within & (self.delay <= self.horizon)


def asked_of_timeline(survey: Survey) -> Ints:
    """Return the displays whose times `follow_up` needs."""
    n = len(survey.log)
    half = survey.display[survey.display < n // 2]
    return np.append(half + n // 2, int(JUDGED * (n - 1)))


def follow_up(survey: Survey, timeline: Timeline, when: Ints, *, level: float) -> FollowUp:
    """Return how far a log saw; `level` is the probability of a false alarm of the test.

    A conversion of an earlier display, moved to a display some days later, comes at a time at which the log should have
    seen one if it was to come before `observed_until`. Where it falls after the last conversion of the log, it counts
    as one to be expected beyond it. Without drift, moved and actual conversions are exchangeable, so r moved ones after
    all actual ones have probability 2^-r, and r of them after all but j actual ones that of at most j heads in r + j
    tosses: the p-value is the smallest of these times their number. Where the last day brought fewer displays than the
    one that is moved upon it (a Saturday), each toss is as uneven as the two, and so many fewer are to be expected.

    Conversions are moved by whole weeks or days, so that nights, at which no conversion comes, and busy hours stay what
    they are; in logs of rounds, and of about a day, to the display half the log later. `when` is the time of each
    conversion in ticks, shape (c,); the timeline holds the times that `asked_of_timeline` names.
    """
    log, n = survey.log, len(survey.log)
    meta, delay = log.meta, when - survey.shown_at
    until, horizon = meta.observed_until, None
    beyond, last, p_value, strays = 0, None, 1.0, np.zeros(0, np.int64)
    shift = _shift(timeline, meta.tick_seconds)
    fall = 1.0 if shift is None else _fall(survey, timeline.end, shift, _DAY / (meta.tick_seconds or _DAY))
    if len(when):
        if shift is None:
            moved = timeline.asked[:-1] + delay[survey.display < n // 2]
        else:
            shown = survey.shown_at
            moved = when[(shown > timeline.end - 2 * shift) & (shown <= timeline.end - shift)] + shift
        if until is not None:
            moved = moved[moved <= until]
        tail = np.argsort(when, kind="stable")[-1 - STRAYS :][::-1]
        for alone in range(len(tail)):
            found = int(np.count_nonzero(moved > when[tail[alone]]))
            p = min(len(tail) * _heads(alone, found + alone, fall / (1.0 + fall)), 1.0)
            found = round(found * fall)
            stopped = p <= level and found >= FEW_MISSING * len(when)
            if alone == 0 or stopped:
                beyond, p_value, last, strays = found, p, int(when[tail[alone]]), tail[:alone]
            if stopped:
                break
    stopped = p_value <= level and beyond >= FEW_MISSING * len(when)
    if stopped:
        until = last
    mature = n
    if until is not None:
        horizon = max(until - int(timeline.asked[-1]), 0)
        if meta.attribution_window is not None:
            horizon = min(horizon, meta.attribution_window)
        mature = survey.displays_until(until - horizon)
    by_day = shift is not None or meta.tick_seconds is None
    return FollowUp(delay, last, strays, beyond, p_value, by_day, stopped, until, horizon, mature)


def _shift(timeline: Timeline, seconds: float | None) -> int | None:
    """Return the ticks by which conversions are moved: about half the log, in whole weeks or days; None without."""
    if seconds is None:
        return None
    span, day = timeline.end - timeline.start, _DAY / seconds
    if span < _FEWEST_DAYS * day:
        return None
    unit = 7.0 * day if span >= 14.0 * day else day
    return round(max(span // (2.0 * unit), 1.0) * unit)


def _fall(survey: Survey, end: int, shift: int, day: float) -> float:
    """Return the displays of the last day over those of the day that is moved upon it, at most 1."""
    length = min(day, shift)
    times = np.array([end - shift - length, end - shift, end - length, end])
    shown = np.interp(times, survey.marked_at, survey.mark)
    before, last = shown[1] - shown[0], shown[3] - shown[2]
    return float(min(last / before, 1.0)) if before > 0 and last > 0 else 1.0


def _heads(most: int, tosses: int, chance: float = 0.5) -> float:
    """Return the probability of at most so many heads.

    >>> _heads(0, 3), _heads(1, 2), _heads(0, 2, 0.25)
    (0.125, 0.75, 0.5625)
    """
    return sum(
        math.comb(tosses, heads) * chance**heads * (1.0 - chance) ** (tosses - heads) for heads in range(most + 1)
    )
