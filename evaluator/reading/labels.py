"""Columns of labels as small integers, so that Python touches each distinct label of a chunk once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.log.encoder import TRUTHS, UUID, UUID_LENGTH, WHOLE
from evaluator.streams import STEP

# Before the name of a column that the log keeps as it is.
KEPT = "__kept_"
# The largest of the bytes that stand for blanks, the point, and the least of those that truth values and UUIDs have.
_BLANK, _POINT, _LEAST_LETTER = 32, ord("."), ord("F")
# Bytes of a text that Arrow's view of it holds, and of a number.
_INLINE, _WORD = 12, 8
# Bits of the places of texts that are remembered, at first and at most; more where one cell in so many is new. Cells
# that are looked up at once: few enough that they stay in the processor's cache.
_FEWEST_BITS, _MOST_BITS, _MANY, _BLOCK = 12, 18, 16, 1 << 14

Texts = TypeVar("Texts", pl.Series, pl.Expr)


class CodedLabels(NamedTuple):
    """Distinct labels of a chunk, in order of appearance, and for each row the place of its own, -1 where missing."""

    labels: pa.LargeStringArray
    code: npt.NDArray[np.int32]


def coded(column: pl.Series) -> CodedLabels:
    """Return a column of labels as codes that hold for this chunk."""
    text = column if column.dtype == pl.String else value_texts(column)
    if (short := _as_numbers(text)) is not None:
        found = pa.array(short, mask=text.is_null().to_numpy() if text.null_count() else None).dictionary_encode()
        labels = _texts_of(found.dictionary.to_numpy())
    else:
        found = text.to_arrow(compat_level=pl.CompatLevel.oldest()).dictionary_encode()
        labels = found.dictionary
    return CodedLabels(labels, found.indices.fill_null(-1).to_numpy(zero_copy_only=False))


def _inline(text: pl.Series, most: int = _INLINE) -> npt.NDArray[np.uint64] | None:
    """Return short texts as two words each, shape (n, 2); None if one has more bytes than so many.

    Arrow's views of texts hold such ones themselves: four bytes say how long one is, its bytes follow, then zeros.
    <https://arrow.apache.org/docs/format/Columnar.html#variable-size-binary-view-layout>
    """
    views = text.to_arrow(compat_level=pl.CompatLevel.newest())
    if not pa.types.is_string_view(views.type) or len(views) == 0:
        return None
    words = np.frombuffer(views.buffers()[1], np.uint64).reshape(-1, 2)[views.offset : views.offset + len(views)]
    return words if int(words.view(np.uint32)[:, 0].max()) <= most else None


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


def _as_numbers(text: pl.Series) -> npt.NDArray[np.uint64] | None:
    """Return texts of up to eight bytes as these bytes, shape (n,): numbers are told apart in half of the time.

    None if one is longer, or holds a zero as those do that fill the others up.
    """
    numbers, at = np.empty(len(text), np.uint64), 0
    for chunk in text.get_chunks():  # to join them takes as long
        words = _inline(chunk, _WORD)
        if words is None:
            return None
        lengths, found = words.view(np.uint32)[:, 0], numbers[at : at + len(words)]
        np.right_shift(words[:, 0], np.uint64(32), out=found)
        found |= words[:, 1] << np.uint64(32)
        at += len(words)
        if np.count_nonzero(found.view(np.uint8)) != int(lengths.sum()):
            return None
    return numbers if at else None


def _texts_of(numbers: npt.NDArray[np.uint64]) -> pa.LargeStringArray:
    """Return the texts that `_as_numbers` made numbers of."""
    cells = numbers.view(np.uint8).reshape(-1, 8)
    filled = cells != 0
    ends = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
    return pa.LargeStringArray.from_buffers(len(numbers), pa.py_buffer(ends), pa.py_buffer(cells[filled]))


def _are_values(text: pl.Series) -> bool:
    """Return whether these are short texts none of which `_as_values` would change, as a look at their bytes tells."""
    words = _inline(text)
    if words is None or text.null_count():
        return False
    cells = words.view(np.uint8)
    lengths = words.view(np.uint32)[:, 0]
    # Beside the bytes of a text, and none else of them, blanks are no more than the length and the zeros.
    around = 16 * len(words) - int(lengths.sum())
    plain = int(cells.max()) < _LEAST_LETTER and np.count_nonzero(cells <= _BLANK) == around
    return bool(plain and lengths.min() > 0 and not (cells == _POINT).any())


def _as_values(text: pl.Series) -> pl.Series:
    if _are_values(text):
        return text
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


class Remembered:
    """A function of the cells of a column, each by itself, that is not asked again of texts that came lately.

    Most columns hold few texts, and a look at where one was is quicker than to tell all of a chunk apart. Texts of up
    to eight bytes have a place each, which they may share: the last one holds it. Memory: at most 3 MB.
    """

    def __init__(self, function: Callable[[pl.Series], npt.NDArray[Any]]) -> None:
        self._function = function
        self._bits, self._texts, self._answers = 0, np.zeros(0, np.uint64), np.zeros(0, np.int32)

    def __call__(self, cells: pl.Series) -> npt.NDArray[Any]:
        """Return what the function gives for each cell, shape (n,)."""
        numbers = None if cells.null_count() else _as_numbers(cells)
        if numbers is None:
            return self._function(cells)
        if self._bits == 0:
            return self._learn(cells, numbers, _FEWEST_BITS)
        found, new = np.empty(len(numbers), self._answers.dtype), []
        for first in range(0, len(numbers), _BLOCK):
            part = numbers[first : first + _BLOCK]
            place = self._places(part)
            self._answers.take(place, out=found[first : first + _BLOCK], mode="clip")
            new.append(np.flatnonzero(self._texts.take(place, mode="clip") != part) + first)
        at = np.concatenate(new)
        if _MANY * len(at) > len(numbers) and self._bits < _MOST_BITS:
            return self._learn(cells, numbers, self._bits + 2)
        if len(at):
            found[at] = self._function(cells.gather(pl.Series(at)))
            self._put(numbers[at], found[at])
        return found

    def _learn(self, cells: pl.Series, numbers: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[Any]:
        """Return what the function gives for each cell, which it remembers in places of so many bits, and no others."""
        found = self._function(cells)
        self._bits = bits
        # Each place holds a text that has another one.
        self._texts, self._answers = np.ones(1 << bits, np.uint64), np.zeros(1 << bits, found.dtype)
        self._texts[self._places(self._texts[:1])] = 0
        self._put(numbers, found)
        return found

    def _put(self, numbers: npt.NDArray[np.uint64], found: npt.NDArray[Any]) -> None:
        place = self._places(numbers)
        self._texts[place], self._answers[place] = numbers, found

    def _places(self, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        return (numbers * STEP >> np.uint64(64 - self._bits)).view(np.int64)


class Labels:
    """The distinct labels of a column over all chunks, numbered in order of appearance. Memory: one text a label."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._remembered = Remembered(self._codes)

    @property
    def names(self) -> list[str]:
        """The labels; the place of each is its code."""
        return list(self._number)

    def codes(self, column: pl.Series) -> npt.NDArray[np.int32]:
        """Return the code of each row, -1 where its label is missing."""
        return self._remembered(column) if column.dtype == pl.String else self._codes(column)

    def _codes(self, column: pl.Series) -> npt.NDArray[np.int32]:
        labels, code = coded(column)
        number = self._number
        codes = [number.setdefault(label, len(number)) for label in labels.to_pylist()]
        return np.array([*codes, -1], dtype=np.int32)[code]  # code -1 takes the last
