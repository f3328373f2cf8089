"""What a replay says of costs, refunds and guardrails, in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.findings.codes import (
    COSTS_AND_DELAYS,
    LATE_REFUNDS,
    LEARNS_FROM,
    OBJECTIVE,
    OUTCOME_FOLLOW_UP_UNKNOWN,
    OUTCOME_MAXIMUM_UNKNOWN,
    OUTCOME_NOT_FOLLOWED,
)
from evaluator.findings.finding import Finding
from evaluator.log import Log
from evaluator.log.reward_kinds import has_costs
from evaluator.log.schema import to_numpy
from evaluator.replays.conversion_share import share_within
from evaluator.replays.objective import is_of_profit
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.policy_delays import fit_on_clock
from evaluator.units import ticks_words

Ints = npt.NDArray[np.int64]
# Of refunds, so much less within the window than of sales that it is said.
_FEWER = 0.01


def state_objective(log: Log, policy: Any, options: ReplayOptions) -> list[Finding]:
    """Say which objective the numbers are of, and what the policy learns from; nothing of a log without costs."""
    if not has_costs(log):
        return []
    if not is_of_profit(log):
        own = "" if options.objective else ", as the log says of itself"
        return [OBJECTIVE.found(f"values are of revenue: costs of displays are left out (`objective='revenue'`{own})")]
    chosen = "" if options.objective else ", for the log says what displays cost"
    findings = [OBJECTIVE.found(f"values are of profit, a display's conversions less its cost{chosen}")]
    if not policy.learns:
        return findings
    if options.learn_from == "revenue":
        return [*findings, LEARNS_FROM.found("the policy learns from revenue alone (`learn_from='revenue'`)")]
    return [*findings, LEARNS_FROM.found("the policy learns from profit: it is told the cost of a display at once")]


def warn_of_refunds(plan: ReplayPlan) -> list[Finding]:
    """Return the warnings of a policy that divides costs by delays, and of a window that refunds come too late for."""
    log = plan.log
    findings = []
    told_costs = plan.of_profit and plan.options.learn_from == "objective"
    if told_costs and getattr(plan.policy, "divides_by_delays", False):
        cut = f", which the window leaves {plan.tau_window:.1%} of the sales" if plan.tau_window < 1.0 - _FEWER else ""
        findings.append(
            COSTS_AND_DELAYS.found(
                f"{plan.policy.name} divides all that it was told by the chance of having seen it{cut}, and so takes "
                "costs, which it is told at once, for larger than they are.",
                "Tell it of revenue alone, `learn_from='revenue'`, or take a policy that corrects no delays.",
                about=plan.policy.name,
            )
        )
    if plan.cdf is None:
        return findings
    value = to_numpy(log.conversions["value"])
    for kind in plan.survey.kinds[1:]:
        if kind.told and value[kind.at].sum() < 0.0:
            findings += _warn_of_late(plan, kind.name, np.flatnonzero(kind.marked(len(value))), value)
    return findings


def _warn_of_late(plan: ReplayPlan, name: str, events: Ints, value: npt.NDArray[np.float64]) -> list[Finding]:
    """Return the warning of a window that events which take back come too late for."""
    survey = plan.survey
    limit = None if survey.limit is None else survey.limit[events]
    cdf = fit_on_clock(survey.delay[events], limit, plan.clock)
    within = share_within(survey, plan.window, cdf, events)
    if not within < plan.tau_window - _FEWER:
        return []
    late = events[plan.rounds.delay[events] > plan.window.rounds]
    late = late[survey.display[late] < len(plan.rounds)]
    lost = -float(value[late].sum()) / max(len(plan.rounds), 1)
    flatters = plan.rewards_end_with_window or plan.options.reward == "observed"
    what = "The value counts none of these, and so is too good by them" if flatters else (
        f"The value counts them, but the policy, which is never told of them, takes actions with many {name} for "
        "better than they are"
    )  # fmt: skip
    return [
        LATE_REFUNDS.found(
            f"The window flatters: {within:.1%} of the {name} come within it, and {plan.tau_window:.1%} of the "
            f"sales. {name[0].upper()}{name[1:]} of {lost:.4g} a display, of those seen, come later. {what}.",
            within=within,
            lost=lost,
        )
    ]


def warn_of_kind(name: str, plan: ReplayPlan, *, outcome: bool) -> list[Finding]:
    """Return the warnings on an outcome, or another kind of events, by the plan whose rewards are its events."""
    meta, findings = plan.log.meta, []
    of = f"Outcome {name}" if outcome else name.capitalize()
    if not len(plan.rounds):
        long = plan.window.describe(plan.clock) if meta.attribution_window is None else ticks_words(
            meta.attribution_window, meta.tick_seconds
        )  # fmt: skip
        findings.append(
            OUTCOME_NOT_FOLLOWED.found(
                f"{of}: no replayed display was followed for {long}, so nothing is known of it.", about=name
            )
        )
    elif not plan.maturity.known:
        findings.append(
            OUTCOME_FOLLOW_UP_UNKNOWN.found(
                f"{of}: nothing says how long after a display such an event may come, and the log stops "
                "looking: young displays count with what was seen of them, too little.",
                "Name its attribution_window.",
                about=name,
            )
        )
    for end in plan.rewards.ends_seen:
        most = getattr(plan.rewards, end)
        findings.append(
            OUTCOME_MAXIMUM_UNKNOWN.found(
                f"{of}: the {end} value of a display seen, {most:g}, is taken as the {end} possible, which "
                f"nobody knows: where {end.removesuffix('st')}r ones are, its intervals, and what guardrails say by "
                "them, hold less often than they say.",
                "Name its value_max in the spec." if outcome else "",
                about=name,
                **{end: most},
            )
        )
    return findings
