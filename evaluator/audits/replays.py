"""One twin replayed: what the replays say, and what is true of the displays they showed and of the logging policy."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.audits.options import AuditOptions
from evaluator.comparisons.differences import RealisedEvidence, in_order, weigh
from evaluator.comparisons.run import plan_comparison
from evaluator.engine.log_replay import SamplerName
from evaluator.estimates.confidence import Interval
from evaluator.log import Log
from evaluator.log.reward_kinds import rewards_alone
from evaluator.log.schema import is_target, to_numpy
from evaluator.policies.base import Setting
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import plan_replay
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import ReplayRun, as_columns, estimate_repeat, replay_all, shown_columns, summarise_repeats
from evaluator.replays.values.rewards import References, observed_rewards, reward_bounds
from evaluator.worlds.disk_column import mean_in_blocks
from evaluator.worlds.live_policy import ClaimsByLaw, MoneyClaim, claims_of
from evaluator.worlds.truth import LogTruth, fit_log
from evaluator.worlds.twin_log import TwinLog, draw_twin, replay_seed

# Standard deviations of a number of accepted displays by which the common horizon stays below that of the first twin.
_SLACK = 4.0

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Makes the result of a replay that has been run.
Estimate = Callable[[], ReplayResult]


class IntervalAndTruth(NamedTuple):
    """An interval, and the number it is to hold."""

    interval: Interval
    true: float

    @property
    def held(self) -> bool:
        """Whether the interval holds the number."""
        return self.interval.low <= self.true <= self.interval.high


class TwinReplay(NamedTuple):
    """What the replay of one policy on one twin tells."""

    rounds: tuple[int, ...]  # of each repeat
    acceptance: float  # share of the displays
    arrivals: tuple[int, int]  # first and last of the twin's displays that are rounds, counted from 0
    value: IntervalAndTruth
    regret: IntervalAndTruth
    uplift: IntervalAndTruth
    setting: Setting  # that the policy would be told before its first round if it played live
    sampler: SamplerName


class TwinReplays(NamedTuple):
    """A twin's replays, one a policy; and the difference of each pair's values at the same number of rounds."""

    told: tuple[TwinReplay, ...]
    differences: tuple[MeasuredDifference, ...]
    horizon: int


class Fitted(NamedTuple):
    """The truth that all twins of an audit are drawn from, and the claims of their replays."""

    plans: list[ReplayPlan]
    truth: LogTruth
    claimed: list[ClaimsByLaw]


def fit(log: Log, policies: Sequence[Any], options: AuditOptions) -> Fitted:
    """Fit a truth to a log. What a replay of the log refuses, this refuses."""
    log = rewards_alone(log)  # of other outcomes an audit says nothing
    asked = options.of_replays(seed=options.seed)
    plans = plan_comparison(log, policies, [options.window], asked)
    targets = list(dict.fromkeys(policy.reads for policy in policies if is_target(policy.reads)))
    truth = fit_log(log, policies[0], asked, displays=options.displays, targets=targets)
    return Fitted(plans, truth, claims(truth, policies, options))


def claims(truth: LogTruth, policies: Sequence[Any], options: AuditOptions) -> list[ClaimsByLaw]:
    """Return what the replays of each policy claim; the same for all twins."""
    first = draw_twin(truth, seed=options.seed, twin=0, vectors=_reads_vectors(policies, options))
    plans = plan_comparison(first, policies, [truth.window or options.window], options.of_replays(seed=0))
    return [claims_of(truth, _live(plan, truth)) for plan in plans]


def twins_horizon(first: TwinReplays) -> int:
    """Return the rounds at which policies are compared, so few that all twins have them: fixed by the first of them."""
    fewest = min(t for told in first.told for t in told.rounds)
    return max(int(fewest - _SLACK * fewest**0.5), 1)


def replay_twin(
    truth: LogTruth,
    policies: Sequence[Any],
    options: AuditOptions,
    claimed: Sequence[ClaimsByLaw],
    twin: int,
    *,
    horizon: int | None,
) -> TwinReplays:
    """Draw a twin, whose number fixes its streams, and replay every policy on it as `evaluate compare` would.

    Policies are compared at `horizon` rounds; None takes the fewest that any has on this twin. `claimed` is what the
    replay of each policy claims.
    """
    log = draw_twin(truth, seed=options.seed, twin=twin, vectors=_reads_vectors(policies, options))
    seed = replay_seed(options.seed, twin)
    plans = plan_comparison(log, policies, [truth.window or options.window], options.of_replays(seed=seed))
    run = deque(execute_each(plans))
    fewest = min(t for rounds, _ in run for t in rounds)
    common = fewest if horizon is None else min(horizon, fewest)
    logging = LoggingValues(truth, log)
    told, found = [], []
    for plan, claim in zip(plans, claimed, strict=True):
        _, estimate = run.popleft()
        result = estimate()
        shown = ShownDisplays(plan, result, claim, log, truth, common)
        told.append(_told(shown, result, truth, logging))
        found.append(shown)
        del estimate, result  # before the next one is made
    return TwinReplays(
        told=tuple(told), differences=tuple(measure(a, b, common) for a, b in combinations(found, 2)), horizon=common
    )


def _reads_vectors(policies: Sequence[Any], options: AuditOptions) -> bool:
    return options.propensity == "estimate:context" or any(policy.contextual for policy in policies)


def _live(plan: ReplayPlan, truth: LogTruth) -> ReplayPlan:
    """Return the plan on the clock of a live run: the traffic's, which serves all of it.

    Where eligible actions move with time, the wall clock is that of a live run as well: on the share of the traffic
    that is accepted, which passes through the calendar as the replay does.
    """
    if plan.clock.kind == "traffic" or truth.moving:
        return plan
    return plan_replay(plan.log, plan.policy, replace(plan.options, clock="traffic"))


def _told(shown: ShownDisplays, result: ReplayResult, truth: LogTruth, logging: LoggingValues) -> TwinReplay:
    """Return what is kept of the replay."""
    plan, value = shown.plan, shown.realised
    counted, money = shown.claim.net(result.rounds), shown.claim.money
    cost = np.zeros(len(counted)) if money is None else money.cost * truth.mean_value
    best = truth.best_value(counted, cost)
    return TwinReplay(
        rounds=shown.rounds,
        acceptance=result.acceptance_rate,
        arrivals=shown.arrivals,
        value=IntervalAndTruth(result.value, value),
        regret=IntervalAndTruth(result.regret, result.rounds * (best - value)),
        uplift=IntervalAndTruth(result.uplift, value - logging.of(plan, counted, cost)),
        setting=_live(plan, truth).setting,
        sampler=plan.sampler,
    )


def execute_each(plans: Sequence[ReplayPlan]) -> list[tuple[tuple[int, ...], Estimate]]:
    """Run plans on one log in one scan of it; return the rounds of each plan's repeats, and what estimates it.

    What the rounds of a plan showed is looked up when it is estimated, which takes some 80 bytes a round, and a pass
    over a few columns. Results are those of `evaluator.replays.run.execute_all` without what weighs displays, values
    other outcomes or splits into groups, and without resampled logs.
    """
    runs = iter(replay_all(plans))
    references = References()
    found: list[tuple[tuple[int, ...], Estimate]] = []
    for plan in plans:
        own = [next(runs) for _ in range(plan.options.repeats)]
        rounds = tuple(len(run.replayed.displays) for run in own)
        found.append((rounds, partial(_estimated, plan, own, references)))
    return found


def _estimated(plan: ReplayPlan, runs: Sequence[ReplayRun], references: References) -> ReplayResult:
    columns = shown_columns([plan])
    shown = (as_columns(plan.log.take(run.replayed.displays, columns)) for run in runs)
    repeats = [estimate_repeat(*of, references) for of in zip(runs, shown, strict=True)]
    return summarise_repeats(plan, repeats, references)


class LoggingValues:
    """Expected values of the logging policy's rounds on one twin, each found once for all replays that ask the same."""

    def __init__(self, truth: LogTruth, twin: TwinLog) -> None:
        self._truth, self._twin = truth, twin
        self._found: dict[tuple[object, ...], float] = {}

    def of(self, plan: ReplayPlan, counted: Floats, cost: Floats) -> float:
        """Return the mean expected value of the displays that a replay used, in one pass over them.

        `counted` is what counts of a conversion of each action, as a share of their mean value, and `cost` what a
        display of it costs on average, shape (K,) each.
        """
        key = (plan.before, plan.rounds.used, counted.tobytes(), cost.tobytes())
        if key not in self._found:
            self._found[key] = self._mean(plan.before, plan.rounds.used, counted, cost)
        return self._found[key]

    def _mean(self, before: int, used: int, counted: Floats, cost: Floats) -> float:
        drawn = self._twin.drawn

        def sold_and_spent(first: int, end: int) -> Floats:
            part = before + first, before + end
            action = drawn.action.read(*part)
            rates = rates_at(self._truth, drawn.entries(*part), action, drawn.times(*part))
            return np.stack([rates * counted[action], cost[action]])

        sold, spent = mean_in_blocks(used, sold_and_spent)
        return float(sold) * self._truth.mean_value - float(spent)


class ShownDisplays:
    """The displays that a replay showed, repeat by repeat, reduced to what differences of replays need.

    Policies are compared at `common` rounds, which all repeats have.
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
