"""What a replay values, and what its policy learns from: revenue, or what is left of it once displays are paid for."""

from __future__ import annotations

from typing import Any

from evaluator.errors import ParameterError
from evaluator.log import Log
from evaluator.log.reward_kinds import counts_costs, has_costs
from evaluator.policies.registry import POLICIES, resolve
from evaluator.replays.options import ObjectiveName
from evaluator.replays.rounds.reward_range import RewardRange


def objective_of(log: Log, asked: ObjectiveName | None) -> ObjectiveName:
    """Return the objective of a replay: what was asked for, else the log's own, else profit where it has costs.

    Raises
    ------
    ParameterError
        Profit is asked for, and the log does not say what its displays cost.
    """
    if asked == "profit" and not has_costs(log):
        raise ParameterError(
            f"`objective='profit'` needs what displays cost, and log {log.meta.name!r} does not say it.",
            remedy="name the column of costs in the spec (`cost` in [display]), or take `objective='revenue'`.",
        )
    return asked or log.meta.objective or ("profit" if has_costs(log) else "revenue")


def is_of_profit(log: Log) -> bool:
    """Whether the rewards of a log that was made ready for a replay are profits."""
    return counts_costs(log.conversions)


def refuse_untold(policy: Any, rewards: RewardRange, *, told_costs: bool) -> None:
    """Refuse a policy whose definition has no place for what it would be told.

    Raises
    ------
    ParameterError
        The policy takes no costs, or no refunds, and would be told of some; names those that do.
    """
    for takes, has, what, instead in (
        (
            "takes_costs",
            told_costs,
            "the cost of a display at once",
            "tell it revenue alone, `learn_from='revenue'`",
        ),
        ("takes_refunds", rewards.taken_back > 0.0, "refunds", "leave refunds out of the log"),
    ):
        if has and not getattr(policy, takes, True):
            can = ", ".join(name for name in POLICIES if getattr(resolve(name), takes) and resolve(name).learns)
            raise ParameterError(
                f"{policy.name} has no place for {what}: {policy.why_not_negative}.",
                remedy=f"{instead}, or take one of {can}.",
            )
