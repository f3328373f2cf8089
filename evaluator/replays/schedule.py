"""The schedule of a deployment: when what happened reaches the policy that serves, and its pushes in a replay.

Production does not learn at each event. A model is trained on what the warehouse had some time ago, and pushed hourly
or nightly. Displays and events reach the policy at a push: those up to the push less the lag, in their order; between
two pushes it serves from what it had.

*One live clock.* Where the schedule names a time, round n stands at the time of the log's (n / share)-th display,
counted from the first one. A push comes after as many rounds as the log has displays before it, times the share; its
cut are those up to the push less the lag; a conversion is told with the round nearest to its own round's time and its
delay. All three depend on the number of the round alone, and so serve every sampler and every resampled
log. Other clocks are biased: pushes at the log's calendar times let the policy learn from 1/c times its traffic, a mean
number of rounds between pushes forgets rhythm and growth, and so does a delay in displays beside pushes in time
(`tests/statistical/test_schedules.py` has each of them).

What moves with the log's calendar passes 1/c times faster between two pushes than live, on any clock but the wall
clock's: there a push comes after as many rounds as the log has displays before it, times the acceptance rate c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from evaluator.engine.pushes import LiveClock, PushTimes
from evaluator.errors import ParameterError
from evaluator.log.times import dated
from evaluator.options.deployment import SCHEDULED, Deployment, Schedule, Span
from evaluator.replays.rounds.clock import ReplayClock, ReplayWindow, on_clock
from evaluator.replays.rounds.survey import Survey
from evaluator.results.json_documents import Count, NotNegative
from evaluator.units import NO_WINDOW, SECONDS, format_duration

# Rounds whose staleness in time is averaged, at most.
_SAMPLED = 10_000
Ints = npt.NDArray[np.int64]


def plan_pushes(
    deployment: Deployment, survey: Survey, clock: ReplayClock, window: ReplayWindow, horizon: int
) -> PushTimes | None:
    """Return the pushes of a replay of at most so many rounds; None for learning at each event.

    Raise ParameterError if the schedule names a time and the log has none, or one that its time stamps do not tell.
    """
    schedule = deployment.schedule
    if schedule is None or not schedule.in_time:
        return None if schedule is None else pushes_in_rounds(schedule, clock, horizon)
    _refuse_times(deployment, SCHEDULED, survey, clock)
    live = _live_clock(survey, clock)
    pushes = pushes_in_time(deployment, live, clock, survey.log.meta.timezone, horizon)
    reached = survey.delay_ticks[survey.delay_ticks <= (NO_WINDOW if window.ticks is None else window.ticks)]
    span = np.array([survey.longest_span(int(reached.max(initial=0)))])
    return replace(
        pushes, clock=live, closes=window.ticks is not None, reach=min(int(on_clock(span, clock)[0]) + 2, horizon)
    )


def pushes_in_rounds(schedule: Schedule, clock: ReplayClock | None, horizon: int) -> PushTimes:
    """Return the pushes of a schedule that counts rounds, within so many; a world of rounds has no clock."""
    every = _rounds(schedule.every, clock)
    after = np.arange(every, horizon + 1, every, dtype=np.int64)
    return PushTimes(after, np.maximum(after - _rounds(schedule.lag, clock), 0))


def pushes_in_time(
    deployment: Deployment, live: LiveClock, clock: ReplayClock, timezone: str | None, horizon: int
) -> PushTimes:
    """Return the pushes of a deployment's schedule that names a time, within so many rounds on a live clock.

    Raise ParameterError if there are more of them than rounds.
    """
    schedule = deployment.schedule
    assert schedule is not None
    assert clock.tick_seconds is not None
    if schedule.every.rounds:
        after = pushes_in_rounds(schedule, clock, horizon).after
        # A push comes with the round that it follows.
        at = _times(live, np.maximum(live.origin - 1.0 + after / live.share, live.origin))
    else:
        at = _push_times(schedule, deployment.named("learn_every"), live, clock.tick_seconds, timezone, horizon)
        after = _rounds_by(live, at)
    lag = (schedule.lag.seconds or 0.0) / clock.tick_seconds
    cut = _rounds_by(live, at - lag) if lag else after - _rounds(schedule.lag, clock)
    # Of several pushes between two rounds the last one brings it all.
    last = np.append(after[1:] != after[:-1], True)[: len(after)] & (after > 0) & (after <= horizon)
    return PushTimes(after[last], np.clip(cut[last], 0, after[last]))


def live_delays(survey: Survey, window: ReplayWindow) -> Ints:
    """Return the delays of a log's conversions on its live clock: in ticks, `NO_WINDOW` where a duration cuts them off.

    Shape (c,). Costs come with their display.
    """
    if window.ticks is None:
        return survey.delay_ticks
    return np.where(survey.delay_ticks <= window.ticks, survey.delay_ticks, NO_WINDOW)


def _rounds(span: Span, clock: ReplayClock | None) -> int:
    """Return a span in rounds of the policy: on the wall clock rounds are logged displays, as those of a window."""
    rounds = span.rounds or 0
    if clock is None or clock.kind != "wall":
        return rounds
    return max(round(rounds * clock.share), min(rounds, 1))


def rounds_of(deployment: Deployment, survey: Survey, clock: ReplayClock) -> int:
    """Return the first rounds in which a deployment explores; errors as of `plan_pushes`."""
    assert deployment.exploration is not None
    _refuse_times(deployment, ("explore_first",), survey, clock)
    return rounds_from(deployment.exploration.span, _live_clock(survey, clock), clock)


def rounds_from(exploration: Span, live: LiveClock | None, clock: ReplayClock | None) -> int:
    """Return the first rounds in which a deployment explores; a world of rounds has no clocks."""
    if exploration.rounds:
        return max(_rounds(exploration, clock), 1)
    assert exploration.seconds is not None
    assert live is not None
    assert clock is not None
    assert clock.tick_seconds is not None
    begin = float(_times(live, np.array([live.origin]))[0])
    return max(int(_rounds_by(live, np.array([begin + exploration.seconds / clock.tick_seconds]))[0]), 1)


def _live_clock(survey: Survey, clock: ReplayClock) -> LiveClock:
    return LiveClock(survey.mark, survey.marked_at, float(survey.mark[0]), clock.share, survey.rate)


def _refuse_times(deployment: Deployment, options: Sequence[str], survey: Survey, clock: ReplayClock) -> None:
    for name, seconds in deployment.times.items():
        if name not in options:
            continue
        asked = deployment.named(name)
        if clock.tick_seconds is None or not np.isfinite(clock.rate):
            raise ParameterError(
                f"{asked}: this log counts rounds, not time.", remedy=f"give it in rounds: `{name}=500`."
            )
        if seconds < survey.stamp * clock.tick_seconds:
            stamp = format_duration(survey.stamp * clock.tick_seconds)
            raise ParameterError(
                f"{asked}: that is shorter than what the time stamps of log {survey.log.meta.name!r} tell apart: all "
                f"are multiples of {stamp}.",
                remedy=f"take at least {stamp}, or log finer times.",
            )


def _push_times(
    schedule: Schedule, asked: str, live: LiveClock, tick_seconds: float, timezone: str | None, horizon: int
) -> npt.NDArray[np.float64]:
    """Return the times of all pushes within so many rounds, in ticks, shape (P,)."""
    assert schedule.every.seconds is not None
    begin, end = _times(live, live.origin + np.array([0.0, horizon / live.share])).tolist()
    every = schedule.every.seconds / tick_seconds
    if (end - begin) / every > horizon:
        raise ParameterError(
            f"{asked} makes more pushes than the {horizon:,} rounds of the replay.",
            remedy="let the policy learn at each event: `learn_every='event'`.",
        )
    count = np.arange(1, math.ceil((end - begin) / every) + 1)
    if schedule.at is None:
        return np.asarray(begin + count * every, np.float64)
    if timezone is None or not dated(begin, tick_seconds):
        day = SECONDS["d"] / tick_seconds
        first = math.floor((begin - schedule.at / tick_seconds) / day) * day + schedule.at / tick_seconds
        return np.asarray(first + count * every, np.float64)
    # One more, for a day may have 23 hours.
    return _local_times(schedule, begin * tick_seconds, len(count) + 1, ZoneInfo(timezone)) / tick_seconds


def _local_times(schedule: Schedule, begin: float, count: int, zone: ZoneInfo) -> npt.NDArray[np.float64]:
    """Return the next pushes at a time of day of a zone, in seconds since 1970: clocks that change move them."""
    assert schedule.at is not None
    assert schedule.every.seconds is not None
    days, local = round(schedule.every.seconds / SECONDS["d"]), datetime.fromtimestamp(begin, UTC).astimezone(zone)
    at = local.replace(hour=schedule.at // 3600, minute=schedule.at % 3600 // 60, second=0, microsecond=0, fold=0)
    first = at.date() if at > local else at.date() + timedelta(days=1)
    dates = (first + timedelta(days=days * i) for i in range(count))
    return np.array([at.replace(year=d.year, month=d.month, day=d.day).timestamp() for d in dates])


def _times(live: LiveClock, place: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return what `time_at` does of many places, shape (n,)."""
    return _along(live.mark, live.marked_at, place, (place - live.mark[-1]) / live.rate)


def _rounds_by(live: LiveClock, time: npt.NDArray[np.floating]) -> Ints:
    """Return how many rounds come by some times in ticks, those of the displays that are no later; shape (P,)."""
    place = _along(live.marked_at, live.mark, time, (time - live.marked_at[-1]) * live.rate)
    shown = np.where(time < live.marked_at[0], 0.0, np.floor(place) + 1.0 - live.origin)
    # What rounding takes from a product of exact numbers is not a round.
    return np.asarray(np.floor(shown * live.share + 1e-9), np.int64)


def _along(
    x: npt.NDArray[Any], y: npt.NDArray[Any], at: npt.NDArray[np.floating], after: npt.NDArray[np.floating]
) -> npt.NDArray[np.float64]:
    """Return y at some x, on lines from point to point; where that is past the last one, `after` more than its y."""
    j = np.clip(np.searchsorted(x, at, side="right"), 1, len(x) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = y[j - 1] + (y[j] - y[j - 1]) * (at - x[j - 1]) / (x[j] - x[j - 1])
    return np.asarray(np.where(at >= x[-1], y[-1] + after, between))


@dataclass(frozen=True, kw_only=True)
class LivedSchedule:
    """What a schedule meant in a replay.

    Parameters
    ----------
    learn_every, learn_lag
        Schedule as it was asked for.
    pushes
        Number of pushes before the last round.
    first_push
        Number of rounds before the first push; null without one.
    rounds_between
        Mean number of rounds from one push to the next; with a single push, those before it; null without one.
    stale_rounds
        Rounds before a choice from which the policy had not learned yet: mean over the choices.
    stale_days
        Days that these rounds span, on the live clock or else at the mean rate of the traffic; null where the log
        counts rounds.
    from_time, to_time
        Time of the first and of the last round on the live clock, in ticks; null where it has none.
    rounds_between_at_end
        Rounds between two pushes at the pace of the end of the log; null where the schedule counts rounds.
    calendar_pace
        Number of times by which the log's own calendar passes faster between two pushes than live.
    """

    learn_every: str
    learn_lag: str
    pushes: Count
    first_push: Count | None
    rounds_between: float | None
    stale_rounds: NotNegative
    stale_days: float | None
    from_time: float | None
    to_time: float | None
    rounds_between_at_end: float | None
    calendar_pace: NotNegative


def lived_schedule(
    schedule: Schedule, times: PushTimes, survey: Survey, clock: ReplayClock, *, rounds: int, read: float
) -> LivedSchedule:
    """Return what a schedule meant in so many rounds, for which a replay read so many displays of the log."""
    lived = times.before(rounds - 1)
    after, cut = times.after[:lived], times.cut[:lived]
    # Before round n the policy had learned up to the cut of the last push before it.
    known = np.sum(np.diff(np.append(after, rounds)) * cut) if lived else 0
    stale = (rounds * (rounds - 1) / 2 - known) / rounds if rounds else 0.0
    between = float(after[-1] - after[0] * (lived > 1)) / max(lived - 1, 1) if lived else None
    days, live = clock.days(stale), times.clock
    if live is not None and clock.tick_seconds is not None:
        days = _stale_ticks(live, after, cut, rounds) * clock.tick_seconds / SECONDS["d"]
    at_end = None
    if live is not None and schedule.every.seconds and clock.tick_seconds is not None:
        every, end = schedule.every.seconds / clock.tick_seconds, float(survey.marked_at[-1])
        at_end = float(np.diff(_rounds_by(live, np.array([max(end - every, survey.marked_at[0]), end])))[0])
    return LivedSchedule(
        learn_every=schedule.text,
        learn_lag=schedule.lag_text,
        pushes=lived,
        first_push=int(after[0]) if lived else None,
        rounds_between=between,
        stale_rounds=float(stale),
        stale_days=days,
        from_time=None if live is None else float(survey.marked_at[0]),
        to_time=None if live is None else float(_times(live, np.array([live.origin + rounds / live.share]))[0]),
        rounds_between_at_end=at_end,
        calendar_pace=float(clock.share * read / (rounds * survey.kept)) if rounds else 1.0,
    )


def _stale_ticks(live: LiveClock, after: Ints, cut: Ints, rounds: int) -> float:
    """Return the mean ticks from the last round that is known to a choice, of rounds that are sampled evenly."""
    before = np.unique(np.linspace(0, max(rounds - 1, 0), _SAMPLED).astype(np.int64))
    known = np.append(0, cut)[np.searchsorted(after, before, side="right")]
    return float(
        np.mean(_times(live, live.origin + before / live.share) - _times(live, live.origin + known / live.share))
    )
