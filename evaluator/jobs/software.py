"""The software that computes results: this package, its numerical libraries, and Python, each with its version."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from evaluator.errors import WorkerError
from evaluator.jobs.workers import this_worker
from evaluator.outputs.checksums import checksum
from evaluator.version import __version__

# Libraries that compute numbers or read the log; scikit-learn estimates propensities.
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "polars", "pyarrow", "scikit-learn")
_PACKAGE = Path(__file__).resolve().parents[1]
# Number of hexadecimal digits of a SHA-256.
_HASH = 64


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
    """Raise unless this process runs the software that a job requires.

    Raises
    ------
    WorkerError
        A version differs, or the code under one version; the message names the worker and both versions.
    """
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
