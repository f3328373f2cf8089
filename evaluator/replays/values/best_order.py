"""The value of the best fixed order of the actions: the reference of the regret where not every action is eligible.

No action can always be shown, so what is fixed is an order: of each display's eligible actions the first is shown
(Kleinberg, Niculescu-Mizil, Sharma 2010, Regret bounds for sleeping experts and bandits). Ordering by mean is best
where what an action earns does not depend on what else is eligible; a policy that reads contexts may beat it.

The displays are dealt at random into two halves. One half orders the actions by the means of their rewards, weighed by
one over the propensity; the other, which had no say, values the order by inverse propensities, and then they change
places: van Hasselt's cross-validation, as `evaluator.estimates.arms` has it for single actions. Plain means of the
displays that match, or the same displays for both, come out too high.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.estimates.arms import BestFixedAction
from evaluator.estimates.confidence import Interval, mean_interval
from evaluator.estimates.sparse import SparseRewards
from evaluator.log.eligible import SetCodes, members
from evaluator.log.schema import ELIGIBLE
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.values.rewards import RewardBounds
from evaluator.streams import Stream, random_stream

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BestOrder(BestFixedAction):
    """The best fixed order, told as its first action; `value` and its interval are of the order.

    The estimate is the mean of the values of two orders, each of one half of the displays and valued on the other. The
    interval is of that mean: of the orders that so many displays choose, not of the best one that there is.

    Parameters
    ----------
    order
        Actions in the order of all displays, those never shown left out.
    """

    order: tuple[int, ...] = ()


def best_order(plan: ReplayPlan, rewards: SparseRewards, bounds: RewardBounds, *, alpha: float) -> BestOrder:
    """Estimate the best fixed order in two scans of the used displays.

    Parameters
    ----------
    plan
        Plan of the replay, on a log with eligible actions and propensities.
    rewards
        Rewards of the used displays.
    bounds
        Smallest and largest reward of a display.
    alpha
        Probability that the interval fails.
    """
    half, total, weight = _means(plan, rewards)
    mean = np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 0.0)
    whole = np.divide(total.sum(axis=0), weight.sum(axis=0), out=np.full(total.shape[1], np.nan), where=plan.usable > 0)
    orders = [_ordered(mean[h], whole) for h in (0, 1)]
    first = _ordered(whole, whole)
    matched = _matched(plan, rewards, half, orders)
    widest = 1.0 / plan.propensities.least
    values = [
        mean_interval(
            own, lower=min(bounds.lower, 0.0) * widest, upper=max(bounds.upper, 0.0) * widest, alpha=alpha / 2
        )
        for own in matched
    ]
    value = Interval(
        estimate=float(np.mean([one.estimate for one in values])),
        low=max(float(np.mean([one.low for one in values])), bounds.lower),
        high=min(float(np.mean([one.high for one in values])), bounds.upper),
        n=rewards.n,
        level=1.0 - alpha,
        kind=values[0].kind,
    )
    leaders = (int(orders[0][0]), int(orders[1][0]))
    return BestOrder(int(first[0]), value, whole, leaders, tuple(first.tolist()))


def _halves(plan: ReplayPlan) -> npt.NDArray[np.bool_]:
    """Return which half each used display is dealt to, shape (n,): of each two that follow, one to each."""
    n = plan.rounds.used
    coins = random_stream(Stream.HALVES, plan.options.seed).random((n + 1) // 2) < 0.5
    return np.asarray(np.column_stack([coins, ~coins]).reshape(-1)[:n], np.bool_)


def _means(plan: ReplayPlan, rewards: SparseRewards) -> tuple[npt.NDArray[np.bool_], Floats, Floats]:
    """Return the halves, and sums of rewards / p and of 1 / p of each half's displays by action, shape (2, K) each."""
    k, half = plan.log.n_actions, _halves(plan)
    total, weight = np.zeros((2, 2 * k))
    for first, batch in plan.log.batches(list(dict.fromkeys(["action", *plan.propensities.reads])), coded=True):
        n = min(len(batch["action"]), plan.rounds.used - first)
        if n <= 0:
            break
        once = 1.0 / plan.propensities.of(batch)[:n]
        cell = half[first : first + n] * k + batch["action"][:n]
        weight += np.bincount(cell, once, 2 * k)
        total += np.bincount(cell, once * rewards.taken(np.arange(first, first + n)), 2 * k)
    return half, total.reshape(2, k), weight.reshape(2, k)


def _ordered(mean: Floats, whole: Floats) -> Ints:
    """Return the actions that were shown, the largest mean first; one that this half never showed goes by all."""
    known = np.where(np.isnan(mean), whole, mean)
    order = np.argsort(-known, kind="stable")
    return order[~np.isnan(whole[order])].astype(np.int64)


def _matched(
    plan: ReplayPlan, rewards: SparseRewards, half: npt.NDArray[np.bool_], orders: list[Ints]
) -> list[SparseRewards]:
    """Return, of each half's displays, rewards / p where the other half's order shows what was shown, else 0."""
    k = plan.log.n_actions
    ranks = np.full((2, k), k, np.int64)
    for h in (0, 1):
        ranks[h, orders[h]] = np.arange(len(orders[h]))
    found: list[list[tuple[Ints, Floats]]] = [[], []]
    columns = list(dict.fromkeys(["action", ELIGIBLE, *plan.propensities.reads]))
    for first, batch in plan.log.batches(columns, coded=True):
        n = min(len(batch["action"]), plan.rounds.used - first)
        if n <= 0:
            break
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        begins, action = members(sets.distinct)
        best = np.minimum.reduceat(ranks[:, action], begins[:-1], axis=1)
        reward = rewards.taken(np.arange(first, first + n))
        weighed = reward / plan.propensities.of(batch)[:n]
        of, shown = np.asarray(sets)[:n], batch["action"][:n]
        for own in (0, 1):
            other = 1 - own
            match = (half[first : first + n] == own) & (ranks[other, shown] == best[other, of]) & (reward != 0.0)
            at = np.flatnonzero(match)
            found[own].append((first + at, weighed[at]))
    out = []
    for own in (0, 1):
        mine = np.flatnonzero(half == own)
        at, value = (np.concatenate(parts) for parts in zip(*found[own], strict=True))
        out.append(SparseRewards(len(mine), np.searchsorted(mine, at), value))
    return out
