"""Displays too young at the end of the log: their conversions may still come, so they are no failures.

A display can be judged once the log has followed it for the attribution window or, where the log names none, for the
policy's window. Younger displays are left out, or kept with what was seen divided by the probability of having seen it,
tau(follow-up): unbiased when the delay does not depend on the action.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from evaluator.delays import DelayCDF, product_limit
from evaluator.errors import DataError
from evaluator.log.contract import to_numpy
from evaluator.rounds.clock import Window
from evaluator.rounds.survey import Survey

ImmatureRule = Literal["drop", "correct"]
# A display whose conversions had less than this chance to show says little and would weigh much.
LEAST_SEEN = 0.2


@dataclass(frozen=True, eq=False)
class Maturity:
    """Which displays are used, and with what weight.

    Parameters
    ----------
    used
        Displays are sorted by time, so the used ones are the first.
    immature
        Displays not followed long enough, used or not.
    correction
        Weighs the used displays; None when all weigh 1.
    known
        False when the log stops looking but nothing says how long a display must be followed.
    """

    used: int
    immature: int
    correction: Correction | None
    known: bool

    def weights(self, shown_at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the weight of displays shown at these times (ticks), shape (n,)."""
        return np.ones(len(shown_at)) if self.correction is None else self.correction.weights(shown_at)

    @property
    def heaviest(self) -> float:
        """No used display weighs more."""
        return 1.0 if self.correction is None else self.correction.heaviest


@dataclass(frozen=True, eq=False)
class Correction:
    """Weights 1 / tau(follow-up).

    Parameters
    ----------
    cdf
        Delay CDF in ticks.
    needed
        Follow-up (ticks) after which a display weighs 1.
    until
        Time (ticks) up to which the log followed its displays.
    shortest
        Displays followed less than this (ticks) are left out.
    """

    cdf: DelayCDF
    needed: int
    until: int
    shortest: int

    def weights(self, shown_at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the weight of displays shown at these times (ticks), shape (n,)."""
        followed = np.minimum(self.until - shown_at, self.needed)
        weight: npt.NDArray[np.float64] = float(self.cdf(self.needed)) / np.asarray(self.cdf(followed))
        return np.minimum(weight, 1.0 / LEAST_SEEN)

    @property
    def heaviest(self) -> float:
        """No used display weighs more."""
        return float(self.cdf(self.needed)) / float(self.cdf(self.shortest))

    def refitted(self, survey: Survey, times: npt.NDArray[np.integer]) -> Correction:
        """Return the correction of the same displays with a CDF fitted to a resampled log.

        Parameters
        ----------
        survey
            Of the log.
        times
            How often each of the log's conversions is in the resampled one, shape (c,).
        """
        cdf = _delays_within(survey, self.until, self.needed, times)
        return self if cdf is None else replace(self, cdf=cdf)


def judge_maturity(survey: Survey, window: Window, rule: ImmatureRule) -> Maturity:
    """Return which displays were followed long enough, and what becomes of the others.

    Raises
    ------
    DataError
        No display was followed long enough; or ``correct`` on a log without conversions: there is no delay to fit.
    """
    log = survey.log
    n, until = len(log), log.meta.observed_until
    if until is None:
        return Maturity(n, 0, None, True)
    needed = log.meta.attribution_window if log.meta.attribution_window is not None else window.ticks
    if needed is None:
        return Maturity(n, 0, None, False)
    longest = int(np.floor(needed))
    mature = _followed(survey, until, longest)
    if mature == 0:
        raise DataError(
            f"No display of log {log.meta.name!r} was followed for {needed:g} ticks, so none can be judged.",
            hint="give a shorter attribution_window or --window, or a log that covers more time.",
        )
    if rule == "drop" or mature == n:
        return Maturity(mature, n - mature, None, True)
    correction = _correction(survey, until, longest)
    return Maturity(_followed(survey, until, correction.shortest), n - mature, correction, True)


def _followed(survey: Survey, until: int, ticks: int) -> int:
    """Return the displays that were followed at least so long: the first ones."""
    return survey.displays_until(until - ticks)


def _correction(survey: Survey, until: int, needed: int) -> Correction:
    cdf = _delays_within(survey, until, needed, np.ones(len(survey.display), np.int64))
    if cdf is None:
        raise DataError("--immature correct: the log has no conversions to fit delays to.", hint="use --immature drop.")
    enough = LEAST_SEEN * float(cdf(needed))
    shortest = int(cdf.delays[np.searchsorted(cdf.cdf, enough, side="left")])
    return Correction(cdf, needed, until, shortest)


def _delays_within(survey: Survey, until: int, needed: int, times: npt.NDArray[np.integer]) -> DelayCDF | None:
    """Fit the delay CDF, in ticks, to conversions that are there so many times each; None where there are none."""
    delay = to_numpy(survey.log.conversions["time"]).astype(np.int64) - survey.shown_at
    limit = np.minimum(until - survey.shown_at, needed)
    times = np.where(delay <= needed, times, 0)
    return product_limit(np.repeat(delay, times), np.repeat(limit, times)) if times.any() else None
