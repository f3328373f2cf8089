"""Independent fits side by side: their numbers do not depend on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_threads(job: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return the job's result for each item, in their order; one thread a processor."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        coming = [pool.submit(job, item) for item in items]
        try:
            return [result.result() for result in coming]
        finally:
            pool.shutdown(cancel_futures=True)  # an error or Ctrl-C waits for no further fit
