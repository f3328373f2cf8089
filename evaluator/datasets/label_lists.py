"""Cells that list labels: lists of Arrow, texts with a separator, JSON arrays."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

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
        return column.cast(LISTS), None
    if separator is not None:
        return column.str.split(separator), None
    # Sets repeat: each text is read once.
    texts = column.drop_nulls().unique(maintain_order=True)
    found = pl.DataFrame(
        {"text": texts, "labels": pl.Series([_array(text) for text in texts.to_list()], dtype=LISTS)},
        schema={"text": pl.String, "labels": LISTS},
    )
    lists = column.alias("text").to_frame().join(found, on="text", how="left", maintain_order="left")["labels"]
    failed = column.is_not_null() & lists.is_null()
    return lists.alias(column.name), column.set(~failed, None) if failed.any() else None


def _array(text: str) -> list[str | None] | None:
    """Return the labels of a JSON array, numbers as they are written; None where it is none."""
    try:
        found: Any = json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and all(x is None or isinstance(x, str) for x in found) else None


def _refuse(constant: str) -> None:
    raise ValueError(constant)
