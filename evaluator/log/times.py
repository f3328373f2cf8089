"""Times of a log in words, and the periods in which a log is looked at: days, or tenths of its displays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
import numpy.typing as npt

from evaluator.log.meta import LogMeta
from evaluator.units import SECONDS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Seconds since 1970: times from 2000 on are dates, smaller ones count from a start of the log's own.
_FIRST, _LAST = 946_684_800, 32_503_680_000
_DAY = 86_400
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
Ints = npt.NDArray[np.int64]

PeriodName = Literal["day", "tenth"]
DAY: PeriodName = "day"
TENTH: PeriodName = "tenth"
TENTHS = 10
# Logs of fewer are cut into tenths.
_FEWEST_DAYS = 3


def dated(time: float, tick_seconds: float | None) -> bool:
    """Return whether a time (ticks) is a date: seconds since 1970, from 2000 on."""
    return tick_seconds is not None and _FIRST <= time * tick_seconds < _LAST


def time_words(time: float, tick_seconds: float | None, *, start: int) -> str:
    """Return a time of a log as people read it.

    Parameters
    ----------
    time
        Time of the log in ticks.
    tick_seconds
        Length of a tick in seconds; None where the log counts rounds.
    start
        Time of the first display in ticks: without dates, days are counted from the one it falls on, which is day 1.

    >>> time_words(1_767_225_600, 1.0, start=0)
    '2026-01-01 00:00'
    >>> time_words(97_200, 1.0, start=10)
    'day 2, 03:00'
    >>> time_words(250, None, start=0)
    'round 250'
    """
    if tick_seconds is None:
        return f"round {time:.0f}"
    seconds = time * tick_seconds
    if dated(time, tick_seconds):
        return (_EPOCH + timedelta(seconds=math.floor(seconds))).strftime("%Y-%m-%d %H:%M")
    day, rest = divmod(math.floor(seconds), _DAY)
    first = math.floor(start * tick_seconds) // _DAY
    return f"day {day - first + 1}, {rest // 3600:02d}:{rest % 3600 // 60:02d}"


def with_date(time: int, tick_seconds: float | None) -> str:
    """Return a time as a spec has it, with its date where it is one.

    >>> with_date(1_767_225_600, 1.0), with_date(250, 1.0)
    ('1767225600 (2026-01-01 00:00)', '250')
    """
    return f"{time} ({time_words(time, tick_seconds, start=time)})" if dated(time, tick_seconds) else str(time)


def weekday_names(time: int, tick_seconds: float) -> tuple[str, ...]:
    """Return the names of the days since 1970, or since a log's time 0, by their number modulo 7.

    >>> weekday_names(1_767_225_600, 1.0)[20_454 % 7]
    'Thursday'
    """
    if dated(time, tick_seconds):
        return tuple(WEEKDAYS[(d + 3) % 7] for d in range(7))  # 1970-01-01 was a Thursday
    return tuple(f"day {d + 1} of the week" for d in range(7))


@dataclass(frozen=True, eq=False)
class Periods:
    """Displays and conversions period by period.

    Parameters
    ----------
    name
        Name of a period: ``day``, or ``tenth`` of the displays.
    of
        Period of each conversion's display, counted from 0, shape (n,).
    displays
        Number of displays of each period, shape (P,).
    day, origin
        Number of ticks in a day, and the day that is period 0; None where periods are parts of as many displays each.
    """

    name: PeriodName
    of: Ints
    displays: Ints
    day: int | None = None
    origin: int = 0

    def at(self, time: Ints, number: Ints) -> Ints:
        """Return the period of displays shown at `time` (ticks) whose numbers are `number`, shape (n,)."""
        if self.day is not None:
            return time // self.day - self.origin
        return np.searchsorted(np.cumsum(self.displays), number, side="right")

    def label(self, period: int, tick_seconds: float | None) -> str:
        """Return what a period is called: its date where the log has them, else its number, from 0."""
        time = 0 if self.day is None else (self.origin + period) * self.day
        return time_words(time, tick_seconds, start=time)[:10] if dated(time, tick_seconds) else str(period)


def ticks_a_day(meta: LogMeta) -> int | None:
    """Return the ticks in a day, at least one; None for a log of rounds, which has no days."""
    return None if meta.tick_seconds is None else max(round(SECONDS["d"] / meta.tick_seconds), 1)


def has_days(days: int) -> bool:
    """Return whether a log of so many days, the first and the last one included, is looked at day by day."""
    return days >= _FEWEST_DAYS


def tenths(displays: int) -> Ints:
    """Return where the tenths of a log begin and end: part i has the displays edges[i] to edges[i + 1] (excluded)."""
    return displays * np.arange(TENTHS + 1, dtype=np.int64) // TENTHS


def part_of(edges: Ints, number: Ints) -> Ints:
    """Return the part that displays with these numbers are in, from 0; `edges` as of `tenths`."""
    return np.searchsorted(edges, number, side="right") - 1
