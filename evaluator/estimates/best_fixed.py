"""The value of always showing one action, or the first eligible one of an order: the reference of the regret.

The largest of K noisy means is too high: it was picked for its luck. Here each action's displays are dealt at random
into two halves. One half orders the actions, the other, which had no say, values the first of them; then the halves
change places, and the estimate is the mean of the two. Where displays earn independently of each other it has no bias
for what it estimates, the value of the action that half the data would choose. That is never more than the best
action's, and less where so many are so near to it that half the data would miss it.

Actions are ordered by their mean, drawn to that of all the more the rarer they were shown (the best linear predictor of
a random effect; its variance by the moments of DerSimonian and Laird 1986), lest a rare action's single conversion put
it first. Where all are shown alike this is the order of the means.

Where not all actions are always eligible no single one can always be shown; the best that needs no context is an order
of them (Kleinberg et al. 2010). One half orders the actions by their inverse-propensity means, the other values the
order by 1/p, and both ways again. To order by means is best only where they do not depend on the set. Halves must be
random: in halves of time each would see a part of the calendar.

References
----------
van Hasselt. Double Q-learning. NeurIPS 2010: the cross-validated estimator of a largest mean, and its bias.
Kleinberg, Niculescu-Mizil, Sharma. Regret bounds for sleeping experts and bandits. Machine Learning 80, 2010.
Horvitz, Thompson. A generalization of sampling without replacement from a finite universe. JASA 47, 1952.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import Interval, SparseRewards, mean_interval
from evaluator.streams import STEP, Stream, mixed, seed_sequence

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Counters of two actions never meet: none has so many displays.
_PAIRS = np.uint64(40)
Bits = npt.NDArray[np.uint8]


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


@dataclass(frozen=True)
class BestOrder(BestFixedAction):
    """The best order of actions, in the place of a best fixed action.

    `action` and `by_halves` are the first of each order, `values` the inverse-propensity means, shape (K,). The
    interval of `value` is of the mean value of the two orders `orders`, and holds given them; its low end bounds the
    best order's value as well, its high end does not. Its n counts all displays that were read.

    Parameters
    ----------
    orders
        Actions in the order of each half, first the best, shape (logged actions,) each.
    standard_error
        Standard error of the estimate, given the orders; nan where there is no estimate.
    """

    orders: tuple[Ints, Ints]
    standard_error: float


class OrderSample:
    """What a log says on orders of its actions, counted while it is read, of the displays that may have a reward.

    Their numbers increase, shape (c,); the seed divides the displays into halves, which look at no reward. Memory: some
    numbers an action, and the set of each display with a reward.
    """

    def __init__(self, n_actions: int, rewarded: Ints, *, seed: int = 0) -> None:
        self.n_actions = n_actions
        self.rewarded = rewarded
        self.half = np.zeros(len(rewarded), np.int64)
        self.place = np.zeros(len(rewarded), np.int64)
        self.action = np.full(len(rewarded), -1, np.int64)
        self.weight = np.zeros(len(rewarded))
        self.bits: Bits = np.zeros((len(rewarded), -(-n_actions // 64) * 8), np.uint8)
        # By half: displays read; and by half and action sums of 1/p and of 1/p².
        self.displays = np.zeros(2, np.int64)
        self.total = np.zeros((2, n_actions))
        self.squares = np.zeros((2, n_actions))
        self.heaviest = 1.0
        self._key = np.asarray(seed_sequence(Stream.HALVES, seed).generate_state(1, np.uint64), np.uint64)

    def read(self, first: int, action: npt.NDArray[np.integer], propensity: Floats, bits: Bits) -> None:
        """Count the next displays, the first of which has this number.

        Logged actions are -1 for displays left out, shape (n,), their propensities in (0, 1], shape (n,); of eligible
        actions there is a bit each in little-endian order, shape (n, width).
        """
        number = first + np.arange(len(action))
        half = self._halves(number)
        used = action >= 0
        weight = np.zeros(len(action))
        weight[used] = 1.0 / propensity[used]
        self.heaviest = max(self.heaviest, float(weight.max(initial=1.0)))
        cell = half[used] * self.n_actions + action[used]
        for sums, power in ((self.total, 1), (self.squares, 2)):
            sums += np.bincount(cell, weight[used] ** power, 2 * self.n_actions).reshape(2, -1)
        place = np.zeros(len(action), np.int64)
        for side in (0, 1):
            own = used & (half == side)
            place[own] = self.displays[side] + np.arange(own.sum())
            self.displays[side] += own.sum()
        low, high = np.searchsorted(self.rewarded, [first, first + len(action)])
        at = self.rewarded[low:high] - first
        for kept, column in (
            (self.half, half),
            (self.place, place),
            (self.action, action),
            (self.weight, weight),
            (self.bits, bits),
        ):
            kept[low:high] = column[at]

    def _halves(self, number: Ints) -> Ints:
        """Deal displays into halves: of each two that follow one another one to each, so both see the same times."""
        counter = (number // 2).astype(np.uint64) + np.uint64(1)
        coin = np.asarray(mixed(self._key + counter * STEP) >> np.uint64(63), np.int64)
        return coin ^ (number & 1)


def best_order(
    sample: OrderSample, rewards: SparseRewards, *, upper: float, lower: float = 0.0, alpha: float
) -> BestOrder:
    """Estimate the value of the best order of actions. O(displays with a reward times K / 8) time.

    With the order s of one half and the n displays of the other, V = (1/n) sum 1[a_i first of s in E_i] Y_i / p_i,
    unbiased given s where the propensities are right and displays independent; the estimate is the mean of the two.
    Actions that were never logged are in no order; what only one half saw comes last in the order of the other.

    Parameters
    ----------
    sample
        Displays of the log, all read.
    rewards
        Rewards of these displays, each in [lower, upper]; displays without one among those `rewarded` of the sample.
    upper, lower
        Largest and smallest possible reward of a display.
    alpha
        Probability that the interval fails, 1 - level: half of it for each half's order.
    """
    at = np.searchsorted(sample.rewarded, rewards.at)
    value = np.where(sample.action[at] >= 0, rewards.value, 0.0) * sample.weight[at]
    moments = [_moments(sample, at, rewards.value, sides) for sides in ((0,), (1,), (0, 1))]
    logged = moments[2].n > 0
    values = np.where(logged, moments[2].total / np.where(logged, moments[2].n, 1.0), np.nan)
    n = int(sample.displays.sum())
    if (sample.displays == 0).any() or not logged.any():
        nothing = Interval(float("nan"), lower, upper, n, 1 - alpha, mean_interval([], upper=upper, alpha=alpha).kind)
        none: Ints = np.zeros(0, np.int64)
        return BestOrder(
            int(np.argmax(logged)) if logged.any() else -1, nothing, values, (-1, -1), (none, none), np.nan
        )
    orders = _order(moments[0], logged), _order(moments[1], logged)
    # A display that does not match counts as 0.
    bounds = {"upper": max(upper, 0.0) * sample.heaviest, "lower": min(lower, 0.0) * sample.heaviest}
    parts, errors = [], []
    for side, order in ((1, orders[0]), (0, orders[1])):
        own = np.flatnonzero(sample.half[at] == side)
        own = own[shows_first(order, sample.action[at[own]], sample.bits[at[own]])]
        terms = SparseRewards(int(sample.displays[side]), sample.place[at[own]], value[own])
        parts.append(mean_interval(terms, **bounds, alpha=alpha / 2))
        mean = terms.total / terms.n
        errors.append((float((terms.value**2).sum()) / terms.n - mean**2) / terms.n)
    interval = Interval(
        estimate=sum(part.estimate for part in parts) / 2,
        low=max(min(sum(part.low for part in parts) / 2, upper), lower),
        high=min(sum(part.high for part in parts) / 2, upper),
        n=n,
        level=1 - alpha,
        kind=parts[0].kind,
    )
    first = int(_order(moments[2], logged)[0])
    firsts = int(orders[0][0]), int(orders[1][0])
    return BestOrder(first, interval, values, firsts, orders, float(np.sqrt(sum(errors))) / 2)


def shows_first(order: Ints, action: npt.NDArray[np.integer], bits: Bits) -> npt.NDArray[np.bool_]:
    """Return whether each display's action is the first eligible one of an order, shape (n,); one not in it never is.

    The order has the best action first, shape (k,); actions and eligible actions have shapes (n,) and (n, width).
    """
    k = 8 * bits.shape[1]
    rank = np.full(k, k)
    rank[order] = np.arange(len(order))
    before = np.packbits(rank[:, None] > rank[None, :], axis=1, bitorder="little")
    inside = (action >= 0) & (rank[action] < k)
    found: npt.NDArray[np.bool_] = inside & ~(before[action] & bits).any(axis=1)
    return found


def _moments(sample: OrderSample, at: Ints, reward: Floats, sides: tuple[int, ...]) -> Moments:
    """Return moments of self-normalised means: n is the effective number of displays, (sum 1/p)² / sum 1/p²."""
    total, squares = (sums[list(sides)].sum(axis=0) for sums in (sample.total, sample.squares))
    own = np.isin(sample.half[at], sides) & (sample.action[at] >= 0)
    action, weight, y = sample.action[at[own]], sample.weight[at[own]], reward[own]
    shown = total > 0
    n = np.where(shown, total**2 / np.where(shown, squares, 1.0), 0.0)
    scale = n / np.where(shown, total, 1.0)
    earned, of_squares = (np.bincount(action, weight * x, sample.n_actions) for x in (y, y**2))
    return Moments(n, scale * earned, scale * of_squares)


def _order(of: Moments, logged: npt.NDArray[np.bool_]) -> Ints:
    """Return the logged actions, first the one of the highest mean, last those that these displays do not show."""
    known, score = shrunken(of)
    full = np.full(len(logged), -np.inf)
    full[known] = score
    order = np.argsort(-full, kind="stable")
    return order[logged[order]]
