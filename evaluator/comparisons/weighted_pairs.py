"""What policies that do not learn would earn more than others, weighted over all displays: when, and from what.

Nothing is replayed for it: the probabilities of a fixed action, of random play, of columns of the log, and of the
logging policy itself are known at every display, whatever was revealed before. So all displays that can be judged
count, and not only those that a replay matches (`evaluator.estimates.weighted_difference`). Memory: 8 bytes a display
and policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.estimates.weighted_difference import Influence, PairedValues, influence, paired_values
from evaluator.log.column import Column
from evaluator.log.users import read_users
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.values.final import display_weights
from evaluator.replays.values.rewards import eventual_rewards


def weighted_values(
    plans: Sequence[ReplayPlan], pairs: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], PairedValues]:
    """Return what the displays say of the difference of each pair (variant, reference) of policies that do not learn.

    By users, where options name their column or the log keeps one whose name says so: displays of one user hang
    together, though no option says it. Costs a scan of the log for each of these policies.

    Parameters
    ----------
    plans
        Plans of the variants, in their order.
    pairs
        Pairs (variant, reference) that are compared.
    """
    compared = [(i, j) for i, j in pairs if _weighable(plans[i]) and _weighable(plans[j])]
    compared = [(i, j) for i, j in compared if reward_cut(plans[i]) == reward_cut(plans[j])]
    if not compared:
        return {}
    clusters = plans[0].clusters or read_users(plans[0].log, None)
    rewards: dict[object, npt.NDArray[np.float64]] = {}
    known: dict[int, Influence] = {}
    for i in sorted({one for pair in compared for one in pair}):
        plan, cut = plans[i], reward_cut(plans[i])
        if cut not in rewards:
            used = plan.maturity.used
            rewards[cut] = eventual_rewards(plan, used=used).taken(np.arange(used))
        code = None if clusters is None else clusters.code[: plan.maturity.used]
        weight = None if plan.sampler == "logged" else display_weights(plan)
        known[i] = influence(rewards[cut], weight, clusters=code)
    return {
        (i, j): paired_values(
            rewards[reward_cut(plans[i])],
            known[i],
            known[j],
            clusters=None if clusters is None else clusters.code[: plans[i].maturity.used],
        )
        for i, j in compared
    }


def may_decide(policies: Sequence[Any], draws: int | None) -> bool:
    """Whether a comparison can come to a verdict, for which its log is checked, and is to say who saw a display.

    Parameters
    ----------
    policies
        Descriptions of the policies, as they were asked for.
    draws
        Number of resampled logs; None for as many as the verdict needs.
    """
    frozen = any(not getattr(policy, "learns", True) and policy.name != "logging" for policy in policies)
    return frozen or draws != 0


def weighted_in_groups(plans: Sequence[ReplayPlan], pair: tuple[int, int], split: Column) -> tuple[PairedValues, ...]:
    """Return the same of one pair in each group of a column, of its displays alone; nothing where a policy learns.

    Costs a scan of the log for each of the two.
    """
    a, b = (plans[i] for i in pair)
    if not (_weighable(a) and _weighable(b) and reward_cut(a) == reward_cut(b)):
        return ()
    used = a.maturity.used
    clusters = a.clusters or read_users(a.log, None)
    reward = eventual_rewards(a, used=used).taken(np.arange(used))
    weights = [None if plan.sampler == "logged" else display_weights(plan) for plan in (a, b)]
    found = []
    for group in range(len(split.labels)):
        of = np.flatnonzero(split.code[:used] == group)
        code = None if clusters is None else clusters.code[of]
        x, y = (influence(reward[of], None if w is None else w[of], clusters=code) for w in weights)
        found.append(paired_values(reward[of], x, y, clusters=code))
    return tuple(found)


def _weighable(plan: ReplayPlan) -> bool:
    """Whether every display that can be judged has a weight under the policy, and the displays are the traffic's."""
    p = plan.propensities
    return not plan.policy.learns and plan.options.reward == "eventual" and p.rule is not None and not p.tilted


def reward_cut(plan: ReplayPlan) -> object:
    """Return what cuts the rewards of a variant: equal for two whose values can be compared."""
    cut_by_window = plan.options.reward == "observed" or plan.rewards_end_with_window
    return plan.window.cut if cut_by_window else None
