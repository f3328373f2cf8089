"""The live runs of an audit: every policy plays as often as it was replayed, and is told what its replays were told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.audits.estimand import ClaimsByLaw
from evaluator.audits.fitted_truth import Fitted
from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import TwinReplay
from evaluator.audits.truth import LogTruth
from evaluator.audits.twin_sets import TwinSets
from evaluator.log.eligible import to_codes
from evaluator.log.vectors_of_displays import target_vectors
from evaluator.policies.running import has_random_ties
from evaluator.policies.static import LoggingPolicy
from evaluator.replays.rounds.batch import EligibleActions, read_only_sets
from evaluator.replays.rounds.eligible_actions import eligible_actions
from evaluator.streams import Stream, random_stream
from evaluator.units import NO_WINDOW
from evaluator.worlds.live_counts import MoneyWeights
from evaluator.worlds.live_loop import play_live
from evaluator.worlds.live_parts import LiveMoney, LiveRounds, LiveSets, LiveWorld

# Live runs a twin: their error is then small beside that of the replays.
RUNS_PER_TWIN = 2

# Number of a run, and of its policy.
Task = tuple[int, int]
Floats = npt.NDArray[np.float64]


class LiveSpan(NamedTuple):
    """How long a run on a calendar is, and which displays of a twin its rounds are among: the first and the last."""

    rounds: int
    first: int
    last: int


class LiveRuns:
    """Live runs of the audited policies, on the truth that the twins were drawn from.

    Parameters
    ----------
    fitted, policies, options
        Truth, policies and options of the audit.
    told
        What the replays of each policy told, twin by twin.
    common
        Number of rounds at which policies are compared.
    """

    def __init__(
        self,
        fitted: Fitted,
        policies: Sequence[Any],
        options: AuditOptions,
        told: Sequence[tuple[TwinReplay, ...]],
        common: int,
    ) -> None:
        self.told, self.common = told, common
        self._truth, self._claimed = truth, claimed = fitted.truth, fitted.claimed
        # As planned on the log, which says what its actions are called.
        self._policies, self._options = [plan.policy for plan in fitted.plans], options
        lengths = [[t for of in told for t in of[p].rounds] for p in range(len(policies))]
        self._weights = [claimed_weights(claim, t, common) for claim, t in zip(claimed, lengths, strict=True)]
        self._of_money = [money_weights(claim, t, common) for claim, t in zip(claimed, lengths, strict=True)]
        self._moneys = [live_money(truth, claim, told_costs=_tells_costs(claim, options)) for claim in claimed]
        self._worlds = [
            live_world(truth, policy, claim, w.shape[2], [of[p] for of in told])
            for p, (policy, claim, w) in enumerate(zip(policies, claimed, self._weights, strict=True))
        ]
        self._eligible: list[EligibleActions] = []
        if truth.sets is not None:
            among = (eligible_in_world(world, truth.sets) for world in self._worlds)
            self._worlds, self._eligible = map(list, zip(*among, strict=True))

    @property
    def tasks(self) -> list[Task]:
        """All runs of all policies."""
        return [(run, p) for run in range(RUNS_PER_TWIN * len(self.told)) for p in range(len(self._policies))]

    @property
    def rounds(self) -> int:
        """Rounds of the longest run."""
        return int(max(w.shape[2] for w in self._weights))

    def value(self, task: Task) -> Floats:
        """Return the value of a run after its replays' rounds, and after the common ones, shape (2,)."""
        found = self._value(*task)
        if self._truth.traffic is not None:
            self._truth.traffic.times.forget()
        return found

    def _value(self, run: int, p: int) -> Floats:
        truth, seed, claim, policy = self._truth, self._options.seed, self._claimed[p], self._policies[p]
        told, weights, of_money = self.told[run % len(self.told)][p], self._weights[p], self._of_money[p]
        if isinstance(policy, LoggingPolicy) and not truth.moving:  # its rounds are alike: known without playing
            return _known(truth, claim, weights, of_money)
        own = random_stream(Stream.AUDIT_POLICY, seed, run)
        luck = random_stream(Stream.AUDIT_WORLD, seed, run)
        world, rounds, sets = self._worlds[p], None, None
        if truth.sets is not None:
            length = told.rounds[run // len(self.told) % len(told.rounds)]
            if truth.moving:  # a run of its own length, which is a share of the calendar
                common = min(self.common, length)
                weights, of_money = claimed_weights(claim, [length], common), money_weights(claim, [length], common)
            span = LiveSpan(length, *told.arrivals)
            rounds = draw_rounds(luck, weights.shape[2], truth.sets, world, displays=truth.displays, span=span)
            if isinstance(policy, LoggingPolicy):
                return logger_value(truth, claim, rounds, world, weights, of_money)
            sets = LiveSets(self._eligible[p], has_random_ties(policy))
        horizon, money = weights.shape[2], self._moneys[p]
        if money is not None:
            # A row a round: runs of different lengths begin alike.
            money = money._replace(luck=random_stream(Stream.AUDIT_LIVE_MONEY, seed, run).random((horizon, 3)))
        live = play_live(
            policy, told.setting, world, horizon,
            own=own, luck=luck, rounds=rounds, sets=sets, money=money, weights=weights, of_money=of_money,
        )  # fmt: skip
        return live * truth.mean_value


def _tells_costs(claim: ClaimsByLaw, options: AuditOptions) -> bool:
    return options.learn_from == "objective" and claim.money is not None and bool(claim.money.cost.any())


def live_money(truth: LogTruth, claim: ClaimsByLaw, *, told_costs: bool) -> LiveMoney | None:
    """Return refunds and costs of the live rounds of a policy, without luck; None where twins have neither.

    Parameters
    ----------
    truth, claim
        Truth that is lived on, and what is claimed of the policy.
    told_costs
        Whether the policy is told what displays cost.
    """
    money = truth.money
    if money is None or claim.money is None:
        return None
    in_time = truth.traffic is not None
    # A duration cuts the delays themselves; one that counts displays is cut by the window in rounds.
    longest = NO_WINDOW if claim.longest is None or not in_time else claim.longest
    nothing, nowhere = np.zeros(0), np.zeros(0, np.int64)
    found = LiveMoney(
        luck=np.zeros((0, 3)), rate=np.zeros(len(claim.money.sold)), kept=money.sold.flat, kept_first=money.sold.first,
        back=nothing, taken=nothing, back_first=nowhere, lag=np.zeros((0, 0)), lag_delays=nowhere, lag_law=nowhere,
        share=1.0, longest=NO_WINDOW, costs=nothing, costs_first=nowhere,
    )  # fmt: skip
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


def money_weights(claim: ClaimsByLaw, rounds: Sequence[int], common: int) -> MoneyWeights | None:
    """Return what counts of refunds and costs, as `claimed_weights`; None where twins have neither."""
    money = claim.money
    if money is None:
        return None
    refunds = claimed_weights(money.refunds, rounds, common)
    return MoneyWeights(money.sold, money.owed, money.cost, refunds, money.refunds.law, display_weights(rounds, common))


def _known(truth: LogTruth, claim: ClaimsByLaw, weights: Floats, money: MoneyWeights | None) -> Floats:
    """Return the value of the logging policy, shape (2,), whose rounds are alike."""
    of_sales = weights.sum(axis=2)[:, claim.law]
    if money is None:
        return np.asarray(of_sales @ truth.logging_values)
    of_refunds = money.refunds.sum(axis=2)[:, money.refund_law]
    net = of_sales * money.sold - of_refunds * money.owed
    cost = float(truth.logger.mean(axis=0) @ money.cost) * truth.mean_value
    return np.asarray(net @ truth.logging_values - money.displays.sum(axis=1) * cost)


def claimed_weights(claim: ClaimsByLaw, rounds: Sequence[int], common: int) -> Floats:
    """Return the weights of live rounds by delay law, shape (2, R, T).

    First those in the mean value after these numbers of rounds, then after the common one.
    """
    out = np.zeros((2, len(claim.of_laws), max(*rounds, common)))
    for t in rounds:
        out[0, :, :t] += claim.weights(t) / len(rounds)
    out[1, :, :common] = claim.weights(common)
    return out


def display_weights(rounds: Sequence[int], common: int) -> Floats:
    """Return the weights of live rounds in which what counts is known at once, shape (2, T): as `claimed_weights`."""
    out = np.zeros((2, max(*rounds, common)))
    for t in rounds:
        out[0, :t] += 1.0 / (max(t, 1) * len(rounds))
    out[1, :common] = 1.0 / max(common, 1)
    return out


def live_world(truth: LogTruth, policy: Any, claim: ClaimsByLaw, rounds: int, told: Sequence[TwinReplay]) -> LiveWorld:
    """Return what live rounds of a policy are drawn from, which was `told` so by its replays."""
    if not policy.contextual:
        vectors = np.zeros((1, 1, 0))
    elif policy.reads in truth.targets:
        vectors = target_vectors(truth.targets[policy.reads], truth.actions["label"].combine_chunks())
    elif truth.pool is None:
        from evaluator.log.schema import to_numpy

        vectors = to_numpy(truth.actions["features"]).astype(np.float64)[None]
    else:
        vectors = truth.pool.astype(np.float64)
        vectors = vectors[:, None, :] if vectors.ndim == 2 else vectors
    vectors = np.ascontiguousarray(vectors)
    if truth.traffic is None:
        tau = claim.tables(rounds)
        reach = tau.shape[1] - 1
        if truth.money is not None and truth.money.refunds is not None:  # which come later than the last sale
            reach = _reach(rounds, told)
        return LiveWorld(vectors, truth.rates, truth.values, tau, reach, law=truth.laws.of_action)
    # A duration cuts the delays themselves, a window in rounds what they come to.
    cut = NO_WINDOW if claim.longest is None else claim.longest
    steps = int(np.searchsorted(truth.laws.grid, cut, side="right"))
    times = truth.traffic.times.mapped()
    # Where replays found their rounds: a twin is one stretch of the traffic.
    low, high = np.mean([one.arrivals for one in told], axis=0)
    first, last = round(float(low)), len(times) - truth.displays + round(float(high)) + 1
    return LiveWorld(
        vectors=vectors,
        rates=truth.rates,
        values=truth.values,
        tau=np.ascontiguousarray(truth.laws.tau[:, :steps]),
        law=truth.laws.of_action,
        by_hour=np.zeros(0) if truth.hours.by_hour is None else truth.hours.by_hour,
        hour=truth.hours.ticks,
        reach=_reach(rounds, told),
        delays=np.array(truth.laws.grid[:steps]),
        times=times,
        first=first,
        last=max(last, first + 1),
        rate=truth.traffic.rate,
        share=claim.share,
    )


def _reach(rounds: int, told: Sequence[TwinReplay]) -> int:
    """Return the longest delay in rounds that these let a policy hear of."""
    return int(min(*(one.setting.window for one in told), max(rounds - 1, 0)))


def eligible_in_world(world: LiveWorld, sets: TwinSets) -> tuple[LiveWorld, EligibleActions]:
    """Return the world with its vectors as rows, shape (1, rows, d), and the eligible actions of its entries."""
    playable = sets.truths.sum(axis=0) > 0
    vectors, eligible = eligible_actions(to_codes(sets.column), playable, world.vectors, None)
    return world._replace(vectors=np.ascontiguousarray(vectors)), read_only_sets(eligible)


def draw_rounds(
    rng: np.random.Generator, rounds: int, sets: TwinSets, world: LiveWorld, *, displays: int, span: LiveSpan
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
    world
        What the rounds are drawn from.
    displays
        Number of displays of a twin.
    span
        Displays that the run is among, and how many of them it shows, T at least, where sets move with time.
    """
    begins = rng.random()
    # A row a round: runs of different lengths begin alike.
    uniform = rng.random((rounds, 4))
    in_time = len(world.times) > 0
    at_time = np.zeros(rounds, np.int64)
    if not sets.moving:
        if in_time:
            width = world.last - world.first
            at_time = world.first + (int(begins * width) + np.arange(1, rounds + 1)) % width
        share = np.zeros(rounds)
        return LiveRounds(sets.entries(share, uniform[:, 3]), at_time, uniform[:, :3], share)
    shown = np.sort(rng.choice(span.last - span.first + 1, span.rounds, replace=False))[:rounds] + span.first
    if in_time:
        at_time = int(begins * (len(world.times) - displays + 1)) + shown
    share = shown / displays
    return LiveRounds(sets.entries(share, uniform[:, 3]), at_time, uniform[:, :3], share)


def logger_value(
    truth: LogTruth,
    claim: ClaimsByLaw,
    rounds: LiveRounds,
    world: LiveWorld,
    weights: Floats,
    money: MoneyWeights | None,
) -> Floats:
    """Return the weighted rewards of a run of the logging policy on a calendar, shape (C,), known without playing.

    Parameters
    ----------
    truth, claim
        The truth, whose sets move with time, and what is claimed of the logging policy.
    rounds
        Rounds of the run.
    world
        What the rounds are drawn from.
    weights
        Weights of what is claimed, by law and round, shape (C, R, T).
    money
        What counts of refunds and costs.
    """
    assert truth.sets is not None
    sets, block = truth.sets, truth.sets.block(rounds.share)

    factor = truth.hours.factor(world.times[rounds.at_time])[:, None] if len(world.by_hour) else 1.0

    def earned(of_law: Floats) -> Floats:
        expected = sets.by_block((truth.rates * truth.logger) @ of_law)[block] * truth.mean_value
        return np.asarray(expected * factor)

    of_law = np.eye(len(claim.of_laws))[claim.law]
    if money is None:
        found: Floats = np.einsum("crt,tr->c", weights, earned(of_law))
        return found
    of_refunds = np.eye(money.refunds.shape[1])[money.refund_law]
    sold = np.einsum("crt,tr->c", weights, earned(of_law * money.sold[:, None]))
    owed = np.einsum("crt,tr->c", money.refunds, earned(of_refunds * money.owed[:, None]))
    cost = sets.by_block(truth.logger @ money.cost[:, None])[block, 0] * truth.mean_value
    return np.asarray(sold - owed - money.displays @ cost)
