"""How a table writes numbers that have intervals: in as many decimals as the errors in its column carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any


def as_written(of: Any, column: Iterable[Any] = (), *, sign: str = "") -> tuple[str, str]:
    """Return the texts of an estimate and of its interval, alone or among the intervals of a column."""
    plain = [one if isinstance(one, Mapping) else vars(one) for one in (of, *column)]
    numbers = [(one["estimate"], one["low"], one["high"]) for one in plain]
    # Half of each interval; its first digit stands at 10 to the power of `adjusted`.
    halves = [Decimal((high - low) / 2).adjusted() for _, low, high in numbers if high > low]
    decimals = max(1 - max(halves), -min(halves), 0)
    estimate, low, high = (f"{number:{sign},.{decimals}f}" for number in numbers[0])
    return estimate, f"[{low}, {high}]"
