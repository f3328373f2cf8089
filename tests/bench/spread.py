"""Benchmarks on many logs, spread over processes of this machine or the workers of a Dask cluster.

A benchmark calls one function for many seeds and prints rows of what they found. Here some of these calls at a time are
a job, as those of the commands are (`evaluator.jobs`): plain values, which any executor computes, with
the same result to the bit. Rows are printed in their order, whoever computed them, and jobs of the next rows begin
while one is waited for. `add_options` gives a benchmark

``--jobs N``
    N processes of this machine; 1 for none but this one.
``--cluster ADDRESS``
    The workers of a Dask scheduler, or of ``local:N``. Scheduler and workers import what they are sent from `tests`:
    give both an environment with ``pip install -e`` of this checkout, or of the same one on another machine, or start
    them in it with ``python -m dask``. Other code, of the package or of the tests, is refused. A worker computes one
    job at a time, however many threads it has: some benchmarks replace a function of the package while they run.
``--keep FOLDER``
    Finished jobs are written there, and the same command, interrupted, goes on from them. They are known by what was
    asked for and by all code of the package and of the tests, and stay until someone deletes them.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from evaluator.errors import EvaluatorError, WorkerError
from evaluator.jobs.addresses import workers_at
from evaluator.jobs.run_jobs import Job, Results, as_text, from_text, run_jobs
from evaluator.jobs.workers import software, this_worker
from evaluator.outputs.atomic import checksum
from evaluator.outputs.kept_folder import KeptJobs

# Calls of a job.
CALLS = 10
_TESTS = Path(__file__).resolve().parents[1]

# First arguments of a function, all plain values or records of them, and what its last one is, call by call.
Row = tuple[tuple[Any, ...], Sequence[Any]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options by which a benchmark is spread and kept."""
    by = parser.add_mutually_exclusive_group()
    by.add_argument("--jobs", type=_at_least_1, default=2, help="processes of this machine")
    by.add_argument("--cluster", metavar="ADDRESS", help="of a Dask scheduler, or local:2, instead of --jobs")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what is finished there, and go on from it")


def _at_least_1(word: str) -> int:
    jobs = int(word)
    if jobs < 1:
        raise ValueError(word)
    return jobs


@dataclass(frozen=True)
class Calls(Job):
    """Some calls of a function.

    Parameters
    ----------
    function
        Function of a module, as ``module:name``.
    arguments, last
        Its first arguments, and its last one of each call.
    code
        What computes: package, libraries, Python, and the code of the tests.
    made_of
        Dataclasses and named tuples among what it returns.
    """

    function: str
    arguments: tuple[Any, ...]
    last: tuple[Any, ...]
    code: tuple[str, ...]
    made_of: tuple[type, ...] = ()

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        told = ", ".join([*map(str, self.arguments), f"{self.last[0]} to {self.last[-1]}"])
        return f"{self.function}({told})"

    @property
    def key(self) -> str:
        """Hash of all that fixes the results."""
        said = (self.function, self.arguments, self.last, self.code)
        return hashlib.sha256(as_text(said).encode()).hexdigest()

    @property
    def items(self) -> tuple[Any, ...]:
        """The calls, by their last arguments."""
        return self.last

    def open(self) -> Callable[..., Any]:
        """Import the function, where package and tests are those of the command."""
        if self.code[-1] != _tests_code():
            raise WorkerError(
                f"Worker {this_worker()} is refused: its tests are not those of the command.",
                remedy="take the same checkout there, and start the worker anew.",
            )
        module, _, name = self.function.partition(":")
        work: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return work

    def compute(self, opened: Callable[..., Any], item: Any) -> Any:
        """Call the function."""
        with _one_at_a_time:
            return opened(*self.arguments, item)

    def unpack(self, packed: str, opened: Any) -> Results:
        """Return what the calls returned."""
        found: Results = from_text(packed, self.made_of)
        return found


class Spread:
    """Whoever computes the calls of a benchmark, and what is kept of them.

    Parameters
    ----------
    executor
        Executor whose workers compute; None for this process.
    kept
        Where finished jobs are kept and looked for; None for nowhere.
    """

    def __init__(self, executor: Executor | None = None, kept: KeptJobs | None = None) -> None:
        self._executor, self._kept = executor, kept

    def over(
        self,
        work: Callable[..., Any],
        items: Sequence[Any],
        *arguments: Any,
        classes: Sequence[type] = (),
        at_once: int = CALLS,
    ) -> list[Any]:
        """Return what ``work(*arguments, item)`` returns for each item, in their order; more as `rows`."""
        (found,) = self.rows(work, [(arguments, items)], classes=classes, at_once=at_once)
        return found

    def rows(
        self, work: Callable[..., Any], rows: Sequence[Row], *, classes: Sequence[type] = (), at_once: int = CALLS
    ) -> Iterator[list[Any]]:
        """Yield what a function returns, call by call, row by row.

        Parameters
        ----------
        work
            Function of a module under `tests`, of plain values; what it returns are numbers, texts, arrays, tuples, or
            records of these.
        rows
            Rows, of calls ``work(*arguments, item)`` for each item.
        classes
            Dataclasses and named tuples among what it returns.
        at_once
            Calls of a job: about a second of work, or more.
        """
        function, code, made_of = _named(work), _code(), tuple(classes)
        parts = [
            [
                Calls(function, arguments, tuple(items[at : at + at_once]), code, made_of)
                for at in range(0, len(items), at_once)
            ]
            for arguments, items in rows
        ]  # fmt: skip
        there: dict[Calls, Results] = {}
        jobs = list(dict.fromkeys(job for row in parts for job in row))
        with closing(run_jobs(jobs, kept=self._kept, executor=self._executor)) as coming:
            for row in parts:
                while any(job not in there for job in row):
                    done, results = next(coming)
                    there[done] = results
                yield [result for job in row for result in there[job]]


@contextmanager
def spread_by(asked: argparse.Namespace) -> Iterator[Spread]:
    """Give whoever computes, by the options of `add_options`; what goes wrong with workers is one line."""
    kept = None if asked.keep is None else KeptJobs(asked.keep, _say)
    try:
        with ExitStack() as stack:
            executor: Executor | None = None
            if asked.cluster is not None:
                executor = stack.enter_context(workers_at(asked.cluster, _say))
            elif asked.jobs > 1:
                executor = stack.enter_context(ProcessPoolExecutor(asked.jobs, get_context("spawn"), _begin))
            yield Spread(executor, kept)
    except EvaluatorError as error:
        sys.exit(f"error: {error}")
    except (ModuleNotFoundError, RuntimeError) as error:  # Dask's scheduler wraps what it cannot import
        cause = error.__cause__ or error
        if asked.cluster is None or "'tests" not in str(cause):
            raise
        sys.exit(f"error: {cause}: start the scheduler and its workers in the checkout.")


_one_at_a_time = Lock()


def _named(work: Callable[..., Any]) -> str:
    """Return the name by which workers import a function, also where its module was started by ``python -m``."""
    module = work.__module__
    if module == "__main__":
        module = sys.modules["__main__"].__spec__.name
    return f"{module}:{work.__name__}"


@cache
def _code() -> tuple[str, ...]:
    return (*software(), _tests_code())


@cache
def _tests_code() -> str:
    digest = hashlib.sha256()
    for file in sorted(_TESTS.rglob("*.py")):
        digest.update(f"{file.relative_to(_TESTS)} {checksum(file)}\n".encode())
    return f"tests {digest.hexdigest()}"


def _begin() -> None:
    """Have a process end with the one that started it, whichever way that ends, and without a word at Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)
