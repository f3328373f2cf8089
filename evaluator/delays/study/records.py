"""Single numbers of a study of delays: a quantile, a window, the conversion rate of a period."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluator.delays.nonparametric import NonparametricFit
from evaluator.delays.study.window_advice import WindowShare
from evaluator.delays.study.words import words
from evaluator.log.delay_rows import DelayRows
from evaluator.results.json_documents import Count, Level, NotNegative, NotNegativeOrNull, in_document


@dataclass(frozen=True)
class Quantile:
    """A quantile of the delays, in ticks.

    Parameters
    ----------
    level
        Level of the quantile.
    naive, corrected
        Quantile of the delays seen, and the same corrected for what the log cut off.
    low, high
        Interval of `corrected`; `high` is inf where the conversions are too few, or the displays that were followed
        long enough, to bound the quantile from above (`bounded` says so): it is at least `low`.
    """

    level: Level
    naive: NotNegative
    corrected: NotNegative
    low: NotNegative
    high: NotNegativeOrNull

    @in_document
    @property
    def bounded(self) -> bool:
        """Whether the interval has an upper end."""
        return math.isfinite(self.high)


def quantiles_of(fit: NonparametricFit, levels: Sequence[float]) -> tuple[Quantile, ...]:
    """Return the quantiles of a fit at some levels in (0, 1)."""
    at = np.minimum(np.searchsorted(fit.naive, levels), fit.delays.size - 1)
    found = zip(levels, fit.delays[at], fit.quantiles(levels), *fit.quantile_intervals(levels), strict=True)
    return tuple(Quantile(*map(float, row)) for row in found)


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
    ticks: NotNegative
    rounds: NotNegative | None
    share: WindowShare
    in_rounds: bool

    def label(self, rows: DelayRows) -> str:
        """Return the window in its own unit, as tables name it."""
        own = words(rows, self.ticks)
        return f"{self.rounds:,.0f} rounds, {own} on average" if self.in_rounds and rows.tick_seconds else own


@dataclass(frozen=True)
class PeriodRate:
    """Conversions per display of one period.

    Parameters
    ----------
    period
        Number of the period.
    displays, conversions
        Number of its displays, and of their conversions.
    seen
        Conversions per display seen so far.
    corrected
        Conversions per display given a follow-up as long as the longest, sum of 1 / tau(limit) over the conversions,
        divided by the displays; None where the period is too new to say.
    """

    period: Count
    displays: Count
    conversions: Count
    seen: NotNegativeOrNull
    corrected: NotNegative | None
