"""What policies that do not learn would earn more than others, weighted over all displays: when, and from what.

Nothing is replayed for it: the probabilities of a fixed action, of random play, of columns of the log, and of the
logging policy itself are known at every display, whatever was revealed before. So all displays that can be judged
count, and not only those that a replay matches (`evaluator.estimates.weighted_difference`). Memory: 8 bytes a display
and policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from evaluator.estimates.weighted import Codes, Floats
from evaluator.estimates.weighted_difference import Influence, PairedValues, influence, paired_values
from evaluator.log.column import Column
from evaluator.log.users import read_users
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.values.final import display_weights
from evaluator.replays.values.rewards import eventual_rewards


class WeightedPairs:
    """What displays say of the differences of policies that do not learn, each policy's weights read once.

    By users, where options name their column or the log keeps one whose name says so: displays of one user hang
    together, though no option says it. Costs a scan of the log for each policy that is asked for.

    Parameters
    ----------
    plans
        Plans of the variants, in their order.
    """

    def __init__(self, plans: Sequence[ReplayPlan]) -> None:
        self._plans = plans
        self._rewards: dict[object, Floats] = {}
        self._weights: dict[int, Floats | None] = {}
        self._influences: dict[int, Influence] = {}

    def weighable(self, i: int, j: int) -> bool:
        """Whether the difference of two variants can be weighted: neither learns, and their rewards are the same."""
        a, b = self._plans[i], self._plans[j]
        return _weighable(a) and _weighable(b) and reward_cut(a) == reward_cut(b)

    def values(self, i: int, j: int) -> PairedValues:
        """Return what all displays that can be judged say of variant i less variant j, which are `weighable`."""
        return paired_values(self._reward(i), self._influence(i), self._influence(j), clusters=self._code(i))

    def in_groups(self, i: int, j: int, split: Column) -> tuple[PairedValues, ...]:
        """Return the same of the displays of each group of a column alone; nothing where they are not `weighable`."""
        if not self.weighable(i, j):
            return ()
        reward, code, found = self._reward(i), self._code(i), []
        for group in range(len(split.labels)):
            of = np.flatnonzero(split.code[: len(reward)] == group)
            own = None if code is None else code[of]
            weights = [None if w is None else w[of] for w in map(self._kept_weight, (i, j))]
            x, y = (influence(reward[of], weight, clusters=own) for weight in weights)
            found.append(paired_values(reward[of], x, y, clusters=own))
        return tuple(found)

    @cached_property
    def _clusters(self) -> Column | None:
        return self._plans[0].clusters or read_users(self._plans[0].log, None)

    def _code(self, variant: int) -> Codes | None:
        used = self._plans[variant].maturity.used
        return None if self._clusters is None else self._clusters.code[:used]

    def _reward(self, variant: int) -> Floats:
        plan = self._plans[variant]
        cut, used = reward_cut(plan), plan.maturity.used
        if cut not in self._rewards:
            self._rewards[cut] = eventual_rewards(plan, used=used).taken(np.arange(used))
        return self._rewards[cut]

    def _kept_weight(self, variant: int) -> Floats | None:
        if variant not in self._weights:
            self._weights[variant] = _weight(self._plans[variant])
        return self._weights[variant]

    def _influence(self, variant: int) -> Influence:
        if variant not in self._influences:
            weight = _weight(self._plans[variant])
            of = influence(self._reward(variant), weight, clusters=self._code(variant))
            self._influences[variant] = of
        return self._influences[variant]


def _weight(plan: ReplayPlan) -> Floats | None:
    """Return the weight of each display that can be judged; None for the logging policy."""
    return None if plan.sampler == "logged" else display_weights(plan)


def may_decide(policies: Sequence[Any], draws: int | None) -> bool:
    """Whether a comparison can come to a verdict, for which its log is checked, and is to say who saw a display.

    The number of resampled logs is `draws`; None stands for as many as the verdict needs.
    """
    frozen = any(not getattr(policy, "learns", True) and policy.name != "logging" for policy in policies)
    return frozen or draws != 0


def _weighable(plan: ReplayPlan) -> bool:
    """Whether every display that can be judged has a weight under the policy, and the displays are the traffic's."""
    p = plan.propensities
    return not plan.policy.learns and plan.options.reward == "eventual" and p.rule is not None and not p.tilted


def reward_cut(plan: ReplayPlan) -> object:
    """Return what cuts the rewards of a variant: equal for two whose values can be compared."""
    cut_by_window = plan.options.reward == "observed" or plan.rewards_end_with_window
    return plan.window.cut if cut_by_window else None
