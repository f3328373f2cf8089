"""The value of always showing one action, for every action: the reference of the regret.

The largest of K noisy means is too high: it was picked for its luck. Here each action's displays are dealt at random
into two halves. One half orders the actions, the other, which had no say, values the first of them; then the halves
change places, and the estimate is the mean of the two. Where displays earn independently of each other it has no bias
for what it estimates, the value of the action that half the data would choose. That is never more than the best
action's, and less where so many are so near to it that half the data would miss it.

Actions are ordered by their mean, drawn to that of all the more the rarer they were shown (the best linear predictor of
a random effect; its variance by the moments of DerSimonian and Laird 1986), lest a rare action's single conversion put
it first. Where all are shown alike this is the order of the means.

References
----------
van Hasselt. Double Q-learning. NeurIPS 2010: the cross-validated estimator of a largest mean, and its bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import Interval, mean_interval
from evaluator.estimates.sparse import SparseRewards
from evaluator.streams import STEP, Stream, mixed, seed_sequence

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Counters of two actions never meet: none has so many displays.
_PAIRS = np.uint64(40)


@dataclass(frozen=True)
class BestFixedAction:
    """The best fixed action.

    Parameters
    ----------
    action
        Index of the action that all displays put first; -1 when no action has displays.
    value
        Value of the best fixed action with its interval. The estimate is that of the two halves; nan where two actions
        or more have displays and none has two. The interval is of the *largest value over the actions that have
        displays*; of the others nothing is known. Every action's interval holds at once (level split over them), so it
        stays right whichever was picked. Should the estimate fall outside, it is the nearest end: what the interval
        excludes cannot be the largest value. n counts the displays of `action`.
    values
        Mean reward of each action, shape (K,); nan without displays.
    by_halves
        Actions that the two halves put first; -1 where there was no choice to make.
    """

    action: int
    value: Interval
    values: Floats
    by_halves: tuple[int, int]


def best_fixed_action(
    arms: Sequence[SparseRewards], *, upper: float, lower: float = 0.0, alpha: float, seed: int = 0
) -> BestFixedAction:
    """Estimate the best fixed action from logged displays. O(K + displays with a reward) time and memory.

    Parameters
    ----------
    arms
        Rewards of each action's logged displays in order, K of them, thinned so that each action's displays have the
        contexts of all; each in [lower, upper].
    upper, lower
        Largest and smallest possible reward of a display.
    alpha
        Probability that the interval fails, 1 - level.
    seed
        Seed that divides the displays into halves, which look at no reward.
    """
    known = max(sum(arm.n > 0 for arm in arms), 1)
    intervals = _intervals(arms, upper=upper, lower=lower, alpha=alpha / known)
    values = np.array([interval.estimate for interval in intervals])
    if np.isnan(values).all():
        nothing = Interval(float("nan"), lower, upper, 0, 1 - alpha, intervals[0].kind)
        return BestFixedAction(-1, nothing, values, (-1, -1))
    low, high = max(i.low for i in intervals if i.n), max(i.high for i in intervals if i.n)
    best = _first(_all_displays(arms))
    estimate, by_halves = (float(values[best]), (-1, -1)) if known == 1 else _both_ways(*_halves(arms, seed))
    highest = Interval(
        estimate=float(np.clip(estimate, low, high)),
        low=low,
        high=high,
        n=intervals[best].n,
        level=1 - alpha,
        kind=intervals[best].kind,
    )
    return BestFixedAction(best, highest, values, by_halves)


def _intervals(arms: Sequence[SparseRewards], *, upper: float, lower: float, alpha: float) -> list[Interval]:
    """Return the interval of each action's mean: of rare actions, which are many and alike, each is computed once."""
    found: dict[tuple[int, bytes, bytes], Interval] = {}
    intervals = []
    for arm in arms:
        key = (arm.n, arm.at.tobytes(), arm.value.tobytes()) if len(arm.at) < 2 else None
        interval = None if key is None else found.get(key)
        if interval is None:
            interval = mean_interval(arm, upper=upper, lower=lower, alpha=alpha)
            if key is not None:
                found[key] = interval
        intervals.append(interval)
    return intervals


class Moments(NamedTuple):
    """Number of displays of each action, and sums of their rewards and of the squares, shape (K,)."""

    n: npt.NDArray[np.int64] | npt.NDArray[np.float64]
    total: Floats
    squares: Floats


def _all_displays(arms: Sequence[SparseRewards]) -> Moments:
    return Moments(
        np.array([arm.n for arm in arms]),
        np.array([arm.total if len(arm.at) else 0.0 for arm in arms]),
        np.array([float((arm.value**2).sum()) if len(arm.at) else 0.0 for arm in arms]),
    )


def _halves(arms: Sequence[SparseRewards], seed: int) -> tuple[Moments, Moments]:
    """Deal the displays of each action into two halves, of each two that follow one another one to each.

    So both halves see the same times, and differ by one display of an action at most.
    """
    k = len(arms)
    shown = np.array([arm.n for arm in arms], np.int64)
    arm = np.repeat(np.arange(k), [len(of.at) for of in arms])
    place = np.concatenate([of.at for of in arms]).astype(np.int64, copy=False)
    value = np.concatenate([of.value for of in arms])
    key = np.asarray(seed_sequence(Stream.HALVES, seed).generate_state(1, np.uint64), np.uint64)
    to = _coins(key, arm, place // 2) ^ (place & 1)
    odd: Ints = _coins(key, np.arange(k), shown // 2)
    cell = to * k + arm
    total, squares = (np.bincount(cell, weights, 2 * k).reshape(2, k) for weights in (value, value**2))
    sizes = [shown // 2 + (shown & 1) * (odd == half) for half in (0, 1)]
    return Moments(sizes[0], total[0], squares[0]), Moments(sizes[1], total[1], squares[1])


def _coins(key: npt.NDArray[np.uint64], arm: Ints, pair: Ints) -> Ints:
    """Return a fair coin for each pair of displays of an action: the first bit of SplitMix64 at that counter."""
    counter = (arm.astype(np.uint64) << _PAIRS) + pair.astype(np.uint64) + np.uint64(1)
    return np.asarray(mixed(key + counter * STEP) >> np.uint64(63), np.int64)


def _both_ways(one: Moments, other: Moments) -> tuple[float, tuple[int, int]]:
    """Return the mean value, on the half that did not choose, of the actions that the halves put first; and these."""
    # An action shown once has no second half to be valued on.
    both = (one.n > 0) & (other.n > 0)
    if not both.any():
        return float("nan"), (-1, -1)
    one, other = (of._replace(n=np.where(both, of.n, 0)) for of in (one, other))
    chosen = _first(one), _first(other)
    valued = other.total[chosen[0]] / other.n[chosen[0]], one.total[chosen[1]] / one.n[chosen[1]]
    return float(sum(valued)) / 2.0, chosen


def _first(of: Moments) -> int:
    """Return the action that is first in the order of these displays, among those that have any."""
    known, score = shrunken(of)
    return int(known[np.argmax(score)])


def shrunken(of: Moments) -> tuple[Ints, Floats]:
    """Return the actions that have displays, and by what they are ordered, the largest first: shape (known,) each."""
    known = np.flatnonzero(of.n > 0)
    n, total, squares = of.n[known].astype(np.float64), of.total[known], of.squares[known]
    mean, displays = total / n, n.sum()
    within = max(float((squares - total * mean).sum()), 0.0) / max(displays - len(n), 1.0)
    apart = float((n * (mean - total.sum() / displays) ** 2).sum()) - (len(n) - 1) * within
    between = max(apart / max(displays - float((n**2).sum()) / displays, 1.0), 0.0)
    # Only the order matters: without the factor `between` it stands also where that is 0.
    weight = 1.0 / (between + within / n) if between + within > 0.0 else np.ones(len(n))
    return known, weight * (mean - (weight * mean).sum() / weight.sum())
