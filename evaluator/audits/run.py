"""An audit from log to verdict: truth, twins replayed, the same policies live, and what the two say of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.audits import audit_jobs
from evaluator.audits.audit_jobs import RUNS_PER_TWIN, AuditedLog, LiveRuns, TwinJob, audited_log, live_jobs
from evaluator.audits.options import AuditOptions
from evaluator.audits.power import LargerDifference, PairPower, powers
from evaluator.audits.replays import IntervalAndTruth, MeasuredDifference, TwinReplays, fit, twins_horizon
from evaluator.audits.result import Audit, Coverage, PairAudit, PolicyAudit
from evaluator.audits.words import found_beside_twins, verdict, warnings
from evaluator.checks.options import CheckOptions
from evaluator.checks.run import check_log
from evaluator.comparisons.log_places import LogPlace
from evaluator.findings.codes import ordered
from evaluator.findings.finding import assumptions_of
from evaluator.jobs.run_jobs import run_jobs
from evaluator.log import Log
from evaluator.log.reward_kinds import rewards_alone
from evaluator.outputs.kept_folder import KeptJobs
from evaluator.replays.findings.plan import warn_of_twins

Floats = npt.NDArray[np.float64]


def steps(policies: int, options: AuditOptions) -> int:
    """Return what the numbers add up to that `run_audit` calls its `advance` with."""
    return options.twins * (1 + RUNS_PER_TWIN * policies)


def run_audit(
    log: Log,
    policies: Sequence[Any],
    options: AuditOptions,
    *,
    advance: Callable[[int], None] = lambda done: None,
    kept: KeptJobs | None = None,
    executor: Executor | None = None,
    place: LogPlace | None = None,
) -> Audit:
    """Say what replays of these policies tell on logs like this one.

    `advance` is called with the number of twins and live runs that were finished since the last call; these are looked
    for and kept in the folder `kept`. An executor's workers draw and replay the twins and play live; they find the log
    at its `place`, by whose content jobs are kept, else by that of the log that is given. Errors are those of a replay
    of the log, and DataError where it is too small to fit a truth to.
    """
    fitted = fit(log, policies, options)
    plans, truth, _ = fitted
    workers, audited = executor is not None, AuditedLog(options)
    if kept is not None or workers:
        audited = audited_log(log, plans, policies, options, place=place, workers=workers)
    ((_, (first,)),) = run_jobs([TwinJob(audited, 0, None)], (fitted, policies), kept=kept)
    advance(1)
    common = min(twins_horizon(first), options.horizon or twins_horizon(first))
    if options.horizon is not None and min(t for told in first.told for t in told.rounds) == options.horizon:
        common = options.horizon  # reached, hence fixed by the user
    found = run_jobs(
        [TwinJob(audited, twin, common) for twin in range(options.twins)],
        (fitted, policies),
        threads=options.jobs,
        kept=kept,
        executor=executor,
        together=max(audit_jobs.WORK // (truth.displays * len(policies)), 1),
        advance=lambda job, _: advance(int(job.twin > 0)),  # the first has been told of
    )
    done: list[TwinReplays] = [replayed for _, (replayed,) in found]
    runs = LiveRuns(fitted, options, [replayed.told for replayed in done], common)
    played = run_jobs(
        live_jobs(audited, runs, workers=workers),
        runs,
        threads=options.jobs,
        kept=kept,
        executor=executor,
        advance=lambda _, items: advance(items),
    )
    values = np.array([value for _, of_job in played for value in of_job])
    live = _Live(*values.reshape(-1, len(policies), 2).transpose(2, 1, 0))
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
    beside = found_beside_twins(
        check_log(rewards_alone(log), CheckOptions(propensity=options.propensity, seed=options.seed))
    )
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
        not_in_twins=beside,
        verdict=verdict(of_policies, of_pairs, beside),
        findings=ordered(
            (
                *(said for plan in plans for said in warn_of_twins(plan)),
                *warnings(of_policies, of_pairs, beside, [replayed.horizon for replayed in done], common),
                *(said for plan in plans for said in assumptions_of(plan.findings)),
            )
        ),
        twins=_twins_table(specs, done),
        differences=_differences_table(specs, done),
        live=_live_table(specs, live),
        labels=tuple(map(str, log.labels)),
    )


class _Live(NamedTuple):
    """Values of each policy's live runs, shape (policies, runs): after its replays' rounds, after the common ones."""

    own: Floats
    common: Floats


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
