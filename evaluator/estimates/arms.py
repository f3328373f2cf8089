"""The value of always showing one action, for every action: the reference of the regret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import Interval, mean_interval
from evaluator.estimates.sparse import SparseRewards


@dataclass(frozen=True)
class BestFixedAction:
    """The action with the largest estimated value.

    Parameters
    ----------
    action
        Its index; -1 when no action has displays.
    value
        Interval of the *largest value over the actions that have displays*; of the others nothing is known. Every
        action's interval holds at once (level split over them), so it stays right although the action was picked for
        its estimate. The estimate itself is the largest mean, a little too high for that very reason.
    values
        Estimated value of each action, shape (K,), nan without displays.
    """

    action: int
    value: Interval
    values: npt.NDArray[np.float64]


def best_fixed_action(arms: Sequence[SparseRewards], *, upper: float, alpha: float) -> BestFixedAction:
    """Estimate the best fixed action from logged displays.

    Parameters
    ----------
    arms
        Rewards of each action's logged displays in order, K of them, thinned so that each action's displays have the
        contexts of all; in [0, upper].
    upper
        Largest possible reward.
    alpha
        1 - level of the interval.
    """
    known = max(sum(arm.n > 0 for arm in arms), 1)
    intervals = [mean_interval(arm, upper=upper, alpha=alpha / known) for arm in arms]
    values = np.array([interval.estimate for interval in intervals])
    if np.isnan(values).all():
        return BestFixedAction(-1, Interval(float("nan"), 0.0, upper, 0, 1 - alpha, intervals[0].kind), values)
    best = int(np.nanargmax(values))
    highest = Interval(
        estimate=float(values[best]),
        low=max(i.low for i in intervals if i.n),
        high=max(i.high for i in intervals if i.n),
        n=intervals[best].n,
        level=1 - alpha,
        kind=intervals[best].kind,
    )
    return BestFixedAction(best, highest, values)
