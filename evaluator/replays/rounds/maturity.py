"""Displays too young at the end of the log: their conversions may still come, so they are no failures.

A display can be judged once the log has followed it for the attribution window or, where the log names none, for the
policy's window, in time or in displays as that is cut. Younger displays are left out, or kept with what was seen
corrected for what was not yet (`evaluator.replays.rounds.correction`).
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.errors import DataError
from evaluator.log.stamps import COARSE_S
from evaluator.replays.rounds.clock import ReplayClock
from evaluator.replays.rounds.correction import Correction, FollowUp, correct_by, fit_correction
from evaluator.replays.rounds.survey import Survey
from evaluator.replays.rounds.window import ReplayWindow
from evaluator.units import NO_WINDOW, ticks_words


@dataclass(frozen=True, eq=False)
class Maturity:
    """Which displays are used, and with what weight.

    Parameters
    ----------
    used
        Number of displays that are used: sorted by time, they are the first.
    immature
        Number of displays not followed long enough, used or not.
    correction
        Weights of the used displays; None when all weigh 1.
    known
        Whether it is known how long a display must be followed: False when the log stops looking but nothing says it.
    """

    used: int
    immature: int
    correction: Correction | None
    known: bool

    @property
    def heaviest(self) -> float:
        """No used display weighs more."""
        return 1.0 if self.correction is None else self.correction.heaviest


def judge_maturity(survey: Survey, window: ReplayWindow, clock: ReplayClock, rule: str) -> Maturity:
    """Return which displays were followed long enough, and what becomes of the others.

    Raises
    ------
    DataError
        No display was followed long enough; or ``correct`` on a log without conversions: there is no delay to fit.
    ParameterError
        The delays are to be corrected by a column that the log does not have, or whose values are no groups.
    """
    columns = correct_by(rule)
    log, n = survey.log, len(survey.log)
    follow_ups = []
    for kind in survey.kinds:
        if kind.observed_until is None:
            continue
        needed, in_displays = _follow_up(kind.attribution_window, window, clock)
        if needed is None:
            return Maturity(n, 0, None, False)
        end = survey.traffic_by(kind.observed_until) - 1 if in_displays else kind.observed_until
        follow_ups.append(FollowUp(kind, end, needed, in_displays))
    if not follow_ups:
        return Maturity(n, 0, None, True)
    last = min(follow_ups, key=lambda of: of.until - of.needed)
    in_displays = last.in_displays
    mature = _followed(survey, last.until - last.needed - (0 if in_displays else _untold(survey)), in_displays)
    if mature == 0:
        long = f"{last.needed:,} displays" if in_displays else ticks_words(last.needed, log.meta.tick_seconds)
        raise DataError(
            f"No display of log {log.meta.name!r} was followed for {long}, so none can be judged.",
            remedy="give a shorter attribution_window or `window`, or a log that covers more time.",
        )
    if columns is None or mature == n:
        return Maturity(mature, n - mature, None, True)
    correction = fit_correction(survey, follow_ups, columns)
    used = _followed(survey, correction.last, in_displays)
    return Maturity(used, n - mature, correction, True)


def _follow_up(longest: int | None, window: ReplayWindow, clock: ReplayClock) -> tuple[int | None, bool]:
    """Return how long a display must be followed, None where nothing says, and whether that counts displays."""
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


def _followed(survey: Survey, last: int, in_displays: bool) -> int:
    """Return the displays up to the last that was followed for long enough: its number in the traffic, or its time."""
    return survey.displays_numbered_until(last) if in_displays else survey.displays_until(last)
