"""Run jobs: take kept results, compute the others here or on an executor, and report a lost executor in one line.

Results travel as text, the same to the bit: numbers, texts, tuples, dicts, arrays, dataclasses. JSON has no tuples, no
arrays and no classes, and pickle would run whatever a file says. Here the reader names the classes that it expects, and
no other class is created.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from evaluator.errors import EvaluatorError, WorkerError
from evaluator.jobs.workers import loaded, refuse_other_software
from evaluator.outputs.kept_folder import KeptJobs
from evaluator.threads import in_threads, one_blas_thread

# Largest number of submissions in progress: enough for any cluster.
AT_ONCE = 512
# Seconds after which a wait for results asks whether any can still come.
_PATIENCE = 5.0
_AGAIN = "run the same command again; with an output folder it keeps its finished jobs and goes on from there."

Results = tuple[Any, ...]


class Job(Protocol):
    """Work that any process can compute: a frozen dataclass of plain values, which determine its result."""

    classes: ClassVar[tuple[type, ...]] = ()
    """Classes that occur in its results, besides plain values."""

    @property
    def name(self) -> str:
        """Name of the job in messages."""

    @property
    def key(self) -> str:
        """Hash of everything that determines the results, which are kept under it; empty where no results are kept."""
        return ""

    @property
    def items(self) -> Sequence[Any]:
        """Items of the job; a thread computes one item at a time."""

    def open(self) -> Any:
        """Open the data that the items need, on a worker; WorkerError if they are not those of the command."""

    def compute(self, opened: Any, item: Any) -> Any:
        """Compute an item from the opened data, and return its result."""

    def pack(self, results: Results) -> Any:
        """Return the results of all items as text, in which form workers send them and a folder keeps them."""
        return as_text(results)

    def unpack(self, packed: Any, opened: Any) -> Results:
        """Return the results that `pack` packed, in a process that has opened the data."""
        results: Results = from_text(packed, self.classes)
        return results


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
    """Yield each job with the results of its items; results are kept as soon as they are computed.

    Jobs have keys of their own. Their items are computed from `opened` by `threads` of this process, or, where that is
    None, from what every job opens; or by the workers of an executor, a few seconds of work (`together` jobs) in one
    submission. Results are looked up and kept in the folder `kept`. Jobs are yielded in the order given, or, if not
    `ordered`, as soon as they are finished. `advance` is called with a job and the number of its items that became
    available since the last call.

    Raises WorkerError, which names the job, if the executor was lost, a job crashed every worker that took it, or a
    worker was refused; and whatever error a job raised.
    """
    keys = [] if kept is None else [job.key for job in jobs]
    texts = {} if kept is None else kept.find(keys)
    left = [at for at in range(len(jobs)) if not texts or keys[at] not in texts]

    def collect_results() -> Generator[tuple[int, Results], None, None]:
        for at, key in enumerate(keys):
            if key in texts:
                advance(jobs[at], len(jobs[at].items))
                yield at, jobs[at].unpack(texts.pop(key), opened)
        if executor is None:
            with closing(_compute_here(jobs, left, opened, threads, advance)) as computed:
                for at, results in computed:
                    if kept is not None:
                        kept.keep(keys[at], jobs[at].pack(results))
                    yield at, results
            return
        with closing(_compute_on_executor(jobs, left, executor, together)) as sent:
            for at, packed in sent:
                advance(jobs[at], len(jobs[at].items))
                if kept is not None:
                    kept.keep(keys[at], packed)
                yield at, jobs[at].unpack(packed, opened)

    waiting: dict[int, Results] = {}
    with closing(collect_results()) as coming:
        if not ordered:
            for at, results in coming:
                yield jobs[at], results
            return
        for at, job in enumerate(jobs):
            while at not in waiting:
                done, results = next(coming)
                waiting[done] = results
            yield job, waiting.pop(at)


def _compute_here(
    jobs: Sequence[J], left: Sequence[int], opened: Any, threads: int, advance: Callable[[J, int], None]
) -> Generator[tuple[int, Results], None, None]:
    """Yield the results of jobs in the order of the jobs; threads may compute items of several jobs at once."""

    def compute(pair: tuple[J, Any]) -> Any:
        job, item = pair
        return job.compute(job.open() if opened is None else opened, item)

    pairs = ((jobs[at], item) for at in left for item in jobs[at].items)
    with closing(in_threads(compute, pairs, threads)) as coming:
        for at in left:
            results = []
            for result in islice(coming, len(jobs[at].items)):
                results.append(result)
                advance(jobs[at], 1)
            yield at, tuple(results)


def _compute_on_executor(
    jobs: Sequence[J], left: Sequence[int], executor: Executor, together: int
) -> Generator[tuple[int, Any], None, None]:
    """Yield the packed results of jobs as soon as they arrive, in any order, each exactly once."""
    coming: dict[Future[list[Any]], Sequence[int]] = {}
    software = loaded()
    parts = iter([left[at : at + together] for at in range(0, len(left), together)])
    try:
        while True:
            while len(coming) < AT_ONCE and (part := next(parts, None)) is not None:
                coming[_submit(executor, [jobs[at] for at in part], software)] = part
            if not coming:
                return
            for future in _wait_for_some(coming, executor):
                part = coming.pop(future)
                yield from zip(part, _receive(future, jobs[part[0]], len(part) - 1), strict=True)
    finally:
        for future in coming:
            future.cancel()


def _wait_for_some(coming: Collection[Future[Any]], executor: Executor) -> set[Future[Any]]:
    """Wait for futures that are done; WorkerError where none can come, because the client of the executor has closed.

    Dask leaves a future undone for ever whose result it was fetching when its scheduler ended.
    """
    while True:
        closed = getattr(getattr(executor, "_client", None), "status", "") == "closed"
        if done := wait(coming, _PATIENCE, FIRST_COMPLETED).done:
            return done
        if closed:
            raise _executor_lost(CancelledError())


def compute_jobs(jobs: Sequence[Job], software: tuple[str, ...]) -> list[Any]:
    """Compute some jobs on a worker, and return their packed results; BLAS has one thread, as in every process.

    WorkerError if this worker runs other software than the command.
    """
    refuse_other_software(software)
    with one_blas_thread():
        return [job.pack(tuple(map(partial(job.compute, job.open()), job.items))) for job in jobs]


def _submit(executor: Executor, jobs: Sequence[Job], software: tuple[str, ...]) -> Future[list[Any]]:
    try:
        return executor.submit(compute_jobs, jobs, software)
    except BrokenExecutor as error:
        raise _executor_lost(error) from error
    except EvaluatorError:
        raise
    except Exception as error:
        if _is_lost_connection(error):
            raise _executor_lost(error) from error
        raise


def _receive(future: Future[list[Any]], job: Job, more: int) -> list[Any]:
    name = f"{job.name} and {more:,} more" if more else job.name
    try:
        return future.result()
    except EvaluatorError:
        raise
    except (CancelledError, BrokenExecutor) as error:
        raise _executor_lost(error) from error
    except (ImportError, AttributeError, RuntimeError) as error:
        if "evaluator" in str(error) or "evaluator" in str(error.__cause__):
            raise WorkerError(
                f"A worker could not begin {name}: {error.__cause__ or error}.",
                remedy="install the same version of delayed-replay for the scheduler and on every worker.",
            ) from error
        raise
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise _workers_crashed(error, name) from error
        if _is_lost_connection(error):
            raise _executor_lost(error) from error
        raise


def _workers_crashed(error: Exception, name: str) -> WorkerError:
    times = getattr(error, "allowed_failures", 0) + 1
    last = getattr(error, "last_worker", "unknown")
    last = getattr(last, "address", last)
    return WorkerError(
        f"{name} ended every worker that took it, {times} of them, the last at {last}.",
        remedy="workers usually end because memory is short: give each more memory, or fewer threads, and run the same "
        "command again.",
    )


def _executor_lost(error: BaseException) -> WorkerError:
    return WorkerError(
        f"The workers are gone: their scheduler ended or cannot be reached ({type(error).__name__}).", remedy=_AGAIN
    )


def _is_lost_connection(error: Exception) -> bool:
    """Whether an error says that the connection to a scheduler was lost; Dask has several names for it."""
    return type(error).__name__ in (
        "CommClosedError",
        "FutureCancelledError",
        "FuturesCancelledError",
        "ClosedClientError",
    )


def as_text(value: Any) -> str:
    """Return a value as text: None, a number, a text, a tuple, a dict, a NumPy array, a named tuple or a dataclass."""
    return json.dumps(_encode(value))


def from_text(text: str, classes: Iterable[type]) -> Any:
    """Return the value that `as_text` wrote; ValueError where it did not, or if another class than these is in it."""
    return _decode(json.loads(text), {cls.__name__: cls for cls in classes})


def _encode(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": [value.dtype.str, value.shape, base64.b64encode(value.tobytes()).decode()]}
    if isinstance(value, np.generic):
        return {"scalar": [value.dtype.str, base64.b64encode(value.tobytes()).decode()]}
    if isinstance(value, dict):
        return {"dict": [[_encode(name), _encode(item)] for name, item in value.items()]}
    if isinstance(value, tuple):
        fields = [_encode(item) for item in value]
        return {"record": [type(value).__name__, fields]} if hasattr(value, "_fields") else fields
    if dataclasses.is_dataclass(value):
        fields = [_encode(getattr(value, field.name)) for field in dataclasses.fields(value)]
        return {"record": [type(value).__name__, fields]}
    raise TypeError(f"a {type(value).__name__} cannot be written as text")


def _decode(encoded: Any, classes: dict[str, type]) -> Any:
    if isinstance(encoded, list):
        return tuple(_decode(item, classes) for item in encoded)
    if not isinstance(encoded, dict):
        return encoded
    ((kind, parts),) = encoded.items()
    if kind == "array":
        dtype, shape, data = parts
        return np.frombuffer(base64.b64decode(data), np.dtype(dtype)).reshape(shape).copy()
    if kind == "scalar":
        return np.frombuffer(base64.b64decode(parts[1]), np.dtype(parts[0]))[0]
    if kind == "dict":
        return {_decode(name, classes): _decode(item, classes) for name, item in parts}
    name, fields = parts
    if kind != "record" or name not in classes:
        raise ValueError(f"no {name} is expected here")
    cls, values = classes[name], [_decode(item, classes) for item in fields]
    if dataclasses.is_dataclass(cls):  # a dataclass may take its fields as keywords only
        return cls(**{field.name: value for field, value in zip(dataclasses.fields(cls), values, strict=True)})
    return cls(*values)
