"""Displays too young at the end of the log: their conversions may still come, so they are no failures.

A display can be judged once the log has followed it for the attribution window or, where the log names none, for the
policy's window, in time or in displays as that is cut. Younger displays are left out, or kept with what was seen
divided by the probability of having seen it, tau(follow-up): unbiased when the delay does not depend on the action.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from evaluator.delays import DelayCDF, product_limit
from evaluator.errors import DataError
from evaluator.rounds.clock import Clock
from evaluator.rounds.survey import Survey
from evaluator.rounds.window import Window
from evaluator.units import NO_WINDOW

ImmatureRule = Literal["drop", "correct"]
# A display whose conversions had less than this chance to show says little and would weigh much.
LEAST_SEEN = 0.2
# Time stamps of so many seconds are coarse: what they do not tell is a good part of many windows.
COARSE_S = 60.0


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

    @property
    def heaviest(self) -> float:
        """No used display weighs more."""
        return 1.0 if self.correction is None else self.correction.heaviest


@dataclass(frozen=True, eq=False)
class Correction:
    """Weights 1 / tau(follow-up); delays and follow-up in ticks, or in displays.

    Parameters
    ----------
    cdf
        Delay CDF.
    needed
        Follow-up after which a display weighs 1.
    until
        Time (ticks), or number in the traffic of the last display, until which the log followed its displays.
    shortest
        Displays followed less than this are left out.
    in_displays
        Whether delays are counted in displays.
    """

    cdf: DelayCDF
    needed: int
    until: int
    shortest: int
    in_displays: bool

    def weights(self, survey: Survey, displays: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the weight of displays with these numbers, shape (n,), each of which has a conversion."""
        shown = (survey.position if self.in_displays else survey.shown_at)[np.searchsorted(survey.display, displays)]
        followed = np.minimum(self.until - shown, self.needed)
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
        cdf = _delays_within(survey, self.needed, times, in_displays=self.in_displays)
        return self if cdf is None else replace(self, cdf=cdf)


def judge_maturity(survey: Survey, window: Window, clock: Clock, rule: ImmatureRule) -> Maturity:
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
    needed, in_displays = _follow_up(survey, window, clock)
    if needed is None:
        return Maturity(n, 0, None, False)
    end = survey.traffic_by(until) - 1 if in_displays else until
    mature = _followed(survey, end, needed + (0 if in_displays else _untold(survey)), in_displays=in_displays)
    if mature == 0:
        raise DataError(
            f"No display of log {log.meta.name!r} was followed for {needed} "
            f"{'displays' if in_displays else 'ticks'}, so none can be judged.",
            hint="give a shorter attribution_window or --window, or a log that covers more time.",
        )
    if rule == "drop" or mature == n:
        return Maturity(mature, n - mature, None, True)
    correction = _correction(survey, end, needed, in_displays=in_displays)
    used = _followed(survey, end, correction.shortest, in_displays=in_displays)
    return Maturity(used, n - mature, correction, True)


def _follow_up(survey: Survey, window: Window, clock: Clock) -> tuple[int | None, bool]:
    """Return how long a display must be followed, None where nothing says, and whether that counts displays."""
    longest = survey.log.meta.attribution_window
    if longest is not None or window.ticks is not None:
        return window.ticks if longest is None else longest, False
    if window.rounds == NO_WINDOW:
        return None, False
    # The most displays that are still rounded to m rounds.
    return (window.rounds if clock.share == 1.0 else int((window.rounds + 0.5) / clock.share)), True


def _untold(survey: Survey) -> int:
    """Return ticks by which a display was perhaps followed more briefly than time stamps of minutes, hours, days say.

    A display stamped Monday may be one of its last minute, and a log that ends on Tuesday may end in its first.
    """
    return survey.stamp if survey.stamp * (survey.log.meta.tick_seconds or 0.0) >= COARSE_S else 0


def _followed(survey: Survey, end: int, needed: int, *, in_displays: bool) -> int:
    """Return the displays that were followed at least so long: the first ones."""
    if in_displays:
        return survey.displays_numbered_until(end - needed)
    return survey.displays_until(end - needed)


def _correction(survey: Survey, end: int, needed: int, *, in_displays: bool) -> Correction:
    cdf = _delays_within(survey, needed, np.ones(len(survey.display), np.int64), in_displays=in_displays)
    if cdf is None:
        raise DataError("--immature correct: the log has no conversions to fit delays to.", hint="use --immature drop.")
    enough = LEAST_SEEN * float(cdf(needed))
    shortest = int(cdf.delays[np.searchsorted(cdf.cdf, enough, side="left")])
    return Correction(cdf, needed, end, shortest, in_displays)


def _delays_within(
    survey: Survey, needed: int, times: npt.NDArray[np.integer], *, in_displays: bool
) -> DelayCDF | None:
    """Fit the delay CDF to conversions that are there so many times each; None where there are none."""
    delay = survey.delay if in_displays else survey.delay_ticks
    limit = survey.limit if in_displays else survey.limit_ticks()
    assert limit is not None  # the log stops looking
    limit = np.minimum(limit, needed)
    times = np.where(delay <= needed, times, 0)
    return product_limit(np.repeat(delay, times), np.repeat(limit, times)) if times.any() else None
