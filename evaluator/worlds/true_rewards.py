"""What is true of a world: expected rewards of its actions, and the laws of a scenario in time as live runs draw it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.special import erf

from evaluator.delays.laws import DelayLaw
from evaluator.errors import ParameterError
from evaluator.log.eligible import pack, unpack
from evaluator.log.log_tables import REFUNDS, EventKind
from evaluator.log.schema import ELIGIBLE
from evaluator.log.vectors_of_displays import display_vectors
from evaluator.policies.static import FixedAction, LoggingPolicy, RandomPolicy
from evaluator.streams import Stream, random_stream
from evaluator.units import SECONDS
from evaluator.worlds.arrivals import HourFactors, hour_of_day, read_traffic
from evaluator.worlds.disk_column import taken
from evaluator.worlds.event_laws import ActionPools, DelayLaws, EventLaw, LogCosts, TwinMoney
from evaluator.worlds.logger import BLOCK, TwinSets
from evaluator.worlds.scenarios.problem import (
    TICK,
    LinearProblem,
    Problem,
    action_sets,
    draw_log,
    eligible_rounds,
    logging_chances,
    rates_of,
    scenario_laws,
)
from evaluator.worlds.scenarios.promotions import Promotions
from evaluator.worlds.scenarios.scenario import ScenarioArrivals, flight_parts
from evaluator.worlds.truth import LogTruth, pool_entries

if TYPE_CHECKING:
    from evaluator.worlds.criteo.parameters import TwinParameters

Floats = npt.NDArray[np.float64]
# Rounds whose vectors are drawn where a logging policy follows them, and numbers of them at most.
_DRAWN, _NUMBERS = 200_000, 10_000_000
# Quantiles of a law at which delays are drawn.
_QUANTILES = 20_000


@dataclass(frozen=True, eq=False)
class TrueReward:
    """What a policy that does not learn is expected to earn.

    Parameters
    ----------
    policy
        Spec of the policy.
    value
        Expected reward per round: all that ever comes of it, less refunds and what its display costs.
    standard_error
        Standard error of `value`; 0 where it is known exactly, as everywhere but for a logging policy that follows
        vectors which every round draws anew.
    cost
        What a display costs on average, which is taken off already; 0 without costs.
    shown
        Share of the rounds in which each action is shown, shape (K,).
    by_action
        Expected reward of the rounds that show each action, shape (K,); nan where it is never shown.
    by_context
        Expected reward in each context, shape (P,): of the displays of a scenario's own log where it is in time, or of
        those of a log that a fitted world draws contexts from; one entry where there are none.
    """

    policy: str
    value: float
    standard_error: float
    cost: float
    shown: Floats
    by_action: Floats
    by_context: Floats

    def __repr__(self) -> str:
        return f"TrueReward({self.policy!r}, value={self.value:.6g})"


class TrueRewards(NamedTuple):
    """Expected rewards of all actions in all contexts of a world."""

    weights: Floats  # (P,) share of the rounds that each context has
    rewards: Floats  # (P, K) before the cost of the display
    eligible: npt.NDArray[np.bool_]  # (P, K)
    logger: Floats  # (P, K) chance that the logging policy shows each action
    costs: Floats  # (K,) of a display of each action
    labels: Sequence[str]  # of the K actions
    drawn: bool = False  # whether contexts are a sample of those that rounds have, so that means have errors

    def of(self, policy: FixedAction | LoggingPolicy | RandomPolicy) -> TrueReward:
        """Return what a policy earns; a fixed action that is not eligible gives way to all that are, alike."""
        chances = self.eligible / self.eligible.sum(axis=1, keepdims=True)
        if isinstance(policy, LoggingPolicy):
            chances = self.logger
        elif isinstance(policy, FixedAction):
            k = policy.on_actions(self.labels).index
            if k >= len(self.labels):
                raise ParameterError(
                    f"{policy.spec}: the world has {len(self.labels)} actions.",
                    remedy=f"take 0 to {len(self.labels) - 1}, or a label.",
                )
            chances = np.where(self.eligible[:, [k]], np.arange(len(self.labels)) == k, chances)
        earned, shown = chances * (self.rewards - self.costs), self.weights @ chances
        by_context = earned.sum(axis=1)
        brings = self.weights @ earned
        return TrueReward(
            policy=policy.spec,
            value=float(self.weights @ by_context),
            standard_error=float(by_context.std(ddof=1) / len(by_context) ** 0.5) if self.drawn else 0.0,
            cost=float(shown @ self.costs),
            shown=shown,
            by_action=np.divide(brings, shown, out=np.full(len(shown), np.nan), where=shown > 0),
            by_context=by_context,
        )


def of_problem(problem: Problem, rounds: int) -> TrueRewards:
    """Return the rewards of a problem's first rounds; a context is a part of them with the same eligible actions."""
    k = problem.n_actions
    starts = [part.start for part in flight_parts(problem.flights, k) if part.start < rounds]
    drawn = isinstance(problem, LinearProblem) and problem.temperature is not None
    if isinstance(problem, LinearProblem) and drawn:
        n = max(min(_DRAWN, _NUMBERS // (k * problem.dimension)), 2)
        rates = rates_of(action_sets(n, k, problem.dimension, random_stream(Stream.LIVE_WORLD, 0, 0)))
        # A round of each part in turn: what is eligible does not depend on the vectors.
        at = np.sort(np.arange(n) * rounds // n)
    else:
        mean = linear_mean(problem.dimension) if isinstance(problem, LinearProblem) else problem.means
        rates = np.broadcast_to(np.asarray(mean, np.float64), (len(starts), k))
        at = np.array(starts)
    eligible = eligible_rounds(problem, rounds)[at] if problem.flights else np.ones((len(at), k), np.bool_)
    logger = logging_chances(problem, rates) * eligible
    lengths = np.diff([*starts, rounds]) / rounds if not drawn else np.full(len(at), 1.0 / len(at))
    return TrueRewards(
        weights=lengths,
        rewards=rates * [law.reach for law in problem.laws],
        eligible=eligible,
        logger=logger / logger.sum(axis=1, keepdims=True),
        costs=np.zeros(k),
        labels=[str(i) for i in range(k)],
        drawn=drawn,
    )


def of_shop() -> TrueRewards:
    """Return the rewards of the shop; a context is a device and a country."""
    from evaluator.worlds import shop

    rewards = sum(shop.REVENUE) / 2 * shop.rates().reshape(-1, len(shop.BANNERS))
    return _generated(shop.shares().ravel(), rewards, np.full(rewards.shape, 1 / len(shop.BANNERS)), shop.BANNERS)


def of_criteo_twin(twin: TwinParameters, rows: int) -> TrueRewards:
    """Return the rewards of a twin with so many rows, each conversion on one row; contexts are those of its truth."""
    from evaluator.worlds.criteo.make import truth_of_rows
    from evaluator.worlds.criteo.rows import ids

    truth, once = truth_of_rows(twin, rows)
    labels = list(map(str, ids("campaign", np.arange(truth.joint.shape[1]))))
    return _generated(truth.context_share, truth.conversion_rate * once, truth.propensity, labels)


def _generated(weights: Floats, rewards: Floats, logger: Floats, labels: Sequence[str]) -> TrueRewards:
    every, free = np.ones(rewards.shape, np.bool_), np.zeros(len(labels))
    return TrueRewards(weights, rewards, every, logger, free, labels)


def linear_mean(dimension: int) -> float:
    """Return the mean of <x, theta> over x uniform on [0, 1]^d, scaled to unit length, and theta = 1/sqrt(d).

    It is sqrt(d) E[x_1 / |x|], where 1/|x| is the integral over s >= 0 of 2/sqrt(pi) exp(-s² |x|²).

    >>> round(linear_mean(1), 12), round(linear_mean(2), 6)
    (1.0, 0.916118)
    """
    if dimension == 1:
        return 1.0

    def at(s: float) -> float:
        own = -np.expm1(-s * s) / (2.0 * s * s)  # E[x exp(-s² x²)]
        other = np.pi**0.5 * erf(s) / (2.0 * s)  # E[exp(-s² x²)]
        return float(own * other ** (dimension - 1))

    return float(dimension**0.5 * 2.0 / np.pi**0.5 * (quad(at, 0.0, 1.0)[0] + quad(at, 1.0, np.inf)[0]))


def of_truth(truth: LogTruth) -> TrueRewards:
    """Return the expected rewards of all actions at each entry of the pool: all that ever comes, refunds taken off."""
    p, k = truth.rates.shape
    money, factors = truth.money, np.ones((1, 1))
    shares = np.ones(1)
    if truth.hours.by_hour is not None and truth.traffic is not None:
        if truth.moving:  # an entry has the hour of its display
            factors = truth.hours.factor(truth.traffic.times.take(np.arange(p) * truth.traffic.displays // p))[None]
        else:
            hours = np.zeros(len(truth.hours.by_hour))
            for _, times in truth.traffic.times.blocks():
                hours += np.bincount(hour_of_day(times, truth.hours.ticks), minlength=len(hours))
            shares, factors = hours / hours.sum(), truth.hours.by_hour[:, None]
    chance = sum(share * np.minimum(truth.rates * of[:, None], 1.0) for share, of in zip(shares, factors, strict=True))
    worth = np.full(k, truth.mean_value) if money is None else money.worth - money.owed
    return TrueRewards(
        weights=np.full(p, 1.0 / p) if truth.sets is None else truth.sets.entry_shares,
        rewards=chance * worth + (0.0 if money is None else money.brought),
        eligible=np.ones((p, k), np.bool_) if truth.sets is None else truth.sets.truths,
        logger=np.broadcast_to(truth.logger, (p, k)),
        costs=np.zeros(k) if money is None or money.costs is None else money.costs.means,
        labels=list(map(str, truth.actions["label"].to_pylist())),
    )


def known_truth(model: Problem | Promotions) -> LogTruth:
    """Return the truth of a scenario in time, given the times, contexts and eligible actions of its own log."""
    log = model.draw() if isinstance(model, Promotions) else draw_log(model)
    n, k = len(log), log.n_actions
    entries = pool_entries(n, k)
    traffic = model.scenario.arrivals if isinstance(model, Promotions) else model.arrivals
    assert traffic is not None
    expected = taken(log, entries, "expected_reward").astype(np.float64)
    truths, money = np.ones((len(entries), k), np.bool_), None
    if isinstance(model, Promotions):
        sale, refund, _ = scenario_laws(model.scenario, model.folder)
        price, refunded, weight = (
            np.array([getattr(promotion, name) for promotion in model.scenario.promotions], np.float64)
            for name in ("price", "refunded", "weight")
        )
        truths = unpack(log.take(entries, [ELIGIBLE])[ELIGIBLE], k)
        laws = laws_in_ticks([sale], k, traffic)
        own = ActionPools(price, np.arange(k + 1))
        rate = refunded * refund.reach
        refunds = EventLaw(
            EventKind(name=REFUNDS, reward=True, told=True), rate, ActionPools(-price, own.first),
            laws_in_ticks([refund], k, traffic), refund.source, after=laws, worth=own,
        )  # fmt: skip
        money = TwinMoney(own, refunds, LogCosts(log))
        rates, values, logger = expected / (price * (1.0 - rate)), price, weight * truths
    else:
        laws = laws_in_ticks(model.laws, k, traffic)
        rates, values = expected, np.ones(1)
        reach = np.array([law.reach for law in model.laws])
        logger = logging_chances(model, rates / np.where(reach > 0, reach, 1.0))
    vectors = display_vectors(log)
    if not isinstance(model, Promotions | LinearProblem):  # all displays are alike
        rates, logger, entries = rates[:1], logger[:1], entries[:1]
    return LogTruth(
        vectors=vectors,
        pool=None if vectors is None else taken(log, entries, vectors),
        rates=rates,
        logger=logger / logger.sum(axis=1, keepdims=True),
        values=values,
        laws=laws,
        cdf=laws.cdfs[0],
        hours=HourFactors(),
        displays=n,
        traffic=read_traffic(log, n),
        beyond=0,
        longest=None,
        actions=log.actions,
        meta=replace(log.meta, outcomes=(), fingerprint="", counts={}),
        said=("as the scenario says",),
        sets=None if truths.all() else TwinSets(pack(truths), truths, max(len(entries) // BLOCK, 1)),
        money=money,
    )


def laws_in_ticks(laws: Sequence[DelayLaw], n_actions: int, traffic: ScenarioArrivals) -> DelayLaws:
    """Return one law for all actions, or one an action, at evenly spaced quantiles, of the delays that come at all."""
    unit = round(SECONDS[traffic.delay_unit] / SECONDS[TICK])
    even = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    grid = np.unique(np.concatenate([law.draw(even * law.reach) for law in laws if law.reach > 0]))
    tau = np.stack([law(grid) / max(law.reach, 1e-300) for law in laws])
    tau[:, -1] = 1.0
    of_action = np.arange(n_actions) if len(laws) > 1 else np.zeros(n_actions, np.int64)
    return DelayLaws(grid * unit, tau, of_action, laws[0].source)
