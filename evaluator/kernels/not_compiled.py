"""Why a function cannot be compiled, in a line."""

from __future__ import annotations

import re
from pathlib import Path

from numba.core.errors import NumbaError


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
