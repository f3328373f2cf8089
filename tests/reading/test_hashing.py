import zlib

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from evaluator.log.encoder import value_text
from evaluator.reading.contexts import token_slots
from evaluator.reading.labels import Remembered, coded, value_texts

# Texts of up to eight bytes, up to twelve, and longer ones; of other alphabets, with zeros, blanks and numbers.
CELLS = st.sampled_from(
    ["", "a", "é", "1", "12345678", "123456789", "1.0", "-1", "1.50", "abcdefghijkl", "abcdefghijklm", "a b", " x",
     "True", "F", "E", "x\0", "\0", "日本", "0123456789ab", None],
)  # fmt: skip


@given(st.text(max_size=3), st.lists(st.text()), st.integers(1, 2**20), st.integers(0, 3))
def test_slots_are_those_of_the_library(column: str, labels: list[str], dimensions: int, skipped: int) -> None:
    array = pa.array(labels, pa.large_string()).slice(min(skipped, len(labels)))
    codes = [zlib.crc32(f"{column}={label}".encode()) for label in labels[skipped:]]
    expected = [2 * (code % 2**31 % dimensions) + (code >= 2**31) for code in codes]
    assert token_slots(column, array, dimensions).tolist() == expected


@given(st.lists(CELLS, max_size=12), st.integers(0, 2), st.booleans())
def test_labels_are_told_apart_as_texts(cells: list[str | None], skipped: int, in_chunks: bool) -> None:
    column = pl.Series(cells, dtype=pl.String).slice(skipped)
    column = pl.concat([column, column.head(1)]) if in_chunks else column
    labels, code = coded(column)
    assert labels.to_pylist() == column.drop_nulls().unique(maintain_order=True).to_list()
    assert [None if i < 0 else labels[i].as_py() for i in code] == column.to_list()


@given(st.lists(CELLS, max_size=12), st.integers(0, 2))
def test_short_texts_are_values_by_the_rule_of_all(cells: list[str | None], skipped: int) -> None:
    column = pl.Series(cells, dtype=pl.String).slice(skipped)
    expected = [None if cell is None else value_text(cell) or None for cell in column.to_list()]
    assert value_texts(column).to_list() == expected


@given(st.lists(st.lists(CELLS, min_size=1, max_size=6), max_size=6))
def test_what_is_remembered_is_what_the_function_gives(columns: list[list[str | None]]) -> None:
    def tell(cells: pl.Series) -> npt.NDArray[np.int32]:
        return np.array([-1 if cell is None else zlib.crc32(cell.encode()) % 2**20 for cell in cells], np.int32)

    remembered = Remembered(tell)
    for cells in columns:
        column = pl.Series(cells, dtype=pl.String)
        column = pl.concat([column, column.head(2)], rechunk=False)
        assert remembered(column).tolist() == tell(column).tolist()


def test_texts_that_share_a_place_are_told_apart() -> None:
    asked = []

    def tell(cells: pl.Series) -> npt.NDArray[np.int64]:
        asked.append(len(cells))
        return cells.cast(pl.Int64).to_numpy()

    remembered = Remembered(tell)
    for first in (0, 0, 100_000, 50_000, 0):  # many more texts than there are places at first
        numbers = pl.int_range(first, first + 60_000, eager=True)
        assert (remembered(numbers.cast(pl.String)) == numbers.to_numpy()).all()
    few = pl.Series(["7", "8"] * 50_000)
    remembered(few)
    asked.clear()
    assert remembered(few).tolist() == [7, 8] * 50_000
    assert asked == []
