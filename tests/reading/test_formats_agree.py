"""The same rows are the same log, to the bit, in whatever format they are kept (replays of it: tests/statistical)."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evaluator import datasets, load
from evaluator.errors import SourceError
from evaluator.log import Log
from tests.fuzz.seeds import write_log
from tests.reading.sources import write_spec

FILES = ("log.csv", "log.tsv.gz", "log.jsonl", "log.parquet", "log.arrow")


def everything(log: Log) -> list[Any]:
    return [log.displays.to_pydict(), log.conversions.to_pydict(), log.actions.to_pydict(), log.meta]


def in_all_formats(tmp_path_factory: pytest.TempPathFactory, rows: int) -> dict[str, Log]:
    found = {}
    for file in FILES:
        folder = tmp_path_factory.mktemp("formats")
        write_log(folder, file=file, rows=rows)
        found[file] = load(str(folder / "spec.toml"))
        datasets.convert(folder / "spec.toml", folder / "converted")
        found[f"{file}, converted"] = load(str(folder / "converted"))
    return found


def test_csv_tsv_json_parquet_ipc_and_converted_are_one_log(tmp_path_factory: pytest.TempPathFactory) -> None:
    logs = in_all_formats(tmp_path_factory, 200)
    first = everything(logs["log.csv"])
    for name, log in logs.items():
        assert everything(log) == first, name


# Times to the microsecond, a number beyond 2^53, text of all sorts, cells that are missing in every kind of column.
ROWS: list[dict[str, Any]] = [
    {"id": "7", "t": "2017-11-07 09:30:00", "ad": "red", "p": 0.1, "sold": None, "gain": None, "where": 'a "b"'},
    {"id": "8", "t": "2017-11-07 09:30:05", "ad": "grün", "p": 0.3, "sold": "2017-11-08 01:00:00", "gain": 2.5,
     "where": None},
    {"id": "9007199254740993", "t": "2017-11-07 10:00:00", "ad": "red", "p": 0.1, "sold": "2017-11-07 10:00:00",
     "gain": 1e-7, "where": "x,y"},
    {"id": "9007199254740992", "t": "2017-11-07 10:00:00", "ad": "red", "p": 1e-05, "sold": None, "gain": None,
     "where": "x"},
]  # fmt: skip
NAMES = list(ROWS[0])


def _csv(*, quoting: int = csv.QUOTE_MINIMAL, end: str = "\n", changed: Callable[[str], str] = str) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, quoting=quoting, lineterminator=end)
    writer.writerow(NAMES)
    for row in ROWS:
        writer.writerow([changed(value) if name in ("t", "sold") and value else value for name, value in row.items()])
    return out.getvalue().encode()


def _json(changed: Callable[[dict[str, Any]], dict[str, Any]] = dict, end: str = "\n") -> bytes:
    return "".join(json.dumps(changed(row)) + end for row in ROWS).encode()


def _number(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"id": int(row["id"])}


def _known(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _binary(write: str) -> bytes:
    out = io.BytesIO()
    table = pl.DataFrame(ROWS).with_columns(pl.col("t", "sold").str.to_datetime("%Y-%m-%d %H:%M:%S"))
    getattr(table, write)(out)
    return out.getvalue()


def _epoch(cell: str) -> str:
    return f"{pl.Series([cell]).str.to_datetime('%Y-%m-%d %H:%M:%S').dt.epoch('s')[0]}.0"


VARIANTS: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "plain": ("log.csv", _csv(), {}),
    "quoted": ("log.csv", _csv(quoting=csv.QUOTE_ALL), {}),
    "with a mark": ("log.csv", b"\xef\xbb\xbf" + _csv(), {}),
    "quoted, with a mark": ("log.csv", b"\xef\xbb\xbf" + _csv(quoting=csv.QUOTE_ALL), {}),
    "of Windows": ("log.csv", _csv(end="\r\n") + b"\r\n\r\n", {}),
    "of an old Mac": ("log.csv", _csv(end="\r"), {}),
    "of an old Mac, quoted, zipped": ("log.csv.gz", gzip.compress(_csv(end="\r", quoting=csv.QUOTE_ALL)), {}),
    "empty lines at its end": ("log.csv", _csv() + b"\n\n\n", {}),
    "T and Z": ("log.csv", _csv(changed=lambda cell: cell.replace(" ", "T") + "Z"), {}),
    "a zone": ("log.csv", _csv(changed=lambda cell: cell + " UTC"), {}),
    "slashes": ("log.csv", _csv(changed=lambda cell: cell.replace("-", "/")), {}),
    "day first": ("log.csv", _csv(changed=lambda c: f"{c[8:10]}.{c[5:7]}.{c[:4]} {c[11:]}"),
                  {"format": "%d.%m.%Y %H:%M:%S"}),
    "seconds": ("log.csv", _csv(changed=_epoch), {"format": "epoch"}),
    "objects": ("log.jsonl", _json(), {}),
    "objects without what is missing": ("log.jsonl", _json(_known), {}),
    "objects with large numbers": ("log.ndjson.gz", gzip.compress(_json(_number)), {}),
    "objects of Windows": ("log.jsonl", b"\xef\xbb\xbf" + _json(end="\r\n") + b"\r\n", {}),
    "Parquet": ("log.parquet", _binary("write_parquet"), {}),
    "Arrow": ("log.arrow", _binary("write_ipc"), {}),
}  # fmt: skip


def read_variant(folder: Path, name: str) -> list[Any]:
    file, data, time = VARIANTS[name]
    write_spec(
        folder,
        source={"files": file},
        time={"unit": "datetime", **time},
        display={"id": "id", "propensity": "p"},
        conversion={"value": "gain"},
        context={"columns": ["where"], "encoding": "one-hot"},
    )
    (folder / file).write_bytes(data)
    done = datasets.read(folder / "spec.toml", keep=["where"])
    assert done.quarantine.num_rows == 0
    return everything(done.log)


@pytest.mark.parametrize("name", VARIANTS)
def test_rows_are_the_same_log_however_they_were_saved(tmp_path: Path, name: str) -> None:
    for folder in ("here", "plain"):
        (tmp_path / folder).mkdir()
    assert read_variant(tmp_path / "here", name) == read_variant(tmp_path / "plain", "plain")


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (["t,ad,sold", "1,a,2", '2,"b,3', "3,a,4"], 3),
        (["t,ad,sold", "1,a,2", '2,"b,3', '3,"a,4', "5,b,6"], 3),
        (["t,ad,sold", "1,a,2", *["2,b,"] * 50_000, '3,"a,4'], 50_003),
    ],
)
def test_a_quote_that_is_not_closed_is_told_with_its_line(tmp_path: Path, rows: list[str], line: int) -> None:
    write_spec(tmp_path)
    (tmp_path / "log.csv").write_text("\n".join(rows))
    with pytest.raises(SourceError, match=f"log.csv line {line}: a quote is not closed, or closed inside a cell: '"):
        load(tmp_path / "spec.toml")
