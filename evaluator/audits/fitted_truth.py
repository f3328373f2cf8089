"""What an audit fits to a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import claims
from evaluator.comparisons.run import plan_comparison
from evaluator.log import Log
from evaluator.log.reward_kinds import refuse_counted
from evaluator.log.schema import is_target
from evaluator.replays.plan import ReplayPlan
from evaluator.worlds.twins.estimand import ClaimsByLaw
from evaluator.worlds.twins.truth import LogTruth, fit_log


class Fitted(NamedTuple):
    """The truth that all twins of an audit are drawn from, and the claims of their replays."""

    plans: list[ReplayPlan]
    truth: LogTruth
    claimed: list[ClaimsByLaw]


def fit(log: Log, policies: Sequence[Any], options: AuditOptions) -> Fitted:
    """Fit a truth to a log. What a replay of the log refuses, this refuses."""
    refuse_counted(log, "the twins of an audit")
    asked = options.of_replays(seed=options.seed)
    # Without outcomes, of which an audit says nothing.
    plans = plan_comparison(log.without_outcomes(), policies, [options.window], asked)
    targets = list(dict.fromkeys(policy.reads for policy in policies if is_target(policy.reads)))
    truth = fit_log(log, policies[0], asked, displays=options.displays, targets=targets)
    return Fitted(plans, truth, claims(truth, policies, options))
