"""Refunds and costs of live runs, where twins have them: what a round counts less, and what its policy is told."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.audits.estimand import ClaimsByLaw
from evaluator.audits.truth import LogTruth
from evaluator.kernels.compiling import inlinable
from evaluator.policies.dispatch import converted
from evaluator.units import NO_WINDOW

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class LiveMoney(NamedTuple):
    """Refunds and costs of live rounds; `NO_MONEY` where there are none, and all conversions are worth alike.

    Parameters
    ----------
    luck
        Uniform numbers of each round, shape (T, 3): whether its sale comes back, how late, and what the display costs.
    sold, owed, cost
        What a sale brings, what its refund is expected to take back, and what a display costs, by action, as shares of
        the mean value of a sale, shape (K,).
    refund_weights
        Weights of what is claimed of refunds, by law and round, shape (C, R, T).
    refund_law
        Row of `refund_weights` for each action, shape (K,).
    display_weights
        Weights of each round, shape (C, T).
    rate
        Chance that a sale of each action comes back, shape (K,); 0 without refunds.
    kept, kept_first
        Values of sales that do not come back, action by action, and where each action's begin, shape (K + 1,).
    back, taken, back_first
        Values of sales that come back, what their refunds take, shape (S,) each, and where each action's begin,
        (K + 1,).
    lag, lag_delays, lag_law
        Laws of the wait for a refund: CDFs, shape (Q, J), delays in ticks of the twins, (J,), each action's row, (K,).
    share
        Rounds per display, where delays count displays.
    longest
        Longest delay of a refund, in ticks or in rounds as delays count.
    costs, costs_first
        Costs of displays, action by action, shape (C,), and where each action's begin, (K + 1,); empty where the
        policy is told of none.
    """

    luck: Floats
    sold: Floats
    owed: Floats
    cost: Floats
    refund_weights: Floats
    refund_law: Ints
    display_weights: Floats
    rate: Floats
    kept: Floats
    kept_first: Ints
    back: Floats
    taken: Floats
    back_first: Ints
    lag: Floats
    lag_delays: Ints
    lag_law: Ints
    share: float
    longest: int
    costs: Floats
    costs_first: Ints


_NONE, _NOWHERE = np.zeros(0), np.zeros(0, np.int64)
NO_MONEY = LiveMoney(
    luck=np.zeros((0, 3)), sold=_NONE, owed=_NONE, cost=_NONE, refund_weights=np.zeros((0, 0, 0)), refund_law=_NOWHERE,
    display_weights=np.zeros((0, 0)), rate=_NONE, kept=_NONE, kept_first=_NOWHERE, back=_NONE, taken=_NONE,
    back_first=_NOWHERE, lag=np.zeros((0, 0)), lag_delays=_NOWHERE, lag_law=_NOWHERE, share=1.0, longest=NO_WINDOW,
    costs=_NONE, costs_first=_NOWHERE,
)  # fmt: skip


def live_money(
    truth: LogTruth, claim: ClaimsByLaw, refund_weights: Floats, display_weights: Floats, *, told_costs: bool
) -> LiveMoney:
    """Return refunds and costs of the live rounds of a policy, without luck.

    Parameters
    ----------
    truth, claim
        Truth that is lived on, and what is claimed of the policy.
    refund_weights, display_weights
        Weights of what is claimed of refunds, by law and round, shape (C, R, T), and of each round, (C, T).
    told_costs
        Whether the policy is told what displays cost.
    """
    money, counts = truth.money, claim.money
    if money is None or counts is None:
        return NO_MONEY
    in_time = truth.traffic is not None
    # A duration cuts the delays themselves; one that counts displays is cut by the window in rounds.
    longest = NO_WINDOW if claim.longest is None or not in_time else claim.longest
    found = NO_MONEY._replace(
        sold=counts.sold,
        owed=counts.owed,
        cost=counts.cost,
        refund_weights=refund_weights,
        refund_law=counts.refunds.law,
        display_weights=display_weights,
        rate=np.zeros(len(counts.sold)),
        kept=money.sold.flat,
        kept_first=money.sold.first,
    )
    if money.refunds is not None:
        of = money.refunds
        ends = NO_WINDOW if of.longest is None else of.longest if in_time else round(of.longest * claim.share)
        found = found._replace(
            rate=of.rate,
            back=of.sold.flat,
            taken=of.taken,
            back_first=of.sold.first,
            lag=np.ascontiguousarray(of.lags.tau),
            lag_delays=of.lags.grid.copy(),  # may not be written to: a loop for that would be compiled beside
            lag_law=of.lags.of_action,
            share=claim.share,
            longest=min(longest, ends),
        )
    if told_costs and money.costs is not None:
        found = found._replace(costs=money.costs.flat, costs_first=money.costs.first)
    return found


def in_unit(money: LiveMoney, unit: float) -> LiveMoney:
    """Return it with all that a policy is told as shares of `unit`."""
    return money._replace(
        kept=money.kept / unit, back=money.back / unit, taken=money.taken / unit, costs=money.costs / unit
    )


@inlinable
def count_money(sums: Floats, weights: Floats, money: LiveMoney, law: int, t: int, action: int, rate: float) -> None:
    """Add what a round is expected to earn, less refunds and costs, to each weighted sum."""
    counted = law if weights.shape[1] > 1 else 0
    returned = money.refund_law[action]
    for c in range(weights.shape[0]):
        sums[c] += (
            weights[c, counted, t - 1] * rate * money.sold[action]
            - money.refund_weights[c, returned, t - 1] * rate * money.owed[action]
            - money.display_weights[c, t - 1] * money.cost[action]
        )


@inlinable
def drawn(flat: Floats, first: Ints, action: int, uniform: float) -> float:
    """Return one of an action's numbers, 0 without any."""
    size = first[action + 1] - first[action]
    return flat[first[action] + int(uniform * size)] if size > 0 else 0.0


@inlinable
def comes_back(money: LiveMoney, t: int, action: int) -> bool:
    """Return whether the sale of round t comes back."""
    return bool(money.luck[t - 1, 0] < money.rate[action])


@inlinable
def lag_of(money: LiveMoney, t: int, action: int) -> int:
    """Return the wait for the refund of round t, in ticks of the twins."""
    law = money.lag_law[action]
    step = int(np.searchsorted(money.lag[law], money.luck[t - 1, 1], side="right"))
    return int(money.lag_delays[min(step, money.lag_delays.shape[0] - 1)])


@inlinable
def tell_cost(state: Any, money: LiveMoney, t: int, action: int, vector: npt.NDArray[np.floating]) -> float:
    """Tell the policy what the display of round t costs, where it is told; return it."""
    if money.costs.shape[0] == 0:
        return 0.0
    cost = drawn(money.costs, money.costs_first, action, money.luck[t - 1, 2])
    if cost > 0.0:
        converted(state, vector, action, 0, -cost)
    return cost
