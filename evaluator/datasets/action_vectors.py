"""Columns that hold the vectors of all actions at a display, a number in each: ``[action_set]`` of a spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.row_breaches import CheckedRows
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.wide_columns import columns_by_label, in_order_of
from evaluator.errors import SpecError

CODE = "__vector_"

# For each number of a vector, the column of each action's label.
VectorColumns = Sequence[Mapping[str, str]]


def vector_columns(spec: FileSpec, files: Sequence[TablePart]) -> list[dict[str, str]]:
    """Return the columns of each number of the vectors, none without ``[action_set]``.

    Raises
    ------
    SpecError
        No column fits, or one is an outcome, which no policy may see.
    """
    patterns = [] if spec.action_set is None else spec.action_set.patterns
    found = [columns_by_label(pattern, "action_set.columns", files[0], spec.source) for pattern in patterns]
    for pattern, of in zip(patterns, found, strict=True):
        for column in of.values():
            if refused := spec.why_no_feature(column):
                raise SpecError(
                    f"{spec.name}: action_set.columns = {pattern!r}: {column!r} {refused}.",
                    hint="name columns that are known before the display.",
                )
    return found


def check_vectors(rows: CheckedRows, frame: pl.DataFrame, columns: VectorColumns) -> None:
    """Report displays with a number that is missing, or none in single precision."""
    sound, repair = rows.sound, "fill the cell, 0 where it says nothing of the action, or quarantine the row"
    for column in dict.fromkeys(name for of in columns for name in of.values()):
        finite = frame[column].cast(pl.Float32).is_finite().fill_null(False)
        rows.add(column, sound & ~finite, "missing or not finite", repair)


def vector_codes(frame: pl.DataFrame, columns: VectorColumns) -> dict[str, pl.Series]:
    """Return the numbers of a chunk as columns of the spool."""
    return {
        _place(j, i): frame[column].cast(pl.Float32)
        for j, of in enumerate(columns)
        for i, column in enumerate(of.values())
    }


def vector_places(columns: VectorColumns, labels: Sequence[str]) -> list[list[str]]:
    """Return the column of the spool that holds each number of each action, (d, K). Errors as of `in_order_of`."""
    hint = "add it to the source, or leave the action out by `actions`."
    placed = ({label: _place(j, i) for i, label in enumerate(of)} for j, of in enumerate(columns))
    return [in_order_of(labels, of, "action_set", hint) for of in placed]


def vectors_of(
    columns: Mapping[str, npt.NDArray[np.float32]], places: Sequence[Sequence[str]]
) -> npt.NDArray[np.float32]:
    """Return the vectors of the actions of some displays, shape (n, K, d)."""
    return np.stack([np.column_stack([columns[place] for place in of]) for of in places], axis=2)


def _place(number: int, action: int) -> str:
    return f"{CODE}{number}_{action}"
