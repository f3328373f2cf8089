"""The only place that touches Numba's decorators.

Numba's cache does not see edits in functions reached through `overload`, so the cache folder is named by a hash of the
package's sources. It lives in the user's cache directory, because site-packages may be read-only.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config
from numba.extending import intrinsic, overload, register_jitable

F = TypeVar("F", bound=Callable[..., Any])

# Folders of earlier versions are kept for processes that still run them.
_KEPT_VERSIONS = 4


@cache
def cache_folder() -> Path:
    """Return the folder of this version's compiled code, created if need be."""
    sources = hashlib.sha256(numba.__version__.encode())
    package = Path(__file__).resolve().parents[1]
    for folder in ("kernels", "policies", "replayer", "simulator"):
        for file in sorted((package / folder).rglob("*.py")):
            sources.update(file.name.encode() + file.read_bytes())
    parent = _writable_parent()
    version = parent / sources.hexdigest()[:16]
    version.mkdir(parents=True, exist_ok=True)
    _forget_old(parent, keep=version)
    return version


def _writable_parent() -> Path:
    if config.CACHE_DIR:
        base = Path(config.CACHE_DIR)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir()))
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches").expanduser()
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    parent = base / "delayed-replay"
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        parent = Path(tempfile.gettempdir()) / f"delayed-replay-{os.getuid() if hasattr(os, 'getuid') else ''}"
        parent.mkdir(parents=True, exist_ok=True)
    if not os.access(parent, os.W_OK):
        parent = Path(tempfile.mkdtemp(prefix="delayed-replay-"))
    return parent


def _forget_old(parent: Path, *, keep: Path) -> None:
    def last_used(folder: Path) -> float:
        try:
            return folder.stat().st_mtime
        except OSError:  # another process forgot it meanwhile
            return 0.0

    versions = sorted((f for f in parent.iterdir() if f.is_dir() and f != keep), key=last_used)
    for folder in versions[:-_KEPT_VERSIONS]:
        shutil.rmtree(folder, ignore_errors=True)


def compiled(function: F) -> F:
    """Compile a loop, cached on disk and releasing the GIL. No fastmath: results do not depend on the build."""
    return _compile(function, cache=True)


def compiled_uncached(function: F) -> F:
    """Compile a loop for user policies, whose edits no cache would see."""
    return _compile(function, cache=False)


def _compile(function: F, *, cache: bool) -> F:
    before = config.CACHE_DIR
    # Numba reads the folder when it decorates, so other users of Numba in this process keep theirs.
    config.CACHE_DIR = str(cache_folder()) if cache else before
    try:
        out: F = numba.njit(cache=cache, nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before
    return out


def inlinable(function: F) -> F:
    """Leave a function plain Python, and let compiled code call it, which copies it into its caller.

    Only so does the caller's knowledge reach it, above all that its arrays are borrowed (`evaluator.kernels.memory`).
    """
    out: F = register_jitable(forceinline=True)(function)
    return out


def overloads(generic: Callable[..., Any]) -> Callable[[F], F]:
    """Let the decorated function pick, at compile time, what compiled code runs when it calls `generic`.

    What it picks is copied into its caller (see `inlinable`).
    """
    # Not strict: Numba would compare the annotations of the two signatures too.
    decorate: Callable[[F], F] = overload(generic, strict=False, jit_options={"forceinline": True})
    return decorate


def instruction(generator: Callable[..., Any]) -> Any:
    """Let compiled code call what the decorated function generates in the compiler's own language."""
    return intrinsic(generator)
