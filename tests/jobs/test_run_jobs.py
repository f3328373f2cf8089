"""Jobs here and on an executor: in their order, kept as they come, and one line where no result will come."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator.errors import EvaluatorError, ParameterError, WorkerError
from evaluator.jobs import run_jobs as module
from evaluator.jobs.run_jobs import Job, run_jobs
from evaluator.jobs.workers import OpenedLast, loaded, software
from evaluator.outputs.kept_folder import KeptJobs


def squared(number: int) -> int:
    return number**2


def ended(number: int) -> int:
    os._exit(1)


@dataclass(frozen=True)
class Number(Job):
    """A job that is made of a number, and of its successor."""

    of: int
    work: Callable[[int], Any] = squared

    @property
    def name(self) -> str:
        return f"Number {self.of}"

    @property
    def key(self) -> str:
        return f"{self.of:064x}"

    @property
    def items(self) -> tuple[int, int]:
        return (self.of, self.of + 1)

    def open(self) -> int:
        return 0

    def compute(self, opened: int, item: int) -> Any:
        return self.work(item) + opened


JOBS = [Number(i) for i in range(40)]
EXPECTED = [(i, (i**2, (i + 1) ** 2)) for i in range(40)]


@pytest.mark.parametrize("together", [1, 3, 100])
@pytest.mark.parametrize("threads", [1, 3, None])
def test_jobs_come_in_their_order_whoever_computes_them(
    threads: int | None, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 3)
    counted: list[tuple[int, int]] = []
    with ThreadPoolExecutor(4) if threads is None else nullcontext() as pool:
        options: dict[str, Any] = {"threads": threads or 1, "executor": pool, "together": together}
        options["advance"] = lambda job, items: counted.append((job.of, items))
        assert [(job.of, results) for job, results in run_jobs(JOBS, **options)] == EXPECTED
        found = [(job.of, results) for job, results in run_jobs(JOBS, ordered=False, **options)]
    assert sorted(found) == EXPECTED
    assert sorted(job for job, items in counted for _ in range(items)) == sorted([*range(40)] * 4)


def test_a_finished_job_waits_for_no_other_and_is_kept_at_once(tmp_path: Path) -> None:
    go_on, kept = threading.Event(), KeptJobs(tmp_path)
    jobs = [Number(i, lambda number: number if number else int(go_on.wait(60))) for i in range(40)]
    with ThreadPoolExecutor(2) as pool:
        results = run_jobs(jobs, executor=pool, ordered=False)
        assert {next(results)[0].of for _ in range(39)} == set(range(1, 40))
        go_on.set()
        assert next(results)[0].of == 0
        go_on.clear()
        kept.keep, last = lambda key, text: go_on.set() if int(key, 16) == 39 else None, []  # type: ignore[method-assign]
        for job, _ in run_jobs(jobs, executor=pool, kept=kept):  # whose first one goes on when the last one is kept
            last.append(job.of)
    assert last == [*range(40)]


@pytest.mark.parametrize("spread", [False, True])
def test_what_is_kept_is_not_computed_and_comes_at_its_place(spread: bool, tmp_path: Path) -> None:
    kept, computed, counted = KeptJobs(tmp_path), list[int](), list[int]()
    even = [Number(i) for i in range(0, 40, 2)]
    assert len([*run_jobs(even, kept=kept)]) == len([*tmp_path.iterdir()]) == 20
    jobs = [Number(i, lambda number: computed.append(number) or number**2) for i in range(40)]
    with ThreadPoolExecutor(3) as pool:
        options: dict[str, Any] = {"executor": pool if spread else None, "kept": kept, "together": 3}
        found = [*run_jobs(jobs, advance=lambda job, items: counted.append(items), **options)]
        assert [(job.of, results) for job, results in found] == EXPECTED
        assert sorted(computed) == sorted(number for i in range(1, 40, 2) for number in (i, i + 1))
        assert sum(counted) == 2 * 40
        assert len([*tmp_path.iterdir()]) == 40
        assert [results for _, results in run_jobs(jobs, **options)] == [results for _, results in EXPECTED]
    assert len(computed) == 40


@pytest.mark.parametrize("ordered", [False, True])
def test_whoever_stops_reading_cancels_what_is_pending(ordered: bool) -> None:
    begun, go_on = list[int](), threading.Event()

    def slow_after_first(number: int) -> int:
        begun.append(number)
        if number > 1:
            go_on.wait(60)
        return number

    with ThreadPoolExecutor(1) as pool:
        results = run_jobs([Number(i, slow_after_first) for i in range(0, 40, 2)], executor=pool, ordered=ordered)
        assert next(results)[0].of == 0
        results.close()
        go_on.set()
    # The thread may have taken the second one before it was cancelled.
    assert begun in ([0, 1], [0, 1, 2, 3])
    begun.clear()
    results = run_jobs([Number(i, lambda number: begun.append(number) or number) for i in range(40)], ordered=ordered)
    next(results)
    results.close()
    assert begun == [0, 1]  # and in this process no other begins


def test_an_error_of_a_job_is_raised_and_no_other_begins() -> None:
    begun, go_on = [], threading.Event()

    def refused(number: int) -> int:
        begun.append(number)
        if number:
            go_on.wait(60)
        raise ParameterError("No such thing.")

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ParameterError, match="No such thing"):
            list(run_jobs([Number(i, refused) for i in range(40)], executor=pool))
        go_on.set()
    # The thread may have taken the next one before anybody heard of the first.
    assert begun in ([0], [0, 1])


def test_processes_that_end_are_one_line() -> None:
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(WorkerError, match=r"The workers are gone: .* \(BrokenProcessPool\)"),
    ):
        list(run_jobs([Number(i, ended) for i in range(3)], executor=pool))


class Dask(Executor):
    """Ends as an executor of Dask does."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def submit(self, work: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(self.error)
        return future


class KilledWorker(Exception):  # noqa: N818
    """As `distributed.scheduler` has it."""

    allowed_failures = 3
    last_worker = type("Worker", (), {"address": "tcp://10.0.0.8:4711"})


class CommClosedError(OSError):
    """As `distributed.comm` has it."""


def of_a_scheduler_without_the_package() -> RuntimeError:
    error = RuntimeError("Error during deserialization of the task graph.")
    error.__cause__ = ModuleNotFoundError("No module named 'evaluator.comparisons'")
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (CancelledError(), "The workers are gone: their scheduler ended or cannot be reached"),
        (CommClosedError("in <TCP>"), "The workers are gone: their scheduler ended or cannot be reached"),
        (
            KilledWorker(),
            r"Number 0 and 1 more ended every worker that took it, 4 of them, the last at tcp://10\.0\.0\.8:4711",
        ),
        (
            of_a_scheduler_without_the_package(),
            r"Number 0 and 1 more: No module named .*\. Hint: .* for the scheduler and on every",
        ),
        (
            ModuleNotFoundError("No module named 'evaluator'"),
            r"A worker could not begin Number 0 and 1 more: No module named",
        ),
    ],
)
def test_what_dask_raises_is_one_line(error: BaseException, words: str) -> None:
    with pytest.raises(WorkerError, match=words):
        list(run_jobs(JOBS[:2], executor=Dask(error), together=2))


class Closing(Executor):
    """Ends as Dask does where its scheduler ends while a result is fetched: that future is never done."""

    def __init__(self) -> None:
        self._client = SimpleNamespace(status="running")
        self.given: list[Future[Any]] = []

    def submit(self, work: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if not self.given:
            future.set_result(work(*arguments))
        self.given.append(future)
        return future

    def close(self) -> None:
        self._client.status = "closed"


def test_a_result_that_a_closed_client_was_fetching_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    executor = Closing()
    results = run_jobs(JOBS[:2], executor=executor)
    assert next(results) == (JOBS[0], EXPECTED[0][1])
    executor.close()
    with pytest.raises(WorkerError, match="The workers are gone: their scheduler ended or cannot be reached"):
        next(results)
    assert executor.given[1].cancelled()


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError):
        list(run_jobs(JOBS, executor=Dask(ZeroDivisionError())))


@pytest.mark.parametrize(
    ("number", "line", "words"),
    [
        (0, f"delayed-replay 9.9 {'0' * 64}", r"it has delayed-replay 0\.1\.0, .* runs with delayed-replay 9\.9"),
        (0, f"delayed-replay 0.1.0 {'0' * 64}", r"it has delayed-replay 0\.1\.0, .* with other code of that version"),
        (1, "numpy 1.0", r"it has numpy 2.*, and the command runs with numpy 1\.0"),
    ],
)
def test_a_worker_with_another_version_is_refused(
    number: int, line: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert loaded() == software()
    other = [*software()]
    other[number] = line
    monkeypatch.setattr(module, "loaded", lambda: tuple(other))
    with ThreadPoolExecutor(1) as pool, pytest.raises(WorkerError, match=words):
        list(run_jobs(JOBS, executor=pool))


@pytest.mark.parametrize("most", [1, 2])
def test_threads_of_a_worker_open_a_thing_once_and_no_more_than_so_many_stay_open(most: int) -> None:
    begun = list[str]()

    def opens(key: str) -> list[str]:
        begun.append(key)
        if key == "gone":
            raise WorkerError("It is gone.")
        return [key]

    opened = OpenedLast(opens, most=most)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(opened, ["log"] * 20)] == [["log"]] * 20
    assert begun == ["log"]
    assert opened("check") is opened("check")
    assert opened("log") is opened("log")
    assert begun == ["log", "check", "log"][: 4 - most]
    with pytest.raises(WorkerError):
        opened("gone")
    with pytest.raises(WorkerError):
        opened("gone")  # what could not be opened is tried anew
    begun.clear()
    opened("log"), opened("check")
    opened.clear()
    opened("check")
    assert begun[-1] == "check"
    assert begun.count("check") == 3 - most


def all_errors(of: type[EvaluatorError] = EvaluatorError) -> list[type[EvaluatorError]]:
    return [of, *(error for below in of.__subclasses__() for error in all_errors(below))]


@pytest.mark.parametrize("cls", all_errors(), ids=lambda cls: cls.__name__)
def test_an_error_of_a_worker_arrives_as_it_was(cls: type[EvaluatorError]) -> None:
    support = pytest.importorskip("tblib.pickling_support", reason="by which Dask sends errors")
    error = cls("What is wrong.", remedy="How to repair it.")
    try:
        raise error
    except EvaluatorError:
        support.install(error)
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is cls
    assert (arrived.what, arrived.remedy, str(arrived)) == (error.what, error.remedy, str(error))
