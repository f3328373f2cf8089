"""Live runs on rounds drawn from a pool of contexts, with values, told whatever each run is told: what an audit needs.

`evaluator.simulations.live_loop` notes the regret of the papers' problems, run after run the same; here a run returns
weighted sums of what its rounds are expected to earn, which is what a replay's value is compared with.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.audits.live_money import (
    NO_MONEY,
    LiveMoney,
    comes_back,
    count_money,
    drawn,
    in_unit,
    lag_of,
    tell_cost,
)
from evaluator.kernels.compiling import compiled, compiled_uncached, inlinable
from evaluator.kernels.memory import borrowed
from evaluator.kernels.ridge import row
from evaluator.policies.base import Setting
from evaluator.policies.dispatch import choose, collected, converted, displayed, prepare
from evaluator.policies.running import blamed, loop_for, reward_unit
from evaluator.replays.rounds.batch import read_only
from evaluator.simulations.ring import RoundRing, empty_ring, keep, next_revealed, reveal_later, rounds_since

Floats = npt.NDArray[np.float64]


class ContextPool(NamedTuple):
    """What rounds are drawn from.

    Parameters
    ----------
    vectors
        Vectors that the policy reads of each entry, shape (P, K, d) or (P, 1, d); of one entry, (1, K, d), where all
        rounds read the same; (1, 1, 0) for a policy that reads none.
    rates
        Probability with which each action converts in each entry, shape (P, K).
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
    """

    vectors: Floats
    rates: Floats
    values: Floats
    tau: Floats
    reach: int
    delays: npt.NDArray[np.int64] = np.zeros(0, np.int64)
    times: npt.NDArray[np.int64] = read_only(np.zeros(0, np.int64))
    first: int = 0
    last: int = 0
    rate: float = 0.0
    share: float = 1.0
    law: npt.NDArray[np.int64] = np.zeros(0, np.int64)
    by_hour: Floats = np.zeros(0)
    hour: float = 1.0


def _play(
    state: Any,
    own: np.random.Generator,
    luck: np.random.Generator,
    pool: ContextPool,
    weights: npt.NDArray[np.float64],
    money: LiveMoney,
    ring: RoundRing,
    refunds: RoundRing,
) -> npt.NDArray[np.float64]:
    """Play one run of weights.shape[2] rounds; return sum over s of weights[c, r_s, s] rate_s, r_s the law, by c."""
    ring = borrowed(ring)
    refunds = borrowed(refunds)
    n, k_all = pool.rates.shape
    horizon = weights.shape[2]
    sums = np.zeros(weights.shape[0])
    in_time = pool.times.shape[0] > 0
    arrival = int(luck.random() * (pool.last - pool.first)) if in_time else 0
    for t in range(1, horizon + 1):
        entry = int(luck.random() * n)
        converts = luck.random()
        wait = luck.random()
        worth = luck.random()
        vectors = pool.vectors[entry] if pool.vectors.shape[0] > 1 else pool.vectors[0]

        prepare(state, own)
        action = int(choose(state, vectors))
        if action < 0 or action >= k_all:
            raise ValueError("the policy chose an impossible action")
        displayed(state, vectors, action)
        at_time = pool.first + (arrival + t) % (pool.last - pool.first) if in_time else 0
        rate = rate_of(pool, entry, action, at_time)
        law = pool.law[action] if pool.law.shape[0] > 0 else 0
        count_round(sums, weights, money, law, t, action, rate)
        step = int(np.searchsorted(pool.tau[law], wait, side="right")) if converts < rate else -1
        live_round(state, pool, money, ring, refunds, t, horizon, at_time, action, vectors, step, worth)
    return sums


@inlinable
def rate_of(pool: ContextPool, entry: int, action: int, at_time: int) -> float:
    """Return the probability with which what is shown converts."""
    rate = pool.rates[entry, action]
    if pool.by_hour.shape[0] == 0:
        return float(rate)
    hour = int(pool.times[at_time] // pool.hour) % pool.by_hour.shape[0]
    return float(min(rate * pool.by_hour[hour], 1.0))


@inlinable
def count_round(sums: Floats, weights: Floats, money: LiveMoney, law: int, t: int, action: int, rate: float) -> None:
    """Add what a round is expected to earn to each weighted sum."""
    if money.sold.shape[0] > 0:
        count_money(sums, weights, money, law, t, action, rate)
        return
    counted = law if weights.shape[1] > 1 else 0
    for c in range(weights.shape[0]):
        sums[c] += weights[c, counted, t - 1] * rate


@inlinable
def live_round(
    state: Any,
    pool: ContextPool,
    money: LiveMoney,
    ring: RoundRing,
    refunds: RoundRing,
    t: int,
    horizon: int,
    at_time: int,
    action: int,
    vectors: npt.NDArray[np.floating],
    step: int,
    worth: float,
) -> None:
    """End round t, whose sale has the delay of a step of tau, none if -1; tell the policy all that is due."""
    at = keep(ring, t, action, vectors, row(vectors, action))
    in_time = pool.times.shape[0] > 0
    if step >= 0:
        delay = step if step < pool.tau.shape[1] else -1  # past the table it is never revealed
        if in_time:
            delay = rounds_until(pool, at_time, step)
        returns = money.rate.shape[0] > 0 and comes_back(money, t, action)
        if 0 <= delay <= pool.reach and t + delay <= horizon:
            reveal_later(ring, at, t + delay, _value_of(pool, money, action, worth, returns))
        if returns and step < pool.tau.shape[1]:
            _refund_later(pool, money, refunds, t, horizon, at_time, action, vectors, step, worth)
    total = -tell_cost(state, money, t, action, ring.vector[at])
    total += _tell_due(state, ring, t)
    if money.rate.shape[0] > 0:
        total += _tell_due(state, refunds, t)
    collected(state, total)


@inlinable
def _value_of(pool: ContextPool, money: LiveMoney, action: int, worth: float, returns: bool) -> float:
    """Return what a sale is worth."""
    if money.sold.shape[0] == 0:
        return float(pool.values[int(worth * pool.values.shape[0])])
    if returns:
        return float(drawn(money.back, money.back_first, action, worth))
    return float(drawn(money.kept, money.kept_first, action, worth))


@inlinable
def _refund_later(
    pool: ContextPool,
    money: LiveMoney,
    refunds: RoundRing,
    t: int,
    horizon: int,
    at_time: int,
    action: int,
    vectors: npt.NDArray[np.floating],
    step: int,
    worth: float,
) -> None:
    """Keep the refund of the sale of round t, if it is ever told."""
    lag = lag_of(money, t, action)
    if pool.times.shape[0] > 0:
        wait = pool.delays[step] + lag
        delay = rounds_after(pool, at_time, wait)
    else:
        wait = step + int(np.rint(lag * money.share))
        delay = wait
    if wait <= money.longest and delay <= pool.reach and t + delay <= horizon:
        at = keep(refunds, t, action, vectors, row(vectors, action))
        reveal_later(refunds, at, t + delay, -drawn(money.taken, money.back_first, action, worth))


@inlinable
def _tell_due(state: Any, ring: RoundRing, t: int) -> float:
    """Tell the policy all that a ring reveals in round t; return its sum."""
    total = 0.0
    at = t % ring.action.shape[0]
    shown = next_revealed(ring, at)
    while shown >= 0:
        value = ring.value[shown]
        total += value
        converted(state, ring.vector[shown], ring.action[shown], rounds_since(ring, shown, t), value)
        shown = next_revealed(ring, at)
    return total


@inlinable
def rounds_until(pool: ContextPool, arrival: int, step: int) -> int:
    """Return how many rounds after a display its conversion is revealed, whose delay is that of a step of tau."""
    if step >= pool.delays.shape[0]:
        return pool.reach + 1
    return rounds_after(pool, arrival, pool.delays[step])


@inlinable
def rounds_after(pool: ContextPool, arrival: int, ticks: int) -> int:
    """Return how many rounds after a display that is which comes so many ticks later; some beyond the reach as well."""
    n = pool.times.shape[0]
    due = pool.times[arrival] + ticks
    # So many displays are more rounds than the reach, which is all that is asked.
    end = min(n, arrival + 2 + int((pool.reach + 1) / pool.share))
    displays = int(np.searchsorted(pool.times[arrival:end], due, side="right")) - 1
    if end == n and due > pool.times[n - 1]:
        displays += math.floor((due - pool.times[n - 1]) * pool.rate)
    return displays if pool.share == 1.0 else int(np.rint(displays * pool.share))


def rings(pool: ContextPool, money: LiveMoney) -> tuple[RoundRing, RoundRing]:
    """Return what a run remembers: its sales on their way, and its refunds."""
    dimension = pool.vectors.shape[2]
    return empty_ring(pool.reach, dimension), empty_ring(pool.reach if len(money.rate) else 0, dimension)


_compiled = compiled(_play)
_compiled_uncached = compiled_uncached(_play)


def play_in_pool(
    policy: Any,
    setting: Setting,
    pool: ContextPool,
    weights: Floats,
    *,
    own: np.random.Generator,
    luck: np.random.Generator,
    money: LiveMoney = NO_MONEY,
) -> Floats:
    """Let a policy play live.

    Parameters
    ----------
    policy, setting
        The policy that plays, and what it is told before its first round.
    pool
        Entries that the rounds are drawn from. `luck` gives four numbers a round whatever the policy: its entry,
        whether and when it converts, and the conversion's value; where there are times, one more before: when the run
        begins.
    weights
        C weightings of the T rounds, by the delay law of what is shown, shape (C, R, T); R = 1 where all laws are
        alike.
    own, luck
        Random streams of the policy and of the world.
    money
        Refunds and costs of the rounds, with their luck.

    Returns
    -------
    numpy.ndarray
        Weighted rewards, shape (C,): sum over the rounds s of weights[c, s] times the conversion rate of what was
        shown.

    Raises
    ------
    PolicyError
        A policy of the user's own raised an error.
    """
    step = loop_for(policy, _compiled, _compiled_uncached, _play)
    unit = reward_unit(policy, setting)
    pool, money = pool._replace(values=pool.values / unit), in_unit(money, unit)
    ring, refunds = rings(pool, money)
    with blamed(policy, setting.n_actions):
        found: Floats = step(policy.start(setting), own, luck, pool, weights, money, ring, refunds)
    return found
