"""What a finished replay says of its rounds and estimates: what they mean, what limits them, what would help."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evaluator.engine.log_replay import Replay
from evaluator.errors import NoRoundsError
from evaluator.estimates.confidence import Interval, with_honest_kind
from evaluator.findings import codes
from evaluator.findings.finding import Finding
from evaluator.log.times import time_words
from evaluator.replays.acceptance import (
    acceptance_warning,
    propensity_warning,
    set_sizes_assumption,
    set_sizes_warning,
    waiting_warning,
)
from evaluator.replays.findings.calendar import find_movements, uneven_traffic
from evaluator.replays.options import told_events_words
from evaluator.replays.plan import ReplayPlan, with_label
from evaluator.replays.result import ReplayResult
from evaluator.replays.rounds.stream import BLOCK
from evaluator.replays.schedule import LivedSchedule
from evaluator.replays.support import BURSTY, binding_display, leaves_out, peak_within_delay
from evaluator.replays.values.rewards import RepeatEstimates
from evaluator.units import SECONDS, format_duration

_TOLD = ("generated", "delivered", "expired")
_SHUFFLED = f"displays within a block of {BLOCK:,} could have come in any order: the repeats shuffle them"
# Below this many displays the mean of a rare reward is mostly luck.
FEW_DISPLAYS = 100
# Relative error of the wall clock's share from which it is said.
_SHARE_OFF = 0.02
# Shares of first displays that are so far apart are another mix.
_MIX_OFF = 0.05
# So many times faster than live, the calendar matters between two pushes.
_FAST = 1.05
# So many times as dense at some times as at others, the traffic makes delays in displays differ from those in time.
_UNEVEN = 2.0
# With fewer conversions told per action its rate is known to a third at best, and what a policy does is exploration.
FEW_TOLD = 10
_SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
# So many rounds are not missed by chance: the probability is exp(-20) at most.
_EXPECTED = 20.0
_LONGER = "take a longer log, or fewer actions: `actions='top:n'`."
_BEYOND = {"largest": "more than the largest reward seen", "smallest": "less than the smallest reward seen"}


def little_learned(
    plan: ReplayPlan, *, rounds: int, generated: float, delivered: float, expired: float
) -> Iterator[Finding]:
    """Yield a warning of a policy that was told of few conversions, and what would help; none if it was told enough.

    The numbers of conversions are those of the accepted displays, mean over repeats; the expired came after the window.
    """
    enough = FEW_TOLD * plan.log.n_actions
    if not plan.policy.learns or not rounds or delivered >= enough:
        return
    late = max(generated - delivered - expired, 0.0)
    what = "Nothing was learned" if not delivered else "Hardly anything was learned"
    others = [
        f"{n:,.0f} come {when}" for n, when in ((expired, "after the window"), (late, "after the last round")) if n
    ]
    events = told_events_words(plan.options.taught_by)
    so = (
        f"{what}: of the {generated:,.0f} {events} of its {rounds:,} rounds the policy was told {delivered:,.0f}"
        f"{''.join(f', {of}' for of in others)}."
    )
    if expired > 0.5 * generated:
        yield codes.LITTLE_LEARNED.found(so, "What helps: a wider `window`.", told=delivered, rounds=rounds)
        return
    if binding_display(plan):
        return  # the plan's own warning names the cause
    helps = []
    if late > 0.5 * generated:
        share = _helpful_share(plan, rounds, generated, enough)
        if share is not None:
            now, then = rounds / plan.clock.share, rounds / share
            helps.append(
                "a smaller share of the traffic, if the rollout may take so long: "
                f"`traffic_share={share:g}` (about {_told(plan, rounds, generated, share):,.0f} told, in {then:,.0f} "
                f"displays of live traffic instead of {now:,.0f})"
            )
    # With two actions half the displays would be rounds; on the wall clock delays would grow as the rounds do.
    most = max(len(plan.rounds) // 2, rounds)
    of_most = _told(plan, most, generated * most / rounds, plan.clock.share)
    if plan.log.n_actions > 2 and plan.clock.kind != "wall" and of_most >= FEW_TOLD * 2:
        helps.append("fewer actions (`actions='top:n'`)")
    remedy = f"What helps: {', or '.join([*helps, 'a longer log'])}."
    yield codes.LITTLE_LEARNED.found(so, remedy, told=delivered, rounds=rounds)


def _helpful_share(plan: ReplayPlan, rounds: int, generated: float, enough: int) -> float | None:
    """Return the largest share of the traffic at which enough conversions would be told, or None."""
    if plan.clock.kind == "wall":
        return None
    smaller = (s for s in _SHARES if s < plan.clock.share)
    return next((s for s in smaller if _told(plan, rounds, generated, s) >= enough), None)


def _told(plan: ReplayPlan, rounds: int, generated: float, share: float) -> float:
    """Return about how many of a replay's conversions would be told at another share of the traffic.

    Of a conversion with a delay of d rounds the share (T - d) / T of the rounds is told by the last one. At a share s
    the delays are s times as long in rounds; a window that is a duration cuts the same conversions.
    """
    used = int(np.searchsorted(plan.teacher.display, len(plan.rounds)))
    delay = plan.window.revealed(plan.teacher, plan.clock)[:used].astype(np.float64)
    if not len(delay):
        return 0.0
    then = delay * (share / plan.clock.share)
    within = (then if str(plan.options.window).isdecimal() else delay) <= plan.window.rounds
    return generated * float(np.mean(np.maximum(1.0 - then / rounds, 0.0) * within))


def bursts_warning(plan: ReplayPlan) -> Iterator[Finding]:
    """Yield a warning if bursts of traffic are as long as the delays, on the traffic clock; otherwise none."""
    delay, ratio = peak_within_delay(plan.survey)
    if plan.clock.kind != "traffic" or plan.sampler == "logged" or not plan.policy.learns or not ratio >= BURSTY:
        return
    within = format_duration(delay * (plan.log.meta.tick_seconds or 1.0))
    yield codes.BURSTS.found(
        f"Traffic comes in bursts: within {within}, in which a good part of the conversions come, up to "
        f"{ratio:.2g} times as many displays follow one as on average. A replay has a part of each burst's "
        "rounds, but delays of whole bursts, so that what a policy knows in and between them is not what it would "
        "know live: its value may be off either way by more than its interval.",
        "`clock='wall'` is right for a rollout on the share of the traffic that it names.",
        ratio=ratio,
    )


def calendar_warning(plan: ReplayPlan) -> Iterator[Finding]:
    """Yield what to read before all else where sets move with time: a replay has two calendars."""
    if plan.sets is None or plan.sets.moving < 0 or not plan.setting.among:
        return
    action = plan.log.labels[plan.sets.moving]
    share = float(plan.matched.c.min(initial=1.0, where=plan.usable > 0)) * plan.survey.kept * plan.clock.sampling_rate
    if plan.clock.kind == "wall":
        yield codes.MOVING_SETS.found(
            f"Eligible actions change with time (action {action} most). The wall clock replays a rollout on a "
            f"share of {share:.3g} of the traffic over the log's own calendar: actions come and go as they did, "
            "and feedback comes as late, in time, as it did.",
            about=action,
            share=share,
        )
        return
    yield codes.MOVING_SETS.found(
        f"Eligible actions change with time (action {action} most), on the log's calendar, and delays run on the "
        f"traffic's: this replay accepts {share:.3g} of the displays, so it lives through an action's n displays "
        f"in {share:.3g} n rounds, while its feedback comes as many rounds late as at full traffic. No rollout "
        "looks like that, and a policy that must learn about each new action looks worse than it would live.",
        "`clock='wall'` replays a rollout on that share of the traffic, in which both agree.",
        about=action,
        share=share,
    )


def no_rounds(plan: ReplayPlan, replay: Replay) -> NoRoundsError:
    """Return the error of a replay that accepted no display."""
    chosen = replay.dry if plan.sampler == "queue" else replay.waiting
    usable = plan.usable
    n = len(plan.rounds)
    out = leaves_out(plan)
    said = f"{plan.policy.spec} lived no round of the {n:,} displays (sampler: {plan.sampler})"
    if chosen >= 0 and not usable[chosen]:
        why = "was never shown" if not plan.survey.shown[chosen] else "has young displays only, too young to be judged"
        usual = with_label(f"fixed:action={usable.argmax()}", plan.log.labels)
        hint = (
            f"take an action that has usable displays: {usual}."
            if plan.policy.name == "fixed"
            else f"leave it out: {out}."
        )
        return NoRoundsError(f"{said}: it chose action {plan.log.labels[chosen]}, which {why}.", remedy=hint)
    if plan.matched.propensities.rule is None:
        return NoRoundsError(f"{said}.", remedy=_LONGER)
    smallest = plan.matched.propensities.smallest
    blamed = chosen if chosen >= 0 and plan.sampler != "rejection" else int(np.nanargmin(smallest))
    if binding := binding_display(plan):
        keep = plan.sampler == "rejection" and not plan.per_display
        other = "`sampler='keep'`, whose rounds no action decides that is not chosen, or " if keep else ""
        return NoRoundsError(f"{said}: {binding.cause}.", remedy=f"what helps is {other}{binding.remedy}.")
    c = min(float(plan.matched.c[blamed]), 1.0)
    if c * n >= _EXPECTED:
        none = [plan.log.labels[k] for k in np.flatnonzero(usable == 0)]
        why = f"; action {', '.join(none)} has no usable display" if none else ""
        return NoRoundsError(
            f"{said}, where about {c * n:,.0f} were to be accepted: none shows what it chose{why}.",
            remedy=f"leave it out: {out}." if none else "run evaluate check on this log.",
        )
    least = float(np.nanmin(smallest))
    if least > 0.5 * float(np.nanmedian(smallest)):
        return NoRoundsError(f"{said}, of which about {c * n:,.2g} were to be accepted.", remedy=_LONGER)
    return NoRoundsError(
        f"{said}: the smallest propensity of action {plan.log.labels[blamed]}, {float(smallest[blamed]):.2g}, leaves "
        f"about {c * n:,.2g} of them.",
        remedy=_way_out(plan, least),
    )


def _way_out(plan: ReplayPlan, least: float) -> str:
    if plan.sampler == "rejection" and not plan.per_display:
        return "use `sampler='keep'`, whose rounds no other action's propensity decides."
    for quantile in (0.01, 0.05, 0.2, 0.5):
        c = plan.propensities.quantile(plan.log, quantile)
        if c * len(plan.rounds) >= _EXPECTED and c > least:
            return (
                f"accept by a larger c, at the price of bias: `accept_quantile={quantile:g}` makes it {c:.2g}; or "
                "leave that action out by `actions`."
            )
    return _LONGER


def meaning(plan: ReplayPlan, rounds: int, live_days: float | None) -> tuple[str, ...]:
    """Return sentences that say what the values of a replay mean, and what they do not mean.

    A replay is one run of a policy on one log. While a policy learns, what it earns in one run may be far from what it
    earns on average: one that settles on an action early settles on another one in the next run. The realised
    intervals hold for the run that was replayed, and only for that.
    """
    if not rounds:
        return ()
    runs = "this run" if plan.options.repeats == 1 else f"these {plan.options.repeats} runs"
    if not plan.policy.learns:
        kind = "The policy does not learn, so the realised values here are also its average ones."
    elif plan.options.bootstrap:
        kind = (
            f"Realised values are what {runs} of the policy earned, and hold for no other; the expected value is the "
            "average over logs and seeds, with an approximate interval."
        )
    else:
        kind = (
            f"Realised values are what {runs} of the policy earned; on another log, or with another seed, its value "
            "may lie outside these intervals (`bootstrap=200` estimates the average)."
        )
    live = "" if live_days is None else f", {live_days:.3g} days of live traffic"
    what = "while it learns" if plan.policy.learns else "as it is"
    return (
        kind,
        f"They are for its first {rounds:,} rounds{live}, {what}, on traffic, actions and rates like the log's.",
    )


def find_in_schedule(plan: ReplayPlan, lived: LivedSchedule | None, rounds: int) -> Iterator[Finding]:
    """Yield whether the policy chose at all, when it learned, and what no replay can know of that."""
    if plan.explores is not None and 0 < rounds <= plan.explores.rounds:
        yield codes.ONLY_EXPLORED.found(
            f"{plan.policy.name} chose nothing: the deployment explores in the first {plan.explores.rounds:,} rounds, "
            f"and the replay has {rounds:,}.",
            "Take a longer log, or explore for less time (`explore_first`).",
            rounds=rounds,
        )
    if lived is None or plan.deployment.schedule is None or plan.pushes is None:
        return
    tick, start = plan.clock.tick_seconds, int(plan.survey.marked_at[0])
    if not lived.pushes:
        first = plan.pushes.after[:1].tolist()
        when = f"the first push comes after {first[0]:,} rounds" if first else "no push comes before the horizon"
        yield codes.NO_PUSH.found(
            f"The policy learned nothing: {when}, and the replay has {rounds:,}.",
            "Take a longer log, or let it learn more often (`learn_every`).",
            rounds=rounds,
        )
    pace = lived.calendar_pace
    if pace > _FAST:
        yield from _fast_calendar(plan, pace)
    words = []
    if lived.pushes:
        words.append(
            f"{lived.pushes:,} push{'es' if lived.pushes > 1 else ''}, the first after {lived.first_push:,} rounds, "
            f"{lived.rounds_between:,.0f} rounds from one to the next"
        )
        stale = "" if lived.stale_days is None else f" ({format_duration(lived.stale_days * SECONDS['d'])})"
        words.append(f"a choice does not know of the last {lived.stale_rounds:,.0f} rounds before it{stale} on average")
    if lived.from_time is not None and lived.to_time is not None:
        ends = [time_words(time, tick, start=start) for time in (lived.from_time, lived.to_time)]
        words.append(f"its rounds stand at the times of the log's first displays, {ends[0]} to {ends[1]}")
    if pace > _FAST and lived.pushes:
        days, every = plan.clock.days(lived.rounds_between or 0.0), plan.deployment.schedule.every.seconds
        live = every or (None if days is None else days * SECONDS["d"])
        passes = (
            f"{pace:.3g} times as fast as live"
            if live is None
            else f"{format_duration(live * pace)}, live {format_duration(live)}"
        )
        words.append(
            f"between two pushes the log's calendar moves {passes}: what goes with it (drift, the time of day, "
            "campaigns) is right on the wall clock alone"
        )
    traffic = math.nan if lived.from_time is not None or plan.clock.kind == "wall" else uneven_traffic(plan.survey)
    if traffic >= _UNEVEN:
        words.append(
            f"delays count displays, as without a schedule, though the traffic is {traffic:.2g} times as dense at some "
            "times as at others: a schedule in time (`learn_every='1h'`) counts them in time"
        )
    if words:
        yield codes.PUSHES.found("; ".join(words), pushes=lived.pushes)


def find_in_units(plan: ReplayPlan, done: list[RepeatEstimates], t: int) -> Iterator[Finding]:
    """Yield how many rounds were displays at which the policy chose, and whether that is so of the log."""
    if plan.kept is None or not t:
        return
    units, replayed = plan.kept.units, done[0].replay
    firsts = int(np.count_nonzero(units.first[units.code[replayed.displays]] == replayed.displays))
    undue = f"; {replayed.undue:,} more had been read and were not due when the rounds ended" if replayed.undue else ""
    yield codes.KEPT_ROUNDS.found(
        f"in {firsts:,} of {t:,} rounds the policy chose, in the other {t - firsts:,} a choice was kept{undue}",
        about=units.asked.column,
        chosen=firsts,
        undue=replayed.undue,
    )
    lived, logged = firsts / t, float(np.searchsorted(units.first, len(plan.rounds))) / max(len(plan.rounds), 1)
    if abs(lived - logged) > _MIX_OFF:
        yield codes.FIRST_DISPLAYS_WEIGH.found(
            f"{lived:.1%} of the rounds are first displays of a {units.asked.column}, and {logged:.1%} of the log's "
            "displays: a live run of so many rounds meets as many, and the log goes on. Where first displays earn "
            "otherwise than later ones, uplift and regret are of that, too.",
            "Compare within each group, first displays and later ones.",
            about=units.asked.column,
            rounds=lived,
            log=logged,
        )


def _fast_calendar(plan: ReplayPlan, pace: float) -> Iterator[Finding]:
    """Yield a warning where what goes with the log's calendar passes faster between two pushes than live."""
    assert plan.deployment.schedule is not None
    moves = find_movements(plan.teacher) if plan.deployment.schedule.in_time else []
    by = ", ".join(f"{one.how} by {one.change:.0%}" for one in moves)
    if plan.sets is not None and plan.sets.moving >= 0:
        what = f"Eligible actions{f' and what they earn ({by})' if moves else ''} change"
    elif moves:
        what = f"What actions earn changes ({by})"
    else:
        return
    share = plan.clock.traffic_share / pace
    changes: dict[str, Any] = {"change": max(one.change for one in moves)} if moves else {}
    yield codes.FAST_CALENDAR.found(
        f"{what} with the log's calendar, which passes {pace:.3g} times faster between two pushes than it will live: "
        "what the policy learned is older than it looks.",
        f"`clock='wall'` is right for a rollout on a share of {share:.3g} of the traffic.",
        pace=pace,
        share=share,
        **changes,
    )


def find_in_rounds(plan: ReplayPlan, done: list[RepeatEstimates], t: int) -> Iterator[Finding]:
    """Yield what is to be said of which displays became rounds, and of what the policy was told in them."""
    yield from calendar_warning(plan)
    if t and plan.clock.kind == "wall" and plan.sampler != "logged":
        yield codes.SHARE_OF_TRAFFIC.found(
            f"Wall clock: these {t:,} rounds take {t / plan.clock.traffic_share:,.0f} displays of live traffic, of "
            f"which the policy serves a share of {plan.clock.traffic_share:.3g}. Were it to serve all of it, "
            "feedback would come later, counted in rounds: `clock='traffic'`.",
            share=plan.clock.traffic_share,
        )
    yield from _wall_clock_off(plan, done)
    in_vain = ended_by(plan, done)
    if t and in_vain:
        named = ", ".join(in_vain)
        out = leaves_out(plan)
        yield codes.ENDED_BY_ACTION.found(
            f"After {t:,} rounds the policy chose action {named}, which has no usable display, and the replay "
            f"ended there: {out} leaves it out.",
            about=named,
            rounds=t,
        )
    else:
        told = {name: float(np.mean([getattr(r.replay, name) for r in done])) for name in _TOLD}
        yield from little_learned(plan, rounds=t, **told)
    # Repeats read one log, and so nearly the same displays: the first that is off speaks for all.
    off = [found for r in done for found in acceptance_warning(plan, r.suspect)]
    tilted = [found for r in done if r.sizes is not None for found in set_sizes_warning(r.sizes)]
    yield from (*tilted[:1], *off[:1], *propensity_warning(plan))
    yield from find_in_units(plan, done, t)
    if done[0].sizes is not None:
        yield set_sizes_assumption(done[0].sizes)
    if len(done) > 1:
        yield codes.ANY_ORDER.found(_SHUFFLED)


def _wall_clock_off(plan: ReplayPlan, done: list[RepeatEstimates]) -> Iterator[Finding]:
    """Say that the wall clock counted on another acceptance rate: clipped propensities accept less than c."""
    rate = float(np.mean([len(r.replay.displays) / max(r.replay.read, 1) for r in done])) * plan.survey.kept
    share = plan.clock.share
    if plan.clock.kind != "wall" or not plan.matched.clips or not rate or abs(share / rate - 1.0) < _SHARE_OFF:
        return
    yield codes.WALL_CLOCK_OFF.found(
        f"Wall clock: delays count {share:.4g} rounds for each display, but `accept_quantile` let {rate:.4g} of "
        f"them through: feedback comes {share / rate:.3g} times as late as it should.",
        f"Replay with `clock='traffic'` `traffic_share={rate * plan.clock.sampling_rate:.3g}`.",
        share=share,
        accepted=rate,
    )


def find_in_estimates(plan: ReplayPlan, done: list[RepeatEstimates], t: int, best: Interval) -> Iterator[Finding]:
    """Yield what is to be said of the estimates of so many rounds, and of the best fixed action."""
    horizon = plan.options.horizon
    if 0 < t < 10 * plan.log.n_actions:
        yield codes.FEW_ROUNDS.found(
            f"{t:,} rounds for {plan.log.n_actions} actions: hardly more than exploration, so the value says "
            "little about the policy in the long run.",
            rounds=t,
            actions=plan.log.n_actions,
        )
    if t and best.n < FEW_DISPLAYS:
        yield codes.RARE_REFERENCE.found(
            f"The best fixed action was shown {best.n:,} times only: which action is best, and with it the "
            "regret's reference, is hardly known.",
            displays=best.n,
        )
    dry = {r.replay.dry for r in done if r.replay.dry >= 0 and plan.usable[r.replay.dry]}
    if dry and t:
        names = ", ".join(plan.log.labels[a] for a in sorted(dry))
        yield codes.QUEUE_RAN_DRY.found(
            f"The queue of action {names} ran dry after {t:,} rounds, short of the horizon: the stopping point "
            "depended on outcomes, so do not compare this value with another policy's.",
            about=names,
            rounds=t,
        )
    elif horizon is not None and 0 < t < horizon:
        short = f"The log ended after {t:,} rounds, short of the horizon {horizon:,}."
        yield codes.SHORT_OF_HORIZON.found(short, rounds=t, horizon=horizon)
    yield from bursts_warning(plan)
    waited = [found for r in done for found in waiting_warning(plan, r.accepted)]
    yield from waited[:1]
    clipped = float(np.mean([r.clipped for r in done]))
    if clipped > 0 and plan.sampler != "logged":
        yield codes.CLIPPED.found(
            f"{clipped:.1%} of the displays have a propensity below c: their actions are accepted too rarely, a bias.",
            share=clipped,
        )
    yield from warn_of_bound(plan)


def stamps_warning(plan: ReplayPlan, value: Interval, ends: Sequence[float]) -> Iterator[Finding]:
    """Yield a warning where the value depends on when, within their time stamps, conversions are told.

    `ends` are the values if they are told at the beginning of their stamps, and at the end; empty where stamps are
    fine.
    """
    half = (value.high - value.low) / 2.0
    if not ends or not abs(ends[0] - ends[1]) > half:
        return
    unit = format_duration(plan.survey.stamp * (plan.log.meta.tick_seconds or 1.0))
    yield codes.TIME_STAMPS_DECIDE.found(
        f"Time stamps decide this value. Times are multiples of {unit}, and conversions that are told at the "
        f"beginning of their stamp make it {ends[0]:.4g}, at its end {ends[1]:.4g}: they differ by more than half "
        f"the interval's width, {half:.2g}, which does not allow for it.",
        "Log finer times; until then decide only what holds at both.",
        at_beginning=ends[0],
        at_end=ends[1],
    )


def outside_seen(ends: Sequence[str]) -> str:
    """Return what no display may earn where these bounds (`RewardRange.ends_seen`) are only what was seen."""
    return " or ".join(_BEYOND[end] for end in ends)


def ends_seen(results: Sequence[ReplayResult]) -> tuple[str, ...]:
    """Return which bounds of a display's reward are only what was seen, in any of the results."""
    return tuple(dict.fromkeys(end for result in results for end in result.plan["reward_bound"]["seen"]))


def with_honest_kinds(plan: ReplayPlan, result: ReplayResult) -> ReplayResult:
    """Return a result whose intervals claim no more than holds."""
    if plan.bounded:
        return result
    money = result.money
    if money is not None:
        named = ("profit", "profit_per_cost")
        money = replace(money, **{name: with_honest_kind(getattr(money, name)) for name in named})
    best = replace(result.best_fixed_action, value=with_honest_kind(result.best_fixed_action.value))
    return replace(
        result,
        value=with_honest_kind(result.value),
        regret=with_honest_kind(result.regret),
        uplift=with_honest_kind(result.uplift),
        logging_value=with_honest_kind(result.logging_value),
        best_fixed_action=best,
        money=money,
    )


def warn_of_bound(plan: ReplayPlan) -> Iterator[Finding]:
    """Yield what to read before the numbers of a log that does not name what its displays can earn."""
    rewards = plan.rewards
    if not rewards.smallest_known:
        yield codes.SMALLEST_REWARD_SEEN.found(
            f"The least that a display earns by its conversions, {rewards.smallest:g}, is the least seen: where "
            "refunds may take more, the intervals hold less often than they say.",
            "Name it (`reward_min`, or reward_min in the spec).",
            smallest=rewards.smallest,
        )
    if rewards.known:
        return
    largest = f"The largest reward seen, {rewards.largest:g}, is taken as the largest possible"
    if rewards.alike:
        yield codes.LARGEST_REWARD_SEEN.found(f"{largest}.", largest=rewards.largest)
        return
    yield codes.LARGEST_REWARD_SEEN.found(
        f"{largest}, which nobody knows: where larger ones are possible, and rare, the intervals of realised "
        "values, regret, uplift and differences hold less often than they say, and not at any stopping time.",
        "Name what a display can earn at most (`reward_max`, or reward_max in the spec), or have capped rewards "
        "evaluated, of which they hold (`cap`).",
        largest=rewards.largest,
    )


def ended_by(plan: ReplayPlan, done: list[RepeatEstimates]) -> tuple[str, ...]:
    """Return the labels of actions without a usable display at which repeats ended."""
    last = {max(r.replay.dry, r.replay.waiting) for r in done}
    return tuple(plan.log.labels[k] for k in sorted(last) if k >= 0 and not plan.usable[k])
