"""What a process that computes jobs knows of itself: its name, its folder, its software, and the data it holds open."""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from evaluator.errors import WorkerError
from evaluator.outputs.atomic import checksum
from evaluator.version import __version__

K = TypeVar("K")
V = TypeVar("V")

# Topic under which the workers of a Dask cluster report to the command.
TOPIC = "evaluate"
# Libraries that compute numbers or read the log; scikit-learn estimates propensities.
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "polars", "pyarrow", "scikit-learn")
_PACKAGE = Path(__file__).resolve().parents[1]
# Number of hexadecimal digits of a SHA-256.
_HASH = 64


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


# How a process of `evaluator.jobs.processes` reports to the command; None in any other.
report: Callable[[str], None] | None = None


def tell(sentence: str) -> None:
    """Send a sentence about this worker to the command; outside a cluster, do nothing."""
    worker = _dask_worker()
    if report is not None:
        report(sentence)
    elif worker is not None:
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

    A key, made of plain values, names what the function opens; before more than `most` are open the oldest is closed.
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


def package_code() -> str:
    """Return a hash of this package's code: between two releases the code changes and the version does not."""
    digest = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*.py")):
        digest.update(f"{file.relative_to(_PACKAGE)} {checksum(file)}\n".encode())
    return digest.hexdigest()


def software() -> tuple[str, ...]:
    """Return the names and versions of this package (with the hash of its code), of its libraries and of Python."""
    libraries = (f"{name} {_version(name)}" for name in LIBRARIES)
    python = f"{platform.python_implementation()} {platform.python_version()} {platform.machine()}"
    return (f"delayed-replay {__version__} {package_code()}", *libraries, python)


def refuse_other_software(wanted: tuple[str, ...]) -> None:
    """Raise WorkerError unless this process runs the software that a job requires: versions and code."""
    for mine, theirs in zip(loaded(), wanted, strict=True):
        if mine != theirs:
            has, wants = _drop_hash(mine), _drop_hash(theirs)
            raise WorkerError(
                f"Worker {this_worker()} is refused: it has {has}, and the command runs with "
                f"{wants if has != wants else 'other code of that version'}.",
                remedy="install the same version on the worker, and restart it.",
            )


def _drop_hash(line: str) -> str:
    """Return a line of `software` without its hash."""
    return " ".join(word for word in line.split() if len(word) < _HASH)


@cache
def loaded() -> tuple[str, ...]:
    """Return `software` as of the first call in this process: later installations do not change what it runs."""
    return software()


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
