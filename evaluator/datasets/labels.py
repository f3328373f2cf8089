"""Columns of labels as small integers, so that Python touches each distinct label of a chunk once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.log.encoder import TRUTHS, UUID, UUID_LENGTH, WHOLE

# Before the name of a column that the log keeps as it is.
KEPT = "__kept_"
# The largest of the bytes that stand for blanks.
_BLANK = 32

Texts = TypeVar("Texts", pl.Series, pl.Expr)


class CodedLabels(NamedTuple):
    """Distinct labels of a chunk, in order of appearance, and for each row the place of its own, -1 where missing."""

    labels: pa.LargeStringArray
    code: npt.NDArray[np.int32]


def coded(column: pl.Series) -> CodedLabels:
    """Return a column of labels as codes that hold for this chunk."""
    text = column if column.dtype == pl.String else value_texts(column)
    found = text.to_arrow(compat_level=pl.CompatLevel.oldest()).dictionary_encode()
    return CodedLabels(found.dictionary, found.indices.fill_null(-1).to_numpy(zero_copy_only=False))


def value_texts(column: pl.Series) -> pl.Series:
    """Return a column as the texts that tell its values apart, by the rule of `evaluator.log.encoder`, or the same.

    An empty text, and what is no number among numbers, is missing. A column of text costs 6 ns a cell where it is as it
    should be.
    """
    kind = column.dtype
    if kind == pl.String:
        return _as_values(column)
    if kind.is_float():
        whole = column.cast(pl.Int64, strict=False)
        is_whole = (whole.cast(kind) == column).fill_null(False)
        return whole.cast(pl.String).zip_with(is_whole, column.fill_nan(None).cast(pl.String))
    if kind.is_decimal():
        return plain_decimals(column.cast(pl.String))
    if isinstance(kind, pl.Datetime):
        # Kept in ms, us or ns, a moment looks alike.
        return column.cast(pl.String).str.replace(r"(\.\d*?)0+(\D|$)", "$1$2").str.replace(r"\.(\D|$)", "$1")
    text = column.cast(pl.String)
    return text if kind.is_integer() or kind == pl.Boolean else _as_values(text)


def _as_values(text: pl.Series) -> pl.Series:
    # The bytes of all cells at once tell what none of them needs.
    data = text.to_arrow(compat_level=pl.CompatLevel.oldest()).buffers()[2]
    data = b"" if data is None else data.to_pybytes()
    if not data.isascii() or (data and np.frombuffer(data, np.uint8).min() <= _BLANK):
        text = text.str.strip_chars()
    lengths = text.str.len_bytes()
    if (lengths == 0).any():
        text = text.set(lengths == 0, None)
    if b"." in data and text.str.ends_with("0").any():
        text = text.str.replace(WHOLE, "$1$2")
    if b"T" in data or b"F" in data:
        for said, truth in TRUTHS.items():
            found = text == said
            text = text.set(found, truth) if found.any() else text
    if (lengths == UUID_LENGTH).any() and (found := text.str.contains(UUID)).any():
        text = text.str.to_lowercase().zip_with(found, text)
    return text


def plain_decimals(text: Texts) -> Texts:
    """Return decimal numbers without zeros at their ends: 17, 17.0 and 17.00 are one number.

    >>> plain_decimals(pl.Series(["17.00", "-0.50", "100", "nan"])).to_list()
    ['17', '-0.5', '100', 'nan']
    """
    return text.str.replace(r"^(-?\d+)\.0+$", "$1").str.replace(r"^(-?\d+\.\d*[1-9])0+$", "$1")


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
