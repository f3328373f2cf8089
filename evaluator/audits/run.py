"""An audit from log to verdict: truth, twins replayed, the same policies live, and what the two say of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.audits.by_action import ClaimsByLaw
from evaluator.audits.finished_units import AuditUnits
from evaluator.audits.live import play_in_pool
from evaluator.audits.live_among import LiveSpan, draw_rounds, eligible_in_pool, logger_value, play_among
from evaluator.audits.live_money import NO_MONEY, LiveMoney, live_money
from evaluator.audits.live_pool import claimed_weights, display_weights, live_pool
from evaluator.audits.options import AuditOptions
from evaluator.audits.pair_differences import MeasuredDifference
from evaluator.audits.power import LargerDifference, PairPower, powers
from evaluator.audits.replays import IntervalAndTruth, TwinReplays, replay_twin, twins_horizon
from evaluator.audits.result import Audit, Coverage, PairAudit, PolicyAudit
from evaluator.audits.truth import LogTruth
from evaluator.audits.twin_units import TwinsInThreads, TwinsOnExecutor, TwinWorkers, audited_on, fit, twins_key
from evaluator.audits.words import verdict, warnings
from evaluator.comparisons.log_places import LogPlace
from evaluator.comparisons.question import Questions
from evaluator.log import Log
from evaluator.log.content import content_hash
from evaluator.outputs.kept_units import KeptUnits
from evaluator.policies.static import LoggingPolicy
from evaluator.replays.rounds.batch import EligibleActions
from evaluator.streams import Stream, random_stream
from evaluator.threads import in_threads

# Live runs a twin: their error is then small beside that of the replays.
RUNS_PER_TWIN = 2

Floats = npt.NDArray[np.float64]


def steps(policies: int, options: AuditOptions) -> int:
    """Return how many times `run_audit` calls its `advance`, each time with 1."""
    return options.twins * (1 + RUNS_PER_TWIN * policies)


def run_audit(
    log: Log,
    policies: Sequence[Any],
    options: AuditOptions,
    *,
    advance: Callable[[int], None] = lambda done: None,
    kept: KeptUnits | None = None,
    executor: Executor | None = None,
    place: LogPlace | None = None,
) -> Audit:
    """Say what replays of these policies tell on logs like this one.

    Parameters
    ----------
    log
        The log that a truth is fitted to.
    policies
        Descriptions of the policies to audit.
    options
        Number of twins and the like, and options of the replays.
    advance
        Function called with 1 after each twin and each live run.
    kept
        Folder in which twins and live runs are kept as they are finished, and looked for; None for none.
    executor, place
        Executor whose workers draw and replay the twins, and place at which they find the log; None for threads of
        this process.

    Raises
    ------
    DataError, ParameterError, PropensityError
        As of a replay of the log; or the log is too small to fit a truth to.
    """
    fitted = fit(log, policies, options)
    plans, truth, claimed = fitted
    key = ""
    if kept is not None or executor is not None:
        questions = Questions(policies)
        questions.log = content_hash(log) if place is None else place.content
        key = twins_key([questions.key(plan) for plan in plans], options)
    units = AuditUnits(key, kept)
    first = units.twin(0, None, lambda: replay_twin(truth, policies, options, claimed, 0, horizon=None))
    advance(1)
    common = min(twins_horizon(first), options.horizon or twins_horizon(first))
    if options.horizon is not None and min(t for told in first.told for t in told.rounds) == options.horizon:
        common = options.horizon  # reached, hence fixed by the user
    workers: TwinWorkers = TwinsInThreads(fitted, policies, options)
    if executor is not None and place is not None:
        workers = TwinsOnExecutor(executor, audited_on(place, policies, options, key), truth.displays)
    done = units.twins(options.twins, common, workers, advance)
    live = _play_live(truth, policies, options, claimed, done, common, advance, units)
    told = [[replayed.told[p] for replayed in done] for p in range(len(policies))]
    of_policies = tuple(
        PolicyAudit(
            policy=policy.spec,
            sampler=told[p][0].sampler,
            rounds=float(np.mean([t for one in told[p] for t in one.rounds])),
            acceptance_rate=float(np.mean([one.acceptance for one in told[p]])),
            **_against_live(np.array([one.value.interval.estimate for one in told[p]]), live.own[p]),
            value_coverage=_coverage([one.value for one in told[p]], options.level),
            regret_coverage=_coverage([one.regret for one in told[p]], options.level),
            uplift_coverage=_coverage([one.uplift for one in told[p]], options.level),
        )
        for p, policy in enumerate(policies)
    )
    of_pairs = _pairs(policies, done, live.common, options.level, worth=truth.value_of_larger)
    specs = [policy.spec for policy in policies]
    return Audit(
        dataset=log.meta.name,
        displays=truth.displays,
        actions=log.n_actions,
        objective="profit" if plans[0].of_profit else "revenue",
        options=options,
        live_runs=RUNS_PER_TWIN * options.twins,
        common_rounds=common,
        truth=truth.said,
        policies=of_policies,
        pairs=of_pairs,
        verdict=verdict(of_policies, of_pairs),
        warnings=tuple(warnings(of_policies, of_pairs, [replayed.horizon for replayed in done], common)),
        assumptions=tuple(dict.fromkeys(said for plan in plans for said in plan.assumptions)),
        twins=_twins_table(specs, done),
        differences=_differences_table(specs, done),
        live=_live_table(specs, live),
    )


class _Live(NamedTuple):
    """Values of each policy's live runs, shape (policies, runs): after its replays' rounds, after the common ones."""

    own: Floats
    common: Floats


def _play_live(
    truth: LogTruth,
    policies: Sequence[Any],
    options: AuditOptions,
    claimed: Sequence[ClaimsByLaw],
    done: Sequence[TwinReplays],
    common: int,
    advance: Callable[[int], None],
    units: AuditUnits,
) -> _Live:
    """Let every policy play live as often as the twins' replays played, and be told what these were told."""
    runs = RUNS_PER_TWIN * options.twins
    lengths = [[t for r in done for t in r.told[p].rounds] for p in range(len(policies))]
    weights = [claimed_weights(claim, t, common) for claim, t in zip(claimed, lengths, strict=True)]
    moneys = [_money(truth, claim, t, common, options) for claim, t in zip(claimed, lengths, strict=True)]
    pools = [
        live_pool(truth, policy, claim, w.shape[2], [r.told[p] for r in done])
        for p, (policy, claim, w) in enumerate(zip(policies, claimed, weights, strict=True))
    ]

    eligible: list[EligibleActions] = []
    if truth.sets is not None:
        pools, eligible = map(list, zip(*(eligible_in_pool(pool, truth.sets) for pool in pools), strict=True))

    def one(task: tuple[int, int]) -> Floats:
        run, p = task
        told = done[run % len(done)].told[p]
        if isinstance(policies[p], LoggingPolicy) and not truth.moving:  # its rounds are alike: known without playing
            return _known(truth, claimed[p], weights[p], moneys[p])
        own = random_stream(Stream.AUDIT_POLICY, options.seed, run)
        luck = random_stream(Stream.AUDIT_WORLD, options.seed, run)
        setting, money = told.setting, moneys[p]
        if truth.sets is not None:
            rounds, counted = told.rounds[run // len(done) % len(told.rounds)], weights[p]
            if truth.moving:  # a run of its own length, which is a share of the calendar
                counted = claimed_weights(claimed[p], [rounds], min(common, rounds))
                money = _money(truth, claimed[p], [rounds], min(common, rounds), options)
            span = LiveSpan(rounds, *told.arrivals)
            lived = draw_rounds(luck, counted.shape[2], truth.sets, pools[p], displays=truth.displays, span=span)
            if isinstance(policies[p], LoggingPolicy):
                return logger_value(truth, claimed[p], lived, pools[p].factor, counted, money)
            money = _with_luck(money, counted.shape[2], options.seed, run)
            live = play_among(policies[p], setting, pools[p], eligible[p], lived, counted, own=own, money=money)
            return live * truth.mean_value
        money = _with_luck(money, weights[p].shape[2], options.seed, run)
        live = play_in_pool(policies[p], setting, pools[p], weights[p], own=own, luck=luck, money=money)
        return live * truth.mean_value

    tasks = [(run, p) for run in range(runs) for p in range(len(policies))]
    values = np.empty((len(policies), runs, 2))
    played = units.live(len(done), common, lambda some: in_threads(one, some, options.jobs), tasks)
    for (run, p), value in zip(tasks, played, strict=True):
        values[p, run] = value
        advance(1)
    return _Live(values[:, :, 0], values[:, :, 1])


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


def _against_live(replayed: Floats, live: Floats) -> dict[str, float]:
    live_error = float(live.std(ddof=1) / np.sqrt(live.size))
    if live_error < 1e-12 * abs(float(live.mean())):
        live_error = 0.0
    spread = float(replayed.std(ddof=1))
    return {
        "value": float(replayed.mean()),
        "live_value": float(live.mean()),
        "live_standard_error": live_error,
        "bias": float(replayed.mean() - live.mean()),
        "bias_standard_error": float(np.hypot(spread / np.sqrt(replayed.size), live_error)),
        "spread": spread,
    }


def _coverage(known: Sequence[IntervalAndTruth] | Sequence[MeasuredDifference], level: float) -> Coverage:
    widths = [one.interval.high - one.interval.low for one in known]
    return Coverage(sum(one.held for one in known), len(known), level, float(np.mean(widths)))


def _pairs(
    policies: Sequence[Any], done: Sequence[TwinReplays], live: Floats, level: float, *, worth: float
) -> tuple[PairAudit, ...]:
    """Return what is found of each pair, from its difference on each twin and the live values, shape (policies, runs).

    `worth` is w of `evaluator.audits.power`.
    """
    numbers = list(combinations(range(len(policies)), 2))
    known = [[replayed.differences[i] for replayed in done] for i in range(len(numbers))]
    compared = [
        _against_live(np.array([one.interval.estimate for one in pair]), live[a] - live[b])
        for pair, (a, b) in zip(known, numbers, strict=True)
    ]
    planned = powers(
        known,
        [of["live_value"] if _clear(of) else 0.0 for of in compared],
        [LargerDifference(float((live[a].mean() + live[b].mean()) / 2), worth) for a, b in numbers],
        level=level,
    )
    return tuple(
        _pair(policies[a].spec, policies[b].spec, pair, of, power, level)
        for (a, b), pair, of, power in zip(numbers, known, compared, planned, strict=True)
    )


def _clear(compared: dict[str, float]) -> bool:
    """Whether live runs tell which of two policies is better."""
    return abs(compared["live_value"]) > 2.0 * compared["live_standard_error"]


def _pair(
    first: str,
    second: str,
    known: Sequence[MeasuredDifference],
    compared: dict[str, float],
    power: PairPower,
    level: float,
) -> PairAudit:
    found = np.array([one.interval.estimate for one in known])
    difference = compared["live_value"]
    return PairAudit(
        first=first,
        second=second,
        live_difference=difference,
        live_standard_error=compared["live_standard_error"],
        difference=compared["value"],
        spread=compared["spread"],
        ranked_rightly=float(np.mean(np.sign(found) == np.sign(difference))) if _clear(compared) else None,
        coverage=_coverage(known, level),
        alone=power.alone,
        ranked=power.ranked,
        expected=power.expected,
        expected_ranked=power.expected_ranked,
    )


def _twins_table(specs: Sequence[str], done: Sequence[TwinReplays]) -> pa.Table:
    columns: dict[str, list[Any]] = {"twin": [], "policy": [], "rounds": [], "acceptance_rate": []}
    for twin, replayed in enumerate(done):
        for spec, told in zip(specs, replayed.told, strict=True):
            row = {"twin": twin, "policy": spec, "rounds": min(told.rounds), "acceptance_rate": told.acceptance}
            for name in ("value", "regret", "uplift"):
                known: IntervalAndTruth = getattr(told, name)
                row |= {
                    name: known.interval.estimate,
                    f"{name}_low": known.interval.low,
                    f"{name}_high": known.interval.high,
                    f"{name}_true": known.true,
                }
            for name, value in row.items():
                columns.setdefault(name, []).append(value)
    return pa.table(columns)


def _differences_table(specs: Sequence[str], done: Sequence[TwinReplays]) -> pa.Table:
    rows = [
        (twin, a, b, replayed.horizon, known.interval.estimate, known.interval.low, known.interval.high, known.true)
        for twin, replayed in enumerate(done)
        for (a, b), known in zip(combinations(specs, 2), replayed.differences, strict=True)
    ]
    kinds = (pa.int64(), pa.string(), pa.string(), pa.int64(), *[pa.float64()] * 4)
    names = ("twin", "first", "second", "rounds", "difference", "difference_low", "difference_high", "difference_true")
    columns = zip(*rows, strict=True) if rows else [[] for _ in names]
    return pa.table(
        {name: pa.array(list(column), kind) for name, column, kind in zip(names, columns, kinds, strict=True)}
    )


def _live_table(specs: Sequence[str], live: _Live) -> pa.Table:
    runs = live.own.shape[1]
    return pa.table(
        {
            "run": pa.array(np.tile(np.arange(runs), len(specs))),
            "policy": pa.array([spec for spec in specs for _ in range(runs)]),
            "value": pa.array(live.own.reshape(-1)),
            "value_common": pa.array(live.common.reshape(-1)),
        }
    )
