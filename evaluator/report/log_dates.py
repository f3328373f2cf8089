"""When the log of a result was written, as its manifest says it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from evaluator.log.times import dated, time_words
from evaluator.units import ROUND, SECONDS


class LogDates(NamedTuple):
    """First and last display of a log, in seconds since 1970."""

    first: float
    last: float

    def __str__(self) -> str:
        return " to ".join(time_words(end, 1.0, start=0) for end in self)

    @property
    def middle(self) -> float:
        """Time half way, in seconds since 1970."""
        return (self.first + self.last) / 2

    @property
    def days(self) -> str:
        """First and last day, ``2026-03-01 to 2026-03-07``; a single one alone."""
        return " to ".join(dict.fromkeys(f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d}" for end in self))


def log_dates(log: object) -> LogDates | None:
    """Return the dates of a log as a manifest holds it under ``log``; None where it has none, or is not said."""
    match log:
        case {"tick": str(tick), "time_range": [int(first), int(last)]} if tick != ROUND and tick in SECONDS:
            seconds = SECONDS[tick]
            if dated(first, seconds) and dated(last, seconds):
                return LogDates(first * seconds, last * seconds)
    return None
