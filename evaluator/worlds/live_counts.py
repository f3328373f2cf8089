"""What is counted of a live run: weighted sums of what its rounds are expected to earn, or its regret."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.worlds.live_parts import Floats, Ints, LiveSets, LiveWorld


class MoneyWeights(NamedTuple):
    """What counts of refunds and costs.

    Parameters
    ----------
    sold, owed, cost
        What a sale brings, what its refund is expected to take back, and what a display costs, by action, as shares of
        the mean value of a sale, shape (K,).
    refunds
        Weights of what is claimed of refunds, by law and round, shape (C, R, T).
    refund_law
        Row of `refunds` for each action, shape (K,).
    displays
        Weights of each round, shape (C, T).
    """

    sold: Floats
    owed: Floats
    cost: Floats
    refunds: Floats
    refund_law: Ints
    displays: Floats


class Regrets(NamedTuple):
    """What the regret of a run is counted by, and the regret, noted on the way once it has `begun`.

    Parameters
    ----------
    ever, within
        Share of each action's conversions that ever come, and that come within the window, shape (K,).
    there
        Which actions are eligible in each part, shape (parts, K).
    checkpoints
        Rounds after which the regret is noted, increasing, the last T, shape (C,).
    gaps
        What the best action would have brought, less what the one played did, by delay law: a ring of the last rounds,
        shape (R, reach + 1).
    sums
        Regret so far, in eventual rewards and in those that are settled, and eventual rewards expected, shape (3,).
    noted
        Number of checkpoints passed, shape (1,).
    regret, observed
        Both regrets at the checkpoints, shape (C,).
    counts
        Conversions by fate, see `COUNTS`, shape (5,).
    """

    ever: Floats
    within: Floats
    there: npt.NDArray[np.bool_]
    checkpoints: Ints
    gaps: Floats = np.zeros((0, 0))
    sums: Floats = np.zeros(3)
    noted: Ints = np.zeros(1, np.int64)
    regret: Floats = np.zeros(0)
    observed: Floats = np.zeros(0)
    counts: Ints = np.zeros(5, np.int64)

    def begun(self, laws: int, size: int) -> Regrets:
        """Return it before the first round of a run, with gaps of so many laws and rounds."""
        c = len(self.checkpoints)
        return self._replace(
            gaps=np.zeros((laws, size)), sums=np.zeros(3), noted=np.zeros(1, np.int64), regret=np.zeros(c),
            observed=np.zeros(c), counts=np.zeros(len(COUNTS), np.int64),
        )  # fmt: skip


# generated = delivered + pending + expired + lost.
COUNTS = ("generated", "delivered", "pending", "expired", "lost")
_GENERATED, _DELIVERED, _PENDING, _EXPIRED, _LOST = range(5)


@inlinable
def no_sums(weights: Floats | None) -> Floats:
    """Return the weighted sums of a run before its first round."""
    if weights is None:
        return np.zeros(0)
    return np.zeros(weights.shape[0])


@inlinable
def count_round(
    sums: Floats, weights: Floats | None, of_money: MoneyWeights | None, law: int, t: int, action: int, rate: float
) -> None:
    """Add what a round is expected to earn, less refunds and costs, to each weighted sum."""
    if weights is None:
        return
    counted = law if weights.shape[1] > 1 else 0
    for c in range(sums.shape[0]):
        if of_money is None:
            sums[c] += weights[c, counted, t - 1] * rate
        else:
            returned = of_money.refund_law[action]
            sums[c] += (
                weights[c, counted, t - 1] * rate * of_money.sold[action]
                - of_money.refunds[c, returned, t - 1] * rate * of_money.owed[action]
                - of_money.displays[c, t - 1] * of_money.cost[action]
            )


@inlinable
def count_fate(regrets: Regrets | None, action: int, wait: float, comes: bool) -> None:
    """Count a conversion by what becomes of it, unless it is told."""
    if regrets is None:
        return
    regrets.counts[_GENERATED] += 1
    if not comes:
        if wait >= regrets.ever[action]:
            regrets.counts[_LOST] += 1
        elif wait >= regrets.within[action]:
            regrets.counts[_EXPIRED] += 1
        else:
            regrets.counts[_PENDING] += 1


@inlinable
def count_delivered(regrets: Regrets | None, value: float) -> None:
    """Count a conversion that is told."""
    if regrets is not None:
        regrets.counts[_DELIVERED] += int(value)


@inlinable
def count_regret(
    regrets: Regrets | None,
    world: LiveWorld,
    rates: Floats,
    sets: LiveSets | None,
    part: int,
    t: int,
    at: int,
    action: int,
) -> None:
    """Add what the best eligible action would have brought more than the one shown, and note both regrets when due."""
    if regrets is None:
        return
    ever, tau, gaps = regrets.ever, world.tau, regrets.gaps
    best = action
    for k in range(rates.shape[0]):
        if rates[k] * ever[k] > rates[best] * ever[best] and _is_there(sets, regrets, part, k):
            best = k
    regrets.sums[0] += rates[best] * ever[best] - rates[action] * ever[action]
    regrets.sums[2] += rates[action] * ever[action]
    gaps[:, at] = 0.0
    gaps[world.law[best], at] += rates[best]
    gaps[world.law[action], at] -= rates[action]
    reach, size = world.reach, gaps.shape[1]
    # At this age all of a pull's conversions that are ever revealed have been.
    if t > reach:
        for r in range(tau.shape[0]):
            regrets.sums[1] += gaps[r, (t - reach) % size] * tau[r, reach]
    noted = regrets.noted[0]
    if regrets.checkpoints[noted] == t:
        regrets.regret[noted] = regrets.sums[0]
        regrets.observed[noted] = regrets.sums[1]
        for r in range(tau.shape[0]):
            regrets.observed[noted] += _revealed(gaps[r], tau[r], at, min(reach, t))
        regrets.noted[0] += 1


@inlinable
def _is_there(sets: LiveSets | None, regrets: Regrets, part: int, k: int) -> bool:
    if sets is None:
        return True
    return bool(regrets.there[part, k])


@inlinable
def _revealed(gaps: Floats, tau: Floats, at: int, n: int) -> float:
    """Return the sum over ages a < n of gaps[at - a] tau[a], `gaps` a ring."""
    straight = min(n, at + 1)
    return _product(gaps, at, tau, 0, straight) + _product(gaps, gaps.shape[0] - 1, tau, straight, n - straight)


@inlinable
def _product(gaps: Floats, top: int, tau: Floats, low: int, n: int) -> float:
    """Return the sum over i < n of gaps[top - i] tau[low + i]."""
    # Four sums, because one waits for each addition before the next.
    a = b = c = d = 0.0
    for i in range(0, n - 3, 4):
        a += gaps[top - i] * tau[low + i]
        b += gaps[top - i - 1] * tau[low + i + 1]
        c += gaps[top - i - 2] * tau[low + i + 2]
        d += gaps[top - i - 3] * tau[low + i + 3]
    for i in range(n - n % 4, n):
        a += gaps[top - i] * tau[low + i]
    return (a + b) + (c + d)
