"""What a live run is made of, as its loop reads it: the world, its rounds, its money; and what is counted of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.replays.rounds.stream import read_only

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# generated = delivered + pending + expired + lost.
COUNTS = ("generated", "delivered", "pending", "expired", "lost")
_GENERATED, _DELIVERED, _PENDING, _EXPIRED, _LOST = range(5)


class LiveWorld(NamedTuple):
    """What the displays and the conversions of a run are drawn from.

    Parameters
    ----------
    vectors
        Vectors that the policy reads at each entry, shape (P, K, d) or (P, 1, d); of one entry, (1, K, d), where all
        rounds read the same; (1, 1, 0) for a policy that reads none. Where rounds have sets of eligible actions,
        (1, rows, d), whose rows the sets name.
    rates
        Probability with which each action converts at each entry, shape (P, K).
    values
        Values that a conversion may have, equally likely, shape (V,).
    tau
        CDFs of the delays, one row a law, shape (R, J). Columns are the ages a = 0, 1, ... in rounds where `delays` is
        empty, else the ages in `delays`. What lies above the last column is never revealed.
    reach
        Longest delay, in rounds, that is ever revealed.
    delays
        Delay in ticks at which each column of tau stands, shape (J,); empty where tau counts rounds.
    times
        Arrival times of the traffic in ticks, increasing, shape (N,); empty where tau counts rounds. Each run begins
        at one of them at random, and looks at those of its rounds and as many after them alone.
    first, last
        Times at which rounds are shown: first, ..., last - 1, then again from first on.
    rate
        Mean rate of the traffic after the last of the times, in displays per tick.
    share
        Number of rounds per display of the traffic.
    law
        Row of `tau` for each action's delays, shape (K,); empty where all have the first.
    by_hour
        Factor of all rates at each hour of the day, shape (24,); empty where it is 1 throughout.
    hour
        Ticks of an hour.
    pooled
        Whether the stream gives an entry and a value for each round too: four numbers, in the order entry, conversion,
        delay, value, instead of two.
    zeros
        Whether the policy is told of each display without a conversion, after a delay of the same law, as value 0.
    """

    vectors: Floats
    rates: Floats
    values: Floats
    tau: Floats
    reach: int
    delays: Ints = np.zeros(0, np.int64)
    times: Ints = read_only(np.zeros(0, np.int64))
    first: int = 0
    last: int = 0
    rate: float = 0.0
    share: float = 1.0
    law: Ints = np.zeros(0, np.int64)
    by_hour: Floats = np.zeros(0)
    hour: float = 1.0
    pooled: bool = True
    zeros: bool = False


class LiveRounds(NamedTuple):
    """Rounds that were drawn before the run, where the loop draws none.

    Parameters
    ----------
    entry
        Entry of the world of each round, shape (T,).
    at_time
        Place of each round in the arrival times of the world, shape (T,); zeros where tau counts rounds.
    luck
        Uniform numbers of each round, shape (T, 3): whether it converts, how late, and what that is worth.
    share
        Share of a twin at which each round is, shape (T,); zeros where sets do not move with time.
    """

    entry: Ints
    at_time: Ints
    luck: Floats
    share: Floats


class FreshVectors(NamedTuple):
    """Vectors of the actions that each round draws anew, shape (K, d), and their rates, shape (K,)."""

    vectors: Floats
    rates: Floats
    shown: bool


class LiveExploration(NamedTuple):
    """First rounds of a run, in which the policy does not choose.

    Parameters
    ----------
    rounds
        Number of these rounds.
    chances
        Weights with which the logging policy shows each action at each entry, shape (P, K), or (1, K) where entries
        are alike, of those that are eligible; None where actions are drawn uniformly.
    temperature
        Temperature of a logging policy that weighs actions by exp(rate / temperature), too; 0 of one that does not.
    """

    rounds: int
    chances: Floats | None = None
    temperature: float = 0.0


class LiveEvents(NamedTuple):
    """Events beside sales that policies are told of, E kinds, each at most once a round; refunds of sales come first.

    Parameters
    ----------
    rate
        Chance that a display of each action has one, and for refunds that a sale has, shape (E, K).
    tau, delays, law
        Laws of their delays since the display, or since the sale: CDFs, shape (Q, G), delays in ticks of the twins,
        (G,), and each action's row, (E, K).
    value, first
        Values that they may have, below 0 of refunds, action by action, shape (S,), and where each action's begin,
        (E, K + 1).
    longest
        Longest delay since the display that is told, in ticks or in rounds as delays count, shape (E,).
    """

    rate: Floats
    tau: Floats
    delays: Ints
    law: Ints
    value: Floats
    first: Ints
    longest: Ints


class LiveMoney(NamedTuple):
    """What sales of live rounds are worth, what comes beside them, and what displays cost.

    Parameters
    ----------
    luck
        Uniform numbers of each round, shape (T, 3E): for each kind of events whether one comes, how late, and what it
        is worth. A refund is worth what the sale was drawn to be, so that its third number is free: that of the cost.
    kept, kept_first
        Values of sales that do not come back, action by action, and where each action's begin, shape (K + 1,).
    back
        Values of sales that come back, in the order of what their refunds take, shape (R,).
    share
        Rounds per display, where delays count displays.
    costs, costs_first
        Costs of displays, action by action, shape (C,), and where each action's begin, (K + 1,); empty where the
        policy is told of none.
    events
        Refunds and outcomes.
    """

    luck: Floats
    kept: Floats
    kept_first: Ints
    back: Floats
    share: float
    costs: Floats
    costs_first: Ints
    events: LiveEvents

    def in_unit(self, unit: float) -> LiveMoney:
        """Return it with all that a policy is told as shares of `unit`."""
        return self._replace(
            kept=self.kept / unit, back=self.back / unit, costs=self.costs / unit,
            events=self.events._replace(value=self.events.value / unit),
        )  # fmt: skip


@inlinable
def rates_at(world: LiveWorld, fresh: FreshVectors | None, entry: int) -> Floats:
    """Return the rates of all actions, without what the hour does to them."""
    if fresh is not None:
        return fresh.rates
    rates: Floats = world.rates[entry]
    return rates


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
        Which actions are eligible in each part of the run, shape (parts, K); None where all always are.
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
    there: npt.NDArray[np.bool_] | None
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
    """Count a conversion by what becomes of it: what comes within the run will be told."""
    if regrets is None:
        return
    regrets.counts[_GENERATED] += 1
    if comes:
        regrets.counts[_DELIVERED] += 1
    elif wait >= regrets.ever[action]:
        regrets.counts[_LOST] += 1
    elif wait >= regrets.within[action]:
        regrets.counts[_EXPIRED] += 1
    else:
        regrets.counts[_PENDING] += 1


@inlinable
def count_regret(regrets: Regrets | None, world: LiveWorld, rates: Floats, part: int, t: int, action: int) -> None:
    """Add what the best eligible action would have brought more than the one shown, and note both regrets when due."""
    if regrets is None:
        return
    ever, tau, gaps = regrets.ever, world.tau, regrets.gaps
    best = action
    for k in range(rates.shape[0]):
        if rates[k] * ever[k] > rates[best] * ever[best] and _is_there(regrets.there, part, k):
            best = k
    regrets.sums[0] += rates[best] * ever[best] - rates[action] * ever[action]
    regrets.sums[2] += rates[action] * ever[action]
    reach, size = world.reach, gaps.shape[1]
    at = t % size
    gaps[:, at] = 0.0
    gaps[world.law[best], at] += rates[best]
    gaps[world.law[action], at] -= rates[action]
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
def _is_there(there: npt.NDArray[np.bool_] | None, part: int, k: int) -> bool:
    if there is None:
        return True
    return bool(there[part, k])


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
