"""What the numbers of a replay rest on, as far as its plan tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaluator.engine.log_replay import SamplerName
from evaluator.findings import codes
from evaluator.findings.finding import Finding
from evaluator.log.column import Column
from evaluator.log.reward_kinds import CapLoss, has_costs
from evaluator.log.schema import POSITION, WEIGHT
from evaluator.policies.base import Need
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.reward_range import RewardRange
from evaluator.replays.rounds.survey import Survey
from evaluator.units import format_duration

UNWORN = codes.NO_WEAR_OUT.found("a display's outcome does not depend on the user's earlier displays")
INDEPENDENT = "displays are independent and identically distributed over the log's time"


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
        yield codes.WARM_START.found(start.assumption)
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
    if options.final is not None:
        seen = "the largest that a display had earned when those that are left out began (hindsight within the replay)"
    if rewards.least < 0.0:
        clipped = f"; what is below 0 in all counts as 0 for {policy.name}" if policy.clips_at_zero else ""
        whose = "the log's bounds" if rewards.known and rewards.smallest_known else "some of them seen (hindsight)"
        yield codes.REWARD_SCALE.found(
            f"the policy is told rewards, from {rewards.least:g} to {rewards.most:g}, as shares of {width:g}, the "
            f"width of that range ({whose}){clipped}"
        )
        return
    whose = "the log's reward_max" if rewards.known else seen
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
    if plan.policy.learns:
        yield codes.LEARNS_FROM.found(
            "the policy learns from revenue alone (`learn_from='revenue'`)"
            if options.learn_from == "revenue"
            else "the policy learns from profit: it is told the cost of a display at once"
        )


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
