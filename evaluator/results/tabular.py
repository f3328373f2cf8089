"""Results as Arrow tables, which polars (`polars.from_arrow`) and pandas (``table.to_pandas()``) take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import pyarrow as pa

# Types of columns that any table may have.
TEXT, FLAG, COUNT, NUMBER = pa.string(), pa.bool_(), pa.int64(), pa.float64()
VARIANT, ACTION = pa.int32(), pa.int32()

T = TypeVar("T")
# Columns of a table by name: type, and what a row's thing has in it; None stands for an interval, in three columns.
Columns = Mapping[str, tuple[pa.DataType | None, Callable[[T], Any]]]


class IntervalEnds(Protocol):
    """An estimate with the ends of its interval."""

    @property
    def estimate(self) -> float:
        """The estimate."""

    @property
    def low(self) -> float:
        """Its lower end."""

    @property
    def high(self) -> float:
        """Its upper end."""


def arrow_table(columns: Mapping[str, pa.DataType], rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table with these columns; what a row does not have, and what is no number, is null.

    >>> arrow_table({"name": TEXT, "value": NUMBER}, [{"name": "a", "value": math.nan}, {"name": "b"}]).to_pylist()
    [{'name': 'a', 'value': None}, {'name': 'b', 'value': None}]
    """
    plain = [{name: _known(row.get(name)) for name in columns} for row in rows]
    return pa.Table.from_pylist(plain, schema=pa.schema(list(columns.items())))


def table_of(columns: Columns[T], things: Iterable[T]) -> pa.Table:
    """Return one row a thing, with what each column takes of it."""
    types: dict[str, pa.DataType] = {}
    for name, (kind, _) in columns.items():
        types |= interval_columns(name) if kind is None else {name: kind}

    def cells(name: str, kind: pa.DataType | None, found: Any) -> Mapping[str, Any]:
        return interval_cells(name, found) if kind is None else {name: found}

    def row(thing: T) -> dict[str, Any]:
        parts = (cells(name, kind, of(thing)) for name, (kind, of) in columns.items())
        return {name: cell for part in parts for name, cell in part.items()}

    return arrow_table(types, map(row, things))


def interval_columns(*names: str) -> dict[str, pa.DataType]:
    """Return the columns of `interval_cells`."""
    return {f"{name}{end}": NUMBER for name in names for end in ("", "_low", "_high")}


def interval_cells(name: str, interval: IntervalEnds | None) -> dict[str, float]:
    """Return an interval as cells: ``name``, ``name_low`` and ``name_high``; none where there is no interval."""
    if interval is None:
        return {}
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
