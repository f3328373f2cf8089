"""The live runs of an audit: every policy plays as often as it was replayed, and is told what its replays were told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.audits.estimand import ClaimsByLaw
from evaluator.audits.fitted_truth import Fitted
from evaluator.audits.live import ContextPool, play_in_pool
from evaluator.audits.live_among import LiveSpan, draw_rounds, eligible_in_pool, logger_value, play_among
from evaluator.audits.live_money import NO_MONEY, LiveMoney, live_money
from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import TwinReplay
from evaluator.audits.truth import LogTruth
from evaluator.log.vectors_of_displays import target_vectors
from evaluator.policies.static import LoggingPolicy
from evaluator.replays.rounds.batch import EligibleActions
from evaluator.streams import Stream, random_stream
from evaluator.units import NO_WINDOW

# Live runs a twin: their error is then small beside that of the replays.
RUNS_PER_TWIN = 2

# Number of a run, and of its policy.
Task = tuple[int, int]
Floats = npt.NDArray[np.float64]


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
        self._moneys = [_money(truth, claim, t, common, options) for claim, t in zip(claimed, lengths, strict=True)]
        self._pools = [
            live_pool(truth, policy, claim, w.shape[2], [of[p] for of in told])
            for p, (policy, claim, w) in enumerate(zip(policies, claimed, self._weights, strict=True))
        ]
        self._eligible: list[EligibleActions] = []
        if truth.sets is not None:
            among = (eligible_in_pool(pool, truth.sets) for pool in self._pools)
            self._pools, self._eligible = map(list, zip(*among, strict=True))

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
        truth, options, claim, policy = self._truth, self._options, self._claimed[p], self._policies[p]
        told, weights, money = self.told[run % len(self.told)][p], self._weights[p], self._moneys[p]
        if isinstance(policy, LoggingPolicy) and not truth.moving:  # its rounds are alike: known without playing
            return _known(truth, claim, weights, money)
        own = random_stream(Stream.AUDIT_POLICY, options.seed, run)
        luck = random_stream(Stream.AUDIT_WORLD, options.seed, run)
        setting, pool = told.setting, self._pools[p]
        if truth.sets is not None:
            rounds = told.rounds[run // len(self.told) % len(told.rounds)]
            if truth.moving:  # a run of its own length, which is a share of the calendar
                weights = claimed_weights(claim, [rounds], min(self.common, rounds))
                money = _money(truth, claim, [rounds], min(self.common, rounds), options)
            span = LiveSpan(rounds, *told.arrivals)
            lived = draw_rounds(luck, weights.shape[2], truth.sets, pool, displays=truth.displays, span=span)
            if isinstance(policy, LoggingPolicy):
                return logger_value(truth, claim, lived, pool, weights, money)
            money = _with_luck(money, weights.shape[2], options.seed, run)
            live = play_among(policy, setting, pool, self._eligible[p], lived, weights, own=own, money=money)
            return live * truth.mean_value
        money = _with_luck(money, weights.shape[2], options.seed, run)
        return play_in_pool(policy, setting, pool, weights, own=own, luck=luck, money=money) * truth.mean_value


def _money(truth: LogTruth, claim: ClaimsByLaw, rounds: Sequence[int], common: int, options: AuditOptions) -> LiveMoney:
    if claim.money is None:
        return NO_MONEY
    return live_money(
        truth,
        claim,
        claimed_weights(claim.money.refunds, rounds, common),
        display_weights(rounds, common),
        told_costs=options.learn_from == "objective" and bool(claim.money.cost.any()),
    )


def _with_luck(money: LiveMoney, rounds: int, seed: int, run: int) -> LiveMoney:
    """Return it with uniform numbers of its rounds, from a stream of their own."""
    if not len(money.sold):
        return money
    # A row a round: runs of different lengths begin alike.
    return money._replace(luck=random_stream(Stream.AUDIT_LIVE_MONEY, seed, run).random((rounds, 3)))


def _known(truth: LogTruth, claim: ClaimsByLaw, weights: Floats, money: LiveMoney) -> Floats:
    """Return the value of the logging policy, shape (2,), whose rounds are alike."""
    of_sales = weights.sum(axis=2)[:, claim.law]
    if claim.money is None:
        return np.asarray(of_sales @ truth.logging_values)
    of_refunds = money.refund_weights.sum(axis=2)[:, claim.money.refunds.law]
    net = of_sales * claim.money.sold - of_refunds * claim.money.owed
    cost = float(truth.logger.mean(axis=0) @ claim.money.cost) * truth.mean_value
    return np.asarray(net @ truth.logging_values - money.display_weights.sum(axis=1) * cost)


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


def live_pool(truth: LogTruth, policy: Any, claim: ClaimsByLaw, rounds: int, told: Sequence[TwinReplay]) -> ContextPool:
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
        return ContextPool(vectors, truth.rates, truth.values, tau, reach, law=truth.laws.of_action)
    # A duration cuts the delays themselves, a window in rounds what they come to.
    cut = NO_WINDOW if claim.longest is None else claim.longest
    steps = int(np.searchsorted(truth.laws.grid, cut, side="right"))
    times = truth.traffic.times.mapped()
    # Where replays found their rounds: a twin is one stretch of the traffic.
    low, high = np.mean([one.arrivals for one in told], axis=0)
    first, last = round(float(low)), len(times) - truth.displays + round(float(high)) + 1
    return ContextPool(
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
