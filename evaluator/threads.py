"""Threads: work whose results do not depend on how many there are, and one thread alone for BLAS."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, Thread, current_thread
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")
# What the libraries that NumPy and SciPy are built with read as they load.
_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_lock = Lock()
_blocks = 0
# Who limits it, for only the thread that did can give the threads back.
_limited: tuple[Thread, Any] | None = None


def in_threads(
    job: Callable[[T], R], items: Iterable[T], jobs: int, *, ready: int | None = None
) -> Generator[R, None, None]:
    """Yield the job's result for each item, in their order; items are read one after the other as results are taken.

    The job is a function of one item, which neither hears nor tells of the others. With one thread the work is done in
    this thread, which alone hears Ctrl-C. As many results as `ready` may wait to be taken, or be in the making; None
    for four a thread.
    """
    if jobs == 1:
        yield from map(job, items)
        return
    most = 4 * jobs if ready is None else ready
    coming: deque[Future[R]] = deque()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for item in items:
                coming.append(pool.submit(job, item))
                if len(coming) > most:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)  # an error or Ctrl-C waits for no further job


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items, the next of which is made in a thread meanwhile."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


@contextmanager
def behind(work: Callable[[T], None]) -> Iterator[Callable[[T], None]]:
    """Give a function that has `work` done in a thread, one call at a time; when the block is left all is done."""
    pending: list[Future[None]] = []

    def submit(item: T) -> None:
        if pending:
            pending.pop().result()
        pending.append(thread.submit(work, item))

    with ThreadPoolExecutor(1) as thread:
        yield submit
        if pending:
            pending.pop().result()


def one_blas_thread_from_the_start() -> None:
    """Let BLAS have one thread in a process that is ours alone, before NumPy loads it."""
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS have one thread in this process while the block runs, or the function that is decorated.

    Of a dot product of ten thousand numbers each thread takes a part, so that a worker of another size, or one to which
    its cluster gives one thread, would find other last bits. Afterwards BLAS has as many threads as before; where
    blocks overlap in threads and the first is left before another, it keeps one.
    """
    global _blocks, _limited
    with _lock:
        if _blocks == 0:
            _limited = current_thread(), _loaded().limit(limits=1, user_api="blas").__enter__()
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if _blocks == 0 and _limited is not None and _limited[0] is current_thread():
                _limited[1].__exit__(None, None, None)


@cache
def _loaded() -> Any:
    """Return what controls the BLAS of NumPy and that of SciPy, loaded now lest it come with all its threads later.

    Its special functions are linked with it, and intervals need them anyway.
    """
    import scipy.special  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
