"""Run jobs: taken from those kept, computed here or by an executor, and one line where no result will come."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

from evaluator.blas import one_blas_thread
from evaluator.errors import EvaluatorError, WorkerError
from evaluator.jobs.serialise import as_text, from_text
from evaluator.jobs.software import loaded, refuse_other_software
from evaluator.outputs.kept_jobs import KeptJobs
from evaluator.threads import in_threads

# Submissions handed out at a time: enough for any cluster.
AT_ONCE = 512
_AGAIN = "finished jobs are kept where the command has an output: start it anew, and the same command goes on there."

Results = tuple[Any, ...]


class Job(Protocol):
    """What can be computed anywhere: a frozen dataclass of plain values, which fix its result."""

    classes: ClassVar[tuple[type, ...]] = ()
    """Classes that its results are made of, besides plain values."""

    @property
    def name(self) -> str:
        """Name of the job in messages."""

    @property
    def key(self) -> str:
        """Hash of all that fixes the results, by which they are kept; empty where none are."""
        return ""

    @property
    def items(self) -> Sequence[Any]:
        """What the job is made of: threads compute one item each."""

    def open(self) -> Any:
        """Open, on a worker, what the items are computed on.

        Raises
        ------
        WorkerError
            The worker is refused: it finds something else under a name.
        """

    def compute(self, opened: Any, item: Any) -> Any:
        """Compute an item, and return its result."""

    def pack(self, results: Results) -> Any:
        """Return the results of all items as a worker sends them and a folder keeps them: as text."""
        return as_text(results)

    def unpack(self, packed: Any, opened: Any) -> Results:
        """Return the results that `pack` packed, in the process that has opened what they were computed on."""
        found: Results = from_text(packed, self.classes)
        return found


J = TypeVar("J", bound=Job)


def run_jobs(
    jobs: Sequence[J],
    opened: Any = None,
    *,
    threads: int = 1,
    kept: KeptJobs | None = None,
    executor: Executor | None = None,
    together: int = 1,
    ordered: bool = True,
    advance: Callable[[J, int], None] = lambda job, items: None,
) -> Generator[tuple[J, Results], None, None]:
    """Yield each job with the results of its items; they are kept as soon as they come.

    Parameters
    ----------
    jobs
        Jobs to run, no two with one key.
    opened
        What the items are computed on in this process; None where every job opens it, as on a worker.
    threads
        Number of threads of this process.
    kept
        Folder in which results are looked for and kept; None for none.
    executor
        Executor whose workers compute what is not kept; None for this process.
    together
        Number of jobs that the executor is given at a time: a few seconds of work.
    ordered
        Whether jobs are yielded in their order, or else as soon as they are finished.
    advance
        Function called with a job and the number of its items that were found or finished since the last call.

    Raises
    ------
    WorkerError
        The executor is gone, a job ended every worker that took it, or a worker was refused; the message names it.
    EvaluatorError
        As a job raised it.
    """
    keys = [] if kept is None else [job.key for job in jobs]
    texts = {} if kept is None else kept.find(keys)
    left = [at for at in range(len(jobs)) if not texts or keys[at] not in texts]

    def finished() -> Generator[tuple[int, Results], None, None]:
        for at, key in enumerate(keys):
            if key in texts:
                advance(jobs[at], len(jobs[at].items))
                yield at, jobs[at].unpack(texts.pop(key), opened)
        if executor is None:
            with closing(_here(jobs, left, opened, threads, advance)) as computed:
                for at, results in computed:
                    if kept is not None:
                        kept.keep(keys[at], jobs[at].pack(results))
                    yield at, results
            return
        with closing(_on_executor(jobs, left, executor, together)) as sent:
            for at, packed in sent:
                advance(jobs[at], len(jobs[at].items))
                if kept is not None:
                    kept.keep(keys[at], packed)
                yield at, jobs[at].unpack(packed, opened)

    waiting: dict[int, Results] = {}
    with closing(finished()) as coming:
        if not ordered:
            for at, results in coming:
                yield jobs[at], results
            return
        for at, job in enumerate(jobs):
            while at not in waiting:
                done, results = next(coming)
                waiting[done] = results
            yield job, waiting.pop(at)


def _here(
    jobs: Sequence[J], left: Sequence[int], opened: Any, threads: int, advance: Callable[[J, int], None]
) -> Generator[tuple[int, Results], None, None]:
    """Yield the results of jobs in their order: items of several jobs are computed at a time."""

    def one(task: tuple[J, Any]) -> Any:
        job, item = task
        return job.compute(job.open() if opened is None else opened, item)

    with closing(in_threads(one, ((jobs[at], item) for at in left for item in jobs[at].items), threads)) as coming:
        for at in left:
            results = []
            for result in islice(coming, len(jobs[at].items)):
                results.append(result)
                advance(jobs[at], 1)
            yield at, tuple(results)


def _on_executor(
    jobs: Sequence[J], left: Sequence[int], executor: Executor, together: int
) -> Generator[tuple[int, Any], None, None]:
    """Yield the packed results of jobs as soon as they are there, each once, in no order."""
    coming: dict[Future[list[Any]], Sequence[int]] = {}
    software = loaded()
    parts = iter([left[at : at + together] for at in range(0, len(left), together)])
    try:
        while True:
            while len(coming) < AT_ONCE and (part := next(parts, None)) is not None:
                coming[_submitted(executor, [jobs[at] for at in part], software)] = part
            if not coming:
                return
            for future in wait(coming, return_when=FIRST_COMPLETED).done:
                part = coming.pop(future)
                yield from zip(part, _packed(future, jobs[part[0]], len(part) - 1), strict=True)
    finally:
        for future in coming:
            future.cancel()


def compute_jobs(jobs: Sequence[Job], software: tuple[str, ...]) -> list[Any]:
    """Return the packed results of some jobs, on a worker, whose BLAS has as many threads as anywhere.

    Raises
    ------
    WorkerError
        The worker is refused: it computes with other software than the command.
    """
    refuse_other_software(software)
    with one_blas_thread():
        return [job.pack(tuple(map(partial(job.compute, job.open()), job.items))) for job in jobs]


def _submitted(executor: Executor, jobs: Sequence[Job], software: tuple[str, ...]) -> Future[list[Any]]:
    try:
        return executor.submit(compute_jobs, jobs, software)
    except BrokenExecutor as error:
        raise _gone(error) from error
    except EvaluatorError:
        raise
    except Exception as error:
        if _is_of_scheduler(error):
            raise _gone(error) from error
        raise


def _packed(future: Future[list[Any]], job: Job, more: int) -> list[Any]:
    name = f"{job.name} and {more:,} more" if more else job.name
    try:
        return future.result()
    except EvaluatorError:
        raise
    except (CancelledError, BrokenExecutor) as error:
        raise _gone(error) from error
    except (ImportError, AttributeError, RuntimeError) as error:
        if "evaluator" in str(error) or "evaluator" in str(error.__cause__):
            raise WorkerError(
                f"A worker could not begin {name}: {error.__cause__ or error}.",
                remedy="install the same version of delayed-replay for the scheduler and on every worker.",
            ) from error
        raise
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise _killed(error, name) from error
        if _is_of_scheduler(error):
            raise _gone(error) from error
        raise


def _killed(error: Exception, name: str) -> WorkerError:
    times = getattr(error, "allowed_failures", 0) + 1
    last = getattr(getattr(error, "last_worker", None), "address", "unknown")
    return WorkerError(
        f"{name} ended every worker that took it, {times} of them, the last at {last}.",
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
