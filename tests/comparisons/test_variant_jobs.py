"""A study on an executor: workers open the log themselves, and their results are the same to the bit."""

from __future__ import annotations

import importlib
import json
import pickle
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from evaluator import Comparison, compare
from evaluator.arguments import as_description, loaded_by
from evaluator.comparisons import variant_runs
from evaluator.comparisons.log_places import LogPlace, at_a_place
from evaluator.comparisons.run import plan_comparison
from evaluator.comparisons.variant_runs import ReplayJob, VariantRuns, study_on
from evaluator.datasets import convert, load
from evaluator.errors import UsageError, WorkerError
from evaluator.jobs.run_jobs import compute_jobs
from evaluator.jobs.workers import loaded
from evaluator.replays.options import ReplayOptions
from tests.logs import linear_log

LOG = linear_log(1500, n_actions=3, dimension=5, mean_delay=10.0, seed=1)
POLICIES = ["ucb1", "linucb", "random"]
OPTIONS: dict[str, Any] = {"windows": [50, "none"], "horizon": 60, "bootstrap": 20, "repeats": 2}
MINE = """
class Mine:
    contextual = False
    def __init__(self, setting, of=0): self.of = of
    def choose(self, vectors, rng): return self.of
    def displayed(self, vectors, action): pass
    def converted(self, vector, action, delay, value): pass
"""


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Executor]:
    """Threads as they take any function, so that jobs are as small as on a cluster."""
    monkeypatch.setattr(variant_runs, "WORK", 6_000)
    monkeypatch.setattr(variant_runs, "FEWEST", 1)
    variant_runs._opened.clear()
    with ThreadPoolExecutor(2) as pool:
        yield pool


def said(found: Comparison) -> list[Any]:
    return [json.dumps(found.to_dict()), found.trajectory.to_pydict(), [r.resampled for r in found.results]]


def test_results_of_workers_are_those_of_this_process(executor: Executor, tmp_path: Path) -> None:
    convert("synthetic", tmp_path / "log", limit=2_000)
    for log in (LOG, load("synthetic", limit=2_000), "synthetic", load(tmp_path / "log"), tmp_path / "log"):
        options = OPTIONS | ({} if log is LOG else {"bootstrap": 0})
        assert said(compare(log, POLICIES, executor=executor, **options)) == said(compare(log, POLICIES, **options))
    decides: dict[str, Any] = {"windows": [50], "baseline": "random"}
    found = compare(LOG, POLICIES, executor=executor, **decides)
    assert all(of.expected is not None for of in found.differences)
    assert said(found) == said(compare(LOG, POLICIES, **decides))


class Pickled(ThreadPoolExecutor):
    """Sends what it is given as a scheduler does, and remembers how much that was."""

    def __init__(self) -> None:
        super().__init__(2)
        self.sent: list[int] = []

    def submit(self, work: Any, /, *arguments: Any, **more: Any) -> Any:
        message = pickle.dumps((work, arguments))
        self.sent.append(len(message))
        work, arguments = pickle.loads(message)
        return super().submit(work, *arguments, **more)


def test_jobs_are_plain_values_and_small_whatever_the_log_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variant_runs, "WORK", 60_000)
    with Pickled() as pool:
        found = compare(LOG, POLICIES, executor=pool, **OPTIONS)
    assert said(found) == said(compare(LOG, POLICIES, **OPTIONS))
    assert max(pool.sent) < 6_000 < LOG.displays.nbytes


def test_a_worker_opens_a_log_once(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    own = LogPlace.opened
    monkeypatch.setattr(LogPlace, "opened", lambda place: opened.append(place) or own(place))
    compare(LOG, POLICIES, executor=executor, **OPTIONS)
    assert len(opened) == 1


def first_job(place: LogPlace, policies: list[str], options: ReplayOptions) -> ReplayJob:
    descriptions = [as_description(policy) for policy in policies]
    workers = study_on(ThreadPoolExecutor(1), place, descriptions, [50], options)
    plans = plan_comparison(place.opened(), descriptions, [50], options)
    return VariantRuns(plans, workers=workers)._replays()[0]


def computed(job: ReplayJob) -> Any:
    return compute_jobs([job], loaded())


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplayJob]:
    variant_runs._opened.clear()
    with at_a_place(LOG, None, {}) as (_, place):
        yield first_job(place, POLICIES, ReplayOptions(horizon=60))


def test_a_worker_with_another_log_under_the_name_is_refused(job: ReplayJob) -> None:
    other = replace(job.study, place=replace(job.study.place, content="0" * 64))
    with pytest.raises(WorkerError, match=r"refused: it reads another log under the name .*evaluate-log-"):
        computed(replace(job, study=other))
    nowhere = replace(job.study, place=replace(job.study.place, dataset="/nowhere/log"))
    with pytest.raises(WorkerError, match=r"cannot open the log: /nowhere/log: no such folder"):
        computed(replace(job, study=nowhere))


def test_a_worker_that_plans_otherwise_is_refused(job: ReplayJob) -> None:
    other = replace(job.study, options=ReplayOptions(horizon=61))
    with pytest.raises(WorkerError, match="refused: it plans ucb1 otherwise than the command does"):
        computed(replace(job, study=other))


def test_a_worker_with_another_policy_under_the_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant_runs._opened.clear()
    (tmp_path / "mine.py").write_text(MINE)
    with at_a_place(LOG, None, {}) as (_, place):
        own = first_job(place, [f"{tmp_path}/mine.py:Mine"], ReplayOptions(horizon=60))
        assert computed(own)
        variant_runs._opened.clear()
        (tmp_path / "mine.py").write_text(MINE.replace("self.of = of", "self.of = 1"))
        with pytest.raises(WorkerError, match=r"refused: what Mine consists of is another there"):
            computed(own)


def test_a_worker_that_imported_a_module_before_it_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its policy would be loaded anew, and what that imports would not: other numbers without a word."""
    variant_runs._opened.clear()
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = f"{tmp_path}/mine.py:Mine"
    (tmp_path / "beside_mine.py").write_text("ACTION = 1\n")
    mine = MINE.replace("return self.of", "return beside_mine.ACTION")
    (tmp_path / "mine.py").write_text(f"import beside_mine\n{mine}")
    with at_a_place(LOG, None, {}) as (_, place):
        assert computed(first_job(place, [spec], ReplayOptions(horizon=60)))
        (tmp_path / "mine.py").write_text(f"import beside_mine  # loaded anew\n{mine}")
        assert computed(first_job(place, [spec], ReplayOptions(horizon=60)))
        (tmp_path / "beside_mine.py").write_text("ACTION = 2\n")
        with pytest.raises(WorkerError, match=r"it has imported beside_mine\.py as it was before it changed"):
            computed(first_job(place, [spec], ReplayOptions(horizon=60)))


def test_what_the_command_has_imported_besides_refuses_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "helper_of_the_script.py").write_text("")
    with monkeypatch.context() as here:
        here.syspath_prepend(str(tmp_path))
        importlib.import_module("helper_of_the_script")
    policies = [f"{tmp_path}/mine.py:Mine:of=1", "random"]
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        found = compare(LOG, policies, executor=pool, **OPTIONS)
    assert said(found) == said(compare(LOG, policies, **OPTIONS))


def test_policies_are_sent_by_names_that_workers_can_load(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    own = as_description(f"{tmp_path}/mine.py:Mine:of=2")
    assert loaded_by(own) == f"{tmp_path}/mine.py:Mine:of=2"
    assert loaded_by(as_description("linucb:alpha=0.5")) == "linucb:alpha=0.5"
    with pytest.raises(UsageError, match="Workers load policies by their names"):
        loaded_by(as_description(type(own)(cls=own.cls, instance=own.cls(None))))  # type: ignore[arg-type,union-attr,call-arg]
