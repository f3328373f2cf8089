"""The periods that a log is looked at in: its days or, where it has too few, tenths of its displays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.log.meta import LogMeta
from evaluator.log.times import dated, time_words
from evaluator.units import SECONDS

Ints = npt.NDArray[np.int64]

DAY, TENTH, TENTHS = "day", "tenth", 10
# Logs of fewer are cut into tenths.
_FEWEST_DAYS = 3


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

    name: str
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
