"""What a worker knows and says of itself."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# Under which workers of a Dask cluster tell of themselves.
TOPIC = "evaluate"


def this_worker() -> str:
    """Return the name of the process that computes: its address on a cluster, else host and number."""
    worker = _dask_worker()
    return f"{socket.gethostname()}:{os.getpid()}" if worker is None else str(worker.address)


def this_folder() -> str:
    """Return the working folder, in which relative names are looked up."""
    return os.getcwd()


def in_folder(folder: str) -> None:
    """Look relative names up where the command does, if this worker sees that folder."""
    if this_folder() != folder and os.path.isdir(folder):
        os.chdir(folder)


def tell(sentence: str) -> None:
    """Have a sentence on this worker said where the command runs; by no cluster, to nobody."""
    worker = _dask_worker()
    if worker is not None:
        worker.log_event(TOPIC, {"worker": this_worker(), "said": sentence})


def _dask_worker() -> Any:
    # Who is no worker never imported it.
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_worker()
    except ValueError:
        return None


class OpenedLast(Generic[K, V]):
    """What a worker opened last, kept for the jobs that follow; threads of a worker open it once.

    Parameters
    ----------
    opens
        Function that opens what a key, a value of plain values, names.
    most
        Number of what is kept open; what was opened first is let go of before the next is opened.
    """

    def __init__(self, opens: Callable[[K], V], *, most: int = 1) -> None:
        self._opens, self._most = opens, most
        self._lock = Lock()
        self._open: list[tuple[K, V]] = []

    def __call__(self, key: K) -> V:
        """Return what a key names."""
        with self._lock:
            for known, opened in self._open:
                if known == key:
                    return opened
            del self._open[: len(self._open) + 1 - self._most]
            self._open.append((key, self._opens(key)))
            return self._open[-1][1]

    def clear(self) -> None:
        """Let go of what is open."""
        self._open.clear()
