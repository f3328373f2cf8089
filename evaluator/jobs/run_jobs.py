"""Run jobs: taken from those kept, computed here or by an executor, and one line where no result will come."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import closing
from typing import Protocol, TypeVar

from evaluator.blas import one_blas_thread
from evaluator.errors import EvaluatorError, WorkerError
from evaluator.outputs.kept_units import KeptUnits

# Units handed out at a time: enough for any cluster, and results that wait are as many at most.
AT_ONCE = 512
_AGAIN = "finished units are kept where the command has an output: start it anew, and the same command goes on there."


class Unit(Protocol):
    """What can be computed anywhere."""

    @property
    def name(self) -> str:
        """Name of the unit in messages."""


class Job(Unit, Protocol):
    """A frozen dataclass of plain values, which fix its result; a worker is sent nothing else."""

    @property
    def key(self) -> str:
        """Hash of all that fixes the result, by which it is kept."""

    def compute(self) -> str:
        """Compute the result on a worker, which opens what the job names, and return it as text."""


U = TypeVar("U", bound=Unit)
J = TypeVar("J", bound=Job)
R = TypeVar("R")


def run_jobs(
    jobs: Sequence[J],
    here: Callable[[Sequence[J]], Generator[tuple[J, str], None, None]],
    *,
    kept: KeptUnits | None,
    executor: Executor | None,
    advance: Callable[[J], None] = lambda job: None,
) -> Generator[tuple[J, str], None, None]:
    """Yield each job with its result as text, in the order of the jobs; a result is kept as soon as it is there.

    Parameters
    ----------
    jobs
        Jobs to run, no two with one key.
    here
        Function that computes jobs in this process, with what is open already, and yields each with its result.
    kept
        Folder in which results are looked for and kept; None for none.
    executor
        Executor whose workers compute what is not kept; None for `here`.
    advance
        Function called with each job whose result was kept, and with each that the executor computed: `here` counts
        its own.

    Raises
    ------
    WorkerError, EvaluatorError
        As `finished`.
    """
    results = {} if kept is None else kept.find(job.key for job in jobs)
    left = [job for job in jobs if job.key not in results]
    for job in jobs:
        if job.key in results:
            advance(job)
    coming = here(left) if executor is None else finished(compute_job, left, executor)
    with closing(coming):
        for job in jobs:
            while job.key not in results:
                done, text = next(coming)
                if executor is not None:
                    advance(done)
                if kept is not None:
                    kept.keep(done.key, text)
                results[done.key] = text
            yield job, results.pop(job.key)


def compute_job(job: Job) -> str:
    """Compute a job, on a worker."""
    return job.compute()


def finished(work: Callable[[U], R], units: Sequence[U], executor: Executor) -> Generator[tuple[U, R], None, None]:
    """Yield each unit with its result as soon as it is finished, each once, in no order.

    Parameters
    ----------
    work
        Function of a module that computes a unit, as workers import it.
    units
        Units to compute.
    executor
        Executor whose workers compute.

    Raises
    ------
    WorkerError
        The executor is gone, a unit ended every worker that took it, or a worker was refused; the message names it.
    EvaluatorError
        As a unit raised it.
    """
    coming: dict[Future[R], U] = {}
    left = iter(units)
    try:
        while True:
            while len(coming) < AT_ONCE and (unit := next(left, None)) is not None:
                coming[_submitted(executor, work, unit)] = unit
            if not coming:
                return
            for future in wait(coming, return_when=FIRST_COMPLETED).done:
                unit = coming.pop(future)
                yield unit, _result(future, unit)
    finally:
        for future in coming:
            future.cancel()


def _computed(work: Callable[[U], R], unit: U) -> R:
    """Return what a unit finds, on a worker, whose BLAS has as many threads as anywhere."""
    with one_blas_thread():
        return work(unit)


def _submitted(executor: Executor, work: Callable[[U], R], unit: U) -> Future[R]:
    try:
        return executor.submit(_computed, work, unit)
    except BrokenExecutor as error:
        raise _gone(error) from error
    except EvaluatorError:
        raise
    except Exception as error:
        if _is_of_scheduler(error):
            raise _gone(error) from error
        raise


def _result(future: Future[R], unit: Unit) -> R:
    try:
        return future.result()
    except EvaluatorError:
        raise
    except (CancelledError, BrokenExecutor) as error:
        raise _gone(error) from error
    except (ImportError, AttributeError, RuntimeError) as error:
        if "evaluator" in str(error) or "evaluator" in str(error.__cause__):
            raise WorkerError(
                f"A worker could not begin {unit.name}: {error.__cause__ or error}.",
                remedy="install the same version of delayed-replay for the scheduler and on every worker.",
            ) from error
        raise
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise _killed(error, unit) from error
        if _is_of_scheduler(error):
            raise _gone(error) from error
        raise


def _killed(error: Exception, unit: Unit) -> WorkerError:
    times = getattr(error, "allowed_failures", 0) + 1
    last = getattr(getattr(error, "last_worker", None), "address", "unknown")
    return WorkerError(
        f"{unit.name} ended every worker that took it, {times} of them, the last at {last}.",
        remedy="workers end so where memory is short: give each more, or fewer threads; the same command goes on.",
    )


def _gone(error: BaseException) -> WorkerError:
    said = f" ({type(error).__name__})"
    return WorkerError(f"The workers are gone: their scheduler ended or cannot be reached{said}.", remedy=_AGAIN)


def _is_of_scheduler(error: Exception) -> bool:
    """Whether an error says that the connection to a scheduler was lost, by whichever of the names that Dask has."""
    return type(error).__name__ in (
        "CommClosedError",
        "FutureCancelledError",
        "FuturesCancelledError",
        "ClosedClientError",
    )
