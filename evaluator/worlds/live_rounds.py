"""Rounds drawn live: a world as a source of displays of the one loop (`evaluator.engine.loop`).

Audits and simulations play it. What differs between them are parts that may be None: rounds drawn before, vectors
drawn anew each round, sets of eligible actions, refunds and costs, and what is counted, which is either weighted sums
of what the rounds are expected to earn or the regret.

The world's stream gives the numbers of a round whatever the policy does: policies that differ in the action still share
the round's luck, and as each sees the outcome of one action only, its law is as if each action had luck of its own.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine import loop
from evaluator.engine.eligible_choice import any_action, begin_with_key, choice_at, listed
from evaluator.engine.kernels.argmax import LOWEST_FIRST
from evaluator.engine.kernels.compiling import LoopCall, inlinable
from evaluator.engine.pending import nothing_pending
from evaluator.engine.pushes import PushTimes
from evaluator.policies.base import Setting
from evaluator.policies.running import blamed, has_random_ties, loop_for, reward_unit
from evaluator.replays.rounds.stream import Batch, EligibleActions
from evaluator.units import NO_WINDOW
from evaluator.worlds.live_parts import (
    Floats,
    FreshVectors,
    Ints,
    LiveExploration,
    LiveMoney,
    LiveRounds,
    LiveWorld,
    MoneyWeights,
    Regrets,
    count_fate,
    count_regret,
    count_round,
    rates_at,
)


class Drawn(NamedTuple):
    """Displays that are drawn one by one; parts that a run has not are None, and nothing is compiled for them.

    The batch of the loop holds what can be drawn: a display for each entry of the world, or for each part of the run
    with the same eligible actions, the number of rounds before which is in `starts`, increasing, the first 0, shape
    (parts,), empty where there are none. A round writes its action and its events there, of which only those that will
    be told.

    The first rounds it `explores`, where that is not None.

    `begins` is the place among the arrivals where the run begins, shape (1,), -1 before it is drawn; a run whose `pace`
    is not 0 goes through so many arrivals a round from there on, and others through one after the other, again from the
    first one where they end; `sums` the weighted sums of what the
    rounds so far were expected to earn, shape (C,).
    """

    world: LiveWorld
    rounds: LiveRounds | None
    fresh: FreshVectors | None
    random_ties: bool
    starts: Ints
    money: LiveMoney | None
    weights: Floats | None
    of_money: MoneyWeights | None
    regrets: Regrets | None
    explores: LiveExploration | None
    begins: Ints
    pace: float
    sums: Floats


class LiveStreams(NamedTuple):
    """Random streams of a live run: the policy's own, and that of the world, its luck."""

    # Not of the source: Numba would look at all of its arrays in Python at each call, for the sake of the generator.
    own: np.random.Generator
    luck: np.random.Generator


def _next_drawn(
    source: Drawn,
    state: Any,
    streams: LiveStreams,
    batch: Batch,
    i: int,
    horizon: int,
    progress: loop.Counters,
    choices: Any,
) -> int:
    """Draw the next round, let the policy choose, and write what comes of it; return the number of its display."""
    world, money, t = source.world, source.money, progress[loop.ROUNDS] + 1
    if t == 1 and source.begins[0] < 0:
        source.begins[0] = _first_arrival(world, source.rounds, streams.luck)
    entry, at_time, converts, wait, worth = _draw_round(
        world, source.rounds, source.fresh, streams.luck, source.begins[0], source.pace, t
    )
    i = entry if source.starts.shape[0] == 0 else _part_of(source.starts, i - 1, t)
    key = LOWEST_FIRST
    if progress[loop.PREPARED] == 0:
        key = begin_with_key(state, streams.own, batch.eligible, source.random_ties)
        progress[loop.PREPARED] = 1
    rates = rates_at(world, source.fresh, entry)
    action = _choose(state, streams.own, batch, i, entry, key, rates, source.explores, t)
    batch.action[i] = action
    rate = rate_of(world, rates, action, at_time)
    law = world.law[action] if world.law.shape[0] > 0 else 0
    count_round(source.sums, source.weights, source.of_money, law, t, action, rate)
    end = _note_cost(batch, money, t, action)
    sold, step = converts < rate, world.tau.shape[1]
    if sold or world.zeros:
        step = int(np.searchsorted(world.tau[law], wait, side="right"))
        delay = _delay_of(world, at_time, step)
        comes = 0 <= delay <= world.reach and t + delay <= horizon
        if comes:
            end = _note(batch, end, delay, _value_of(world, money, t, action, worth) if sold else 0.0)
        if sold:
            count_fate(source.regrets, action, wait, comes)
        else:
            step = world.tau.shape[1]
    batch.first_conversion[i] = 0
    batch.first_conversion[i + 1] = _note_events(batch, end, world, money, t, horizon, at_time, action, step, worth)
    count_regret(source.regrets, world, rates, i, t, action)
    return i


loop.add_source(Drawn, _next_drawn)


@inlinable
def _choose(
    state: Any,
    own: np.random.Generator,
    batch: Batch,
    i: int,
    entry: int,
    key: int,
    rates: Floats,
    explores: LiveExploration | None,
    t: int,
) -> int:
    """Return the policy's choice in round t, or, in those that explore, what is shown instead."""
    if explores is not None and t <= explores.rounds:
        return _explored(explores.chances, explores.temperature, own, batch.eligible, i, entry, rates)
    return int(choice_at(state, batch.vectors, batch.eligible, i, key, rates.shape[0]))


@inlinable
def _explored(
    chances: Floats | None,
    temperature: float,
    own: np.random.Generator,
    eligible: EligibleActions | None,
    i: int,
    entry: int,
    rates: Floats,
) -> int:
    """Return any action, or one that the logging policy draws by its `chances`, of those that are eligible."""
    if chances is None:
        return any_action(own, np.arange(rates.shape[0]), eligible, i)
    there = np.arange(rates.shape[0]).astype(np.int32) if eligible is None else listed(eligible, i)
    own_chances, edges = chances[entry if chances.shape[0] > 1 else 0], np.zeros(there.shape[0])
    total = 0.0
    for j in range(there.shape[0]):
        weight = own_chances[there[j]]
        if temperature > 0.0:
            weight *= math.exp((rates[there[j]] - 1.0) / temperature)
        total += weight
        edges[j] = total
    at = int(np.searchsorted(edges, own.random() * total, side="right"))
    return int(there[min(at, there.shape[0] - 1)])


@inlinable
def _note(batch: Batch, end: int, delay: int, value: float) -> int:
    """Write an event of the round behind those before; return where the next one goes."""
    batch.delay[end] = delay
    batch.value[end] = value
    return end + 1


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
    pace: float,
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
    if pace > 0.0:
        at_time = min(begins + int((t - 1) * pace), world.times.shape[0] - 1)
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
def _part_of(starts: Ints, part: int, t: int) -> int:
    """Return the number of the part of round t, given that of the round before; -1 before the first."""
    return part + 1 if part + 1 < starts.shape[0] and t > starts[part + 1] else part


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
def _note_cost(batch: Batch, money: LiveMoney | None, t: int, action: int) -> int:
    """Write what the display of round t costs, where the policy is told; return where the next event goes."""
    if money is None:
        return 0
    if money.costs.shape[0] == 0:
        return 0
    cost = _drawn(money.costs, money.costs_first, action, money.luck[t - 1, 2])
    return _note(batch, 0, 0, -cost) if cost > 0.0 else 0


@inlinable
def _note_events(
    batch: Batch,
    end: int,
    world: LiveWorld,
    money: LiveMoney | None,
    t: int,
    horizon: int,
    at_time: int,
    action: int,
    sale: int,
    worth: float,
) -> int:
    """Write the refund of the sale of round t, and its other events, if they are ever told; return where these end.

    The sale is a step of tau, and beyond them where nothing sold.
    """
    if money is None:
        return end
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
            end = _note(batch, end, delay, _drawn(events.value, events.first[e], action, uniform))
    return end


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
    eligible: EligibleActions | None = None,
    starts: Ints | None = None,
    money: LiveMoney | None = None,
    weights: Floats | None = None,
    of_money: MoneyWeights | None = None,
    regrets: Regrets | None = None,
    pushes: PushTimes | None = None,
    begins: int = -1,
    explores: LiveExploration | None = None,
) -> LoopCall:
    """Return the call that lets a policy play live; parameters are those of `play_live`."""
    unit = reward_unit(policy, setting)
    if unit != 1.0:
        world = world._replace(values=world.values / unit)
        money = None if money is None else money.in_unit(unit)
    vectors = fresh.vectors[None] if fresh is not None and fresh.shown else world.vectors
    displays = len(world.rates) if eligible is None else len(eligible.of)
    # A round has a sale, what comes beside it, and a cost, which is told at once.
    later = 1 if money is None else 1 + len(money.events.longest)
    batch = Batch(
        np.zeros(displays, np.int32), vectors, np.zeros(displays + 1, np.int64), np.zeros(later + 1, np.int64),
        np.zeros(later + 1), eligible,
    )  # fmt: skip
    source = Drawn(
        world, rounds, fresh, has_random_ties(policy), np.zeros(0, np.int64) if starts is None else starts, money,
        weights, of_money, regrets, explores, np.full(1, begins), 0.0 if begins < 0 else 1.0 / world.share,
        np.zeros(0 if weights is None else len(weights)),
    )  # fmt: skip
    reach = world.reach + (0 if pushes is None else pushes.waits(horizon))
    pending = nothing_pending(later * (reach + 1) + 1, vectors.shape[2], reach=reach)
    step = loop_for(policy, loop.replay, loop.replay_uncached, loop.replay_interpreted)
    state = policy.start(setting)
    return LoopCall(
        policy.name,
        step,
        (
            state,
            LiveStreams(own, luck),
            batch,
            source,
            NO_WINDOW,
            horizon,
            pending,
            loop.no_progress(),
            None,
            None,
            None if pushes is None else pushes.begin(horizon, vectors.shape[2]),
        ),
    )


def play_live(policy: Any, setting: Setting, world: LiveWorld, horizon: int, **parts: Any) -> Floats:
    """Let a policy play live on rounds drawn from a world, T of them; it is told `setting` before the first.

    Further parts are those of `live_call`, None where a run has none: ``own`` and ``luck``, random streams of the
    policy and of the world; ``rounds`` drawn before; ``fresh`` vectors; ``eligible`` actions, one set an entry of the
    world, or one a part of the run, with the number of rounds before each in ``starts``; ``money``; ``weights`` of the
    T rounds in C sums, by the delay law of what is shown, shape (C, R, T), R = 1 where all laws are alike, and
    ``of_money``; ``regrets``, into which the regret is noted; ``pushes`` at which the policy
    learns, the first rounds that it ``explores``, and the place among the arrivals where a run ``begins`` that goes
    through them at the pace of its share.

    It returns the weighted rewards, shape (C,): sum over the rounds s of weights[c, s] times the conversion rate of
    what was shown, less refunds and costs where they count. PolicyError says that a policy of the user's own raised an
    error.
    """
    with blamed(policy, setting.n_actions):
        call = live_call(policy, setting, world, horizon, **parts)
        call.loop(*call.arguments)
    source: Drawn = call.arguments[3]
    return source.sums
