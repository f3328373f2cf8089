"""Fields within columns, ``user.country``, and columns of lists or maps each of whose elements makes a row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from evaluator.reading.cells import label_array

# Fields of the elements of a map.
KEY, VALUE = "key", "value"
# What no column is called: the element that makes a row.
_ELEMENT = "__element"
# Polars has maps since 2.0; before, they are lists of such fields.
_MAPS: Any = getattr(pl, "Map", ())


def path_of(column: str, names: Collection[str]) -> tuple[str, ...] | None:
    """Return the column that holds another one, and the fields on the way to it; None where none does.

    >>> path_of("user.home.land", ["t", "user"]), path_of("a.b", ["a.b", "a"]), path_of("b.c", ["a"])
    (('user', 'home', 'land'), ('a.b',), None)
    """
    if column in names:
        return (column,)
    root = next((root for root in _roots(column) if root in names), None)
    return None if root is None else (root, *column[len(root) + 1 :].split("."))


def _roots(column: str) -> Iterator[str]:
    """Yield what stands before a dot of a name, the longest first."""
    root = column
    while "." in root:
        root = root.rpartition(".")[0]
        yield root


def element_type(kind: pl.DataType) -> pl.DataType | None:
    """Return what the elements of a column of lists, or of a map, are; of text, text. None of other columns."""
    if isinstance(kind, pl.List | pl.Array):
        inner: pl.DataType = kind.inner  # type: ignore[assignment]
        return inner
    if isinstance(kind, _MAPS):
        return pl.Struct({KEY: kind.key, VALUE: kind.value})
    return kind if kind == pl.String else None


def field_type(kind: pl.DataType | None, fields: Collection[str]) -> pl.DataType | None:
    """Return the type of a field within a column, None where there is no such field."""
    for field in fields:
        held: dict[str, Any] = dict(kind) if isinstance(kind, pl.Struct) else {}
        kind = held.get(field)
    return kind


def within(column: str, kind: pl.DataType) -> str:
    """Return what to do about a column that holds several values a cell: how those within it are named."""
    of = kind if isinstance(kind, pl.Struct) else element_type(kind)
    if isinstance(kind, pl.Struct) and kind.fields:
        return f"name a field of it, such as {f'{column}.{kind.fields[0].name}'!r}, or write one number or text a row."
    if isinstance(of, pl.Struct) and of.fields:
        named = f"{column}.{of.fields[0].name}"
        return f"explode = {column!r} makes a row of each element, such as {named!r}; or write one value a row."
    return "write one number or text a row."


def field_of(cells: pl.Series, fields: Collection[str]) -> pl.Series:
    """Return a field within a column."""
    for field in fields:
        cells = cells.struct.field(field)
    return cells


def with_elements(raw: pl.DataFrame, lists: pl.Series, also: pl.Series | None = None) -> pl.DataFrame:
    """Return rows once for each element of their lists, in a column of its own; without any, only those `also` kept."""
    some = (lists.list.len() > 0).fill_null(False)
    rows = raw.with_columns(lists.alias(_ELEMENT)).filter(some if also is None else some | also)
    return rows.explode(_ELEMENT)


def flat_columns(
    raw: pl.DataFrame, paths: Mapping[str, Sequence[str]], explode: Sequence[str] = ()
) -> dict[str, pl.Series]:
    """Return columns by their `paths`, those of elements from rows `with_elements` of the column `explode`."""
    columns = {}
    for column, path in paths.items():
        root, *fields = path
        if explode and tuple(path[: len(explode)]) == tuple(explode):
            root, fields = _ELEMENT, list(path[len(explode) :])
        columns[column] = field_of(raw[root], fields).alias(column)
    return columns


def value_at(found: dict[str, Any], column: str) -> Any:
    """Return the value of a column in an object, whose keys may hold others; None where there is none."""
    path = path_of(column, found)
    if path is None:
        return None
    value: Any = found[path[0]]
    for field in path[1:]:
        value = value.get(field) if isinstance(value, dict) else None
    return value


def elements(value: Any) -> list[Any] | None:
    """Return the elements of a list, of a text that is a JSON array of labels, or the keys and values of an object.

    Without elements where it is missing. None of another value.
    """
    if value is None or value == "":
        return []
    if isinstance(value, dict):
        return [{KEY: key, VALUE: of} for key, of in value.items()]
    if isinstance(value, str):
        return label_array(value)
    return value if isinstance(value, list) else None


def with_element(found: dict[str, Any], column: str, element: Any) -> dict[str, Any]:
    """Return an object in which an element stands in the place of the list that it is of."""
    path = path_of(column, found)
    assert path is not None
    root, *fields = path
    if not fields:
        return {**found, root: element}
    return {**found, root: with_element(found[root], ".".join(fields), element)}


def key_paths(found: dict[str, Any], explode: str | None, before: str = "") -> Iterator[str]:
    """Yield the columns that an object names: its keys, those of objects within, and of the elements of a list."""
    for key, value in found.items():
        name = f"{before}{key}"
        yield name
        if name == explode:
            value = next(iter(elements(value) or ()), None)
        if isinstance(value, dict):
            yield from key_paths(value, explode, f"{name}.")
