"""The log's time: periods, hours, and when the displays around its conversions were shown; one pass over the times."""

from __future__ import annotations

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

Ints = npt.NDArray[np.int64]

_MOST_PERIODS = 40
# Hours beyond this many (a century) come from times in the wrong unit.
MOST_HOURS = 1_000_000
HOURS, WEEKDAYS = "hour of the day", "day of the week"


@dataclass(frozen=True, eq=False)
class Timeline:
    """When displays were shown.

    Parameters
    ----------
    period
        Name of a period: ``day``, ``block of 3 days`` or ``tenth`` of the displays.
    edges
        Number of the first display of each period, and one past the last display, shape (P + 1,).
    hours
        Number of displays of each hour from the first to the last, shape (H,); None for logs of rounds, of ticks longer
        than an hour, or of absurd spans.
    hour
        Ticks in an hour, at least one.
    hour_of_day
        Hour of the day, 0 to 23, of the first hour.
    start, end
        Time of the first and of the last display, in ticks.
    asked
        Times, in ticks, of the displays that were asked for by number, shape (q,).
    ends
        Time at which each period ends, in ticks, shape (P,); None where periods are tenths.
    whole
        Whether the log covers each period but for an hour, shape (P,). Times of day are alike in these; all tenths
        count.
    rhythms
        What displays at times that come again are told apart by, and the names of the groups: the hours of the day
        where the log covers a day, and the days of the week where it covers two weeks.
    rhythm_ticks
        Number of ticks that one group of each rhythm lasts.
    tick_seconds
        Length of a tick in seconds; None where periods are tenths.
    """

    period: str
    edges: Ints
    hours: Ints | None
    hour: int
    hour_of_day: int
    start: int
    end: int
    asked: Ints
    ends: Ints | None
    whole: npt.NDArray[np.bool_]
    rhythms: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rhythm_ticks: tuple[int, ...] = ()
    tick_seconds: float | None = None

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
