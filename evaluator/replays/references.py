"""What replays are measured against: the logged rewards, the logging policy's value, the best fixed action or order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from evaluator.estimates.arms import BestFixedAction, best_fixed_action
from evaluator.estimates.confidence import Interval, mean_interval
from evaluator.estimates.sparse import SparseRewards
from evaluator.log.eligible import sizes
from evaluator.log.schema import ELIGIBLE, to_numpy
from evaluator.replays.loop.engine import Replay
from evaluator.replays.parts import evened
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.set_sizes import SetSizes, all_sizes, compare_sizes
from evaluator.replays.values.best_order import best_order
from evaluator.replays.values.rewards import ArmSample, RewardBounds, logged_rewards

T = TypeVar("T")


class References:
    """What lanes are measured against, estimated once for all lanes with the same logged rewards."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Any] = {}

    def logged(self, plan: ReplayPlan, rounds: int) -> SparseRewards:
        """Return `logged_rewards`."""
        return self._once(("rewards", *_rewards_key(plan, rounds)), lambda: logged_rewards(plan, rounds=rounds))

    def logging_value(self, plan: ReplayPlan, rounds: int, *, bounds: RewardBounds, alpha: float) -> Interval:
        """Return the interval of the logged displays' mean reward."""
        key = ("logging", alpha, *_rewards_key(plan, rounds))

        def interval() -> Interval:
            even = evened(plan.log, self.logged(plan, rounds), plan.options.seed)
            return mean_interval(even, lower=bounds.lower, upper=bounds.upper, alpha=alpha)

        return self._once(key, interval)

    def best(
        self, plan: ReplayPlan, arms: ArmSample, rounds: int, *, bounds: RewardBounds, alpha: float
    ) -> BestFixedAction:
        """Return the best fixed action, by a sample of the arms that lives as long as these references."""
        key = ("best", alpha, id(arms), *_rewards_key(plan, rounds))
        of_logged = self.logged(plan, rounds)
        seed = plan.options.seed
        if plan.sets is not None and plan.propensities.rule is not None:
            return self._once(("order", *key), lambda: best_order(plan, of_logged, bounds, alpha=alpha))
        return self._once(
            key,
            lambda: best_fixed_action(
                arms.arms(of_logged), lower=bounds.lower, upper=bounds.upper, alpha=alpha, seed=seed
            ),
        )

    def sizes(self, plan: ReplayPlan, replay: Replay, shown: pa.Table) -> SetSizes:
        """Return how the sets of the accepted displays compare with those of all displays read."""
        every = self._once(("sizes", plan.rounds.used), lambda: all_sizes(plan))
        return compare_sizes(every[: replay.read], sizes(to_numpy(shown[ELIGIBLE])))

    def _once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        if key not in self._found:
            self._found[key] = make()
        found: T = self._found[key]
        return found


def _rewards_key(plan: ReplayPlan, rounds: int) -> tuple[object, ...]:
    """Return what fixes the logged rewards of plans on one log."""
    correction = plan.maturity.correction
    window = (plan.window.cut, plan.clock) if plan.rewards_end_with_window else None
    return (
        plan.rounds.used,
        (rounds, plan.window.cut, plan.clock) if plan.options.reward == "observed" else window,
        None
        if correction is None
        else (correction.needed, correction.shortest, correction.until, correction.in_displays),
    )
