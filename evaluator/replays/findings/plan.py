"""What a replay rests on and what to know before its numbers, in sentences, as far as the plan tells."""

from __future__ import annotations

from typing import Any

import numpy as np

from evaluator.engine.kernels.ridge import LARGEST_CONDITION
from evaluator.findings import codes
from evaluator.findings.finding import Finding
from evaluator.log.bounds import CapLoss
from evaluator.log.schema import POSITION, WEIGHT
from evaluator.policies.base import Need
from evaluator.replays.conversion_share import followed_for, of_conversions
from evaluator.replays.findings.clusters import UNWORN, state_independence
from evaluator.replays.findings.costs_and_refunds import state_objective, warn_of_refunds
from evaluator.replays.findings.stamps import state_drawn_delays, warn_of_stamps
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.gaps_and_bursts import gap_warnings
from evaluator.replays.rounds.propensity import NOT_AT_REST
from evaluator.replays.rounds.reward_range import RewardRange
from evaluator.replays.shared_inputs import Basis
from evaluator.replays.subsampled_log import said_of_parts
from evaluator.replays.support import binding_display, rarest_warning, said_of_index, said_of_target, unusable_warning

# A share of the conversions that is as good as all.
ALL_BUT_ALL = 0.99
# Logged propensities of one action that differ by more follow something.
VARIES = 0.02


def assumptions(plan: ReplayPlan, basis: Basis, rewards: RewardRange) -> tuple[Finding, ...]:
    """Return what a replay's numbers rest on, and the log's own notes."""
    log, known, start = basis.survey.log, basis.known, plan.start
    policy, options, clock, window, sampler = plan.policy, plan.options, plan.clock, plan.window, plan.sampler
    told, correction = plan.setting.delay_cdf, plan.maturity.correction
    findings = [UNWORN, state_independence(basis.clusters), codes.PROPENSITIES.found(basis.propensities.assumption)]
    if basis.propensities.kind == "estimated" and sampler != "logged":
        findings.append(
            codes.PROPENSITIES_AS_GIVEN.found("anytime-valid intervals take the estimated propensities as given")
        )
    if clock.kind == "wall":
        findings.append(
            codes.CLOCK.found(
                f"wall clock: feedback comes at the log's pace, as if the policy served {clock.traffic_share:.1%} of "
                "the traffic",
                share=clock.traffic_share,
            )
        )
    else:
        findings.append(
            codes.CLOCK.found(
                f"traffic clock: one round is one display of live traffic, at a share of {clock.traffic_share:.3g}",
                share=clock.traffic_share,
            )
        )
        if POSITION in log.schema.names and WEIGHT not in log.schema.names:
            findings.append(
                codes.TRAFFIC_OF_ACTIONS.found(
                    f"the displays of the chosen actions are {basis.survey.kept:.3g} of their traffic, and the policy "
                    "is to serve a share of it all: for a rollout on as many displays as theirs, multiply the share "
                    "by that",
                    share=basis.survey.kept,
                )
            )
        if clock.sampling_rate < 1.0:
            findings.append(
                codes.SAMPLED_LOG.found(
                    f"the log is an even sample of {clock.sampling_rate:.3g} of the traffic: delays count "
                    f"{1.0 / clock.sampling_rate:.3g} displays for each that it shows",
                    share=clock.sampling_rate,
                )
            )
    findings += state_drawn_delays(basis.survey, policy, sampler)
    if correction is not None:
        findings.append(codes.YOUNG_CORRECTED.found(correction.assumption))
    if basis.sets is not None and sampler != "logged" and policy.outside:
        outside = policy.outside[0].lower() + policy.outside[1:].rstrip(".")
        findings.append(codes.RULE_OUTSIDE_SETS.found(outside, about=policy.name))
    if sampler == "queue":
        findings.append(
            codes.QUEUE_ORDER.found(
                "queue: nothing drifts; rounds go through the whole log in its order, as far as it has the chosen "
                "action"
            )
        )
    if sampler == "keep" and not basis.propensities.even and options.horizon is None:
        findings.append(
            codes.KEPT_CHOICES.found(
                "keep: the number of rounds depends on which actions the policy chose, unless `horizon` fixes it"
            )
        )
    if options.reward == "observed" and options.horizon is None:
        findings.append(
            codes.OBSERVED_REWARDS.found(
                "rewards are those observed by the last round of as many as the log gives; with more or fewer rounds "
                "they are others: `horizon` fixes their number"
            )
        )
    if known is not None:
        findings.append(
            codes.FIRST_DISPLAYS_LEFT_OUT.found(
                f"the first {known.displays:,} displays are left out of the replay (`delays_from`)",
                displays=known.displays,
            )
        )
    if options.final is not None:
        findings.append(
            codes.LAST_DISPLAYS_LEFT_OUT.found(
                "the last displays are left out of the replay, for the final policy (`final`)"
            )
        )
        if basis.propensities.kind == "estimated" and sampler != "logged":
            findings.append(
                codes.PROPENSITIES_AS_GIVEN.found(
                    "the final policy's intervals take the estimated propensities as known"
                )
            )
    if start is not None:
        findings.append(codes.WARM_START.found(start.assumption))
    elif Need.DELAY_CDF in policy.needs and known is not None:
        findings.append(
            codes.KNOWN_DELAYS.found("the policy knows the delay CDF as fitted before the replay, without hindsight")
        )
    elif Need.DELAY_CDF in policy.needs and options.delays == "log" and options.final is not None:
        findings.append(
            codes.KNOWN_DELAYS.found(
                "the policy knows the delay CDF of this log as it was known when the displays that are left out began "
                "(hindsight within the replay)"
            )
        )
    elif Need.DELAY_CDF in policy.needs and options.delays == "log":
        findings.append(codes.KNOWN_DELAYS.found("the policy knows the delay CDF of this whole log (hindsight)"))
    elif Need.DELAY_CDF in policy.needs and options.delays.endswith(".json"):
        known_as = "" if told is None else f" ({told.source})"
        findings.append(
            codes.KNOWN_DELAYS.found(
                f"the policy knows the delay CDF of {options.delays}{known_as}, on the clock of this log's traffic"
            )
        )
    if window.ends_rewards(log.meta):
        findings.append(
            codes.REWARDS_WITHIN_WINDOW.found(
                "the log names no attribution window, so rewards are the conversions within the policy's window"
            )
        )
    if options.accept_quantile > 0 and plan.matched.clips and sampler != "logged":
        findings.append(
            codes.CLIPPED_ACCEPTANCE.found(
                f"acceptance clipped at the {options.accept_quantile:g} quantile of the propensities: biased",
                quantile=options.accept_quantile,
            )
        )
    return (
        *findings,
        *_state_cap(basis.capped),
        *state_objective(basis.survey.log, policy, options),
        *(_state_reward_scale(policy, options, rewards) if start is None else ()),
        *(codes.LOG_NOTE.found(note) for note in log.meta.notes),
    )


def _state_cap(capped: CapLoss | None) -> tuple[Finding, ...]:
    """Say which value is estimated, and what is known of that of whole rewards."""
    if capped is None:
        return ()
    return (
        codes.CAPPED_REWARDS.found(
            f"every number is of capped rewards, and policies are told them: a display earns at most {capped.cap:g}. "
            f"{capped.displays:,} displays of the log earn more, which leaves out {capped.share:.2%} of its reward"
            + ("; a refund takes back first what is above the cap" if capped.refunds else "")
            + "; the "
            "value of whole rewards is higher by what is left out, which no log bounds, and so at least the lower "
            "end of the capped value's interval",
            cap=capped.cap,
            share=capped.share,
        ),
    )


def _state_reward_scale(policy: Any, options: ReplayOptions, rewards: RewardRange) -> tuple[Finding, ...]:
    """Say on which scale the policy learns, where it is not that of a conversion worth 1."""
    width = rewards.most - rewards.least
    if not policy.learns or not policy.unit_rewards or (width == 1.0 and rewards.least == 0.0):
        return ()
    seen = "the largest that a display earns in this log (hindsight)"
    if options.final is not None:
        seen = "the largest that a display had earned when those that are left out began (hindsight within the replay)"
    if rewards.least < 0.0:
        clipped = f"; what is below 0 in all counts as 0 for {policy.name}" if policy.clips_at_zero else ""
        whose = "the log's bounds" if rewards.known and rewards.smallest_known else "some of them seen (hindsight)"
        return (
            codes.REWARD_SCALE.found(
                f"the policy is told rewards, from {rewards.least:g} to {rewards.most:g}, as shares of {width:g}, the "
                f"width of that range ({whose}){clipped}",
            ),
        )
    whose = "the log's reward_max" if rewards.known else seen
    return (codes.REWARD_SCALE.found(f"the policy is told rewards as shares of {rewards.largest:g}, {whose}"),)


def _warn_of_rewards(policy: Any, rewards: RewardRange) -> list[Finding]:
    findings = []
    if rewards.heavy:
        most = "reward_max" if rewards.known else "largest reward seen"
        findings.append(
            codes.HEAVY_REWARDS.found(
                f"The {most}, {rewards.largest:g}, is {rewards.largest / rewards.mean:,.0f} times what displays that "
                "earn something bring on average. Policies learn on the scale of the largest reward, so they hardly "
                "tell actions apart.",
                "Have capped rewards evaluated (`cap`), or count conversions (value = 1).",
                largest=rewards.largest,
                mean=rewards.mean,
            )
        )
    if not policy.unit_rewards and (rewards.most != 1.0 or rewards.least != 0.0):
        span = f"up to {rewards.largest:g}" if rewards.least == 0.0 else f"from {rewards.least:g} to {rewards.most:g}"
        findings.append(
            codes.REWARDS_OF_OWN_UNIT.found(
                f"{policy.name} is told rewards in the log's own unit, {span} a display.",
                "If it expects them in [0, 1], give it unit_rewards = True.",
                about=policy.name,
            )
        )
    return findings


def warnings(plan: ReplayPlan, acceptance: float, rewards: RewardRange) -> list[Finding]:
    """Return what to read before the numbers, as far as it is known before the first round.

    The acceptance is the probability with which a display is accepted, the rewards the range of the log's.
    """
    findings: list[Finding] = []
    rarest: list[Finding] = []
    if plan.sampler != "keep" or (Need.HORIZON in plan.policy.needs and plan.options.horizon is None):
        rarest = rarest_warning(
            plan.survey, plan.matched, plan.usable, sampler=plan.sampler, contextual=plan.per_display,
            horizon=plan.options.horizon,
        )  # fmt: skip
    if binding := binding_display(plan):
        cause = f"{binding.cause[0].upper()}{binding.cause[1:]}."
        findings.append(codes.BINDING_PROPENSITY.found(cause, f"What helps is {binding.remedy}."))
        rarest = []
    findings += [*unusable_warning(plan.survey, plan.usable, has_split=plan.has_split), *rarest]
    if by_outcome := plan.log.meta.counts.get("quarantined_by_outcome"):
        findings.append(
            codes.QUARANTINED_BY_OUTCOME.found(
                f"{by_outcome:,.0f} rows that break a rule are left out of the log, and which depends on their "
                "outcome: what is left has another conversion rate.",
                "Repair them.",
                rows=by_outcome,
            )
        )
    if not plan.propensities.settled:
        findings.append(codes.UNSETTLED_FIT.found(NOT_AT_REST[0].upper() + NOT_AT_REST[1:] + "."))
    if not plan.maturity.known:
        findings.append(
            codes.UNKNOWN_FOLLOW_UP.found(
                "The log stops looking at some time, but nothing says how long conversions take: young displays may "
                "count as failures.",
                "Give the spec an attribution_window, or the replay a `window`.",
            )
        )
    if plan.maturity.immature:
        fate = "left out" if plan.options.immature == "drop" else "corrected by their delays"
        findings.append(
            codes.YOUNG_DISPLAYS.found(
                f"{plan.maturity.immature:,} displays were followed too briefly to be judged: {fate}.",
                displays=plan.maturity.immature,
            )
        )
    findings += said_of_parts(plan.propensities, plan.policy)
    findings += [*said_of_index(plan), *said_of_target(plan)]
    if plan.propensities.kind == "uniform" and plan.propensities.weights is None and plan.sets is None:
        counts = plan.survey.shown
        expected = len(plan.log) / plan.log.n_actions
        worst = float(np.max(np.abs(counts - expected)) / np.sqrt(expected * (1 - 1 / plan.log.n_actions)))
        # Beyond any chance for thousands of actions: the normal tail at 6 is 2e-9.
        if worst > 6:
            findings.append(
                codes.NOT_UNIFORM.found(
                    f"The log is said to be uniform, but one action's count is {worst:.0f} standard errors off: the "
                    "estimate is biased if it is not.",
                    "Consider `propensity='estimate'`.",
                    standard_errors=worst,
                )
            )
    acceptance *= plan.survey.kept * plan.clock.sampling_rate
    if plan.clock.kind == "traffic" and plan.clock.traffic_share < acceptance:
        findings.append(
            codes.SHARE_BELOW_ACCEPTANCE.found(
                f"The traffic share {plan.clock.traffic_share:g} is below the acceptance rate {acceptance:.3g}: the "
                "replay reads conversions that the log saw only later, which is right only if nothing drifts.",
                share=plan.clock.traffic_share,
                acceptance=acceptance,
            )
        )
    findings += warn_of_stamps(plan)
    findings += _warn_of_overridden(plan)
    of_seen = of_conversions(followed_for(plan.survey, plan.clock))
    if plan.rewards_end_with_window and plan.tau_window < ALL_BUT_ALL:
        findings.append(
            codes.WINDOW_ENDS_REWARDS.found(
                f"Rewards are the conversions within the window, {plan.tau_window:.1%} {of_seen}, because the log "
                "names no attribution window: values are of these alone.",
                "Give the spec an attribution_window to count the others.",
                share=plan.tau_window,
            )
        )
    if plan.tau_window < 0.5:
        few = f"Only {plan.tau_window:.1%} {of_seen} come within the window: the policy sees few of them."
        findings.append(codes.SHORT_WINDOW.found(few, share=plan.tau_window))
    if Need.DELAY_CDF in plan.policy.needs and plan.setting.delay_cdf is None:
        findings.append(codes.NO_DELAYS.found("The log has no conversions to fit a delay CDF to."))
    findings += _warn_of_dwarfed(plan)
    findings += [] if plan.start is None else plan.start.warnings(rewards.least, rewards.most)
    findings += warn_of_refunds(plan)
    return [*findings, *gap_warnings(plan.survey), *_warn_of_rewards(plan.policy, rewards)]


def _warn_of_dwarfed(plan: ReplayPlan) -> list[Finding]:
    """Say which column hides others from a policy that learns from contexts, and what helps."""
    dwarfing = plan.survey.dwarfing if plan.policy.contextual and plan.policy.learns else None
    if dwarfing is None:
        return []
    # The condition of V is the square of it at least.
    beyond = dwarfing.times**2 > LARGEST_CONDITION
    return [
        codes.DWARFED_COLUMN.found(
            f"Numbers of {dwarfing.largest} are {dwarfing.times:,.3g} times as large as those of {dwarfing.smallest}, "
            f"and {plan.policy.name} regularises and explores in one unit for all: it may learn nothing from the "
            "smaller ones, or from what changes within the "
            f"larger{', and its coefficients are uncertain by rounding' if beyond else ''}.",
            dwarfing.remedy,
            about=dwarfing.largest,
            times=dwarfing.times,
        )
    ]


def _warn_of_overridden(plan: ReplayPlan) -> list[Finding]:
    """Say that logged propensities, which follow the context, were replaced by ones that do not."""
    survey = plan.survey
    vary = survey.largest > survey.smallest * (1.0 + VARIES)
    if plan.log.meta.propensity != "logged" or plan.options.propensity not in ("estimate", "uniform") or not vary.any():
        return []
    k = int(np.flatnonzero(vary)[0])
    return [
        codes.PROPENSITIES_REPLACED.found(
            f"`propensity='{plan.options.propensity}'` replaces logged propensities that change from display to "
            f"display (those of action {plan.log.labels[k]} from {survey.smallest[k]:.3g} to "
            f"{survey.largest[k]:.3g}): the logger did not choose alike everywhere, so the values are biased.",
            "Leave the option out.",
            about=plan.log.labels[k],
        )
    ]
