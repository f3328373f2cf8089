"""What computes: this package, the libraries that it computes with, and Python."""

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

# Libraries that compute numbers, or read those of the log; scikit-learn estimates propensities.
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "polars", "pyarrow", "scikit-learn")
_PACKAGE = Path(__file__).resolve().parents[1]
# Length of a SHA-256 in hex.
_HASH = 64


def package_code() -> str:
    """Return a hash of this package's own code: between two releases its version does not say what it does."""
    digest = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*.py")):
        digest.update(f"{file.relative_to(_PACKAGE)} {checksum(file)}\n".encode())
    return digest.hexdigest()


def software() -> tuple[str, ...]:
    """Return what this package, the libraries that compute, and Python are known by."""
    libraries = (f"{name} {_version(name)}" for name in LIBRARIES)
    python = f"{platform.python_implementation()} {platform.python_version()} {platform.machine()}"
    return (f"delayed-replay {__version__} {package_code()}", *libraries, python)


def refuse_other_software(wanted: tuple[str, ...]) -> None:
    """Raise unless this process computes with what a job was made for.

    Raises
    ------
    WorkerError
        It has another version of something, or other code under the same version; the message names worker and both.
    """
    for mine, theirs in zip(loaded(), wanted, strict=True):
        if mine != theirs:
            has, asked = _said(mine), _said(theirs)
            raise WorkerError(
                f"Worker {this_worker()} is refused: it has {has}, and the command runs with "
                f"{asked if has != asked else 'other code of that version'}.",
                remedy="install the same there, and start the worker anew.",
            )


def _said(line: str) -> str:
    """Return a line of `software` without a hash."""
    return " ".join(word for word in line.split() if len(word) < _HASH)


@cache
def loaded() -> tuple[str, ...]:
    """Return what `software` returned when this process asked first: what it runs, whatever is installed meanwhile."""
    return software()


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
