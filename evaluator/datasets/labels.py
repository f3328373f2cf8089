"""Columns of labels as small integers, so that Python touches each distinct label of a chunk once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

# Before the name of a column that the log keeps as it is.
KEPT = "__kept_"


class CodedLabels(NamedTuple):
    """Distinct labels of a chunk, in order of appearance, and for each row the place of its own, -1 where missing."""

    labels: pa.LargeStringArray
    code: npt.NDArray[np.int32]


def coded(column: pl.Series) -> CodedLabels:
    """Return a column of labels as codes that hold for this chunk."""
    found = column.cast(pl.String).to_arrow(compat_level=pl.CompatLevel.oldest()).dictionary_encode()
    return CodedLabels(found.dictionary, found.indices.fill_null(-1).to_numpy(zero_copy_only=False))


def texts(column: pl.Series) -> pl.Series:
    """Return a column as labels: numbers without a needless fraction."""
    label = column.cast(pl.String)
    return label.str.strip_suffix(".0") if column.dtype == pl.Float64 else label


class Labels:
    """The distinct labels of a column over all chunks, numbered in order of appearance. Memory: one text a label."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """The labels; the place of each is its code."""
        return list(self._number)

    def codes(self, column: pl.Series) -> npt.NDArray[np.int32]:
        """Return the code of each row, -1 where its label is missing."""
        labels, code = coded(column)
        number = self._number
        codes = [number.setdefault(label, len(number)) for label in labels.to_pylist()]
        return np.array([*codes, -1], dtype=np.int32)[code]  # code -1 takes the last

    def joined(self, others: Sequence[str]) -> npt.NDArray[np.int32]:
        """Add the labels of another column; return the code here of each code there, and at the end -1, of none."""
        number = self._number
        codes = [number.setdefault(label, len(number)) for label in others]
        return np.array([*codes, -1], dtype=np.int32)
