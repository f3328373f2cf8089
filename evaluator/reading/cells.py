"""Cells of a source as the values their roles ask for; those that do not fit keep their text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from evaluator.log.encoder import value_text
from evaluator.reading.labels import value_texts
from evaluator.reading.zones import offset_minutes, placed, read_instants

Kind = Literal["int", "flag", "float", "text", "category", "datetime", "labels", "offset"]
TYPES: dict[Kind, pl.DataType] = {
    "labels": pl.List(pl.String()), "flag": pl.Int64(),
    "int": pl.Int64(), "float": pl.Float64(), "text": pl.String(), "category": pl.String(), "datetime": pl.Int64(),
    "offset": pl.Int64(),
}  # fmt: skip
PROBLEMS: dict[Kind, tuple[str, str]] = {
    "int": ("not a whole number", "repair the cell, list it in source.none, or quarantine the row"),
    "flag": ("neither 0 nor 1, true nor false", "repair the cell, list it in source.none, or quarantine the row"),
    "float": ("not a number", "repair the cell, list it in source.none, or quarantine the row"),
    "labels": ("not a list of labels", "write a JSON array, or say what parts them: display.eligible_separator"),
    "datetime": ("not an ISO date and time", "write 2024-01-31T12:00:00+00:00"),
    "offset": ("not an offset from UTC", "write the minutes that local time is ahead, such as 120 or -300, or +02:00"),
}
# Kinds of whole numbers, and of all numbers.
WHOLE: tuple[Kind, ...] = ("int", "flag")
NUMBERS: tuple[Kind, ...] = (*WHOLE, "float")
# Two roles may share a column: the stricter kind is read, the other derived from it.
_STRICTNESS: tuple[Kind, ...] = ("category", "text", "float", "flag", "int", "datetime", "labels", "offset")
# Truth values as tables write them, and PostgreSQL: 1 and 0. A value may be one, a time cannot.
TRUTHS = {"true": "1", "false": "0"}
_WORDS: dict[Kind, dict[str, str]] = {"flag": {**TRUTHS, "t": "1", "f": "0"}, "float": TRUTHS}

# The end of the year 262,142, the last one whole.
_LAST_SECOND = 8_210_000_000_000
LISTS = pl.List(pl.String)


class Cells(NamedTuple):
    """A column of values, null where a cell is missing or does not fit, and the text of those that do not fit.

    Of times, too, whether they say their zone, all of them or each, or have one of the spec.
    """

    values: pl.Series
    unparsed: pl.Series | None
    aware: bool | pl.Series = True


def merged_kinds(one: Mapping[str, Kind], other: Mapping[str, Kind]) -> dict[str, Kind]:
    """Return the kind of each column of both."""
    out = dict(one)
    for column, kind in other.items():
        out[column] = max(out.get(column, kind), kind, key=_STRICTNESS.index)
    return out


def parse(
    column: pl.Series,
    kind: Kind,
    missing: list[str],
    form: str | None = None,
    *,
    separator: str | None = None,
    zone: str | pl.Series | None = None,
) -> Cells:
    """Return a column as values of its kind.

    Numbers and times are parsed, the rest is text. Of the values `missing` that mean "none", -1 also stands for -1.0 in
    a column of numbers. Dates are written in the `form` of `evaluator.reading.zones.read_instants`; a `separator`
    stands between the labels of a list, None for JSON arrays; `zone` is that of times that say none, or by how many
    minutes each is ahead of UTC, None for UTC.
    """
    if kind == "labels":
        return Cells(*label_lists(column if column.dtype.is_nested() else _without(_text(column), missing), separator))
    if kind in ("text", "category"):
        if column.dtype == pl.Boolean and kind == "text":
            column = column.cast(pl.Int8)
        return Cells(_without(value_texts(column), [value_text(word) for word in missing]), None)
    if kind == "datetime" and column.dtype.is_temporal():
        # Datetime columns need no parsing; they travel as ticks of us.
        own = getattr(column.dtype, "time_zone", None)
        ticks = column.cast(pl.Datetime("us", own)).cast(pl.Int64)
        if own is not None or zone is None:
            return Cells(ticks, None, own is not None)
        ticks = placed(ticks, False, zone)
        lost = ticks.null_count() > column.null_count()
        return Cells(ticks, _left_over(column.cast(pl.String), ticks) if lost else None)
    if kind not in ("datetime", "offset") and column.dtype != pl.String:
        values = column.cast(TYPES[kind], strict=False)
        if kind in WHOLE and (column.dtype.is_float() or column.dtype.is_decimal()):
            # A cast cuts fractions off without a word.
            values = values.set((values.cast(column.dtype, strict=False) != column).fill_null(False), None)
        lost = values.null_count() > column.null_count()
        return Cells(_without_numbers(values, missing), _left_over(column.cast(pl.String), values) if lost else None)
    text = _without(_text(column), missing)
    aware: bool | pl.Series = True
    if kind == "datetime":
        values, aware = read_instants(text, form)
        if zone is not None and aware is not True:
            values, aware = placed(values, aware, zone), True
    else:
        values = offset_minutes(text) if kind == "offset" else text.cast(TYPES[kind], strict=False)
    if values.null_count() == text.null_count():
        return Cells(_without_numbers(values, missing), None, aware)
    # Only cells that are no value as they stand are read more closely: in most tables few are.
    doubtful = (text.is_not_null() & values.is_null()).arg_true()
    text = text.gather(doubtful)
    stripped = text.str.strip_chars()
    if kind not in ("datetime", "offset"):
        plain = stripped.str.replace(r"\.0+$", "") if kind in WHOLE else stripped
        if kind in _WORDS:
            plain = plain.str.to_lowercase().replace(_WORDS[kind])
        repaired = plain.cast(TYPES[kind], strict=False)
        values = values.scatter(doubtful, repaired)
        text = text.set(repaired.is_not_null(), None)
    text = text.set(stripped == "", None)  # a quoted nothing is nothing
    unparsed = pl.Series(text.name, [None], dtype=pl.String).new_from_index(0, len(values)).scatter(doubtful, text)
    lost = unparsed.null_count() < len(unparsed)
    return Cells(_without_numbers(values, missing), unparsed if lost else None, aware)


def in_calendar(column: pl.Series) -> bool:
    """Return whether all times of a column of times are of a year that can be written: others crash what reads them."""
    unit = getattr(column.dtype, "time_unit", None)
    if not isinstance(column.dtype, pl.Datetime) or unit == "ns" or column.null_count() == len(column):
        return True
    ticks = column.to_physical()
    last = _LAST_SECOND * {"ms": 10**3, "us": 10**6}[str(unit)]
    return bool(-last <= int(ticks.min()) and int(ticks.max()) <= last)  # type: ignore[arg-type]


def _text(column: pl.Series) -> pl.Series:
    return column if column.dtype == pl.String else column.cast(pl.String)


def _left_over(text: pl.Series, values: pl.Series) -> pl.Series | None:
    failed = text.is_not_null() & values.is_null()
    return text.set(~failed, None) if failed.any() else None


def _without(text: pl.Series, missing: list[str]) -> pl.Series:
    for word in missing:
        found = text == word
        text = text.set(found, None) if found.any() else text
    return text


def _without_numbers(values: pl.Series, missing: list[str]) -> pl.Series:
    for word in missing:
        try:
            number = int(word) if values.dtype.is_integer() else float(word)
        except ValueError:
            continue  # a word among numbers was found as text
        found = values == number
        values = values.set(found, None) if found.any() else values
    return values


def label_lists(column: pl.Series, separator: str | None) -> tuple[pl.Series, pl.Series | None]:
    """Return a column as lists of labels, and the text of its cells that hold no list; those cells are null.

    A `separator` stands between the labels of a text; None for JSON arrays.
    """
    if column.dtype.is_nested():
        return _of_values(column.cast(pl.List(column.dtype.inner))), None  # type: ignore[attr-defined]
    if separator is not None:
        return _of_values(column.str.split(separator)), None
    # Sets repeat: each text is read once.
    texts = column.drop_nulls().unique(maintain_order=True)
    found = pl.DataFrame(
        {"text": texts, "labels": pl.Series([label_array(text) for text in texts.to_list()], dtype=LISTS)},
        schema={"text": pl.String, "labels": LISTS},
    )
    lists = column.alias("text").to_frame().join(found, on="text", how="left", maintain_order="left")["labels"]
    failed = column.is_not_null() & lists.is_null()
    return lists.alias(column.name), column.set(~failed, None) if failed.any() else None


def _of_values(lists: pl.Series) -> pl.Series:
    """Return lists of the texts of their values."""
    held = lists.to_arrow()
    cells = pl.Series(held.flatten(), dtype=lists.dtype.inner)  # type: ignore[attr-defined]
    found = value_texts(cells)
    if found is cells:
        return lists
    ends = np.cumsum([0, *held.value_lengths().fill_null(0).to_pylist()])
    rows = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), found.to_arrow(), mask=held.is_null())
    return pl.Series(lists.name, rows)


def label_array(text: str) -> list[str | None] | None:
    """Return the labels of a JSON array, or None if the text is not an array of labels."""
    try:
        found: Any = json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(x is None or isinstance(x, str) for x in found):
        return None
    return [x if x is None else value_text(x) or None for x in found]


def _refuse(constant: str) -> None:
    raise ValueError(constant)
