"""What a replay of a twin showed, and what is true of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.comparisons.differences import RealisedEvidence, in_order, weigh
from evaluator.estimates.confidence import Interval
from evaluator.log.schema import to_numpy
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.rewards import observed_rewards, reward_bounds
from evaluator.worlds.twins.estimand import ClaimsByLaw, MoneyClaim
from evaluator.worlds.twins.truth import LogTruth
from evaluator.worlds.twins.twin_log import TwinLog

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class ShownDisplays:
    """The displays that a replay showed, repeat by repeat, reduced to what differences of replays need.

    Parameters
    ----------
    plan, result, claim
        Plan of the replay, what it found, and what it claims.
    twin, truth
        Twin that was replayed, and its truth.
    common
        Rounds at which policies are compared, which all repeats have.
    """

    def __init__(
        self, plan: ReplayPlan, result: ReplayResult, claim: ClaimsByLaw, twin: TwinLog, truth: LogTruth, common: int
    ) -> None:
        self.plan, self.claim = plan, claim
        self._mean_value = truth.mean_value
        table = result.trajectory
        repeat = to_numpy(table["repeat"])
        bounds = np.searchsorted(repeat, np.arange(plan.options.repeats + 1))
        self.rounds = tuple(int(n) for n in np.diff(bounds))
        display, action, reward = (to_numpy(table[name]) for name in ("display_id", "action", "reward"))
        parts = [slice(low, high) for low, high in pairwise(bounds.tolist())]
        self.arrivals = (
            min((int(display[part].min()) for part in parts if part.stop > part.start), default=0),
            max((int(display[part].max()) for part in parts if part.stop > part.start), default=0),
        )
        rates = shown_rates(truth, twin, display, action) * truth.mean_value
        shown = [(rates[part], action[part]) for part in parts]
        self.realised = self._realised(shown, self.rounds)
        self.realised_at_common = self._realised(shown, [common for _ in parts])
        # In arrays of their own: the table is let go of.
        first = [slice(part.start, part.start + common) for part in parts]
        self.displays = [display[part].copy() for part in first]
        self.rewards = [
            observed_rewards(plan, display[part] - plan.before)
            if plan.options.reward == "observed"
            else reward[part].copy()
            for part in first
        ]

    def _realised(self, shown: Sequence[tuple[Floats, Ints]], rounds: Sequence[int]) -> float:
        """Return the mean expected reward of the first rounds of all repeats, of which rates and actions are known."""
        means = [self._mean(rates[:t], action[:t]) for t, (rates, action) in zip(rounds, shown, strict=True)]
        return float(np.average(means, weights=rounds)) if sum(rounds) else float("nan")

    def _mean(self, rates: Floats, action: Ints) -> float:
        """Return the mean expected reward of the first rounds of a repeat."""
        at, money = np.arange(len(rates)), self.claim.money
        weights = self.claim.weights(len(rates))[self.claim.law[action], at]
        if money is None:
            return float(weights @ rates)
        return self._net(weights, rates, action, money)

    def _net(self, weights: Floats, rates: Floats, action: Ints, money: MoneyClaim) -> float:
        """Return the mean of what rounds bring, less refunds and costs."""
        at, refunds = np.arange(len(rates)), money.refunds
        brought = weights @ (rates * money.sold[action])
        returned = refunds.weights(len(rates))[refunds.law[action], at] @ (rates * money.owed[action])
        return float(brought - returned - money.cost[action].sum() * self._mean_value / max(len(rates), 1))


def shown_rates(truth: LogTruth, twin: TwinLog, display: Ints, action: npt.NDArray[np.integer]) -> Floats:
    """Return the conversion probability of what was shown at some displays of a twin, shape (n,)."""
    entry, time = twin.drawn.entries_of(display), twin.drawn.times_of(display)
    return rates_at(truth, entry, action, time)


def rates_at(truth: LogTruth, entry: Ints, action: npt.NDArray[np.integer], time: Ints) -> Floats:
    """Return the conversion probability of some actions, each in an entry of the pool at a time, shape (n,)."""
    found: Floats = np.minimum(truth.rates[entry, action] * truth.hours.factor(time), 1.0)
    return found


class MeasuredDifference(NamedTuple):
    """A difference with its interval, the true number that it should hold, and its evidence; None without rounds."""

    interval: Interval
    true: float
    evidence: RealisedEvidence | None

    @property
    def held(self) -> bool:
        """Whether the interval holds the number."""
        return self.interval.low <= self.true <= self.interval.high


def measure(a: ShownDisplays, b: ShownDisplays, rounds: int) -> MeasuredDifference:
    """Return the difference of two values after the common rounds, whose number no outcome moves."""
    alpha = 1.0 - a.plan.options.level
    (low_a, high_a), (low_b, high_b) = reward_bounds(a.plan), reward_bounds(b.plan)
    lower, upper = min(low_a, low_b), max(high_a, high_b)
    if not rounds:
        return MeasuredDifference(
            Interval(float("nan"), lower - upper, upper - lower, 0, 1.0 - alpha, "no rounds"), float("nan"), None
        )
    evidence = weigh(
        a.displays,
        a.rewards,
        b.displays,
        b.rewards,
        rounds=rounds,
        lower=lower,
        upper=upper,
        ordered=in_order(a.plan, b.plan),
        shared=not a.claim.observed,
    )
    true = a.realised_at_common - b.realised_at_common
    return MeasuredDifference(evidence.interval(alpha), true, evidence)
