"""Units on an executor: each result as soon as it is there, and one line where none will come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from typing import Protocol, TypeVar

from evaluator.blas import one_blas_thread
from evaluator.errors import EvaluatorError, WorkerError

# Units handed out at a time: enough for any cluster, and results that wait are as many at most.
AT_ONCE = 512
_AGAIN = "finished units are kept where the command has an output: start it anew, and the same command goes on there."
# Errors of Dask that a lost connection ends in.
_LOST = ("CommClosedError", "FutureCancelledError", "FuturesCancelledError", "ClosedClientError")


class Unit(Protocol):
    """What can be computed anywhere."""

    @property
    def name(self) -> str:
        """Name of the unit in messages."""


U = TypeVar("U", bound=Unit)
R = TypeVar("R")


def finished(work: Callable[[U], R], units: Sequence[U], executor: Executor) -> Iterator[tuple[U, R]]:
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
                hint="install the same version of delayed-replay for the scheduler and on every worker.",
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
        hint="workers end so where memory is short: give each more, or fewer threads; the same command goes on.",
    )


def _gone(error: BaseException) -> WorkerError:
    said = f" ({type(error).__name__})"
    return WorkerError(f"The workers are gone: their scheduler ended or cannot be reached{said}.", hint=_AGAIN)


def _is_of_scheduler(error: Exception) -> bool:
    """Whether an error says that the connection to a scheduler was lost, by whichever of the names that Dask has."""
    return type(error).__name__ in (
        "CommClosedError",
        "FutureCancelledError",
        "FuturesCancelledError",
        "ClosedClientError",
    )
