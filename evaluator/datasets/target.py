"""Columns that hold the action probabilities of a policy to be evaluated: ``[target]`` of a spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.row_breaches import CheckedRows
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.wide_columns import columns_by_label, in_order_of
from evaluator.log.breaches import SUM_TOLERANCE
from evaluator.log.value_text import value_text

CODE = "__target_"


def target_columns(spec: FileSpec, files: Sequence[TablePart]) -> dict[str, str]:
    """Return the column of each action's label; empty without ``[target]``. Errors as of `columns_by_label`."""
    if spec.target is None:
        return {}
    if not isinstance(spec.target.columns, str):
        return {value_text(label): column for label, column in spec.target.columns.items()}
    return columns_by_label(spec.target.columns, "target.columns", files[0], spec.source)


def check_target(rows: CheckedRows, frame: pl.DataFrame, columns: Mapping[str, str]) -> None:
    """Report displays whose probabilities are missing, outside [0, 1], or do not sum to 1."""
    if not columns:
        return
    sound = rows.sound
    repair = "give the probability with which the policy shows the action"
    for column in columns.values():
        p = frame[column].cast(pl.Float64)
        rows.add(column, sound & (p.is_null() | p.is_nan()), "probability missing or nan", repair)
        rows.add(column, sound & p.is_not_nan() & ((p < 0) | (p > 1)), "probability outside [0, 1]", repair)
    # A row is told of once: of its cells if these are wrong, else of its sum.
    cells = rows.sound
    total = frame.select(pl.sum_horizontal(*dict.fromkeys(columns.values()))).to_series().cast(pl.Float64)
    first = next(iter(columns.values()))
    rows.add(
        first, cells & ((total - 1.0).abs() > SUM_TOLERANCE), "probabilities of a row do not sum to 1",
        f"name the columns of all actions in [target], {len(columns)} are named, and normalise them", values=total,
    )  # fmt: skip


def target_codes(frame: pl.DataFrame, columns: Mapping[str, str]) -> dict[str, pl.Series]:
    """Return the probabilities of a chunk as columns of the spool, by place of the action."""
    return {f"{CODE}{i}": frame[column].cast(pl.Float64) for i, column in enumerate(columns.values())}


def target_places(columns: Mapping[str, str], labels: Sequence[str]) -> list[str]:
    """Return the column of the spool that holds each action's probability, (K,). Errors as of `in_order_of`."""
    place = {label: f"{CODE}{i}" for i, label in enumerate(columns)}
    return in_order_of(labels, place, "target", "name one; if the policy never shows the action, a column of zeros.")


def target_of(columns: Mapping[str, npt.NDArray[np.float64]], places: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the probabilities of some displays, shape (n, K)."""
    return np.column_stack([columns[place] for place in places])
