"""The loop of live runs: compiled for built-in states, and the same source interpreted for Python policies.

Audits and simulations play it. What differs between them are arguments that may be None: rounds drawn before, vectors
drawn anew each round, sets of eligible actions, refunds and costs, and what is counted, which is either weighted sums
of what the rounds are expected to earn or the regret.

The world's stream gives the numbers of a round whatever the policy does: policies that differ in the action still share
the round's luck, and as each sees the outcome of one action only, its law is as if each action had luck of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.engine.eligible_choice import best_among, own_vector
from evaluator.engine.kernels.argmax import LOWEST_FIRST, tie_key
from evaluator.engine.kernels.compiling import LoopCall, compiled, compiled_uncached, inlinable
from evaluator.engine.kernels.intrinsics import borrowed
from evaluator.engine.kernels.ridge import row
from evaluator.policies.base import Setting
from evaluator.policies.dispatch import begin, begin_among, choose, shown, told, told_sum
from evaluator.policies.running import blamed, loop_for, reward_unit
from evaluator.worlds.live_parts import (
    Floats,
    FreshVectors,
    LiveMoney,
    LiveRounds,
    LiveSets,
    LiveWorld,
    MoneyWeights,
    Regrets,
    RoundRing,
    count_delivered,
    count_fate,
    count_regret,
    count_round,
    empty_ring,
    keep,
    next_revealed,
    no_sums,
    rates_at,
    reveal_later,
    rounds_since,
)

Vectors = npt.NDArray[np.floating]
# Kinds of events: a refund is told after all sales of its round, and outcomes after these, one kind after the other.
_SALE, _OTHERS = 0, 1


def _play(
    state: Any,
    own: np.random.Generator,
    luck: np.random.Generator,
    horizon: int,
    world: LiveWorld,
    rounds: LiveRounds | None,
    fresh: FreshVectors | None,
    sets: LiveSets | None,
    money: LiveMoney | None,
    ring: RoundRing,
    weights: Floats | None,
    of_money: MoneyWeights | None,
    regrets: Regrets | None,
) -> Floats:
    """Play one run; return sum over s of weights[c, r_s, s] rate_s, r_s the law, by c; regrets are noted in theirs."""
    # Of each part its arrays are borrowed; one that is None stays None to the functions that take it.
    state, own, luck, world = borrowed((state, own, luck, world))
    rounds, fresh, sets = borrowed((rounds, fresh, sets))
    money, ring, weights, of_money, regrets = borrowed((money, ring, weights, of_money, regrets))
    sums = no_sums(weights)
    begins = _first_arrival(world, rounds, luck)
    part = 0
    for t in range(1, horizon + 1):
        entry, at_time, converts, wait, worth = _draw_round(world, rounds, fresh, luck, begins, t)
        part = _part_of(sets, part, entry, t)
        action, vectors = _show(state, own, world, fresh, sets, entry, part)
        rates = rates_at(world, fresh, entry)
        rate = rate_of(world, rates, action, at_time)
        law = world.law[action] if world.law.shape[0] > 0 else 0
        count_round(sums, weights, of_money, law, t, action, rate)
        at = keep(ring, t, action, vectors, row(vectors, action))
        sold, step = converts < rate, world.tau.shape[1]
        if sold or world.zeros:
            step = int(np.searchsorted(world.tau[law], wait, side="right"))
            delay = _delay_of(world, at_time, step)
            comes = 0 <= delay <= world.reach and t + delay <= horizon
            if comes:
                value = _value_of(world, money, t, action, worth) if sold else 0.0
                reveal_later(ring, _SALE, at, t + delay, value)
            if sold:
                count_fate(regrets, action, wait, comes)
            else:
                step = world.tau.shape[1]
        _reveal_events(world, money, ring, at, t, horizon, at_time, action, step, worth)
        total = -_tell_cost(state, money, t, action, ring.vector[at])
        total += _tell_due(state, ring, _SALE, t, regrets)
        for kind in range(_OTHERS, ring.first.shape[0]):
            total += _tell_due(state, ring, kind, t, regrets)
        told_sum(state, total)
        count_regret(regrets, world, rates, sets, part, t, at, action)
    return sums


@inlinable
def _first_arrival(world: LiveWorld, rounds: LiveRounds | None, luck: np.random.Generator) -> int:
    """Return where among the arrivals a run begins; the stream gives a number for it where there are arrivals."""
    if rounds is None and world.times.shape[0] > 0:
        return int(luck.random() * (world.last - world.first))
    return 0


@inlinable
def _draw_round(
    world: LiveWorld,
    rounds: LiveRounds | None,
    fresh: FreshVectors | None,
    luck: np.random.Generator,
    begins: int,
    t: int,
) -> Any:
    """Return a round's entry, its place among the arrivals, and its luck: conversion, delay, value."""
    if rounds is not None:
        return (
            rounds.entry[t - 1], rounds.at_time[t - 1], rounds.luck[t - 1, 0], rounds.luck[t - 1, 1],
            rounds.luck[t - 1, 2],
        )  # fmt: skip
    _draw_vectors(luck, fresh)
    entry, worth = 0, 0.0
    if world.pooled:
        entry = int(luck.random() * world.rates.shape[0])
    converts = luck.random()
    wait = luck.random()
    if world.pooled:
        worth = luck.random()
    at_time = world.first + (begins + t) % (world.last - world.first) if world.times.shape[0] > 0 else 0
    return entry, at_time, converts, wait, worth


@inlinable
def _draw_vectors(luck: np.random.Generator, fresh: FreshVectors | None) -> None:
    """Draw the round's vectors and their rates <a, theta>, theta = 1/sqrt(d)."""
    if fresh is None:
        return
    d = fresh.vectors.shape[1]
    for k in range(fresh.vectors.shape[0]):
        total = 0.0
        squares = 0.0
        for i in range(d):
            x = luck.random()
            fresh.vectors[k, i] = x
            total += x
            squares += x * x
        length = math.sqrt(squares)
        for i in range(d):
            fresh.vectors[k, i] /= length
        # Equal coordinates give 1 up to rounding.
        fresh.rates[k] = min(total / (length * math.sqrt(d)), 1.0)


@inlinable
def _part_of(sets: LiveSets | None, part: int, entry: int, t: int) -> int:
    """Return the number of the set of round t, given that of the round before."""
    if sets is None:
        return 0
    if sets.start.shape[0] == 0:
        return entry
    return part + 1 if part + 1 < sets.start.shape[0] and t > sets.start[part + 1] else part


@inlinable
def _show(
    state: Any,
    own: np.random.Generator,
    world: LiveWorld,
    fresh: FreshVectors | None,
    sets: LiveSets | None,
    entry: int,
    part: int,
) -> Any:
    """Let the policy choose and see what was shown; return the action and the vectors among which its own is."""
    read = _vectors_at(world, fresh, entry)
    if sets is None:
        begin(state, own)
        action = int(choose(state, read))
        if action < 0 or action >= world.rates.shape[1]:
            raise ValueError("the policy chose an impossible action")
        shown(state, read, action)
        return action, read
    begin_among(state, own)
    key = tie_key(own) if sets.random_ties else LOWEST_FIRST
    action = int(best_among(state, read, sets.eligible, part, key))
    vector = own_vector(read, sets.eligible, part, action)
    shown(state, vector, action)
    return action, vector


@inlinable
def _vectors_at(world: LiveWorld, fresh: FreshVectors | None, entry: int) -> Any:
    """Return the vectors that the policy reads."""
    if fresh is not None:
        return fresh.vectors if fresh.shown else world.vectors[0]
    return world.vectors[entry] if world.vectors.shape[0] > 1 else world.vectors[0]


@inlinable
def rate_of(world: LiveWorld, rates: Floats, action: int, at_time: int) -> float:
    """Return the probability with which what is shown converts."""
    rate = rates[action]
    if world.by_hour.shape[0] == 0:
        return float(rate)
    hour = int(world.times[at_time] // world.hour) % world.by_hour.shape[0]
    return float(min(rate * world.by_hour[hour], 1.0))


@inlinable
def _delay_of(world: LiveWorld, at_time: int, step: int) -> int:
    """Return how many rounds after a display its conversion is revealed, whose delay is a step of tau; -1 for never."""
    if step >= world.tau.shape[1]:
        return -1
    if world.times.shape[0] == 0:
        return step
    return rounds_after(world, at_time, world.delays[step])


@inlinable
def rounds_after(world: LiveWorld, arrival: int, ticks: int) -> int:
    """Return how many rounds after a display that is which comes so many ticks later; some beyond the reach as well."""
    n = world.times.shape[0]
    due = world.times[arrival] + ticks
    # So many displays are more rounds than the reach, which is all that is asked.
    end = min(n, arrival + 2 + int((world.reach + 1) / world.share))
    displays = int(np.searchsorted(world.times[arrival:end], due, side="right")) - 1
    if end == n and due > world.times[n - 1]:
        displays += math.floor((due - world.times[n - 1]) * world.rate)
    return displays if world.share == 1.0 else int(np.rint(displays * world.share))


@inlinable
def _value_of(world: LiveWorld, money: LiveMoney | None, t: int, action: int, worth: float) -> float:
    """Return what the sale of round t is worth."""
    if money is None:
        return float(world.values[int(worth * world.values.shape[0])])
    if _comes_back(money, t, action):
        return float(_drawn(money.back, money.events.first[0], action, worth))
    return float(_drawn(money.kept, money.kept_first, action, worth))


@inlinable
def _drawn(flat: Floats, first: npt.NDArray[np.int64], action: int, uniform: float) -> float:
    """Return one of an action's numbers, 0 without any."""
    size = first[action + 1] - first[action]
    return flat[first[action] + int(uniform * size)] if size > 0 else 0.0


@inlinable
def _comes_back(money: LiveMoney, t: int, action: int) -> bool:
    """Return whether the sale of round t comes back."""
    return bool(money.luck[t - 1, 0] < money.events.rate[0, action])


@inlinable
def _reveal_events(
    world: LiveWorld,
    money: LiveMoney | None,
    ring: RoundRing,
    at: int,
    t: int,
    horizon: int,
    at_time: int,
    action: int,
    sale: int,
    worth: float,
) -> None:
    """Keep the refund of the sale of round t, and its other events, if they are ever told.

    The sale is a step of tau, and beyond them where nothing sold.
    """
    if money is None:
        return
    events, in_time = money.events, world.times.shape[0] > 0
    for e in range(events.rate.shape[0]):
        if money.luck[t - 1, 3 * e] >= events.rate[e, action] or (e == 0 and sale >= world.tau.shape[1]):
            continue
        law = events.law[e, action]
        place = int(np.searchsorted(events.tau[law], money.luck[t - 1, 3 * e + 1], side="right"))
        wait = int(events.delays[min(place, events.delays.shape[0] - 1)])
        if in_time:
            wait += world.delays[sale] if e == 0 else 0
            delay = rounds_after(world, at_time, wait)
        else:
            wait = int(np.rint(wait * money.share)) + (sale if e == 0 else 0)
            delay = wait
        if wait <= events.longest[e] and delay <= world.reach and t + delay <= horizon:
            uniform = worth if e == 0 else money.luck[t - 1, 3 * e + 2]
            reveal_later(ring, _OTHERS + e, at, t + delay, _drawn(events.value, events.first[e], action, uniform))


@inlinable
def _tell_cost(state: Any, money: LiveMoney | None, t: int, action: int, vector: Vectors) -> float:
    """Tell the policy what the display of round t costs, where it is told; return it."""
    if money is None:
        return 0.0
    if money.costs.shape[0] == 0:
        return 0.0
    cost = _drawn(money.costs, money.costs_first, action, money.luck[t - 1, 2])
    if cost > 0.0:
        told(state, vector, action, 0, -cost)
    return cost


@inlinable
def _tell_due(state: Any, ring: RoundRing, kind: int, t: int, regrets: Regrets | None) -> float:
    """Tell the policy all events of a kind that are revealed in round t; return their sum."""
    total = 0.0
    at = t % ring.action.shape[0]
    shown = next_revealed(ring, kind, at)
    while shown >= 0:
        value = ring.value[kind, shown]
        total += value
        count_delivered(regrets, value)
        told(state, ring.vector[shown], ring.action[shown], rounds_since(ring, shown, t), value)
        shown = next_revealed(ring, kind, at)
    return total


_compiled = compiled(_play)
_compiled_uncached = compiled_uncached(_play)


def live_call(
    policy: Any,
    setting: Setting,
    world: LiveWorld,
    horizon: int,
    *,
    own: np.random.Generator,
    luck: np.random.Generator,
    rounds: LiveRounds | None = None,
    fresh: FreshVectors | None = None,
    sets: LiveSets | None = None,
    money: LiveMoney | None = None,
    weights: Floats | None = None,
    of_money: MoneyWeights | None = None,
    regrets: Regrets | None = None,
) -> LoopCall:
    """Return the call that lets a policy play live; parameters are those of `play_live`."""
    unit = reward_unit(policy, setting)
    if unit != 1.0:
        world = world._replace(values=world.values / unit)
        money = None if money is None else money.in_unit(unit)
    shown = fresh.vectors.shape[1] if fresh is not None and fresh.shown else world.vectors.shape[2]
    ring = empty_ring(world.reach, shown, kinds=1 if money is None else _OTHERS + len(money.events.longest))
    state = policy.start(setting)
    parts = (world, rounds, fresh, sets, money, ring, weights, of_money, regrets)
    return LoopCall(
        policy.name, loop_for(policy, _compiled, _compiled_uncached, _play), (state, own, luck, horizon, *parts)
    )


def play_live(policy: Any, setting: Setting, world: LiveWorld, horizon: int, **parts: Any) -> Floats:
    """Let a policy play live on rounds drawn from a world, T of them; it is told `setting` before the first.

    Further parts are those of `live_call`, None where a run has none: ``own`` and ``luck``, random streams of the
    policy and of the world; ``rounds`` drawn before; ``fresh`` vectors; ``sets``; ``money``; ``weights`` of the T
    rounds in C sums, by the delay law of what is shown, shape (C, R, T), R = 1 where all laws are alike, and
    ``of_money``; ``regrets``, into which the regret is noted.

    It returns the weighted rewards, shape (C,): sum over the rounds s of weights[c, s] times the conversion rate of
    what was shown, less refunds and costs where they count. PolicyError says that a policy of the user's own raised an
    error.
    """
    with blamed(policy, setting.n_actions):
        call = live_call(policy, setting, world, horizon, **parts)
        found: Floats = call.loop(*call.arguments)
    return found
