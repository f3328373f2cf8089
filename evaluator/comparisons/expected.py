"""What one of two policies is expected to earn more than the other: from common resampled logs, or by weights.

Policies that learn are replayed on resampled logs. For others nothing is replayed: the probabilities of a fixed action,
of random play, of columns of the log, and of the logging policy itself are known at every display, whatever was
revealed before. So all displays that can be judged count, and not only those that a replay matches
(`evaluator.estimates.weighted_difference`). Memory: 8 bytes a display and policy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from evaluator.comparisons.horizon import first_rounds
from evaluator.estimates.confidence import Interval
from evaluator.estimates.weighted import Codes, Floats
from evaluator.estimates.weighted_difference import Influence, PairedValues, influence, paired_values
from evaluator.log.column import Column, read_users
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.expected_values import LOGGED, ResampledValues, expected_differences
from evaluator.replays.values.final import display_weights
from evaluator.replays.values.rewards import eventual_rewards

# Resampled logs on which two replays must have earned differently: the spread of fewer is known to a quarter at best.
FEWEST_DIFFERENT = 10
# Share of the log that a replay is to have read where eligible actions change with time, to be compared with all of it.
_WHOLE = 0.9
FIRST_PART = (
    "what is eligible changes with time, and the logging policy's value is of the whole calendar, the other's of its "
    "first part"
)


class ExpectedDifference(NamedTuple):
    """A difference of expected values with its interval, from the spread over resampled logs; else None, and why.

    `p` is the P-value of "no difference", two-sided, by the same law; nan where there is none.
    """

    interval: Interval | None
    p: float
    why_not: str


def at_horizon(
    plan: ReplayPlan, result: ReplayResult, rounds: int, resampled: ResampledValues | None = None
) -> ReplayResult:
    """Return a result as it was after so many rounds, as far as differences of expected values read it.

    The logging policy's is of all its rounds. Where no value of these rounds is given, those of resampled logs stay
    only if the result is of so many rounds.
    """
    if resampled is not None:
        result = replace(result, resampled=tuple(resampled.values.tolist()), clusters=resampled.clusters)
    if result.plan["sampler"] == LOGGED or result.rounds == rounds:
        return result
    read = tuple(round(of * rounds / max(result.rounds, 1)) for of in result.read)
    if resampled is None:
        return replace(result, rounds=rounds, read=read, resampled=())
    lived = first_rounds(plan, result, rounds)
    value = replace(
        result.value,
        estimate=float(np.mean([of.mean() for of in lived.rewards])),
        n=len(np.unique(np.concatenate(lived.displays))),
    )
    return replace(result, value=value, rounds=rounds, read=read)


def expected_difference(
    variant: ReplayResult, reference: ReplayResult, *, level: float | None = None
) -> ExpectedDifference:
    """Return what a variant is expected to earn per round beyond a reference, at a level, None for the replays' own.

    Both are of one number of rounds (`at_horizon`), unless one is the logging policy, which learns in no round. None
    without a bootstrap, and where the two earned alike on all but a few resampled logs: a spread of 0 would be read as
    a difference known to be 0, and says only that it was not seen.
    """
    from scipy.special import stdtr, stdtrit

    if not (variant.resampled and reference.resampled):
        return ExpectedDifference(None, math.nan, "")
    gaps = np.subtract(variant.resampled, reference.resampled)
    size = max(float(np.abs([variant.resampled, reference.resampled]).max()), 1e-300)
    different = int((np.abs(gaps) > 1e-12 * size).sum())
    if different < FEWEST_DIFFERENT:
        return ExpectedDifference(
            None,
            math.nan,
            f"the two earned differently on {different:,} of {len(gaps):,} resampled logs only: how far their expected "
            "values differ is not known from so few",
        )
    (_, interval) = expected_differences([reference, variant], level=level)
    freedom = len(gaps) - 1
    half = (interval.high - interval.low) / 2
    t = abs(interval.estimate) / half * float(stdtrit(freedom, 0.5 + interval.level / 2))
    return ExpectedDifference(interval, float(2.0 * stdtr(freedom, -t)), "")


def why_not_expected(plans: Sequence[ReplayPlan], results: Sequence[ReplayResult]) -> str:
    """Return why two values are not comparable though both are expected ones; empty if they may be.

    The logging policy's is of the whole log, and the other's of what it read for its rounds.
    """
    sets = plans[0].sets
    logged = [plan.sampler == LOGGED for plan in plans]
    if sets is None or sets.moving < 0 or logged.count(True) != 1:
        return ""
    other = logged.index(False)
    read = min(results[other].read, default=0) / max(len(plans[other].rounds), 1)
    return "" if read >= _WHOLE else FIRST_PART


class WeightedPairs:
    """What displays say of the differences of policies that do not learn, each policy's weights read once.

    By users, where options name their column or the log keeps one whose name says so: displays of one user hang
    together, though no option says it. Costs a scan of the log for each policy that is asked for.
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
