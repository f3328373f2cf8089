"""What displays earned, and what replays are measured against: the logging policy's value, the best fixed action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.kernels.compiling import compiled
from evaluator.engine.log_replay import Replay
from evaluator.estimates.best_fixed import BestFixedAction, BestOrder, OrderSample, best_fixed_action, best_order
from evaluator.estimates.confidence import Interval, SparseRewards, mean_interval
from evaluator.log import Log
from evaluator.log.eligible import sizes
from evaluator.log.reward_kinds import sales
from evaluator.log.schema import ELIGIBLE, WEIGHT, Columns, firsts, to_numpy
from evaluator.options.deployment import EVENT, LOGGER
from evaluator.replays.acceptance import AcceptedDisplays, SetSizes, set_sizes, sizes_by_count, uneven_set_sizes
from evaluator.replays.learned.policy import displays_of
from evaluator.replays.learned.policy_metadata import LearnedFrom
from evaluator.replays.plan import ReplayPlan
from evaluator.streams import Stream, random_stream

T = TypeVar("T")


class RewardBounds(NamedTuple):
    """Smallest and largest reward that a display can have, as the result counts it."""

    lower: float
    upper: float


def reward_bounds(plan: ReplayPlan) -> RewardBounds:
    """Return between which rewards are: the log's own bounds, else the extremes seen, times the weights."""
    return RewardBounds(*plan.rewards.weighted(plan.maturity.heaviest))


def logged_rewards(plan: ReplayPlan, *, rounds: int) -> SparseRewards:
    """Return the reward of each used display, as the result counts it.

    Where rewards are those observed by the horizon, a conversion counts with the share of T `rounds` from which it
    would be revealed by round T.
    """
    if plan.options.reward == "observed":
        delay = plan.rounds.delay
        seen = np.where(delay <= plan.window.rounds, np.maximum(rounds - delay, 0) / max(rounds, 1), 0.0)
        return _summed(plan, seen, plan.rounds.used)
    return eventual_rewards(plan, used=plan.rounds.used)


def eventual_rewards(plan: ReplayPlan, *, used: int) -> SparseRewards:
    """Return the reward of each of the first `used` displays, corrected where they are young and used all the same."""
    share = None
    if plan.rewards_end_with_window:  # a later conversion is seen of some displays only
        share = (plan.rounds.delay <= plan.window.rounds).astype(np.float64)
    correction = plan.maturity.correction
    if correction is not None and sales(plan.log.conversions) is not None:
        weights = correction.weights_of_events(plan.survey)
        return _summed(plan, weights if share is None else share * weights, used)
    rewards = _summed(plan, share, used)
    if correction is None:
        return rewards
    return SparseRewards(rewards.n, rewards.at, rewards.value * correction.weights(plan.survey, rewards.at))


def observed_rewards(plan: ReplayPlan, displays: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return each round's reward revealed by the last round: delay at most min(m, T - s). Shape (T,).

    T is what the log gives, and so random. Where displays are accepted with one probability whatever the choice
    (rejection, and keep where the logger is even), or all are (logged), T depends on the draws alone: given T the
    rounds are those of a live run of T rounds, and what is observed of them is unbiased for that T. Under an uneven
    logger keep waits longer for some choices than for others: T depends on what was learned unless a horizon fixes it.

    A resampled log shows a display in several rounds.
    """
    t = len(displays)
    if t and (displays[1:] > displays[:-1]).all():
        at = np.minimum(np.searchsorted(displays, plan.survey.display), t - 1)
        of = np.flatnonzero(displays[at] == plan.survey.display)
        played = at[of]
    else:
        low = np.searchsorted(plan.survey.display, displays, side="left")
        counts = np.searchsorted(plan.survey.display, displays, side="right") - low
        bounds = np.cumsum(counts)
        of = np.arange(counts.sum()) + np.repeat(low - (bounds - counts), counts)
        played = np.repeat(np.arange(t), counts)
    shown = plan.rounds.delay[of] <= np.minimum(plan.window.rounds, t - 1 - played)
    value = to_numpy(plan.log.conversions["value"])[of[shown]]
    return np.bincount(played[shown], weights=value, minlength=t).astype(np.float64, copy=False)


class ArmSample:
    """The displays of each action that estimate its value, of those that a plan uses, counted while a log is read."""

    def __init__(self, plan: ReplayPlan) -> None:
        self._used = plan.rounds.used
        display = plan.survey.display
        first = firsts(display)
        self._converted = display if first is None else display[first]
        self._arm = np.full(len(self._converted), -1, np.int32)
        self._rank = np.zeros(len(self._converted), np.int64)
        self._shown = np.zeros(plan.log.n_actions, np.int64)

    def read(self, first: int, action: npt.NDArray[np.int32]) -> None:
        """Count the next displays, thinned by action: -1 where left out."""
        action = action[: max(self._used - first, 0)]
        low, high = np.searchsorted(self._converted, [first, first + len(action)])
        places = self._converted[low:high] - first
        count_ranks(action, places, self._shown, self._rank[low:high])
        self._arm[low:high] = action[places]

    def arms(self, rewards: SparseRewards) -> list[SparseRewards]:
        """Return the rewards of each action's displays, K of them."""
        at = np.searchsorted(self._converted, rewards.at)
        arm, rank = self._arm[at], self._rank[at]
        order = np.argsort(arm, kind="stable")
        bounds = np.searchsorted(arm[order], np.arange(len(self._shown) + 1))
        own = [order[low:high] for low, high in pairwise(bounds)]
        return [
            SparseRewards(int(n), rank[mine], rewards.value[mine]) for n, mine in zip(self._shown, own, strict=True)
        ]


def _summed(plan: ReplayPlan, share: npt.NDArray[np.float64] | None, used: int) -> SparseRewards:
    """Return the summed value of each of the first displays' conversions, each counted with its share, (c,)."""
    value = to_numpy(plan.log.conversions["value"]).astype(np.float64, copy=False)
    value = value if share is None else value * share
    c = int(np.searchsorted(plan.survey.display, used))
    display, value = plan.survey.display[:c], value[:c]
    first = firsts(display)
    if first is None:  # each is the only one of its display: there may be millions
        return SparseRewards(used, display, value)
    return SparseRewards(used, display[first], np.add.reduceat(value, first))


@compiled
def count_ranks(
    action: npt.NDArray[np.int32],
    places: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    ranks: npt.NDArray[np.int64],
) -> None:
    """Count displays by action, and find how many of the same action came before each of some displays.

    `action` has shape (n,); -1 does not count. `counts`, shape (K,), grows in place. `ranks`, shape (c,), are written
    in place for the increasing `places` in `action`, earlier calls with the same `counts` included; left as they are
    where the action is -1.
    """
    j = 0
    for i in range(action.shape[0]):
        k = action[i]
        if j < places.shape[0] and places[j] == i:
            if k >= 0:
                ranks[j] = counts[k]
            j += 1
        if k >= 0:
            counts[k] += 1


class References:
    """What runs are measured against, estimated once for all runs with the same logged rewards."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Any] = {}

    def logged(self, plan: ReplayPlan, rounds: int) -> SparseRewards:
        """Return `logged_rewards`."""
        return self._once(("rewards", *_rewards_key(plan, rounds)), lambda: logged_rewards(plan, rounds=rounds))

    def of_kind(self, plan: ReplayPlan) -> SparseRewards:
        """Return what each display brought of a kind of events, which a plan has for its rewards, within its bounds."""
        bounds = reward_bounds(plan)

        def rewards() -> SparseRewards:
            logged = logged_rewards(plan, rounds=0)
            # A sum of values that keeps the bounds may be beyond them by rounding.
            least, most = logged.value.min(initial=bounds.lower), logged.value.max(initial=bounds.upper)
            if (least, most) == bounds:
                return logged
            return replace(logged, value=np.clip(logged.value, *bounds))

        return self._once(("kind", plan.survey, bounds, *_rewards_key(plan, 0)), rewards)

    def logging_value(self, plan: ReplayPlan, rounds: int, *, alpha: float) -> Interval:
        """Return the interval of the logged displays' mean reward."""
        key = ("logging", alpha, *_rewards_key(plan, rounds))

        def interval() -> Interval:
            even = evened(plan.log, self.logged(plan, rounds), plan.options.seed)
            return mean_interval(even, **reward_bounds(plan)._asdict(), alpha=alpha)

        return self._once(key, interval)

    def best(self, plan: ReplayPlan, arms: ArmSample, rounds: int, *, alpha: float) -> BestFixedAction:
        """Return the best fixed action, by a sample of the arms that lives as long as these references."""
        key, bounds = ("best", alpha, id(arms), *_rewards_key(plan, rounds)), reward_bounds(plan)
        of_logged, seed = self.logged(plan, rounds), plan.options.seed
        if plan.sets is not None and plan.propensities.rule is not None:
            return self._once(("order", *key), lambda: _best_order(plan, of_logged, bounds, alpha))
        return self._once(
            key, lambda: best_fixed_action(arms.arms(of_logged), **bounds._asdict(), alpha=alpha, seed=seed)
        )

    def sizes(self, plan: ReplayPlan, replay: Replay, shown: Columns) -> SetSizes:
        """Return how the sets of the accepted displays compare with those of all displays read."""
        k = plan.log.n_actions
        accepted = sizes_by_count(sizes(shown[ELIGIBLE]), k)
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
        explored = (
            "" if plan.explores is None else f"{plan.explores.rounds}{f':{LOGGER}' * (plan.as_logger is not None)}"
        )
        learns = EVENT if plan.deployment.schedule is None else plan.deployment.schedule.words
        asked = plan.window, plan.options.taught_by, learns, explored
        return self._once(
            ("source", plan.before, read, *asked), lambda: displays_of(plan.log, plan.before, read, *asked)
        )

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
    return best_order(sample, rewards, **bounds._asdict(), alpha=alpha)


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


def evened(log: Log, rewards: SparseRewards, seed: int) -> SparseRewards:
    """Return the rewards of an even sample of the traffic among the first displays of a log; all without weights.

    A display is kept with probability weight / largest weight.
    """
    if WEIGHT not in log.schema.names:
        return rewards
    largest = max(float(batch[WEIGHT].max()) for _, batch in log.batches([WEIGHT]))
    rng = random_stream(Stream.EVEN_DISPLAYS, seed)
    n, at, value = 0, [np.zeros(0, np.int64)], [np.zeros(0)]
    for first, batch in log.batches([WEIGHT]):
        weight = batch[WEIGHT][: max(rewards.n - first, 0)]
        kept = rng.random(len(weight)) * largest < weight
        low, high = np.searchsorted(rewards.at, [first, first + len(weight)])
        mine = np.arange(low, high)[kept[rewards.at[low:high] - first]]
        at.append(n + np.cumsum(kept)[rewards.at[mine] - first] - 1)
        value.append(rewards.value[mine])
        n += int(kept.sum())
    return SparseRewards(n, np.concatenate(at), np.concatenate(value))


@dataclass(frozen=True)
class RepeatEstimates:
    """One repeat: what was replayed, what it was thinned to, and what it earned."""

    replay: Replay
    arms: ArmSample | None
    accepted: AcceptedDisplays | None
    suspect: AcceptedDisplays | None
    sizes: SetSizes | None
    clipped: float
    effective_sample_size: float
    rewards: npt.NDArray[np.float64]
    costs: npt.NDArray[np.float64] | None
    trajectory: pa.Table
    true_regret: float
