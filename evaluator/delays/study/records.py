"""Single numbers of a study of delays: a quantile, a window, the conversion rate of a period."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evaluator.delays.study.window_advice import WindowShare
from evaluator.delays.study.words import words
from evaluator.log.delay_rows import DelayRows


@dataclass(frozen=True)
class Quantile:
    """A quantile of the delays, in ticks: of those seen, and corrected for what the log cut off, with its interval.

    `high` is inf where the conversions are too few, or the displays that were followed long enough, to bound the
    quantile from above (`bounded` says so): it is at least `low`.
    """

    level: float
    naive: float
    corrected: float
    low: float
    high: float

    @property
    def bounded(self) -> bool:
        """Whether the interval has an upper end."""
        return math.isfinite(self.high)


@dataclass(frozen=True)
class StudyWindow:
    """A window as asked for, and its share of the conversions.

    Parameters
    ----------
    text
        Text of the window, as the user wrote it.
    ticks, rounds
        The window in ticks and in rounds of full traffic: one is as asked, the other at the traffic's mean rate; rounds
        are None where the rate is unknown.
    share
        Share of the conversions that come within it: by their delays in time where it is a duration, in displays where
        it is in rounds.
    in_rounds
        Whether it was asked for in rounds.
    """

    text: str
    ticks: float
    rounds: float | None
    share: WindowShare
    in_rounds: bool

    def label(self, rows: DelayRows) -> str:
        """Return the window in its own unit, as tables name it."""
        own = words(rows, self.ticks)
        return f"{self.rounds:,.0f} rounds, {own} on average" if self.in_rounds and rows.tick_seconds else own


@dataclass(frozen=True)
class PeriodRate:
    """Conversions per display of one period: seen so far, and given a follow-up as long as the longest (None: too new).

    The latter is sum of 1 / tau(limit) over the conversions, divided by the displays.
    """

    period: int
    displays: int
    conversions: int
    seen: float
    corrected: float | None
