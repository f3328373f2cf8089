"""The best order of actions, of which the first eligible one is shown: the reference where not all always are eligible.

No single action can always be shown there; the best that needs no context is an order of them (Kleinberg et al. 2010).
Displays are dealt at random into two halves. One half orders the actions by their inverse-propensity means, the other,
which had no say, values the order by 1/p; then the halves change places. As in `evaluator.estimates.arms`, the estimate
so has no bias for what it estimates, the mean value of the orders that half the data would choose, and means are drawn
to that of all the more the rarer an action was shown. To order by means is best only where they do not depend on the
set. Halves must be random: in halves of time each would see a part of the calendar.

References
----------
Kleinberg, Niculescu-Mizil, Sharma. Regret bounds for sleeping experts and bandits. Machine Learning 80, 2010.
Horvitz, Thompson. A generalization of sampling without replacement from a finite universe. JASA 47, 1952.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.estimates.arms import BestFixedAction, Moments, shrunken
from evaluator.estimates.confidence import Interval, mean_interval
from evaluator.estimates.sparse import SparseRewards
from evaluator.streams import STEP, Stream, mixed, seed_sequence

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]


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
    """What a log says on orders of its actions, counted while it is read.

    Memory: some numbers an action, and the set of each display with a reward.

    Parameters
    ----------
    n_actions
        Number of actions K.
    rewarded
        Numbers of the displays that may have a reward, increasing, shape (c,).
    seed
        Seed that divides the displays into halves, which look at no reward.
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
        """Count the next displays.

        Parameters
        ----------
        first
            Number of the first of them.
        action
            Logged actions, shape (n,); -1 for displays left out.
        propensity
            Propensities of the logged actions, shape (n,), in (0, 1].
        bits
            Eligible actions, a bit each in little-endian order, shape (n, width).
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

    Parameters
    ----------
    order
        Actions, first the best, shape (k,).
    action, bits
        Action and eligible actions of each display, shapes (n,) and (n, width).
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
