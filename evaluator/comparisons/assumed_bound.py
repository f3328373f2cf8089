"""What a comparison may say where nobody knows how much a display can earn at most.

See `evaluator.replays.findings.run`. What decides is then judged twice: with the largest reward seen as the
largest possible, and with the largest that is plausible. Where both come to the same, the unknown maximum is an
assumption beside the verdict; else the verdict waits.

*The plausible maximum* is what a tail fitted to the rewards exceeds once in 100 logs of this size: of the largest tenth
of them, 20 at least, the excesses over the next one follow a generalised Pareto law, fitted by probability-weighted
moments (Hosking, Wallis. Parameter and quantile estimation for the generalized Pareto distribution. Technometrics
29(3), 1987). It is no less than the largest seen, and no more than ten times that, which stands for it, too, where
rewards are too few to fit a tail. So with refunds for the smallest. With the error of the fit, of 2,000 rewards one log
in 12 (exponential rewards) to 80 (lognormal ones) has a larger one.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.comparisons.differences import Difference, FoundDifferences, find_differences
from evaluator.comparisons.horizon import FirstRounds
from evaluator.comparisons.ranking import Ranking
from evaluator.estimates.confidence import with_honest_kind
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.values.rewards import eventual_rewards

# Largest rewards that a tail is fitted to: so many at least, and this share of all.
_FEWEST, _SHARE = 20, 0.1
# Logs of this size among which one has a larger reward than is plausible.
_LOGS = 100
# No reward is plausible that is so many times the largest seen.
_MOST = 10.0
# What makes each bound known.
_TO_KNOW = {"largest": "`reward_max`, or a cap of the rewards (`cap`)", "smallest": "`reward_min`"}


def honest_difference(plan: ReplayPlan, found: Difference) -> Difference:
    """Return a difference whose interval claims no more than holds."""
    if plan.bounded or found.realised is None:
        return found
    return replace(found, realised=with_honest_kind(found.realised))


def honest_ranking(plan: ReplayPlan, ranking: Ranking) -> Ranking:
    """Return a ranking whose conclusion claims no more than holds."""
    return replace(ranking, rests_on=plan.rewards.ends_seen) if ranking.target == "realised" else ranking


class PlausibleDifferences(NamedTuple):
    """Realised differences to the baseline where displays earn as much, or as little, as is plausible.

    They are of policies that do not learn; with clauses on the bounds that were seen, on those that are plausible, and
    on what makes the bounds known.
    """

    found: FoundDifferences
    seen: str
    bounds: str
    remedy: str


def plausible_differences(
    plans: Sequence[ReplayPlan],
    lived: Sequence[FirstRounds],
    baseline: int,
    *,
    weighted: Container[tuple[int, int]],
    rounds: int,
    fixed: bool,
) -> PlausibleDifferences | None:
    """Return differences to the baseline with plausible bounds of rewards; None where all bounds are known.

    Parameters are those of `find_differences`, and the pairs that have a weighted difference, which decides. O(T) a
    pair.
    """
    open_ = next((plan for plan in plans if not plan.bounded), None)
    if open_ is None:
        return None
    reward = eventual_rewards(open_, used=open_.rounds.used).value
    bounds, seen, plausible = {}, [], []
    for end, sign, word in (("largest", 1.0, "more than"), ("smallest", -1.0, "less than")):
        if end in open_.rewards.ends_seen:
            extreme = max(sign * getattr(open_.rewards, end), 0.0)
            bounds[end] = sign * plausible_maximum(sign * reward, extreme)
            seen.append(f"{word} the {sign * extreme:g} seen")
            by = "ten times the largest seen" if abs(bounds[end]) >= _MOST * extreme else "by a tail fitted to rewards"
            plausible.append(f"{bounds[end]:.3g} ({by})")
    wider = [
        replace(plan, rewards=plan.rewards._replace(
            largest=max(plan.rewards.largest, bounds.get("largest", -math.inf)),
            smallest=min(plan.rewards.smallest, bounds.get("smallest", math.inf)),
        )) for plan in plans
    ]  # fmt: skip
    pairs = [
        (min(i, baseline), max(i, baseline)) for i, plan in enumerate(plans)
        if i != baseline and not (plan.policy.learns or plans[baseline].policy.learns)
    ]  # fmt: skip
    pairs = [pair for pair in pairs if pair not in weighted]
    if not pairs:
        return None
    found = find_differences(wider, lived, pairs, rounds=rounds, fixed=fixed)
    known = ", and ".join(_TO_KNOW[end] for end in bounds)
    return PlausibleDifferences(found, " or ".join(seen), " or ".join(plausible), known)


def plausible_maximum(rewards: npt.NDArray[np.float64], largest: float) -> float:
    """Return the largest reward that is plausible, by the tail of those above 0 that were seen, shape (n,).

    The largest is what a display had at any time.

    >>> even = np.arange(1.0, 1001.0)
    >>> plausible_maximum(even, 1000.0) < 1100, plausible_maximum(even[:10], 10.0)
    (True, 100.0)
    """
    earned = np.sort(rewards[rewards > 0.0])
    many = max(_FEWEST, math.ceil(_SHARE * earned.size))
    if earned.size <= many:
        return _MOST * largest
    above = earned[-many:] - earned[-many - 1]
    mean = float(above.mean())
    # Weighted by the share of the excesses that is larger.
    weighted = float((above * (np.arange(many, 0, -1) - 0.65) / many).mean())
    if not mean > 0.0:
        return largest
    shape = 2.0 - mean / (mean - 2.0 * weighted) if mean > 2.0 * weighted else -math.inf
    if shape == -math.inf:
        return largest
    scale = mean * (1.0 - shape)
    often = _LOGS * many
    excess = scale * (math.log(often) if abs(shape) < 1e-9 else math.expm1(shape * math.log(often)) / shape)
    return float(min(max(earned[-many - 1] + excess, largest), _MOST * largest))
