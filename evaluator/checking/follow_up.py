"""How long the log followed its displays, and whether it stopped looking without saying so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.checking.timeline import Timeline
from evaluator.rounds.survey import Survey

Ints = npt.NDArray[np.int64]

# Rates are compared within a follow-up that this share of the displays had.
JUDGED = 0.8
# Share of the conversions that are missing: nothing to speak of, and too many.
FEW_MISSING, MANY_MISSING = 0.001, 0.01


@dataclass(frozen=True, eq=False)
class FollowUp:
    """How far the log saw.

    Parameters
    ----------
    delay
        Of each conversion, in ticks, shape (c,).
    last
        Time of the last conversion; None without conversions.
    beyond
        Conversions that were to be expected after it, had all displays been followed as the log says.
    p_value
        Probability of at least as many when the log says the truth: 2^-beyond.
    stopped
        Whether the log stopped looking without saying so.
    until
        Time up to which displays were followed: as the log says, or the last conversion when it `stopped`; None where
        every display was followed to its end.
    horizon
        Rates count conversions with a delay of at most this; None counts all.
    mature
        Displays followed as long: the first so many.
    """

    delay: Ints
    last: int | None
    beyond: int
    p_value: float
    stopped: bool
    until: int | None
    horizon: int | None
    mature: int

    def counted(self, display: Ints) -> npt.NDArray[np.bool_]:
        """Return which conversions a comparison of rates counts, shape (c,)."""
        within = display < self.mature
        return within if self.horizon is None else within & (self.delay <= self.horizon)


def asked_of_timeline(survey: Survey) -> Ints:
    """Return the displays whose times `follow_up` needs."""
    n = len(survey.log)
    half = survey.display[survey.display < n // 2]
    return np.append(half + n // 2, int(JUDGED * (n - 1)))


def follow_up(survey: Survey, timeline: Timeline, when: Ints, *, level: float) -> FollowUp:
    """Return how far a log saw.

    A conversion of display j of the first half with delay d, put on display j + n/2, comes at a time at which the log
    should have seen one if it was to come before `observed_until`. Where it falls after the last conversion of the
    log, it counts as one to be expected beyond it. Without drift, conversions of the two halves are exchangeable, so
    r such ones have probability 2^-r.

    Parameters
    ----------
    survey, timeline
        Of the log, the latter with the times that `asked_of_timeline` names.
    when
        Time of each conversion.
    level
        Of the test.
    """
    log, n = survey.log, len(survey.log)
    meta, delay = log.meta, when - survey.shown_at
    until, horizon = meta.observed_until, None
    beyond, last = 0, None
    if len(when):
        last = int(when.max())
        moved = timeline.asked[:-1] + delay[survey.display < n // 2]
        beyond = int(np.count_nonzero((moved > last) & (True if until is None else moved <= until)))
    p_value = 0.5**beyond
    stopped = p_value <= level and beyond >= FEW_MISSING * len(when)
    if stopped:
        until = last
    mature = n
    if until is not None:
        horizon = max(until - int(timeline.asked[-1]), 0)
        if meta.attribution_window is not None:
            horizon = min(horizon, meta.attribution_window)
        mature = survey.displays_until(until - horizon)
    return FollowUp(delay, last, beyond, p_value, stopped, until, horizon, mature)
