"""Results as JSON has them: it knows no tuples, and no numbers that are not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def json_values(of: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a result says as JSON has it, however nested: lists for tuples, None for what is not finite.

    Examples
    --------
    >>> json_values({"low": float("-inf"), "windows": (500, 2000)})
    {'low': None, 'windows': [500, 2000]}
    """
    return {str(name): _json_value(value) for name, value in of.items()}


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return json_values(value)
    if isinstance(value, list | tuple):
        return [_json_value(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
