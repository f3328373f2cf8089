"""The delay CDF of a log on a replay's clock, and what of it a policy is told."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.laws import given_cdf, told_cdf
from evaluator.delays.product_limit import product_limit
from evaluator.errors import ParameterError
from evaluator.replays.conversion_share import share_within
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.clock import ReplayClock, on_clock
from evaluator.replays.rounds.known_delays import KnownDelays
from evaluator.replays.rounds.survey import Survey
from evaluator.replays.rounds.window import ReplayWindow
from evaluator.replays.subsampled_log import even_conversions
from evaluator.units import ROUND, format_duration, parse_duration

Ints = npt.NDArray[np.int64]


def fit_on_clock(delay: Ints, limit: Ints | None, clock: ReplayClock) -> DelayCDF | None:
    """Fit the delay CDF on the replay's clock: a CDF used on a clock must be estimated on that clock.

    Parameters
    ----------
    delay, limit
        Delay of each conversion, and the longest that would have been seen, in displays, shape (c,); None where nothing
        was cut off.
    clock
        Clock of the replay.
    """
    if not len(delay):
        return None
    rounds = on_clock(delay, clock)
    if limit is None:
        return product_limit(rounds)
    # Rounding to rounds may put a conversion at the very end of its follow-up one round past it.
    return product_limit(rounds, np.maximum(on_clock(limit, clock), rounds))


def told_delays(
    survey: Survey,
    known: KnownDelays | None,
    clock: ReplayClock,
    window: ReplayWindow,
    even: slice | Ints,
    *,
    cdf: DelayCDF | None,
    tau: float,
    delays: str,
    horizon: int,
) -> DelayCDF | None:
    """Return the delay CDF that a policy is told; None where there are no conversions to fit one to.

    Parameters
    ----------
    survey
        Survey of the log that delays are fitted to: the replayed one, or as much of it as was known when the displays
        that are left out for the final policy began.
    known
        Delays known before the log began, if no more is to be told; None to tell those of the log.
    clock, window
        Clock and window of the replay.
    even
        Numbers of the conversions that are an even sample of the traffic's, shape (e,), or a slice; on a resampled log
        each as often as it is there.
    cdf, tau
        Delay CDF of that log on the replay's clock, None without conversions, and share of its conversions within the
        window.
    delays
        Text that names the delay CDF, as `evaluator.replays.options.ReplayOptions.delays`.
    horizon
        Number of rounds that the policy is told of: it needs no longer delays.
    """
    reach = min(window.rounds, max(horizon, 1))
    cut = window.ticks
    if known is not None and cut is None:
        given = fit_on_clock(known.delay, known.limit, clock)
    elif known is not None and cut is not None:
        within = known.delay_ticks <= cut
        share = float(product_limit(known.delay_ticks, known.limit_ticks)(cut))
        given = _revealed(known.delay[within], known.limit[within], clock, share)
    elif delays == "log" and cut is None:
        given = cdf
    elif delays == "log" and cut is not None:
        within = survey.delay_ticks[even] <= cut
        limit = None if survey.limit is None else survey.limit[even][within]
        given = _revealed(survey.delay[even][within], limit, clock, tau)
    else:
        if cut is not None:  # what a law gives away beyond the window's mean length would never be revealed
            reach = min(reach, max(round(cut * clock.rate * clock.share), 1))
        given = _known_cdf(delays, clock, reach)
    return None if given is None else told_cdf(given, reach)


def told_anew(plan: ReplayPlan, known: KnownDelays | None, times: npt.NDArray[np.integer]) -> DelayCDF | None:
    """Return the delay CDF that a plan's policy is told on a resampled log; None where no conversion was drawn.

    Parameters
    ----------
    plan
        Plan whose policy is told what was fitted to the log.
    known
        Delays known before the log, resampled, if no more is told; None to tell those of the log.
    times
        Number of times that each of the log's conversions is in the resampled one, shape (c,).
    """
    survey, clock, window = plan.told, plan.clock, plan.window
    if survey is not plan.survey:
        until = survey.log.meta.observed_until
        assert until is not None  # when the displays began that are left out
        when = plan.survey.shown_at + plan.survey.delay_ticks
        times = times[(plan.survey.display < len(survey.log)) & (when <= until)]
    even = np.arange(len(times))[even_conversions(survey.log, survey.display, plan.options.seed)]
    drawn = np.repeat(even, times[even])
    cdf = fit_on_clock(survey.delay[drawn], None if survey.limit is None else survey.limit[drawn], clock)
    if cdf is None and known is None:
        return None
    return told_delays(
        survey, known, clock, window, drawn,
        cdf=cdf, tau=share_within(survey, window, cdf, drawn), delays="log", horizon=plan.setting.horizon,
    )  # fmt: skip


def _revealed(delay: Ints, limit: Ints | None, clock: ReplayClock, share: float) -> DelayCDF | None:
    """Fit the delay CDF that policies weigh their displays with, where the window is a duration W.

    It is P(D <= a rounds and D <= W in time): the CDF of the conversions within W, whose delays and limits in displays
    these are, times the share of them, so that no display is credited with a conversion that W cuts off.
    """
    fitted = fit_on_clock(delay, limit, clock)
    if fitted is None:
        return None
    return DelayCDF(delays=fitted.delays, cdf=np.minimum(fitted.cdf * share, 1.0), source=fitted.source)


def _known_cdf(text: str, clock: ReplayClock, reach: int) -> DelayCDF:
    """Return the CDF a user gives: in rounds, as the window; on the wall clock in logged displays, as the window.

    One from a file counts time, or displays of the full traffic: the clock turns both into rounds.
    """

    def ticks_per_round(tick: str) -> float:
        own = ROUND if clock.tick_seconds is None else format_duration(clock.tick_seconds)
        if (tick == ROUND) != (clock.tick_seconds is None) or not np.isfinite(clock.rate):
            raise ParameterError(
                f"`delays='{text}'` counts in units of {tick}, this log in {own} at "
                f"{clock.rate:.3g} displays each: no way from one to the other.",
                remedy="fit the delays to a log that counts alike: evaluate delays.",
            )
        ticks = 1.0 if clock.tick_seconds is None else clock.tick_seconds / parse_duration(tick)
        return ticks / (clock.rate * clock.share)

    share = clock.share if clock.kind == "wall" else 1.0
    return given_cdf(text, reach=reach, ticks_per_round=ticks_per_round, share=share)
