"""Work in threads, whose results do not depend on how many there are: several jobs at once, or one a step aside."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_threads(
    job: Callable[[T], R], items: Iterable[T], jobs: int, *, ready: int | None = None
) -> Generator[R, None, None]:
    """Yield the job's result for each item, in the order of the items.

    Parameters
    ----------
    job
        Function of one item, which neither hears nor tells of the others.
    items
        Items to work on, read one after the other as results are taken.
    jobs
        Number of threads; with one the work is done in this thread, which alone hears Ctrl-C.
    ready
        Number of results that may wait to be taken, or be in the making; None for four a thread.
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
