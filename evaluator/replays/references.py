"""What replays are measured against: the logged rewards, the logging policy's value, the best fixed action or order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.log_replay import Replay
from evaluator.estimates.best_fixed import BestFixedAction, BestOrder, OrderSample, best_fixed_action, best_order
from evaluator.estimates.confidence import Interval, SparseRewards, mean_interval
from evaluator.log.eligible import sizes
from evaluator.log.schema import ELIGIBLE, to_numpy
from evaluator.replays.learned.about import LearnedFrom
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.set_sizes import SetSizes, set_sizes, sizes_by_count, uneven_set_sizes
from evaluator.replays.subsampled_log import evened
from evaluator.replays.values.rewards import ArmSample, RewardBounds, logged_rewards
from evaluator.replays.warm_start import displays_of

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
            return self._once(("order", *key), lambda: _best_order(plan, of_logged, bounds, alpha))
        return self._once(
            key,
            lambda: best_fixed_action(
                arms.arms(of_logged), lower=bounds.lower, upper=bounds.upper, alpha=alpha, seed=seed
            ),
        )

    def sizes(self, plan: ReplayPlan, replay: Replay, shown: pa.Table) -> SetSizes:
        """Return how the sets of the accepted displays compare with those of all displays read."""
        k = plan.log.n_actions
        accepted = sizes_by_count(sizes(to_numpy(shown[ELIGIBLE])), k)
        if plan.propensities.tilted:
            mean = self._once(("traffic's sizes", plan.rounds.used), lambda: _traffic_size(plan))
            return uneven_set_sizes(replay.read, accepted, mean=mean)
        every = self._once(("sizes", plan.rounds.used), lambda: _all_sizes(plan))
        known = plan.propensities.kind in ("logged", "uniform") and not plan.matched.clips
        claimed = float(plan.matched.c.min(where=plan.usable > 0, initial=1.0))
        return set_sizes(
            sizes_by_count(every[: replay.read], k),
            accepted,
            # Of estimated or clipped propensities no probability is promised: what was accepted stands for it.
            probability=min(claimed if known else len(replay.displays) / max(replay.read, 1), 1.0),
            mean=float(every.mean()),
        )

    def source(self, plan: ReplayPlan, read: int) -> LearnedFrom | None:
        """Return which displays a replay goes through that reads so many: of a log on disk at the cost of a scan."""
        key = ("source", plan.before, read, plan.window)
        return self._once(key, lambda: displays_of(plan.log, plan.before, read, plan.window))

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
        None if correction is None else correction.key,
    )


def _best_order(plan: ReplayPlan, rewards: SparseRewards, bounds: RewardBounds, alpha: float) -> BestOrder:
    """Return the best fixed order of the used displays, in one scan of them."""
    sample = OrderSample(plan.log.n_actions, rewards.at, seed=plan.options.seed)
    columns = list(dict.fromkeys(["action", ELIGIBLE, *plan.propensities.reads]))
    for first, batch in plan.log.batches(columns):
        n = min(len(batch["action"]), plan.rounds.used - first)
        if n <= 0:
            break
        sample.read(first, batch["action"][:n], plan.propensities.of(batch)[:n], batch[ELIGIBLE][:n])
    return best_order(sample, rewards, upper=bounds.upper, lower=bounds.lower, alpha=alpha)


def _traffic_size(plan: ReplayPlan) -> float:
    """Return the mean |E| of the traffic that the used displays stand for, in one scan: the mean of 1/p."""
    total = 0.0
    for first, batch in plan.log.batches(plan.propensities.reads):
        total += float((1.0 / plan.propensities.of(batch)[: max(plan.rounds.used - first, 0)]).sum())
    return total / max(plan.rounds.used, 1)


def _all_sizes(plan: ReplayPlan) -> npt.NDArray[np.unsignedinteger]:
    """Return the number of eligible actions of each used display, shape (n,), in one scan of the sets."""
    found = np.empty(len(plan.log), np.min_scalar_type(plan.log.n_actions))
    for first, batch in plan.log.batches([ELIGIBLE], coded=True):
        found[first : first + len(batch[ELIGIBLE])] = sizes(batch[ELIGIBLE])
    return found[: plan.rounds.used]
