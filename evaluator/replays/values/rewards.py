"""What displays earned, from the conversions of a log: never more memory than these take."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import compiled
from evaluator.estimates.confidence import SparseRewards
from evaluator.log.reward_kinds import sales
from evaluator.log.schema import consecutive, to_numpy
from evaluator.replays.plan import ReplayPlan


def logged_rewards(plan: ReplayPlan, *, rounds: int) -> SparseRewards:
    """Return the reward of each used display, as the result counts it.

    Parameters
    ----------
    plan
        Plan of the replay.
    rounds
        Number of rounds T, for rewards observed by the horizon: a conversion counts with the share of T rounds from
        which it would be revealed by round T.
    """
    if plan.options.reward == "observed":
        return _summed(plan, _shown_in_time(plan, rounds), plan.rounds.used)
    return eventual_rewards(plan, used=plan.rounds.used)


def eventual_rewards(plan: ReplayPlan, *, used: int) -> SparseRewards:
    """Return the reward of each of the first `used` displays, corrected where they are young and used all the same."""
    share = _within_window(plan) if plan.rewards_end_with_window else None
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
    if consecutive(displays):
        first, end = np.searchsorted(plan.survey.display, [displays[0], displays[-1] + 1])
        of = np.arange(first, end)
        played = plan.survey.display[first:end] - displays[0]
    else:
        low = np.searchsorted(plan.survey.display, displays, side="left")
        counts = np.searchsorted(plan.survey.display, displays, side="right") - low
        bounds = np.cumsum(counts)
        of = np.arange(counts.sum()) + np.repeat(low - (bounds - counts), counts)
        played = np.repeat(np.arange(t), counts)
    shown = plan.rounds.delay[of] <= np.minimum(plan.window.rounds, t - 1 - played)
    value = to_numpy(plan.log.conversions["value"])[of[shown]]
    return np.bincount(played[shown], weights=value, minlength=t).astype(np.float64, copy=False)


class RewardBounds(NamedTuple):
    """Smallest and largest reward that a display can have, as the result counts it."""

    lower: float
    upper: float


def reward_bounds(plan: ReplayPlan) -> RewardBounds:
    """Return between which rewards are: the log's own bounds, else the extremes seen, times the weights."""
    return RewardBounds(*plan.rewards.weighted(plan.maturity.heaviest))


class ArmSample:
    """The displays of each action that estimate its value, counted while a log is read.

    Parameters
    ----------
    plan
        Plan of the replay, whose used displays count.
    """

    def __init__(self, plan: ReplayPlan) -> None:
        self._used = plan.rounds.used
        self._converted = _distinct(plan.survey.display)[0]
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
    at, first = _distinct(plan.survey.display[:c])
    return SparseRewards(used, at, np.add.reduceat(value[:c], first) if c else np.zeros(0))


def _distinct(ordered: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct values of an increasing array, and where each begins."""
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    return ordered[first], first


def _within_window(plan: ReplayPlan) -> npt.NDArray[np.float64]:
    """Return which conversions are rewards, shape (c,).

    Where displays are judged once followed for the policy's window, a later conversion is seen of some displays only.
    """
    return (plan.rounds.delay <= plan.window.rounds).astype(np.float64)


def _shown_in_time(plan: ReplayPlan, t: int) -> npt.NDArray[np.float64]:
    delay = plan.rounds.delay
    if t == 0:
        return np.zeros(len(delay))
    return np.where(delay <= plan.window.rounds, np.maximum(t - delay, 0) / t, 0.0)


@compiled
def count_ranks(
    action: npt.NDArray[np.int32],
    places: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    ranks: npt.NDArray[np.int64],
) -> None:
    """Count displays by action, and find how many of the same action came before each of some displays.

    Parameters
    ----------
    action
        Action of each display, shape (n,); -1 does not count.
    places
        Positions in `action` whose rank is wanted, increasing, shape (c,).
    counts
        Number of displays of each action so far, shape (K,); grows in place.
    ranks
        Number of earlier displays of the same action at each place, shape (c,), earlier calls with the same `counts`
        included: written in place, left as it is where the action is -1.
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
