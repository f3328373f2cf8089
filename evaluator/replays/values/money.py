"""What the rounds of a replay brought and cost: revenue, cost, profit, and profit per cost.

Profit per cost is revenue over cost, less 1. Its interval is made of those of revenue and of cost, each at half the
error: both hold at once with the level's probability, at any stopping time and while the policy learns, and so does the
ratio of whatever they hold. The delta method and Fieller's would be shorter. Both take rounds for independent, or their
sums for normal, and neither holds for a policy that learns: of its rounds, the ratio that is estimated depends on what
was learned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import ANYTIME, Interval
from evaluator.estimates.repeated import repeated_interval
from evaluator.replays.plan import ReplayPlan

Floats = npt.NDArray[np.float64]
RATIO = f"of the intervals of revenue and of cost, each at half the error: {ANYTIME}"


@dataclass(frozen=True)
class Money:
    """What a round brought and cost on average, with intervals, each at the level asked for by itself.

    Parameters
    ----------
    revenue
        Mean value of the conversions of a round, refunds taken off.
    cost
        Mean cost of a round.
    profit
        Revenue less cost.
    profit_per_cost
        Profit over cost, of the intervals of revenue and cost, each at half the error; nan where nothing was spent, inf
        where its interval has no end.
    """

    revenue: Interval
    cost: Interval
    profit: Interval
    profit_per_cost: Interval

    def rows(self) -> list[tuple[str, Interval]]:
        """Return what reports print beside the profit, which is the value."""
        return [
            ("revenue per round", self.revenue),
            ("cost per round", self.cost),
            ("profit per cost", self.profit_per_cost),
        ]


def money_of(
    plan: ReplayPlan, profit: Interval, lived: Sequence[Floats], costs: Sequence[Floats], *, displays: int
) -> Money:
    """Return what the rounds of a replay whose objective is profit brought and cost.

    Parameters
    ----------
    plan
        Plan of the replay.
    profit
        Mean profit of a round.
    lived, costs
        Profit and cost of each round, repeat by repeat, shape (T,) each.
    displays
        Number of different displays that were shown.
    """
    alpha = 1.0 - plan.options.level
    least, most = plan.rewards.without_costs().weighted(plan.maturity.heaviest)
    # A round's profit is a sum that was rounded.
    revenue = [np.clip(x + c, least, most) for x, c in zip(lived, costs, strict=True)]

    def brought(error: float) -> Interval:
        return repeated_interval(revenue, lower=least, upper=most, alpha=error, displays=displays)

    def spent(error: float) -> Interval:
        low, high = plan.rewards.least_cost, plan.rewards.most_cost
        if low == high:
            return Interval(low, low, high, displays, 1.0 - error, "all displays cost the same")
        return repeated_interval(costs, lower=low, upper=high, alpha=error, displays=displays)

    return Money(brought(alpha), spent(alpha), profit, _per_cost(brought(alpha / 2), spent(alpha / 2)))


def _per_cost(revenue: Interval, cost: Interval) -> Interval:
    """Return the interval of revenue / cost - 1, at a level of 1 minus both errors."""
    level = revenue.level + cost.level - 1.0
    if not cost.high > 0.0:
        return Interval(math.nan, math.nan, math.nan, revenue.n, level, RATIO)
    # A gain is the smaller the more was spent, a loss the larger the less.
    low = _ratio(revenue.low, cost.high if revenue.low >= 0.0 else cost.low)
    high = _ratio(revenue.high, cost.low if revenue.high >= 0.0 else cost.high)
    return Interval(_ratio(revenue.estimate, cost.estimate) - 1.0, low - 1.0, high - 1.0, revenue.n, level, RATIO)


def _ratio(revenue: float, cost: float) -> float:
    if cost > 0.0:
        return revenue / cost
    return math.nan if revenue == 0.0 or math.isnan(revenue) else math.copysign(math.inf, revenue)
