"""Results as JSON has them: it knows no tuples, and no numbers that are not finite."""

from __future__ import annotations

import math
from typing import Any, overload


@overload
def json_values(value: dict[Any, Any]) -> dict[str, Any]: ...


@overload
def json_values(value: Any) -> Any: ...


def json_values(value: Any) -> Any:
    """Return a value as JSON has it: lists for tuples, None for numbers that are not finite.

    Examples
    --------
    >>> json_values({"low": float("-inf"), "windows": (500, 2000)})
    {'low': None, 'windows': [500, 2000]}
    """
    if isinstance(value, dict):
        return {str(k): json_values(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
