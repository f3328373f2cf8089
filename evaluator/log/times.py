"""Times of a log: in words, as periods (days, or tenths of its displays), as stamps, as places in the traffic.

What time stamps tell apart: the unit that a log's times are whole multiples of, whatever its tick.

A delay between two stamps is known up to one stamp; `delays_within_stamps` draws it. The mean number of stamps between
display and conversion is the mean delay in stamps, whatever the law, where displays are spread evenly over theirs; so a
constant hazard of that mean is assumed within a stamp. Conversions spread evenly over what is left of their stamp would
come late by up to a third of it where delays are much shorter (`tests/statistical/test_coarse_stamps.py`).

Of which traffic the displays of a log are a part: how many displays of it each of them stands for.

A log may hold a part of what it was cut from: the displays of some actions (column ``position``: the number a display
had among all at which one of them was eligible), or displays kept with probabilities of their own (column ``weight``:
one over it). Delays count the displays of the traffic, not those of the log.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.log_tables import LogMeta
from evaluator.log.schema import POSITION, WEIGHT, Columns
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
Floats = npt.NDArray[np.float64]
# Time stamps of so many seconds are coarse: what they do not tell is a good part of many windows.
COARSE_S = 60.0
# A delay of fewer time stamps than this is known by a tenth at best.
TOLD_APART = 10
# Displays that share a time stamp from which it matters that their order is not known.
FEW_SHARE = 10
# Points of a distribution function that is inverted.
_POINTS = 4_096
Counts = npt.NDArray[np.int64]


def dated(time: float, tick_seconds: float | None) -> bool:
    """Return whether a time (ticks) is a date: seconds since 1970, from 2000 on."""
    return tick_seconds is not None and _FIRST <= time * tick_seconds < _LAST


def time_words(time: float, tick_seconds: float | None, *, start: int) -> str:
    """Return a time of a log, in ticks, as people read it; `tick_seconds` is None where the log counts rounds.

    Without dates, days are counted from the one on which the first display falls, at tick `start`: it is day 1.

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
    """Displays and conversions period by period: days, or tenths of the displays.

    Each conversion's display is in the period `of`, counted from 0, shape (n,); `displays` counts those of each, shape
    (P,). `day` is the number of ticks in a day and `origin` the day that is period 0; None where periods are tenths.
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


def stamp_of(*differences: Ints, known: int = 0) -> int:
    """Return the largest number of ticks of which all these are whole multiples, `known` among them; 1 if all are 0.

    A log in microseconds whose times are whole seconds is the log in seconds, and says no more of a delay than it.

    >>> stamp_of(np.array([0, 120, 300]), np.array([60])), stamp_of(np.array([0, 0]))
    (60, 1)
    """
    for values in differences:
        if known == 1:
            break
        known = int(np.gcd.reduce(np.abs(values), initial=known))
    return known or 1


def delays_within_stamps(stamps: Ints, uniform: Floats) -> Floats:
    """Return delays in stamps, drawn given how many stamps lie between display and conversion, shape (c,).

    With hazard h and a display anywhere in its stamp, a delay d with k stamps between has the density exp(-h d) (1 - |d
    - k|) for 0 < d and k - 1 < d < k + 1: one law for k = 0, and one of d - k for all others. `stamps` holds k, 0 where
    display and conversion share a stamp, and `uniform` draws between 0 and 1, both of shape (c,).

    >>> delays_within_stamps(np.array([0, 0, 1]), np.array([0.1, 0.9, 0.5])).round(2)
    array([0.02, 0.46, 0.51])
    """
    if not len(stamps):
        return np.zeros(0)
    hazard = len(stamps) / max(int(stamps.sum()), 1)
    drawn = np.empty(len(stamps))
    for same in (True, False):
        of = (stamps == 0) == same
        length = 1.0 if same else 2.0
        # Quantiles of exp(-h x) from 0 to `length`, closer together in the tail; the rest of the density weighs them.
        q = 1.0 - np.linspace(1.0, 0.0, _POINTS) ** 3
        with np.errstate(divide="ignore"):
            x = np.minimum(-np.log1p(np.expm1(-hazard * length) * q) / hazard, length)
        weight = 1.0 - x if same else 1.0 - np.abs(x - 1.0)
        below = np.concatenate([[0.0], np.cumsum((weight[1:] + weight[:-1]) * np.diff(q))])
        drawn[of] = stamps[of] - (0.0 if same else 1.0) + np.interp(uniform[of] * below[-1], below, x)
    return drawn


def counted_by(schema: pa.Schema) -> list[str]:
    """Return the columns that count the displays of the traffic; none if the log holds all the traffic."""
    return [name for name in (POSITION, WEIGHT) if name in schema.names][:1]


class TrafficCount:
    """Counts the traffic while the displays of a log go by, from the first one on."""

    def __init__(self, schema: pa.Schema) -> None:
        self.columns = counted_by(schema)
        self._total = 0.0

    def read(self, first: int, displays: Columns, n: int) -> Counts:
        """Return how many displays of the traffic there were up to and with each of the next `n`, shape (n,)."""
        if POSITION in self.columns:
            return np.asarray(displays[POSITION] + 1)
        if WEIGHT in self.columns:
            total = summed(self._total, displays[WEIGHT])
            self._total = float(total[-1])
            return np.rint(total).astype(np.int64)
        return np.arange(first + 1, first + n + 1)


def summed(before: float, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return running sums from `before` on, shape (n,), the same wherever the displays are cut into batches."""
    return np.cumsum(np.concatenate([[before], weight]))[1:]
