"""The loop of a live run: compiled for built-in states, and the same source interpreted for Python policies.

The world's stream gives, each round: the K x d coordinates of the action vectors if there are any, one uniform for the
reward, one for the delay. The two serve all actions of the round: a policy sees the outcome of one of them only, so
its law is as if each had its own, and policies that differ in the action still share the round's luck. A zero that is
told takes the round's delay, as a conversion would have.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.argmax import LOWEST_FIRST, tie_key
from evaluator.kernels.compiling import compiled, compiled_uncached, inlinable
from evaluator.kernels.memory import borrowed
from evaluator.policies.dispatch import begin_among, choose, collected, converted, displayed, prepare
from evaluator.replays.loop.among import best_among
from evaluator.replays.rounds.batch import EligibleActions
from evaluator.simulations.ring import RoundRing, keep, next_revealed, reveal_later, rounds_since

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class LiveWorld(NamedTuple):
    """What the rounds are drawn from, the same for every run.

    Parameters
    ----------
    means
        Conversion rates of a Bernoulli problem, shape (K,); of a linear one, taken anew each round.
    tau
        Delay CDFs tau_a for a = 0, ..., reach, one row a delay law, shape (laws, reach + 1); reach is the longest delay
        in rounds that is ever revealed, within the window and the horizon.
    row
        Row of each action in `tau`, shape (K,).
    ever, within
        Share of each action's conversions that ever come, and that come within the window, shape (K,).
    dimension
        Length d of the contexts; 0 without contexts.
    shown
        Length of the vectors that the policy is shown: d, or 0 for a policy that reads none.
    zeros
        Whether the policy is told of each zero reward too, after a delay of the same law, as a conversion of value 0.
    horizon
        Number of rounds T of a run.
    checkpoints
        Rounds after which the regret is noted, increasing, the last T, shape (C,).
    """

    means: Floats
    tau: Floats
    row: Ints
    ever: Floats
    within: Floats
    dimension: int
    shown: int
    zeros: bool
    horizon: int
    checkpoints: Ints


class Calendar(NamedTuple):
    """Which actions are eligible when, where they come and go.

    Parameters
    ----------
    start
        Number of rounds that are over when each part begins, increasing, the first 0, shape (parts,).
    there
        Which actions are eligible in each part, shape (parts, K).
    eligible
        Sets of the parts as the loops of replays read a display's.
    random_ties
        Whether equal scores go by a random order of the round's.
    """

    start: Ints
    there: npt.NDArray[np.bool_]
    eligible: EligibleActions
    random_ties: bool


class RunOutcome(NamedTuple):
    """What a run leaves: both regrets at the checkpoints, shape (C,); conversions by fate, see `COUNTS`."""

    regret: Floats
    observed: Floats
    counts: Ints


# generated = delivered + pending + expired + lost.
COUNTS = ("generated", "delivered", "pending", "expired", "lost")
_GENERATED, _DELIVERED, _PENDING, _EXPIRED, _LOST = range(5)


def _play(
    state: Any,
    own: np.random.Generator,
    luck: np.random.Generator,
    world: LiveWorld,
    ring: RoundRing,
    calendar: Calendar | None,
) -> RunOutcome:
    """Play one run; `ring` is empty, `calendar` None where all actions always are eligible."""
    ring = borrowed(ring)
    means, tau, row, ever = world.means, world.tau, world.row, world.ever
    k_all = means.shape[0]
    size = tau.shape[1]
    reach = size - 1
    # What the best action would have brought, less what the one played did, by delay law.
    gaps = np.zeros((tau.shape[0], size))

    drawn = np.zeros((k_all if world.dimension > 0 else 1, world.dimension))
    vectors = drawn if world.shown > 0 else np.zeros((1, 0))
    rates = means.copy()
    played = RunOutcome(
        np.zeros(world.checkpoints.shape[0]), np.zeros(world.checkpoints.shape[0]), np.zeros(5, np.int64)
    )
    counts = played.counts
    regret = 0.0
    settled = 0.0
    noted = 0
    part = 0
    for t in range(1, world.horizon + 1):
        if world.dimension > 0:
            _draw_vectors(luck, drawn, rates)
        converts = luck.random()
        wait = luck.random()

        if calendar is None:
            prepare(state, own)
            action = int(choose(state, vectors))
            if action < 0 or action >= k_all:
                raise ValueError("the policy chose an impossible action")
            displayed(state, vectors, action)
        else:
            part = _part_of(calendar, part, t)
            begin_among(state, own)
            key = tie_key(own) if calendar.random_ties else LOWEST_FIRST
            action = int(best_among(state, vectors, calendar.eligible, part, key))
            r = action if world.shown > 0 else 0
            displayed(state, vectors[r : r + 1], action)

        at = keep(ring, t, action, vectors, action)
        # A zero that is told takes the way of a conversion, and is counted as none.
        one = 1 if converts < rates[action] else 0
        if one == 1 or world.zeros:
            counts[_GENERATED] += one
            if wait >= ever[action]:
                counts[_LOST] += one
            elif wait >= world.within[action]:
                counts[_EXPIRED] += one
            else:
                delay = int(np.searchsorted(tau[row[action]], wait, side="right"))
                if delay > reach or t + delay > world.horizon:
                    counts[_PENDING] += one
                else:
                    reveal_later(ring, at, t + delay, one)
        total = 0.0
        shown = next_revealed(ring, at)
        while shown >= 0:
            value = ring.value[shown]
            total += value
            counts[_DELIVERED] += int(value)
            converted(state, ring.vector[shown], ring.action[shown], rounds_since(ring, shown, t), value)
            shown = next_revealed(ring, at)
        collected(state, total)

        best = action
        if calendar is None:
            for k in range(k_all):
                if rates[k] * ever[k] > rates[best] * ever[best]:
                    best = k
        else:
            for k in range(k_all):
                if calendar.there[part, k] and rates[k] * ever[k] > rates[best] * ever[best]:
                    best = k
        regret += rates[best] * ever[best] - rates[action] * ever[action]
        gaps[:, at] = 0.0
        gaps[row[best], at] += rates[best]
        gaps[row[action], at] -= rates[action]
        # At this age all of a pull's conversions that are ever revealed have been.
        if t > reach:
            for r in range(tau.shape[0]):
                settled += gaps[r, (t - reach) % size] * tau[r, reach]
        if world.checkpoints[noted] == t:
            played.regret[noted] = regret
            played.observed[noted] = settled
            for r in range(tau.shape[0]):
                played.observed[noted] += _revealed(gaps[r], tau[r], at, min(reach, t))
            noted += 1
    return played


@inlinable
def _part_of(calendar: Calendar, part: int, t: int) -> int:
    """Return the number of the part that round t is in, given that of the round before."""
    return part + 1 if part + 1 < calendar.start.shape[0] and t > calendar.start[part + 1] else part


@inlinable
def _draw_vectors(luck: np.random.Generator, drawn: Floats, rates: Floats) -> None:
    """Draw the round's vectors and their rates <a, theta>."""
    d = drawn.shape[1]
    for k in range(drawn.shape[0]):
        total = 0.0
        squares = 0.0
        for i in range(d):
            x = luck.random()
            drawn[k, i] = x
            total += x
            squares += x * x
        length = math.sqrt(squares)
        for i in range(d):
            drawn[k, i] /= length
        # Equal coordinates give 1 up to rounding.
        rates[k] = min(total / (length * math.sqrt(d)), 1.0)


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


play = compiled(_play)
play_uncached = compiled_uncached(_play)
play_interpreted = _play
