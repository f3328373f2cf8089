"""An audit from log to verdict: truth, twins replayed, the same policies live, and what the two say of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.audits import audit_jobs
from evaluator.audits.audit_jobs import RUNS_PER_TWIN, AuditedLog, LiveRuns, TwinJob, audited_log, live_jobs
from evaluator.audits.options import AuditOptions
from evaluator.audits.power import LargerDifference, powers
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
from evaluator.options.deployment import deployment_of
from evaluator.outputs.kept_folder import KeptJobs
from evaluator.replays.findings.plan import warn_of_twins
from evaluator.results.tabular import COUNT, NUMBER, TEXT, interval_cells, interval_columns

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
    options = replace(options, **deployment_of(vars(options), log.meta.deployment).options)
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
    # Of each policy's runs, shape (policies, runs): after its replays' rounds, and after the common ones.
    live, live_common = values.reshape(-1, len(policies), 2).transpose(2, 1, 0)
    told = [[replayed.told[p] for replayed in done] for p in range(len(policies))]
    of_policies = tuple(
        PolicyAudit(
            policy=policy.spec,
            sampler=told[p][0].sampler,
            rounds=float(np.mean([t for one in told[p] for t in one.rounds])),
            acceptance_rate=float(np.mean([one.acceptance for one in told[p]])),
            **_against_live(np.array([one.value.interval.estimate for one in told[p]]), live[p]),
            value_coverage=_coverage([one.value for one in told[p]], options.level),
            regret_coverage=_coverage([one.regret for one in told[p]], options.level),
            uplift_coverage=_coverage([one.uplift for one in told[p]], options.level),
        )
        for p, policy in enumerate(policies)
    )
    of_pairs = _pairs(policies, done, live_common, options.level, worth=truth.value_of_larger)
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
        live=pa.table(
            {
                "run": pa.array(np.tile(np.arange(live.shape[1]), len(specs))),
                "policy": pa.array([spec for spec in specs for _ in range(live.shape[1])]),
                "value": pa.array(live.reshape(-1)),
                "value_common": pa.array(live_common.reshape(-1)),
            }
        ),
        labels=tuple(map(str, log.labels)),
    )


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
    pairs = []
    for (a, b), pair, of, power in zip(numbers, known, compared, planned, strict=True):
        found, difference = np.array([one.interval.estimate for one in pair]), of["live_value"]
        pairs.append(
            PairAudit(
                first=policies[a].spec,
                second=policies[b].spec,
                live_difference=difference,
                live_standard_error=of["live_standard_error"],
                difference=of["value"],
                spread=of["spread"],
                ranked_rightly=float(np.mean(np.sign(found) == np.sign(difference))) if _clear(of) else None,
                coverage=_coverage(pair, level),
                **power._asdict(),
            )
        )
    return tuple(pairs)


def _clear(compared: dict[str, float]) -> bool:
    """Whether live runs tell which of two policies is better."""
    return abs(compared["live_value"]) > 2.0 * compared["live_standard_error"]


def _twins_table(specs: Sequence[str], done: Sequence[TwinReplays]) -> pa.Table:
    rows = [
        {
            "twin": twin, "policy": spec, "rounds": min(told.rounds), "acceptance_rate": told.acceptance,
            **_cells("value", told.value), **_cells("regret", told.regret), **_cells("uplift", told.uplift),
        }
        for twin, replayed in enumerate(done)
        for spec, told in zip(specs, replayed.told, strict=True)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows)


def _differences_table(specs: Sequence[str], done: Sequence[TwinReplays]) -> pa.Table:
    rows = [
        {"twin": twin, "first": a, "second": b, "rounds": replayed.horizon, **_cells("difference", known)}
        for twin, replayed in enumerate(done)
        for (a, b), known in zip(combinations(specs, 2), replayed.differences, strict=True)
    ]
    numbers = {**interval_columns("difference"), "difference_true": NUMBER}
    kinds = {"twin": COUNT, "first": TEXT, "second": TEXT, "rounds": COUNT, **numbers}
    return pa.Table.from_pylist(rows, pa.schema(list(kinds.items())))


def _cells(name: str, known: IntervalAndTruth | MeasuredDifference) -> dict[str, float]:
    """Return an interval, and what is true, as cells of a row."""
    return {**interval_cells(name, known.interval), f"{name}_true": known.true}
