"""One more thread: work done a step ahead, or a step behind, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


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
