"""Rows with too few or too many cells: never read as if cells were missing, or as if surplus cells were not there."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evaluator.datasets import load, read
from evaluator.errors import SourceError
from evaluator.reading import frames as scan
from evaluator.reading import text, text_rows
from evaluator.reading.delay_file import read_delay_file
from evaluator.reading.options import DelayFileOptions
from evaluator.reading.sources.files import file_at
from evaluator.reading.spec_sections import Source
from evaluator.reading.text_rows import text_header
from tests.reading.sources import dataset, write_rows

ROWS = ["t,ad,sold,rev,notes", *[f"{i},{'ab'[i % 2]},{i + 3},1.5," for i in range(3_000)]]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "CHUNK_ROWS", 1_000)
    monkeypatch.setattr(text, "PIECE", 1_021)
    monkeypatch.setattr(text, "TEXT_PIECE", 1_021)


def refused(spec: Path) -> str:
    with pytest.raises(SourceError) as raised:
        load(spec)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("files", ["log.csv", "log.csv.gz", "log.tsv"])
@pytest.mark.parametrize(("cells", "count"), [("7,a", 2), ("7,a,9,1.5", 4), ("7,a,9,1.5,x,y", 6), ("7", 1), ("", 0)])
def test_rows_of_another_width(tmp_path: Path, files: str, cells: str, count: int) -> None:
    rows = [*ROWS[:1_500], cells, *ROWS[1_500:2_900], cells, cells, *ROWS[2_900:]]
    rows = [row.replace(",", "\t") for row in rows] if "tsv" in files else rows
    spec = dataset(tmp_path, rows, source={"files": files})
    message = refused(spec)
    said = f"{count} cell{'' if count == 1 else 's'} where 5"
    assert f"{files} line 1501: {said}, " in message
    assert f"{files} line 2902: {said}, " in message
    assert "Column" not in message
    reading = read(spec, on_error="quarantine", quarantine_at_most=1)
    assert len(reading.log) == 3_000
    assert reading.quarantine["line"].to_pylist() == [1501, 2902, 2903]
    assert set(reading.quarantine["value"].to_pylist()) == {said}


def test_too_few_and_too_many_do_not_make_up(tmp_path: Path) -> None:
    message = refused(dataset(tmp_path, ["t,ad,sold", "1,a", "2,b,3,4", "3,a,"]))
    assert "log.csv line 2: 2 cells where 3" in message
    assert "log.csv line 3: 4 cells where 3" in message


def test_delimiters_of_a_header_without_quotes(tmp_path: Path) -> None:
    message = refused(dataset(tmp_path, ["t,sold,ad,country,notes", "1,2,Sale, now,uk,", "2,,Sale, then,uk,"]))
    assert "log.csv line 2: 6 cells where 5" in message


@pytest.mark.parametrize("ending", ["", "\n", "\n\n\n", "\r\n\r\n"])
def test_quoted_delimiters_and_newlines_are_cells(tmp_path: Path, ending: str) -> None:
    spec = dataset(tmp_path)
    rows = ["t,ad,sold", '1,"a, ""b"",\n\nc",2', *['3,"x\n,y",""'] * 2_000]
    (tmp_path / "log.csv").write_text("\n".join([*rows, '4,"x,",']) + ending, encoding="utf-8", newline="")
    assert load(spec).labels == ['a, "b",\n\nc', "x\n,y", "x,"]
    assert len(load(spec, limit=2)) == 2


def test_without_header_in_another_encoding(tmp_path: Path) -> None:
    spec = dataset(tmp_path, source={"header": False, "columns": ["t", "ad", "sold"], "encoding": "utf-16"})
    (tmp_path / "log.csv").write_bytes("1,é,2\n2,b\n3,é,,\n4,b,5\n".encode("utf-16"))
    message = refused(spec)
    assert "log.csv line 2: 2 cells where 3, " in message
    assert "log.csv line 3: 4 cells where 3)" in message
    assert len(load(spec, on_error="quarantine", quarantine_at_most=1)) == 2


def test_second_table(tmp_path: Path) -> None:
    conversion = {"time": "when", "source": {"files": "sales.csv", "display": "shown"}}
    spec = dataset(tmp_path, ["id,t,ad", "x,1,a", "y,2,b"], display={"id": "id"}, conversion=conversion)
    write_rows(tmp_path / "sales.csv", ["shown,when,value", "x,4,1", "y,5", "y,5,1,1"])
    assert "sales.csv line 3: 2 cells where 3, " in refused(spec)
    reading = read(spec, on_error="quarantine", quarantine_at_most=1)
    assert reading.log.conversions.num_rows == 1
    assert reading.quarantine["line"].to_pylist() == [3, 4]


def test_single_column_of_delays(tmp_path: Path) -> None:
    (tmp_path / "delays.csv").write_text("delay\n3\n4,5\n")
    with pytest.raises(SourceError, match=r"line 3: 2 cells where 1"):
        read_delay_file(tmp_path / "delays.csv", DelayFileOptions(delay_column="delay"))


def test_rows_are_those_that_polars_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever begins a piece: quotes over lines, empty lines, a header over lines, and no end of the last line."""
    path = tmp_path / "log.csv.gz"
    cells = ["", "x", '"a,b"', '"q""q"', '"l\nm"', '""', "é", '"é,\r\n"']
    for seed in range(60):
        draw = np.random.default_rng(seed)
        monkeypatch.setattr(text, "TEXT_PIECE", int(draw.choice([7, 50, 1000])))
        monkeypatch.setattr(text_rows, "_ROWS", int(draw.choice([3, 1000])))
        width, end = int(draw.integers(1, 5)), str(draw.choice(["\n", "\r\n"]))
        counts = np.where(draw.random(40) < 0.8, width, draw.integers(0, width + 3, 40))
        rows = [",".join(draw.choice(cells, count)) for count in counts]
        rows.append(",".join(["x"] * width))
        expected = [
            None if count == width or (width == 1 and row == "") else 0 if row == "" else int(count)
            for row, count in zip(rows, [*counts, width], strict=True)
        ]
        names = ["a\nb", *"cdefgh"][:width]
        last = "" if width == 1 else str(draw.choice(["", end, end * 9]))
        top = str(draw.choice(["", "\ufeff", "sep=,\n"]))
        content = end.join([top + ",".join([f'"{names[0]}"', *names[1:]]), *rows]) + last
        path.write_bytes(gzip.compress(content.encode()))
        read_by_polars = pl.read_csv(
            path, schema=dict.fromkeys(names, pl.String()), truncate_ragged_lines=True, skip_lines=int("sep" in top)
        )
        source = Source(files=path.name)
        header = text_header(file_at(path, "csv"), source)
        found = pl.concat(text_rows.text_frames(path, "utf-8", header, names[::-1], limit=None), how="diagonal")
        said = found["__cells"].to_list() if "__cells" in found.columns else [None] * found.height
        assert [None if one is None else int(one.split()[0]) for one in said] == expected
        assert found.select(names).equals(read_by_polars.head(len(rows)))
        first = pl.concat(text_rows.text_frames(path, "utf-8", header, names, limit=9), how="diagonal")
        assert first.select(names).equals(found.select(names).head(9))
