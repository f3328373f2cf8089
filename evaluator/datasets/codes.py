"""Columns of labels as small integers, so that Python touches each distinct label once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl


def codes(column: pl.Series) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the distinct labels of a column, sorted, and the index of each row's label, -1 where it is missing."""
    if column.dtype != pl.Categorical():
        column = column.cast(pl.String).cast(pl.Categorical())
    physical = column.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    distinct = column.unique().drop_nulls()
    names = distinct.cast(pl.String).to_list()
    if not names:
        return [], np.full(len(column), -1, dtype=np.int64)
    ranked = sorted(range(len(names)), key=names.__getitem__)
    at = distinct.to_physical().cast(pl.Int64).to_numpy()[ranked]
    table = np.full(int(at.max()) + 2, -1, dtype=np.int64)  # the last entry answers -1
    table[at] = np.arange(len(names))
    return [names[i] for i in ranked], table[physical]
