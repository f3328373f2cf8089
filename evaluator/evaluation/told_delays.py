"""The delay CDF of a log on a replay's clock, and what of it a policy is told."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.delays import DelayCDF, product_limit
from evaluator.delays.given import given_cdf, told_cdf
from evaluator.errors import ParameterError
from evaluator.rounds.clock import Clock, on_clock
from evaluator.rounds.known_delays import KnownDelays
from evaluator.rounds.survey import Survey
from evaluator.rounds.window import Window
from evaluator.units import ROUND, format_duration, parse_duration

Ints = npt.NDArray[np.int64]


def fit_on_clock(delay: Ints, limit: Ints | None, clock: Clock) -> DelayCDF | None:
    """Fit the delay CDF on the replay's clock: a CDF used on a clock must be estimated on that clock.

    Parameters
    ----------
    delay, limit
        Of each conversion, in displays, shape (c,): its delay, and the longest that would have been seen.
    clock
        Of the replay.
    """
    if not len(delay):
        return None
    rounds = on_clock(delay, clock)
    if limit is None:
        return product_limit(rounds)
    # Rounding to rounds may put a conversion at the very end of its follow-up one round past it.
    return product_limit(rounds, np.maximum(on_clock(limit, clock), rounds))


def share_within(survey: Survey, window: Window, cdf: DelayCDF | None, even: slice | Ints) -> float:
    """Return the share of the conversions that come within the window, in its own unit; nan without conversions.

    `even` picks the conversions that are an even sample of the traffic's.
    """
    if cdf is None:
        return float("nan")
    if window.ticks is None:
        return float(cdf(min(window.rounds, 2**53)))
    limit = survey.limit_ticks()
    return float(product_limit(survey.delay_ticks[even], None if limit is None else limit[even])(window.ticks))


def told_delays(
    survey: Survey,
    known: KnownDelays | None,
    clock: Clock,
    window: Window,
    even: slice | Ints,
    *,
    cdf: DelayCDF | None,
    delays: str,
    horizon: int,
) -> DelayCDF | None:
    """Return the delay CDF that a policy is told; None where there are no conversions to fit one to.

    Parameters
    ----------
    survey
        Of the replayed log.
    known
        What was known of the delays before it began, if no more is to be told.
    clock, window
        Of the replay.
    even
        Which conversions are an even sample of the traffic's.
    cdf
        Fitted to the whole log, on the replay's clock.
    delays
        As `evaluator.evaluation.options.ReplayOptions.delays`.
    horizon
        Rounds that the policy is told of: it needs no longer delays.
    """
    reach = min(window.rounds, max(horizon, 1))
    if known is not None:
        given = _revealed(clock, window, known.delay, known.limit, known.delay_ticks, known.limit_ticks)
    elif delays == "log" and window.ticks is None:
        given = cdf
    elif delays == "log":
        columns = (survey.delay, survey.limit, survey.delay_ticks, survey.limit_ticks())
        delay, limit, ticks, limit_ticks = (None if of is None else of[even] for of in columns)
        assert delay is not None
        assert ticks is not None
        given = _revealed(clock, window, delay, limit, ticks, limit_ticks)
    else:
        if window.ticks is not None:  # what a law gives away beyond the window's mean length would never be revealed
            reach = min(reach, max(round(window.ticks * clock.rate * clock.share), 1))
        given = _known_cdf(delays, clock, reach)
    return None if given is None else told_cdf(given, reach)


def _revealed(
    clock: Clock, window: Window, delay: Ints, limit: Ints | None, delay_ticks: Ints, limit_ticks: Ints | None
) -> DelayCDF | None:
    """Fit the delay CDF that policies weigh their displays with: of the conversions that are ever revealed to them.

    Where the window is a duration W, it is P(D <= a rounds and D <= W in time): the CDF of the conversions within W,
    times the share of them, so that no display is credited with a conversion that W cuts off.
    """
    if window.ticks is None or not len(delay):
        return fit_on_clock(delay, limit, clock)
    within = delay_ticks <= window.ticks
    fitted = fit_on_clock(delay[within], None if limit is None else limit[within], clock)
    if fitted is None:
        return None
    share = float(product_limit(delay_ticks, limit_ticks)(window.ticks))
    return DelayCDF(delays=fitted.delays, cdf=np.minimum(fitted.cdf * share, 1.0), source=fitted.source)


def _known_cdf(text: str, clock: Clock, reach: int) -> DelayCDF:
    """Return the CDF a user gives: in rounds, as the window; on the wall clock in logged displays, as the window.

    One from a file counts time, or displays of the full traffic: the clock turns both into rounds.
    """

    def ticks_per_round(tick: str) -> float:
        own = ROUND if clock.tick_seconds is None else format_duration(clock.tick_seconds)
        if (tick == ROUND) != (clock.tick_seconds is None) or not np.isfinite(clock.rate):
            raise ParameterError(
                f"--delays {text} counts in units of {tick}, this log in {own} at "
                f"{clock.rate:.3g} displays each: no way from one to the other.",
                hint="fit the delays to a log that counts alike: evaluate delays.",
            )
        ticks = 1.0 if clock.tick_seconds is None else clock.tick_seconds / parse_duration(tick)
        return ticks / (clock.rate * clock.share)

    share = clock.share if clock.kind == "wall" else 1.0
    return given_cdf(text, reach=reach, ticks_per_round=ticks_per_round, share=share)
