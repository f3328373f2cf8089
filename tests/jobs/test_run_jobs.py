"""Units on an executor: each once, as soon as it is there; and one line where none will come."""

from __future__ import annotations

import os
import pickle
import threading
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import pytest

from evaluator.errors import EvaluatorError, ParameterError, WorkerError
from evaluator.jobs import run_jobs as module
from evaluator.jobs.run_jobs import finished


@dataclass(frozen=True)
class Number:
    """A unit that is a number."""

    of: int

    @property
    def name(self) -> str:
        return f"Unit {self.of}"


UNITS = [Number(i) for i in range(40)]


def squared(unit: Number) -> int:
    return unit.of**2


def ended(unit: Number) -> int:
    os._exit(1)


def test_each_is_given_once_in_whatever_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 3)
    with ThreadPoolExecutor(4) as pool:
        found = list(finished(squared, UNITS, pool))
    assert sorted((unit.of, value) for unit, value in found) == [(i, i * i) for i in range(40)]


def test_a_finished_one_waits_for_no_other() -> None:
    go_on = threading.Event()

    def slow_first(unit: Number) -> int:
        return unit.of if unit.of else int(go_on.wait(60))

    with ThreadPoolExecutor(2) as pool:
        results = finished(slow_first, UNITS, pool)
        assert {next(results)[0].of for _ in range(39)} == set(range(1, 40))
        go_on.set()
        assert next(results)[0].of == 0


def test_an_error_of_a_unit_is_raised_and_no_other_begins() -> None:
    begun, go_on = [], threading.Event()

    def refused(unit: Number) -> int:
        begun.append(unit.of)
        if unit.of:
            go_on.wait(60)
        raise ParameterError("No such thing.")

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ParameterError, match="No such thing"):
            list(finished(refused, UNITS, pool))
        go_on.set()
    # The thread may have taken the next one before anybody heard of the first.
    assert begun in ([0], [0, 1])


def test_processes_that_end_are_one_line() -> None:
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(WorkerError, match=r"The workers are gone: .* \(BrokenProcessPool\)"),
    ):
        list(finished(ended, UNITS[:3], pool))


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
        (KilledWorker(), r"Unit \d+ ended every worker that took it, 4 of them, the last at tcp://10\.0\.0\.8:4711"),
        (
            of_a_scheduler_without_the_package(),
            r"Unit \d+: No module named .*\. Hint: .* for the scheduler and on every",
        ),
        (ModuleNotFoundError("No module named 'evaluator'"), r"A worker could not begin Unit \d+: No module named"),
    ],
)
def test_what_dask_raises_is_one_line(error: BaseException, words: str) -> None:
    with pytest.raises(WorkerError, match=words):
        list(finished(squared, UNITS, Dask(error)))


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError):
        list(finished(squared, UNITS, Dask(ZeroDivisionError())))


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
