"""An audit in jobs: whoever computes them and wherever it was interrupted, its result is the same to the bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import Audit, audit, load
from evaluator.arguments import as_description
from evaluator.audits import audit_jobs
from evaluator.audits.audit_jobs import AuditedLog, LiveJob, TwinJob, audited_log
from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import fit
from evaluator.audits.run import run_audit
from evaluator.comparisons.log_places import at_a_place, place_of
from evaluator.errors import WorkerError
from evaluator.jobs import run_jobs
from evaluator.jobs.run_jobs import compute_jobs
from evaluator.jobs.workers import loaded
from evaluator.outputs.kept_folder import KeptJobs, kept_beside
from tests.jobs.stopping import Stopping
from tests.logs import linear_log

LOG = linear_log(1500, n_actions=3, dimension=5, mean_delay=10.0, seed=1)
POLICIES = ["linucb", "delayed-klucb", "random"]
ASKED: dict[str, Any] = {"twins": 12, "window": 50, "repeats": 2}


def said(found: Audit) -> list[Any]:
    tables = (found.twins, found.differences, found.live)
    return [json.dumps(found.to_dict()), *(repr(table.to_pydict()) for table in tables)]


@pytest.fixture(scope="module")
def alone() -> list[Any]:
    return said(audit(LOG, POLICIES, **ASKED))


def test_twins_and_live_runs_of_workers_are_those_of_this_process(
    alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit_jobs._opened.clear()
    monkeypatch.setattr(audit_jobs, "WORK", 3 * 3 * 1500)
    fitted: list[object] = []
    own: Callable[..., Any] = audit_jobs.fit
    monkeypatch.setattr(audit_jobs, "fit", lambda *of: fitted.append(1) or own(*of))
    monkeypatch.setattr(audit_jobs, "MOST_RUNS", 7)
    sent: list[list[TwinJob | LiveJob]] = []
    monkeypatch.setattr(run_jobs, "compute_jobs", lambda jobs, *of: sent.append(jobs) or compute_jobs(jobs, *of))
    with ThreadPoolExecutor(2) as pool:
        assert said(audit(LOG, POLICIES, executor=pool, **ASKED)) == alone
    assert len(fitted) == 1  # by the worker: this process has its own
    assert sorted(job.twin for jobs in sent for job in jobs if isinstance(job, TwinJob)) == [*range(12)]
    assert sorted(len(job.runs) for jobs in sent for job in jobs if isinstance(job, LiveJob)) == [2, *[7] * 10]
    assert sorted(map(len, sent)) == [*[1] * 11, *[3] * 4]


def test_replays_of_a_twin_come_back_as_they_were() -> None:
    policies = [as_description(policy) for policy in POLICIES]
    options = AuditOptions(**ASKED)
    fitted = fit(LOG, policies, options)
    job, opened = TwinJob(AuditedLog(options), 1, 100), (fitted, policies)
    found = job.compute(opened, 1)
    (back,) = job.unpack(job.pack((found,)), opened)
    assert repr(back) == repr(found)
    cdfs = [of.told[1].setting.delay_cdf for of in (found, back)]
    assert cdfs[0] is not None
    assert np.array_equal(cdfs[0].cdf, cdfs[1].cdf)  # type: ignore[union-attr]
    assert type(back.told[0].acceptance) is type(found.told[0].acceptance)


def test_an_audit_stopped_wherever_it_writes_goes_on_from_there(
    tmp_path: Path, alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_jobs, "MOST_RUNS", 7)
    stopping = Stopping(monkeypatch)
    policies = [as_description(policy) for policy in POLICIES]
    times, lines = 0, list[str]()
    while True:
        stopping.after_fewer_than(6)
        told: list[int] = []
        try:
            with kept_beside(tmp_path / "run") as folder:
                kept = KeptJobs(folder, lines.append)
                found = run_audit(LOG, policies, AuditOptions(**ASKED), advance=told.append, kept=kept)
            break
        except KeyboardInterrupt:
            times += 1
    assert said(found) == alone
    assert sum(told) == 12 * (1 + 2 * 3)
    assert list(tmp_path.iterdir()) == []
    assert times > 3
    # Once each time that something was there.
    assert times - 2 <= lines.count(f"Took up what was finished before, from {tmp_path / 'run.partial'}.") <= times
    # The first twin at its own rounds, twelve at common ones, and live runs by sevens; none was written twice.
    assert len(stopping.keys) == len(set(stopping.keys)) == 1 + 12 + -(-2 * 12 * 3 // 7)


def test_a_kept_twin_is_of_no_other_audit_and_a_damaged_one_is_computed_anew(tmp_path: Path, alone: list[Any]) -> None:
    lines: list[str] = []
    kept = KeptJobs(tmp_path, lines.append)
    policies = [as_description(policy) for policy in POLICIES]
    run_audit(LOG, policies, AuditOptions(**ASKED), kept=kept)
    files = sorted(tmp_path.iterdir())
    other = AuditOptions(**{**ASKED, "seed": 1})
    assert said(run_audit(LOG, policies, other, kept=kept)) == said(run_audit(LOG, policies, other))
    assert len(list(tmp_path.iterdir())) == 2 * len(files)
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    assert said(run_audit(LOG, policies, AuditOptions(**ASKED), kept=kept)) == alone
    damaged = [int(line.split()[4]) for line in lines if line.startswith("Damaged, so computed anew")]
    assert sum(damaged) == len(files)


def test_jobs_are_known_by_all_that_the_log_holds_though_outcomes_are_let_go_of(tmp_path: Path) -> None:
    log = load("promotions", limit=3_000)
    assert log.meta.outcomes
    kept, policies = KeptJobs(tmp_path), [as_description("random")]
    asked = AuditOptions(twins=10, window="7d")
    found = run_audit(log, policies, asked, kept=kept)
    files = sorted(tmp_path.iterdir())
    less, place = log.without_outcomes(), place_of(log, "promotions", {"limit": 3_000})
    assert said(run_audit(less, policies, asked, kept=kept, place=place)) == said(found)
    assert sorted(tmp_path.iterdir()) == files


def test_a_worker_that_plans_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    audit_jobs._opened.clear()
    policies, options = [as_description("random")], AuditOptions(**ASKED)
    with at_a_place(LOG, None, {}) as (log, place):
        plans = fit(log, policies, options).plans
        audited = audited_log(log, plans, policies, options, place=place, workers=True)
        assert len(compute_jobs([TwinJob(audited, 0, 50)], loaded())) == 1
        with pytest.raises(WorkerError, match="refused: it plans the replays otherwise than the command does"):
            compute_jobs([TwinJob(replace(audited, options=AuditOptions(window=51)), 0, 50)], loaded())
