"""The only place that touches Numba's decorators."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload, register_jitable

from evaluator.engine.kernels.code_cache import CodeCache, cache_folder
from evaluator.engine.kernels.internals import TESTED

F = TypeVar("F", bound=Callable[..., Any])

_LOOP: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_PIECE: dict[str, Any] = {"forceinline": True}
if TESTED:
    from evaluator.engine.kernels.inlining import Loop, Piece

    _LOOP |= {"pipeline_class": Loop, "no_cfunc_wrapper": True}
    _PIECE |= {"pipeline_class": Piece}


def compiled(function: F) -> F:
    """Compile a loop, cached on disk and releasing the GIL. No fastmath: results do not depend on the build."""
    out = compiled_uncached(function)
    out._cache = CodeCache(function, cache_folder())  # type: ignore[attr-defined]
    return out


def compiled_uncached(function: F) -> F:
    """Compile a loop for user policies, whose edits no cache would see."""
    out: F = numba.njit(**_LOOP)(function)
    return out


def inlinable(function: F) -> F:
    """Leave a function plain Python, and let compiled code call it, which copies it into its caller.

    Only so does the caller's knowledge reach it, above all that its arrays are borrowed
    (`evaluator.engine.kernels.memory`).
    """
    out: F = register_jitable(**_PIECE)(function)
    return out


def overloads(generic: Callable[..., Any]) -> Callable[[F], F]:
    """Let the decorated function pick, at compile time, what compiled code runs when it calls `generic`.

    What it picks is copied into its caller (see `inlinable`).
    """
    # Not strict: Numba would compare the annotations of the two signatures too.
    decorate: Callable[[F], F] = overload(generic, strict=False, jit_options=_PIECE)
    return decorate


def instruction(generator: Callable[..., Any]) -> Any:
    """Let compiled code call what the decorated function generates in the compiler's own language."""
    return intrinsic(generator)


def why_not_compiled(error: Exception) -> str | None:
    """Return the one reason of a page that tells of every call around it, with file and line where they are told.

    None for an error that is none of compiling.
    """
    if not isinstance(error, NumbaError):
        return None
    inner = re.split(r"Failed in .* \(step: .*\)\n", re.sub(r"\x1b\[[0-9;]*m", "", str(error)))[-1]
    reason = next((line.strip() for line in inner.splitlines() if line.strip()), type(error).__name__)
    place = re.search(r'File "(.*)", line (\d+)', inner)
    return f"{reason.rstrip('.')} ({Path(place[1]).name}, line {place[2]})" if place else reason.rstrip(".")
