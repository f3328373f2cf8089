"""What can happen to a file, and to the place a log is written to: one line, and the old output or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from evaluator.datasets import convert, load
from evaluator.errors import OutputError, SourceError
from evaluator.reading import frames as scan
from tests.reading.sources import dataset, write_rows, write_spec

ROWS = ["t,ad,sold", *[f"{i},{i * i % 7},{i * 7919 + i if i % 5 == 0 else ''}" for i in range(20_000)]]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "CHUNK_ROWS", 1_000)


def refused(spec: Path, **options: object) -> str:
    """The error of a conversion that leaves nothing."""
    before = sorted(spec.parent.iterdir())
    with pytest.raises(SourceError) as raised:
        convert(spec, spec.parent / "out", **options)
    assert raised.value.exit_code == 3
    assert "\n" not in str(raised.value)
    assert sorted(spec.parent.iterdir()) == before
    return str(raised.value)


@pytest.mark.parametrize("lost", [1, 8, 9, 100, 5_000])
def test_gzip_truncated_near_its_end(tmp_path: Path, lost: int) -> None:
    spec = dataset(tmp_path, ROWS, source={"files": "log.csv.gz"})
    file = tmp_path / "log.csv.gz"
    file.write_bytes(file.read_bytes()[:-lost])
    assert f"{file}: truncated or damaged gzip" in refused(spec)


@pytest.mark.parametrize("where", [0.5, 0.99, -5])
def test_gzip_with_a_flipped_byte(tmp_path: Path, where: float) -> None:
    spec = dataset(tmp_path, ROWS, source={"files": "log.csv.gz"})
    file = tmp_path / "log.csv.gz"
    content = bytearray(file.read_bytes())
    content[int(where * len(content)) if where > 0 else int(where)] ^= 0x55
    file.write_bytes(content)
    assert f"{file}: truncated or damaged gzip" in refused(spec)


def appended(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b"30000,1,\n")


def touched(file: Path) -> None:
    os.utime(file, (1, 1))


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


@pytest.mark.parametrize("files", ["log.csv", "log.csv.gz"])
@pytest.mark.parametrize("change", [appended, touched, cut, Path.unlink])
def test_file_that_changes_while_it_is_read(tmp_path: Path, files: str, change: Callable[[Path], None]) -> None:
    spec = dataset(tmp_path, ROWS, source={"files": files})
    changed = []

    def meddle(rows: int) -> None:
        if not changed:
            change(tmp_path / files)
            changed.append(rows)

    before = {p for p in tmp_path.iterdir() if p.name != files}
    with pytest.raises(SourceError, match=rf"{files}: it (changed|vanished) while it was read") as raised:
        convert(spec, tmp_path / "out", advance=meddle)
    assert "\n" not in str(raised.value)
    assert ("vanished" in str(raised.value)) == (not (tmp_path / files).exists())
    assert {p for p in tmp_path.iterdir() if p.name != files} == before


@pytest.mark.parametrize("stage", ["collect_schema", "collect_batches"])
def test_polars_may_panic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    spec = write_spec(tmp_path, source={"files": "log.parquet"})
    pl.DataFrame({"t": [1, 2], "ad": ["a", "b"], "sold": [4, None]}).write_parquet(tmp_path / "log.parquet")

    def panic(*arguments: object, **options: object) -> Iterator[None]:
        raise pl.exceptions.PanicException("called `Option::unwrap()` on a `None` value")

    def panic_later(*arguments: object, **options: object) -> Iterator[None]:
        yield from panic()

    monkeypatch.setattr(pl.LazyFrame, stage, panic if stage == "collect_schema" else panic_later)
    assert "log.parquet: " in refused(spec)


def test_second_table_that_changes(tmp_path: Path) -> None:
    write_rows(tmp_path / "sales.csv", ["shown,when", "d1,40"])
    conversion = {"time": "when", "source": {"files": "sales.csv", "display": "shown"}}
    rows = ["id,t,ad", *[f"d{i},{i},{i % 2}" for i in range(3_000)]]
    spec = dataset(tmp_path, rows, display={"id": "id"}, conversion=conversion)
    with pytest.raises(SourceError, match=r"sales\.csv: it changed"):
        convert(spec, tmp_path / "out", advance=lambda rows: appended(tmp_path / "sales.csv"))
    assert not (tmp_path / "out").exists()


def test_ragged_line_deep_in_a_file(tmp_path: Path) -> None:
    rows = [*ROWS[:15_000], "1,2,3,4", *ROWS[15_000:]]
    assert "log.csv.gz line 15001: 4 cells where 3" in refused(dataset(tmp_path, rows, source={"files": "log.csv.gz"}))


def test_missing_column_of_a_later_file_is_told_before_reading(tmp_path: Path) -> None:
    write_rows(tmp_path / "logs" / "1.csv", ROWS)
    write_rows(tmp_path / "logs" / "2.csv", ["t,add,sold", "1,a,"])
    heard: list[int] = []
    assert "2.csv: no column 'ad'" in refused(write_spec(tmp_path, source={"files": "logs"}), advance=heard.append)
    assert heard == []


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    spec = dataset(tmp_path, ROWS)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/out: cannot be written \(File exists\)") as raised:
        convert(spec, tmp_path / "file" / "out")
    assert raised.value.exit_code == 1
    assert len(load(spec)) == 20_000
