"""Cells of every type a file may hold, as the kinds a role may ask for."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.reading.cells import Kind, parse
from evaluator.reading.frames import UNPARSED, Chunks
from evaluator.reading.sources.files import file_at
from evaluator.reading.spec_sections import Source

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
MICROSECONDS = int(NOON.timestamp()) * 10**6


@pytest.mark.parametrize(
    ("cells", "kind", "missing", "values", "unparsed"),
    [
        (["1", " 2", "-1", None], "int", ["-1"], [1, 2, None, None], None),
        (["1", "1.5", "x", "9223372036854775808"], "int", [], [1, None, None, None], [1, 2, 3]),
        (["1", "NA", "x"], "int", ["NA"], [1, None, None], [2]),
        (["1e-05", ".5 ", "-1.0", "nan"], "float", ["-1"], [1e-05, 0.5, None, float("nan")], None),
        (["", "1"], "float", [], [None, 1.0], None),
        ([1, -1, None], "int", ["-1", "NA"], [1, None, None], None),
        ([1.0, float("nan"), 3e30, None], "int", [], [1, None, None, None], [1, 2]),
        ([1, -1], "float", ["-1"], [1.0, None], None),
        ([True, False], "int", [], [1, 0], None),
        (["a", "-1", "", None], "category", ["-1"], ["a", None, None, None], None),
        ([7, -1], "category", ["-1"], ["7", None], None),
        ([True, None], "category", [], ["true", None], None),
        ([True, False], "text", [], ["1", "0"], None),
        ([1.0, -1.0, 2.5], "category", ["-1"], ["1", None, "2.5"], None),
        ([" a ", "7.0", "-1.0"], "text", ["-1"], ["a", "7", None], None),
        (["True", "false", "t", "F ", "1", "0.0", "yes", None], "flag", [], [1, 0, 1, 0, 1, 0, None, None], [6]),
        ([True, False, None], "flag", [], [1, 0, None], None),
        (["True", "false", "0.5", "t"], "float", [], [1.0, 0.0, 0.5, None], [3]),
        (["t", "True"], "int", [], [None, None], [0, 1]),
        ([NOON, None], "datetime", [], [MICROSECONDS, None], None),
        ([date(2020, 1, 1)], "datetime", [], [MICROSECONDS - 12 * 3600 * 10**6], None),
        (["2020-01-01T12:00:00Z", "2020-01-01", "noon"], "datetime", [],
         [MICROSECONDS, MICROSECONDS - 12 * 3600 * 10**6, None], [2]),
        ([5], "datetime", [], [None], [0]),
    ],
)  # fmt: skip
def test_parse(cells: list[Any], kind: str, missing: list[str], values: list[Any], unparsed: Any) -> None:
    column = pl.Series("c", cells)
    found = parse(column, kind, missing)
    assert found.values.equals(pl.Series("c", values, dtype=found.values.dtype))
    if unparsed is None:
        assert found.unparsed is None
    else:
        text = column.cast(pl.String).to_list()
        assert found.unparsed.to_list() == [text[i] if i in unparsed else None for i in range(len(cells))]


def test_numbers_of_many_digits_are_missing_only_if_they_are_equal() -> None:
    big = 2**62 + 1
    assert parse(pl.Series([big, big - 1]), "int", [str(big)]).values.to_list() == [None, big - 1]


# Texts that are numbers, nearly, or to somebody.
NUMBERS = st.sampled_from(
    ["5", "+5", " 5", "5 ", "05", "-0", "7.0", "1e3", ".5", "5.", "1_000", "٣", "9223372036854775807", "1e400", "nan",
     "9223372036854775808", "99999999999999999999", "inf", "-inf", "true", "x", "", " ", "0.30000000000000004", "0x1"],
)  # fmt: skip


@given(st.lists(st.one_of(NUMBERS, st.floats().map(repr), st.text("0123456789+-.eE inf", max_size=6)), min_size=1),
       st.sampled_from(["int", "flag", "float"]), st.sampled_from([[], ["5"], ["-1", "nan"], ["+5", "x"]]))  # fmt: skip
def test_numbers_of_text_are_those_of_their_cells(cells: list[str], kind: Kind, none: list[str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        path.write_text("".join(f"{cell},end\n" for cell in ["n", *cells]))
        table = Source(files=path.name, none=none)
        read = pl.concat(Chunks([file_at(path, "csv")], table, {"n": kind, "end": "text"}), how="diagonal")
    text = pl.Series(cells, dtype=pl.String)
    expected = parse(text.set(text == "", None), kind, none)
    assert read["n"].equals(expected.values, null_equal=True)
    unread = read[UNPARSED + "n"].to_list() if UNPARSED + "n" in read.columns else [None] * len(cells)
    assert unread == ([None] * len(cells) if expected.unparsed is None else expected.unparsed.to_list())
