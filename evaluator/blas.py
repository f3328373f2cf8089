"""One thread for BLAS: the last bits of its sums depend on how many there are, and no result may."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, Thread, current_thread
from typing import Any

# What the libraries that NumPy and SciPy are built with read as they load.
_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

_lock = Lock()
_blocks = 0
# Who limits it, for only the thread that did can give the threads back.
_limited: tuple[Thread, Any] | None = None


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
    """Return what controls the BLAS of NumPy and that of SciPy, loaded now lest it come with all its threads later."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
