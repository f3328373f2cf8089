"""What a process that computes jobs needs to know: its name, its folder, and the data that it holds open."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# Topic under which the workers of a Dask cluster report to the command.
TOPIC = "evaluate"


def this_worker() -> str:
    """Return the name of this process: its address on a cluster, otherwise its host and process number."""
    worker = _dask_worker()
    return f"{socket.gethostname()}:{os.getpid()}" if worker is None else str(worker.address)


def this_folder() -> str:
    """Return the working folder, from which relative paths start."""
    return os.getcwd()


def in_folder(folder: str) -> None:
    """Change to the working folder of the command, where this worker has that folder."""
    if this_folder() != folder and os.path.isdir(folder):
        os.chdir(folder)


def tell(sentence: str) -> None:
    """Send a sentence about this worker to the command; outside a cluster, do nothing."""
    worker = _dask_worker()
    if worker is not None:
        worker.log_event(TOPIC, {"worker": this_worker(), "said": sentence})


def _dask_worker() -> Any:
    # A process that has not imported Dask is not a worker.
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_worker()
    except ValueError:
        return None


class OpenedLast(Generic[K, V]):
    """Data that a worker opened last and holds open for the jobs that follow; its threads share them.

    Parameters
    ----------
    opens
        Function that opens the data that a key names; a key is made of plain values.
    most
        Largest number of data sets that are held open; the oldest is closed before another is opened.
    """

    def __init__(self, opens: Callable[[K], V], *, most: int = 1) -> None:
        self._opens, self._most = opens, most
        self._lock = Lock()
        self._open: list[tuple[K, V]] = []

    def __call__(self, key: K) -> V:
        """Return the data that a key names, and open them if they are not open."""
        with self._lock:
            for known, opened in self._open:
                if known == key:
                    return opened
            del self._open[: len(self._open) + 1 - self._most]
            self._open.append((key, self._opens(key)))
            return self._open[-1][1]

    def clear(self) -> None:
        """Close all data."""
        self._open.clear()
