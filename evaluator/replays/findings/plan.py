"""What to read before the numbers of a replay, and what these rest on, as far as its plan and its log tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.ridge import LARGEST_CONDITION
from evaluator.engine.log_replay import SamplerName
from evaluator.errors import ParameterError
from evaluator.estimates.standard_errors import clusters_text, effective, few_clusters, too_few
from evaluator.findings import codes
from evaluator.findings.finding import Finding
from evaluator.log.column import Codes, Column
from evaluator.log.reward_kinds import CapLoss, has_costs
from evaluator.log.schema import POSITION, WEIGHT, is_target, to_numpy
from evaluator.options.deployment import ALL_BUT_NOISE, EVENT, OBJECTIVE, REVENUE_ALONE, SCHEDULED, exploring_words
from evaluator.policies.base import Need
from evaluator.replays.options import ReplayOptions, told_events_words
from evaluator.replays.plan import ReplayPlan, of_conversions
from evaluator.replays.rounds.clock import followed_for, seen_delays
from evaluator.replays.rounds.propensity import NOT_AT_REST, Propensities
from evaluator.replays.rounds.reward_range import RewardRange
from evaluator.replays.rounds.survey import Survey
from evaluator.replays.support import (
    binding_display,
    gap_warnings,
    rarest_warning,
    said_of_index,
    said_of_target,
    unusable_warning,
)
from evaluator.units import NO_WINDOW, format_duration, ticks_words

# A share of the conversions that is as good as all.
ALL_BUT_ALL = 0.99
# Logged propensities of one action that differ by more follow something.
VARIES = 0.02
Ints = npt.NDArray[np.int64]
# Of refunds, so much less within the window than of sales that it is said.
_FEWER = 0.01
UNWORN = codes.NO_WEAR_OUT.found("a display's outcome does not depend on the user's earlier displays")
INDEPENDENT = "displays are independent and identically distributed over the log's time"


def _warn_of_rewards(policy: Any, rewards: RewardRange, taught_by: str | None) -> Iterator[Finding]:
    if rewards.heavy:
        most = "reward_max" if rewards.known else "largest reward seen"
        if taught_by is not None:
            most = f"largest value of {taught_by}"
        yield codes.HEAVY_REWARDS.found(
            f"The {most}, {rewards.largest:g}, is {rewards.largest / rewards.mean:,.0f} times what displays that "
            "earn something bring on average. Policies learn on the scale of the largest reward, so they hardly "
            "tell actions apart.",
            "Have capped rewards evaluated (`cap`), or count conversions (value = 1).",
            largest=rewards.largest,
            mean=rewards.mean,
        )
    if not policy.unit_rewards and (rewards.most != 1.0 or rewards.least != 0.0):
        span = f"up to {rewards.largest:g}" if rewards.least == 0.0 else f"from {rewards.least:g} to {rewards.most:g}"
        yield codes.REWARDS_OF_OWN_UNIT.found(
            f"{policy.name} is told rewards in the log's own unit, {span} a display.",
            "If it expects them in [0, 1], give it unit_rewards = True.",
            about=policy.name,
        )


def warnings(plan: ReplayPlan, acceptance: float, rewards: RewardRange) -> Iterator[Finding]:
    """Yield what to read before the numbers, as far as it is known before the first round.

    The acceptance is the probability with which a display is accepted, the rewards the range of the log's.
    """
    rarest: list[Finding] = []
    if plan.sampler != "keep" or (Need.HORIZON in plan.policy.needs and plan.options.horizon is None):
        rarest = rarest_warning(plan)
    if binding := binding_display(plan):
        cause = f"{binding.cause[0].upper()}{binding.cause[1:]}."
        yield codes.BINDING_PROPENSITY.found(cause, f"What helps is {binding.remedy}.")
        rarest = []
    yield from unusable_warning(plan)
    yield from rarest
    if by_outcome := plan.log.meta.counts.get("quarantined_by_outcome"):
        yield codes.QUARANTINED_BY_OUTCOME.found(
            f"{by_outcome:,.0f} rows that break a rule are left out of the log, and which depends on their "
            "outcome: what is left has another conversion rate.",
            "Repair them.",
            rows=by_outcome,
        )
    if not plan.propensities.settled:
        yield codes.UNSETTLED_FIT.found(NOT_AT_REST[0].upper() + NOT_AT_REST[1:] + ".")
    if not plan.maturity.known:
        yield codes.UNKNOWN_FOLLOW_UP.found(
            "The log stops looking at some time, but nothing says how long conversions take: young displays may "
            "count as failures.",
            "Give the spec an attribution_window, or the replay a `window`.",
        )
    if plan.maturity.immature:
        fate = "left out" if plan.options.immature == "drop" else "corrected by their delays"
        yield codes.YOUNG_DISPLAYS.found(
            f"{plan.maturity.immature:,} displays were followed too briefly to be judged: {fate}.",
            displays=plan.maturity.immature,
        )
    yield from said_of_parts(plan.propensities, plan.policy)
    yield from said_of_index(plan)
    yield from said_of_target(plan)
    if plan.propensities.kind == "uniform" and plan.propensities.weights is None and plan.sets is None:
        counts = plan.survey.shown
        expected = len(plan.log) / plan.log.n_actions
        worst = float(np.max(np.abs(counts - expected)) / np.sqrt(expected * (1 - 1 / plan.log.n_actions)))
        # Beyond any chance for thousands of actions: the normal tail at 6 is 2e-9.
        if worst > 6:
            yield codes.NOT_UNIFORM.found(
                f"The log is said to be uniform, but one action's count is {worst:.0f} standard errors off: the "
                "estimate is biased if it is not.",
                "Consider `propensity='estimate'`.",
                standard_errors=worst,
            )
    acceptance *= plan.survey.kept * plan.clock.sampling_rate
    if plan.clock.kind == "traffic" and plan.clock.traffic_share < acceptance:
        yield codes.SHARE_BELOW_ACCEPTANCE.found(
            f"The traffic share {plan.clock.traffic_share:g} is below the acceptance rate {acceptance:.3g}: the "
            "replay reads conversions that the log saw only later, which is right only if nothing drifts.",
            share=plan.clock.traffic_share,
            acceptance=acceptance,
        )
    yield from warn_of_stamps(plan)
    yield from _warn_of_overridden(plan)
    of_seen = of_conversions(followed_for(plan.survey, plan.clock))
    if plan.rewards_end_with_window and plan.tau_window < ALL_BUT_ALL:
        yield codes.WINDOW_ENDS_REWARDS.found(
            f"Rewards are the conversions within the window, {plan.tau_window:.1%} {of_seen}, because the log "
            "names no attribution window: values are of these alone.",
            "Give the spec an attribution_window to count the others.",
            share=plan.tau_window,
        )
    within, of_told = plan.tau_window, of_seen
    if plan.taught_by_kind:
        within, of_told = _told_share(plan), f"of the {told_events_words(plan.options.taught_by)}"
    if within < 0.5:
        few = f"Only {within:.1%} {of_told} come within the window: the policy sees few of them."
        yield codes.SHORT_WINDOW.found(few, share=within)
    if Need.DELAY_CDF in plan.policy.needs and plan.setting.delay_cdf is None:
        none = told_events_words(plan.options.taught_by)
        yield codes.NO_DELAYS.found(f"The log has no {none} to fit a delay CDF to.")
    yield from _warn_of_dwarfed(plan)
    yield from [] if plan.start is None else plan.start.warnings(rewards.least, rewards.most)
    yield from warn_of_refunds(plan)
    yield from gap_warnings(plan.survey)
    yield from _warn_of_rewards(plan.policy, rewards, plan.options.teacher if plan.taught_by_kind else None)


def _warn_of_dwarfed(plan: ReplayPlan) -> Iterator[Finding]:
    """Say which column hides others from a policy that learns from contexts, and what helps."""
    dwarfing = plan.survey.dwarfing if plan.policy.contextual and plan.policy.learns else None
    if dwarfing is None:
        return
    # The condition of V is the square of it at least.
    beyond = dwarfing.times**2 > LARGEST_CONDITION
    yield codes.DWARFED_COLUMN.found(
        f"Numbers of {dwarfing.largest} are {dwarfing.times:,.3g} times as large as those of {dwarfing.smallest}, "
        f"and {plan.policy.name} regularises and explores in one unit for all: it may learn nothing from the "
        "smaller ones, or from what changes within the "
        f"larger{', and its coefficients are uncertain by rounding' if beyond else ''}.",
        dwarfing.remedy,
        about=dwarfing.largest,
        times=dwarfing.times,
    )


def _warn_of_overridden(plan: ReplayPlan) -> Iterator[Finding]:
    """Say that logged propensities, which follow the context, were replaced by ones that do not."""
    survey = plan.survey
    vary = survey.largest > survey.smallest * (1.0 + VARIES)
    if plan.log.meta.propensity != "logged" or plan.options.propensity not in ("estimate", "uniform") or not vary.any():
        return
    k = int(np.flatnonzero(vary)[0])
    yield codes.PROPENSITIES_REPLACED.found(
        f"`propensity='{plan.options.propensity}'` replaces logged propensities that change from display to "
        f"display (those of action {plan.log.labels[k]} from {survey.smallest[k]:.3g} to "
        f"{survey.largest[k]:.3g}): the logger did not choose alike everywhere, so the values are biased.",
        "Leave the option out.",
        about=plan.log.labels[k],
    )


def said_of_parts(propensities: Propensities, policy: Any) -> Iterator[Finding]:
    """Yield the warnings of a replay of a log whose displays are no even sample of the traffic."""
    if propensities.weights is not None and propensities.weights.kept < 1.0:
        least, most = np.nanmin(propensities.weights.smallest), np.nanmax(propensities.weights.largest)
        yield codes.UNEVEN_WEIGHTS.found(
            f"Display weights reach from {least:.3g} to {most:.3g}. Thinning by them to an even sample of the "
            f"traffic costs rounds: it leaves {propensities.weights.kept:.1%} of the displays.",
            kept=propensities.weights.kept,
        )
    if propensities.tilted and is_target(policy.reads):
        yield codes.NO_WEIGHTED_VALUE.found(
            "IPS, SNIPS and DR of the policy's columns are left out: they average over all displays, and these "
            "are no even sample of the traffic."
        )


def warn_of_stamps(plan: ReplayPlan) -> Iterator[Finding]:
    """Say what time stamps leave unknown of which conversions come within the window."""
    survey, window, seconds = plan.survey, plan.window, plan.log.meta.tick_seconds
    if seconds is None:
        return
    unit = format_duration(survey.stamp * seconds)
    if window.ticks is not None and survey.blurs(window.ticks):
        known = f"Times are multiples of {unit}, so whether a conversion came within the window is known up to {unit}."
        yield codes.COARSE_TIMES.found(known)
        return
    displays = plan.clock.rate * plan.clock.share * survey.stamp
    if window.ticks is None and window.rounds < displays and survey.stamp > 1:
        by = "the order of displays that share a time, which means nothing"
        by = by if survey.ends is None else "where conversions are drawn within their time stamp"
        yield codes.COARSE_TIMES.found(
            f"Times are multiples of {unit}, and {displays:,.0f} rounds share one: which conversions come within "
            f"{window.rounds:,} rounds is decided by {by}."
        )
        return


def warn_of_twins(plan: ReplayPlan) -> Iterator[Finding]:
    """Say that twins of a log whose time stamps are coarse know the delays that it does not tell."""
    if plan.survey.ends is None or not plan.policy.learns:
        return
    unit = format_duration(plan.survey.stamp * (plan.log.meta.tick_seconds or 1.0))
    yield codes.COARSE_TIMES_OF_TWINS.found(
        f"Times are multiples of {unit}, and most delays are shorter than ten of these: twins have delays as a "
        "replay draws them, so that no error below says what the time stamps leave unknown. A replay does."
    )


def check_clusters(clusters: Column | None, used: int, asked: str) -> None:
    """Raise ParameterError if the first `used` displays are worth too few clusters for anybody to know their spread.

    `asked` is the option that makes them.
    """
    if clusters is None:
        return
    code = clusters.code[:used]
    worth = effective(code)
    if too_few(worth):
        raise ParameterError(
            f"{asked} makes {clusters.count:,} cluster{'s' * (clusters.count > 1)}, worth {clusters_text(worth)} "
            "of equal size: too few to know how much they vary.",
            remedy="take a longer log, or smaller clusters if displays of different ones are independent: every:1h."
            if asked.startswith("`cluster_by")
            else f"take a log of more values of {clusters.by}, or `keep_for='none'`, which keeps no action.",
        )


def warn_of_few_clusters(plan: ReplayPlan, code: Codes | None, what: str) -> list[Finding]:
    """Return why the displays of these clusters give no interval, where they do not."""
    worth = None if code is None else effective(code)
    return (
        [few_clusters_warning(what, worth, "" if plan.clusters is None else plan.clusters.by)] if too_few(worth) else []
    )


def few_clusters_warning(what: str, worth: float | None, by: str) -> Finding:
    """Return the warning that something has no interval, for its displays are worth too few clusters."""
    return codes.FEW_CLUSTERS.found(few_clusters(what, worth, by), about=by, clusters=worth)


def describe_clusters(plan: ReplayPlan) -> Iterator[Finding]:
    """Yield what to read before the numbers of a replay whose displays hang together."""
    clusters, options = plan.clusters, plan.options
    if clusters is None:
        return
    if options.cluster_by is not None and not (options.bootstrap or plan.recorded or len(plan.held_out)):
        yield codes.CLUSTERS_CHANGE_NOTHING.found(
            f"`cluster_by='{clusters.by}'` changes no number here: realised values are for the clusters of this log.",
            "For new ones ask for the expected value (`bootstrap=200`), or the final policy's (`final`).",
            about=clusters.by,
        )
    if clusters.unnamed:
        yield codes.UNNAMED_CLUSTERS.found(
            f"{clusters.unnamed:,} of {len(clusters.code):,} displays have no value in {clusters.by}: each is "
            "taken as a cluster of its own.",
            about=clusters.by,
            displays=clusters.unnamed,
        )


def warn_of_refunds(plan: ReplayPlan) -> Iterator[Finding]:
    """Yield the warnings of a policy that divides costs by delays, and of a window that refunds come too late for."""
    log = plan.log
    told_costs = plan.of_profit and plan.options.taught_by == OBJECTIVE
    if told_costs and getattr(plan.policy, "divides_by_delays", False):
        cut = f", which the window leaves {plan.tau_window:.1%} of the sales" if plan.tau_window < 1.0 - _FEWER else ""
        yield codes.COSTS_AND_DELAYS.found(
            f"{plan.policy.name} divides all that it was told by the chance of having seen it{cut}, and so takes "
            "costs, which it is told at once, for larger than they are.",
            "Tell it of revenue alone, `learn_from='revenue'`, or take a policy that corrects no delays.",
            about=plan.policy.name,
        )
    if plan.cdf is None or plan.taught_by_kind:
        return
    value = to_numpy(log.conversions["value"])
    for kind in plan.survey.kinds[1:]:
        if kind.told and value[kind.at].sum() < 0.0:
            yield from _warn_of_late(plan, kind.name, np.flatnonzero(kind.marked(len(value))), value)


def _warn_of_late(plan: ReplayPlan, name: str, events: Ints, value: npt.NDArray[np.float64]) -> Iterator[Finding]:
    """Yield the warning of a window that events which take back come too late for."""
    survey = plan.survey
    within = seen_delays(survey, plan.clock, plan.window, events).share
    if not within < plan.tau_window - _FEWER:
        return
    late = events[plan.rounds.delay[events] > plan.window.rounds]
    late = late[survey.display[late] < len(plan.rounds)]
    lost = -float(value[late].sum()) / max(len(plan.rounds), 1)
    flatters = plan.rewards_end_with_window or plan.options.reward == "observed"
    what = "The value counts none of these, and so is too good by them" if flatters else (
        f"The value counts them, but the policy, which is never told of them, takes actions with many {name} for "
        "better than they are"
    )  # fmt: skip
    yield codes.LATE_REFUNDS.found(
        f"The window flatters: {within:.1%} of the {name} come within it, and {plan.tau_window:.1%} of the "
        f"sales. {name[0].upper()}{name[1:]} of {lost:.4g} a display, of those seen, come later. {what}.",
        within=within,
        lost=lost,
    )


def warn_of_kind(name: str, plan: ReplayPlan, *, outcome: bool) -> Iterator[Finding]:
    """Yield the warnings on an outcome, or another kind of events, by the plan whose rewards are its events."""
    meta = plan.log.meta
    of = f"Outcome {name}" if outcome else name.capitalize()
    if not len(plan.rounds):
        long = plan.window.describe(plan.clock) if meta.attribution_window is None else ticks_words(
            meta.attribution_window, meta.tick_seconds
        )  # fmt: skip
        yield codes.OUTCOME_NOT_FOLLOWED.found(
            f"{of}: no replayed display was followed for {long}, so nothing is known of it.", about=name
        )
    elif not plan.maturity.known:
        yield codes.OUTCOME_FOLLOW_UP_UNKNOWN.found(
            f"{of}: nothing says how long after a display such an event may come, and the log stops "
            "looking: young displays count with what was seen of them, too little.",
            "Name its attribution_window.",
            about=name,
        )
    for end in plan.rewards.ends_seen:
        most = getattr(plan.rewards, end)
        yield codes.OUTCOME_MAXIMUM_UNKNOWN.found(
            f"{of}: the {end} value of a display seen, {most:g}, is taken as the {end} possible, which "
            f"nobody knows: where {end.removesuffix('st')}r ones are, its intervals, and what guardrails say by "
            "them, hold less often than they say.",
            "Name its value_max in the spec." if outcome else "",
            about=name,
            **{end: most},
        )


def state_independence(clusters: Column | None) -> Finding:
    """Return what intervals assume about the dependence of displays, and which of them allow for it."""
    if clusters is None:
        return codes.INDEPENDENT_DISPLAYS.found(INDEPENDENT)
    return codes.INDEPENDENT_CLUSTERS.found(
        f"displays of different clusters ({clusters.count:,} by {clusters.by}) are independent and identically "
        "distributed; within one they may hang together: intervals of expected and weighted values are for new "
        "clusters, those of realised values, of regret and of uplift for the clusters of this log",
        about=clusters.by,
        clusters=clusters.count,
    )


def _state_units(plan: ReplayPlan) -> Iterator[Finding]:
    """Yield which units keep their action, and whether the log's logger kept it alike."""
    if plan.kept is None:
        return
    units, own = plan.kept.units, plan.deployment.says("keep_for")
    name, asked = units.asked.column, units.asked.text
    after = units.asked.after
    again = "" if after is None else f" and is asked anew after {after}"
    chance = units.chance(plan.propensities)
    logged = "no unit has more than one display"
    if units.several:
        logged = (
            f"{units.alike:,} of {units.several:,} units with more than one display show one action "
            f"({units.share:.1%}), where choosing anew at each would give {chance:.1%}"
        )
    yield codes.KEEPS_ACTIONS.found(
        f"each {name} keeps the action of its first display{again} (`keep_for='{asked}'`){own}, and is accepted or "
        f"rejected whole; values count all its displays. In the log {logged}",
        about=name,
        share=units.share,
        chance=chance,
        units=len(units.first),
    )
    if units.again > 0 and units.alike_again >= ALL_BUT_NOISE * units.again and chance < ALL_BUT_NOISE:
        yield codes.KEPT_LONGER.found(
            f"The logger kept its action longer than {after}: {units.alike_again:,} of "
            f"{units.again:,} units that follow another one of the same {name} show its action again. What a {name} "
            "brings after a change of action is not in the log, and is taken to be what it brings without one.",
            f"Ask for that instead: `keep_for='{name}'` keeps it for good.",
            about=name,
            units=units.again,
        )


def assumptions(plan: ReplayPlan, rewards: RewardRange) -> Iterator[Finding]:
    """Yield what a replay's numbers rest on, and the log's own notes."""
    log, known, start = plan.log, plan.known, plan.start
    policy, options, clock, window, sampler = plan.policy, plan.options, plan.clock, plan.window, plan.sampler
    told, correction = plan.setting.delay_cdf, plan.maturity.correction
    yield UNWORN
    yield state_independence(plan.clusters)
    yield codes.PROPENSITIES.found(plan.propensities.assumption)
    if plan.propensities.kind == "estimated" and sampler != "logged":
        yield codes.PROPENSITIES_AS_GIVEN.found("anytime-valid intervals take the estimated propensities as given")
    if clock.kind == "wall":
        yield codes.CLOCK.found(
            f"wall clock: feedback comes at the log's pace, as if the policy served {clock.traffic_share:.1%} of "
            "the traffic",
            share=clock.traffic_share,
        )
    else:
        yield codes.CLOCK.found(
            f"traffic clock: one round is one display of live traffic, at a share of {clock.traffic_share:.3g}",
            share=clock.traffic_share,
        )
        if POSITION in log.schema.names and WEIGHT not in log.schema.names:
            yield codes.TRAFFIC_OF_ACTIONS.found(
                f"the displays of the chosen actions are {plan.survey.kept:.3g} of their traffic, and the policy "
                "is to serve a share of it all: for a rollout on as many displays as theirs, multiply the share "
                "by that",
                share=plan.survey.kept,
            )
        if clock.sampling_rate < 1.0:
            yield codes.SAMPLED_LOG.found(
                f"the log is an even sample of {clock.sampling_rate:.3g} of the traffic: delays count "
                f"{1.0 / clock.sampling_rate:.3g} displays for each that it shows",
                share=clock.sampling_rate,
            )
    deployment = plan.deployment
    if deployment.schedule is not None:
        yield codes.SCHEDULE.found(
            f"the policy learns {deployment.schedule.words}{deployment.says(*SCHEDULED)}: what happened waits for "
            "that, and meanwhile it serves from what it had"
        )
    elif not policy.learns and sampler != "logged":
        given = {"deployment": options.deployment, **deployment.options, "keep_for": None}
        named = [name for name, of in given.items() if of not in (None, EVENT, OBJECTIVE)]
        if asked := " and ".join(f"`{name}`" for name in named if not deployment.says(name)):
            yield codes.SCHEDULE.found(f"{policy.name} does not learn, and is replayed as without {asked}")
    if plan.explores is not None:
        yield codes.EXPLORES_FIRST.found(
            f"in the first {plan.explores.rounds:,} rounds {exploring_words(plan.as_logger is not None)}"
            f"{plan.deployment.says('explore_first')}: the policy learns from them, and values count them",
            rounds=plan.explores.rounds,
        )
    yield from _state_units(plan)
    yield from state_drawn_delays(plan.survey, policy, sampler)
    if correction is not None:
        yield codes.YOUNG_CORRECTED.found(correction.assumption)
    if plan.sets is not None and sampler != "logged" and policy.outside:
        outside = policy.outside[0].lower() + policy.outside[1:].rstrip(".")
        yield codes.RULE_OUTSIDE_SETS.found(outside, about=policy.name)
    if sampler == "queue":
        yield codes.QUEUE_ORDER.found(
            "queue: nothing drifts; rounds go through the whole log in its order, as far as it has the chosen action"
        )
    if sampler == "keep" and not plan.propensities.even and options.horizon is None:
        yield codes.KEPT_CHOICES.found(
            "keep: the number of rounds depends on which actions the policy chose, unless `horizon` fixes it"
        )
    if options.reward == "observed" and options.horizon is None:
        yield codes.OBSERVED_REWARDS.found(
            "rewards are those observed by the last round of as many as the log gives; with more or fewer rounds "
            "they are others: `horizon` fixes their number"
        )
    if known is not None:
        yield codes.FIRST_DISPLAYS_LEFT_OUT.found(
            f"the first {known.displays:,} displays are left out of the replay (`delays_from`)", displays=known.displays
        )
    if options.final is not None:
        yield codes.LAST_DISPLAYS_LEFT_OUT.found(
            "the last displays are left out of the replay, for the final policy (`final`)"
        )
        if plan.propensities.kind == "estimated" and sampler != "logged":
            yield codes.PROPENSITIES_AS_GIVEN.found(
                "the final policy's intervals take the estimated propensities as known"
            )
    if start is not None:
        yield codes.WARM_START.found(start.assumption + start.learned_otherwise(plan.deployment.schedule))
    elif Need.DELAY_CDF in policy.needs and known is not None:
        yield codes.KNOWN_DELAYS.found("the policy knows the delay CDF as fitted before the replay, without hindsight")
    elif Need.DELAY_CDF in policy.needs and options.delays == "log" and options.final is not None:
        yield codes.KNOWN_DELAYS.found(
            "the policy knows the delay CDF of this log as it was known when the displays that are left out began "
            "(hindsight within the replay)"
        )
    elif Need.DELAY_CDF in policy.needs and options.delays == "log":
        yield codes.KNOWN_DELAYS.found("the policy knows the delay CDF of this whole log (hindsight)")
    elif Need.DELAY_CDF in policy.needs and options.delays.endswith(".json"):
        known_as = "" if told is None else f" ({told.source})"
        yield codes.KNOWN_DELAYS.found(
            f"the policy knows the delay CDF of {options.delays}{known_as}, on the clock of this log's traffic"
        )
    if window.ends_rewards(log.meta):
        yield codes.REWARDS_WITHIN_WINDOW.found(
            "the log names no attribution window, so rewards are the conversions within the policy's window"
        )
    if options.accept_quantile > 0 and plan.matched.clips and sampler != "logged":
        yield codes.CLIPPED_ACCEPTANCE.found(
            f"acceptance clipped at the {options.accept_quantile:g} quantile of the propensities: biased",
            quantile=options.accept_quantile,
        )
    yield from _state_cap(plan.capped)
    yield from state_objective(plan)
    if plan.taught_by_kind:
        yield state_teacher(plan)
    yield from _state_reward_scale(policy, options, rewards) if start is None else ()
    yield from (codes.LOG_NOTE.found(note) for note in log.meta.notes)


def _state_cap(capped: CapLoss | None) -> Iterator[Finding]:
    """Say which value is estimated, and what is known of that of whole rewards."""
    if capped is None:
        return
    yield codes.CAPPED_REWARDS.found(
        f"every number is of capped rewards, and policies are told them: a display earns at most {capped.cap:g}. "
        f"{capped.displays:,} displays of the log earn more, which leaves out {capped.share:.2%} of its reward"
        + ("; a refund takes back first what is above the cap" if capped.refunds else "")
        + "; the "
        "value of whole rewards is higher by what is left out, which no log bounds, and so at least the lower "
        "end of the capped value's interval",
        cap=capped.cap,
        share=capped.share,
    )


def _state_reward_scale(policy: Any, options: ReplayOptions, rewards: RewardRange) -> Iterator[Finding]:
    """Say on which scale the policy learns, where it is not that of a conversion worth 1."""
    width = rewards.most - rewards.least
    if not policy.learns or not policy.unit_rewards or (width == 1.0 and rewards.least == 0.0):
        return
    seen = "the largest that a display earns in this log (hindsight)"
    if options.teacher is not None:
        seen = f"the largest sum of {told_events_words(options.taught_by)} of a display in this log (hindsight)"
    elif options.final is not None:
        seen = "the largest that a display had earned when those that are left out began (hindsight within the replay)"
    if rewards.least < 0.0:
        clipped = f"; what is below 0 in all counts as 0 for {policy.name}" if policy.clips_at_zero else ""
        whose = "the log's bounds" if rewards.known and rewards.smallest_known else "some of them seen (hindsight)"
        yield codes.REWARD_SCALE.found(
            f"the policy is told rewards, from {rewards.least:g} to {rewards.most:g}, as shares of {width:g}, the "
            f"width of that range ({whose}){clipped}"
        )
        return
    bound = "reward_max" if options.teacher is None else f"largest possible value of {options.teacher}"
    whose = f"the log's {bound}" if rewards.known else seen
    yield codes.REWARD_SCALE.found(f"the policy is told rewards as shares of {rewards.largest:g}, {whose}")


def state_objective(plan: ReplayPlan) -> Iterator[Finding]:
    """Say which objective the numbers are of, and what the policy learns from; nothing of a log without costs."""
    options = plan.options
    if not has_costs(plan.log):
        return
    if not plan.of_profit:
        own = "" if options.objective else ", as the log says of itself"
        yield codes.OBJECTIVE.found(
            f"values are of revenue: costs of displays are left out (`objective='revenue'`{own})"
        )
        return
    chosen = "" if options.objective else ", for the log says what displays cost"
    yield codes.OBJECTIVE.found(f"values are of profit, a display's conversions less its cost{chosen}")
    if plan.policy.learns and not plan.taught_by_kind:
        yield codes.LEARNS_FROM.found(
            "the policy learns from revenue alone (`learn_from='revenue'`)"
            if options.taught_by == REVENUE_ALONE
            else "the policy learns from profit: it is told the cost of a display at once"
        )


def state_teacher(plan: ReplayPlan) -> Finding:
    """Say which events a policy learns from that is not told the rewards, and what the numbers are of."""
    told, within = plan.options.taught_by, _told_share(plan)
    cut = "" if plan.window.rounds == NO_WINDOW or np.isnan(within) else f", {within:.1%} of which the window reveals"
    return codes.LEARNS_FROM.found(
        f"the policy learns from {told_events_words(told)} (`learn_from={told!r}`){cut}, and is told nothing of "
        f"{'profit' if plan.of_profit else 'rewards'}, of which value, regret, uplift and guardrails are",
        about=told,
    )


def _told_share(plan: ReplayPlan) -> float:
    """Return the share of the events that teach which comes within the window; nan without any."""
    return seen_delays(plan.teacher, plan.clock, plan.window, slice(None)).share


def state_drawn_delays(survey: Survey, policy: Any, sampler: SamplerName) -> Iterator[Finding]:
    """Say by which rule delays are drawn, where time stamps are coarse and the policy learns from them."""
    if survey.ends is None or sampler == "logged" or not policy.learns:
        return
    unit = format_duration(survey.stamp * (survey.log.meta.tick_seconds or 1.0))
    yield codes.DELAYS_WITHIN_STAMPS.found(
        f"times are multiples of {unit}, and most delays are shorter than ten of these: within a stamp they are "
        "drawn from the exponential law whose mean is that of the stamps between displays and their conversions, "
        "and displays are spread evenly"
    )
