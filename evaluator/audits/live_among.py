"""Live runs in which each round has its own eligible actions, on their calendar where they have one.

A replay of a log whose eligible actions move with time accepts a share of its displays and passes through the whole of
the calendar with them. So does a live run here: its T rounds are a random T of the displays of a twin, in their order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.audits.estimand import ClaimsByLaw
from evaluator.audits.live import ContextPool, count_round, live_round, rate_of, rings
from evaluator.audits.live_money import NO_MONEY, LiveMoney, in_unit
from evaluator.audits.truth import LogTruth
from evaluator.audits.twin_sets import TwinSets
from evaluator.kernels.argmax import LOWEST_FIRST, tie_key
from evaluator.kernels.compiling import compiled, compiled_uncached
from evaluator.kernels.memory import borrowed
from evaluator.log.eligible import to_codes
from evaluator.policies.base import Setting
from evaluator.policies.dispatch import begin_among, displayed
from evaluator.policies.running import blamed, has_random_ties, loop_for, reward_unit
from evaluator.replays.loop.among import best_among, own_vector
from evaluator.replays.rounds.batch import EligibleActions, read_only_sets
from evaluator.replays.rounds.eligible_actions import eligible_actions
from evaluator.simulations.ring import RoundRing

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class LiveRounds(NamedTuple):
    """What the rounds of a run are, before anything is chosen.

    Parameters
    ----------
    entry
        Entry of the pool of each round, shape (T,).
    at_time
        Place of each round in the arrival times of the pool, shape (T,); zeros where tau counts rounds.
    luck
        Uniform numbers of each round, shape (T, 3): whether it converts, how late, and what that is worth.
    share
        Share of a twin at which each round is, shape (T,); zeros where sets do not move with time.
    """

    entry: Ints
    at_time: Ints
    luck: Floats
    share: Floats


class LiveSpan(NamedTuple):
    """How long a run on a calendar is, and which displays of a twin its rounds are among: the first and the last."""

    rounds: int
    first: int
    last: int


def draw_rounds(
    rng: np.random.Generator, rounds: int, sets: TwinSets, pool: ContextPool, *, displays: int, span: LiveSpan
) -> LiveRounds:
    """Return the rounds of a live run.

    Parameters
    ----------
    rng
        Random stream of the world.
    rounds
        Number of rounds T.
    sets
        Sets of the entries.
    pool
        What the rounds are drawn from.
    displays
        Number of displays of a twin.
    span
        Displays that the run is among, and how many of them it shows, T at least, where sets move with time.
    """
    begins = rng.random()
    # A row a round: runs of different lengths begin alike.
    uniform = rng.random((rounds, 4))
    in_time = len(pool.times) > 0
    at_time = np.zeros(rounds, np.int64)
    if not sets.moving:
        if in_time:
            width = pool.last - pool.first
            at_time = pool.first + (int(begins * width) + np.arange(1, rounds + 1)) % width
        share = np.zeros(rounds)
        return LiveRounds(sets.entries(share, uniform[:, 3]), at_time, uniform[:, :3], share)
    shown = np.sort(rng.choice(span.last - span.first + 1, span.rounds, replace=False))[:rounds] + span.first
    if in_time:
        at_time = int(begins * (len(pool.times) - displays + 1)) + shown
    share = shown / displays
    return LiveRounds(sets.entries(share, uniform[:, 3]), at_time, uniform[:, :3], share)


def _play(
    state: Any,
    own: np.random.Generator,
    pool: ContextPool,
    eligible: EligibleActions,
    random_ties: bool,
    entries: Ints,
    times: Ints,
    luck: Floats,
    weights: Floats,
    money: LiveMoney,
    ring: RoundRing,
    refunds: RoundRing,
) -> Floats:
    """Play one run; return sum over s of weights[c, r_s, s] rate_s, r_s the law, by c. O(T |E|) scores."""
    ring = borrowed(ring)
    refunds = borrowed(refunds)
    sums = np.zeros(weights.shape[0])
    horizon = entries.shape[0]
    for t in range(1, horizon + 1):
        entry, at_time = entries[t - 1], times[t - 1]
        begin_among(state, own)
        key = tie_key(own) if random_ties else LOWEST_FIRST
        action = int(best_among(state, pool.vectors[0], eligible, entry, key))
        vector = own_vector(pool.vectors[0], eligible, entry, action)
        displayed(state, vector, action)
        rate = rate_of(pool, entry, action, at_time)
        law = pool.law[action] if pool.law.shape[0] > 0 else 0
        count_round(sums, weights, money, law, t, action, rate)
        step = int(np.searchsorted(pool.tau[law], luck[t - 1, 1], side="right")) if luck[t - 1, 0] < rate else -1
        live_round(state, pool, money, ring, refunds, t, horizon, at_time, action, vector, step, luck[t - 1, 2])
    return sums


_compiled = compiled(_play)
_compiled_uncached = compiled_uncached(_play)


def eligible_in_pool(pool: ContextPool, sets: TwinSets) -> tuple[ContextPool, EligibleActions]:
    """Return the pool with its vectors as rows, shape (1, rows, d), and the eligible actions of its entries."""
    playable = sets.truths.sum(axis=0) > 0
    vectors, eligible = eligible_actions(to_codes(sets.column), playable, pool.vectors, None)
    return pool._replace(vectors=np.ascontiguousarray(vectors)), read_only_sets(eligible)


def play_among(
    policy: Any,
    setting: Setting,
    pool: ContextPool,
    eligible: EligibleActions,
    rounds: LiveRounds,
    weights: Floats,
    *,
    own: np.random.Generator,
    money: LiveMoney = NO_MONEY,
) -> Floats:
    """Let a policy play live where each round has its own eligible actions.

    Parameters
    ----------
    policy, setting
        The policy that plays, and what it is told before its first round.
    pool, eligible
        What rounds are drawn from, as `eligible_in_pool` returns it.
    rounds
        Rounds of the run.
    weights
        Weights of what is claimed, by law and round, shape (C, R, T), as `evaluator.audits.live.play_in_pool` takes
        them; this returns the same.
    own
        Random stream of the policy.
    money
        Refunds and costs of the rounds, with their luck.
    """
    step = loop_for(policy, _compiled, _compiled_uncached, _play)
    unit = reward_unit(policy, setting)
    pool, money = pool._replace(values=pool.values / unit), in_unit(money, unit)
    ring, refunds = rings(pool, money)
    random_ties = has_random_ties(policy)
    with blamed(policy, setting.n_actions):
        found: Floats = step(
            policy.start(setting), own, pool, eligible, random_ties, rounds.entry, rounds.at_time, rounds.luck, weights,
            money, ring, refunds,
        )  # fmt: skip
    return found


def logger_value(
    truth: LogTruth,
    claim: ClaimsByLaw,
    rounds: LiveRounds,
    pool: ContextPool,
    weights: Floats,
    money: LiveMoney = NO_MONEY,
) -> Floats:
    """Return the weighted rewards of a run of the logging policy on a calendar, shape (C,), known without playing.

    Parameters
    ----------
    truth, claim
        The truth, whose sets move with time, and what is claimed of the logging policy.
    rounds
        Rounds of the run.
    pool
        What the rounds are drawn from.
    weights
        Weights of what is claimed, by law and round, shape (C, R, T).
    money
        Refunds and costs of the rounds.
    """
    assert truth.sets is not None
    sets, block = truth.sets, truth.sets.block(rounds.share)

    factor = truth.hours.factor(pool.times[rounds.at_time])[:, None] if len(pool.by_hour) else 1.0

    def earned(of_law: Floats) -> Floats:
        expected = sets.by_block((truth.rates * truth.logger) @ of_law)[block] * truth.mean_value
        return np.asarray(expected * factor)

    of_law = np.eye(len(claim.of_laws))[claim.law]
    if claim.money is None:
        found: Floats = np.einsum("crt,tr->c", weights, earned(of_law))
        return found
    of_refunds = np.eye(len(claim.money.refunds.of_laws))[claim.money.refunds.law]
    sold = np.einsum("crt,tr->c", weights, earned(of_law * claim.money.sold[:, None]))
    owed = np.einsum("crt,tr->c", money.refund_weights, earned(of_refunds * claim.money.owed[:, None]))
    cost = sets.by_block(truth.logger @ claim.money.cost[:, None])[block, 0] * truth.mean_value
    return np.asarray(sold - owed - money.display_weights @ cost)
