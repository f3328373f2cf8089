"""Cells that list labels: lists of Arrow, texts with a separator, JSON arrays."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from evaluator.datasets.labels import value_texts
from evaluator.log.value_text import value_text

LISTS = pl.List(pl.String)


def label_lists(column: pl.Series, separator: str | None) -> tuple[pl.Series, pl.Series | None]:
    """Return a column as lists of labels, null where a cell is missing or no list, and the text of those that are none.

    Parameters
    ----------
    column
        Lists, or text.
    separator
        Text between the labels of a text; None for JSON arrays.
    """
    if column.dtype.is_nested():
        return _of_values(column.cast(pl.List(column.dtype.inner))), None  # type: ignore[attr-defined]
    if separator is not None:
        return _of_values(column.str.split(separator)), None
    # Sets repeat: each text is read once.
    texts = column.drop_nulls().unique(maintain_order=True)
    found = pl.DataFrame(
        {"text": texts, "labels": pl.Series([_array(text) for text in texts.to_list()], dtype=LISTS)},
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


def _array(text: str) -> list[str | None] | None:
    """Return the labels of a JSON array; None where it is none."""
    try:
        found: Any = json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(x is None or isinstance(x, str) for x in found):
        return None
    return [x if x is None else value_text(x) or None for x in found]


def _refuse(constant: str) -> None:
    raise ValueError(constant)
