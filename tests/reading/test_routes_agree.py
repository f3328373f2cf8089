"""The same rows are the same log by whatever route they come: files of every kind, frames, queries, folders."""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import json
import lzma
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from evaluator import Log, load
from evaluator.datasets import convert
from evaluator.errors import SourceError
from tests.reading.sources import write_spec

# Text with blanks and signs, cells that are missing, whole numbers as floats, truth values, and a half.
TABLE = pa.table(
    {
        "id": [f"a{i}" for i in range(8)],
        "t": range(8),
        "ad": [7.0, 8.0, 7.0, 7.0, 8.0, 8.0, 7.0, 8.0],
        "p": [0.5] * 8,
        "land": ["São Paulo", None, "a:b", "a:b", None, "São Paulo", "a:b", None],
        "mobile": [True, False, True, True, False, None, True, False],
        "clicked": [True, False, False, True, False, False, False, True],
    }
)
SECTIONS: dict[str, Any] = {
    "display": {"id": "id", "propensity": "p"},
    "conversion": {"time": None, "indicator": "clicked", "immediate": True},
    "context": {"columns": ["land", "mobile"], "encoding": "one-hot"},
    "keep": {"land": "land", "mobile": "mobile"},
}


def text(table: pa.Table, separator: str = ",", words: Callable[[Any], str] = str) -> bytes:
    lines = [list(table.column_names), *(row.values() for row in table.to_pylist())]
    return "".join(
        separator.join("" if x is None else words(x) if isinstance(x, bool) else str(x) for x in line) + "\n"
        for line in lines
    ).encode()


def objects(table: pa.Table) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()


def zipped(data: bytes, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.csv", data)


def in_folders(root: Path) -> None:
    """Rows parted by the country, as Hive and Spark part them."""
    for land in ("São Paulo", "a:b", None):
        folder = root / f"land={'__HIVE_DEFAULT_PARTITION__' if land is None else quote(land)}"
        folder.mkdir(parents=True)
        rows = [row for row in TABLE.to_pylist() if row["land"] == land]
        pq.write_table(pa.Table.from_pylist(rows, TABLE.schema).drop_columns("land"), folder / "part.parquet")


def in_parts(root: Path) -> None:
    """Parts of one row each, in the order of the rows; those without a country lack the column."""
    root.mkdir()
    for i, row in enumerate(TABLE.to_pylist()):
        part = TABLE.slice(i, 1)
        pq.write_table(part.drop_columns("land") if row["land"] is None else part, root / f"{i}.parquet")


FILES: dict[str, Callable[[Path], Any]] = {
    "log.csv": lambda path: path.write_bytes(text(TABLE)),
    "of-polars.csv": lambda path: path.write_bytes(text(TABLE, words=lambda x: str(x).lower())),
    "of-postgresql.csv": lambda path: path.write_bytes(
        text(TABLE.set_column(5, "mobile", TABLE["mobile"].cast(pa.string())), words=lambda x: str(x)[0].lower())
    ),
    "of-excel.csv": lambda path: path.write_bytes(b"\xef\xbb\xbfsep=;\r\n" + text(TABLE, ";").replace(b"\n", b"\r\n")),
    "log.tsv": lambda path: path.write_bytes(text(TABLE, "\t")),
    "log.csv.gz": lambda path: path.write_bytes(gzip.compress(text(TABLE))),
    "log.csv.bz2": lambda path: path.write_bytes(bz2.compress(text(TABLE))),
    "log.csv.xz": lambda path: path.write_bytes(lzma.compress(text(TABLE))),
    "log.csv.zst": lambda path: path.write_bytes(pa.compress(text(TABLE), "zstd", asbytes=True)),
    "log.csv.zip": lambda path: zipped(text(TABLE), path),
    "log.jsonl": lambda path: path.write_bytes(objects(TABLE)),
    "log.jsonl.zst": lambda path: path.write_bytes(pa.compress(objects(TABLE), "zstd", asbytes=True)),
    "log.parquet": lambda path: pq.write_table(TABLE, path),
    # As Spark calls its files: what is within is compressed.
    "part-0.snappy.parquet": lambda path: pq.write_table(TABLE, path, compression="snappy"),
    "part-0.gz.parquet": lambda path: pq.write_table(TABLE, path, compression="gzip"),
    "log.arrow": lambda path: feather.write_feather(TABLE, path),
    "folders": in_folders,
    "parts": in_parts,
}
FRAMES: dict[str, Callable[[], Any]] = {
    "pyarrow": lambda: TABLE,
    "polars": lambda: pl.DataFrame(TABLE),
    "dictionaries": lambda: TABLE.set_column(4, "land", TABLE["land"].dictionary_encode()),
    "decimals": lambda: TABLE.set_column(2, "ad", TABLE["ad"].cast(pa.decimal256(45, 3))),
}
if importlib.util.find_spec("pandas"):
    FRAMES["pandas"] = TABLE.to_pandas


def seen(log: Log) -> list[Any]:
    assert log.meta.encoder is not None
    columns = [log.column(name).tolist() for name in ("time", "action", "propensity", "context")]
    kept = [log.displays[name].to_pylist() for name in ("land", "mobile")]
    return [*columns, kept, log.conversions.to_pylist(), log.labels, log.meta.encoder.columns]


@pytest.fixture(scope="module")
def wanted() -> list[Any]:
    return seen(of_frame(TABLE))


def of_frame(frame: Any) -> Log:
    return Log.from_frames(
        frame, time="t", action="ad", unit="s", id="id", propensity="p", indicator="clicked", immediate=True,
        context=["land", "mobile"], encoding="one-hot", keep={"land": "land", "mobile": "mobile"},
    )  # fmt: skip


def test_the_log_is_the_one_of_the_rows(wanted: list[Any]) -> None:
    time, action, _, _, kept, conversions, labels, _ = wanted
    assert (time, [labels[a] for a in action]) == (list(range(8)), [f"{x:.0f}" for x in TABLE["ad"].to_pylist()])
    assert kept[0] == TABLE["land"].to_pylist()
    assert [row["display_id"] for row in conversions] == [0, 3, 7]


@pytest.mark.parametrize("name", FILES)
def test_files(tmp_path: Path, name: str, wanted: list[Any]) -> None:
    FILES[name](tmp_path / name)
    spec = write_spec(tmp_path, source={"files": name, "sort": True}, **SECTIONS)
    log = load(spec)
    assert seen(log) == wanted
    lacking = [note for note in log.meta.notes if "'land' is missing on all rows of 3 of 8 files" in note]
    assert bool(lacking) == (name == "parts")


@pytest.mark.parametrize("name", FRAMES)
def test_frames(name: str, wanted: list[Any]) -> None:
    assert seen(of_frame(FRAMES[name]())) == wanted


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_queries(tmp_path: Path, kind: str, wanted: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"shop.{kind}"
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.register("rows", TABLE)
            connection.execute("CREATE TABLE log AS SELECT * FROM rows")
    else:
        pytest.importorskip("adbc_driver_sqlite")
        with sqlite3.connect(path) as connection:
            connection.execute(f"CREATE TABLE log ({', '.join(TABLE.column_names)})")
            # SQLite has no truth values.
            cells = [[str(x).lower() if isinstance(x, bool) else x for x in row.values()] for row in TABLE.to_pylist()]
            connection.executemany(f"INSERT INTO log VALUES ({', '.join('?' * TABLE.num_columns)})", cells)
    monkeypatch.setenv("SHOP_DB", str(path))
    of = {"files": None, "database": kind, "uri_env": "SHOP_DB", "query": "SELECT * FROM log ORDER BY t"}
    assert seen(convert(write_spec(tmp_path, source=of, **SECTIONS), tmp_path / "out").log) == wanted


def test_parts_that_threads_write_are_the_same_log(tmp_path: Path, wanted: list[Any]) -> None:
    in_parts(tmp_path / "parts")
    spec = write_spec(tmp_path, source={"files": "parts", "sort": True}, **SECTIONS)
    assert seen(convert(spec, tmp_path / "out", jobs=2).log) == wanted


@pytest.mark.parametrize(("column", "of"), [("clicked", "an outcome"), ("ad", "an action"), ("p", "a propensity")])
def test_a_part_that_lacks_what_may_not_be_missing_is_named(tmp_path: Path, column: str, of: str) -> None:
    (tmp_path / "parts").mkdir()
    for i, part in enumerate((TABLE, TABLE.drop_columns(column))):
        pq.write_table(part, tmp_path / "parts" / f"{i}.parquet")
    spec = write_spec(tmp_path, source={"files": "parts", "sort": True}, **SECTIONS)
    said = f"parts/1.parquet: no column '{column}', which .*parts/0.parquet has. Hint: add it, or leave the file out"
    with pytest.raises(SourceError, match=said):
        load(spec)


def test_a_column_that_no_part_has_is_no_column(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for i in range(2):
        pq.write_table(TABLE.drop_columns("land"), tmp_path / "parts" / f"{i}.parquet")
    with pytest.raises(SourceError, match="no column 'land'"):
        load(write_spec(tmp_path, source={"files": "parts", "sort": True}, **SECTIONS))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("log.csv.7z", "log.csv.7z: .7z files are not read. Hint: unpack it: 7z x log.csv.7z"),
        ("log.tar.gz", "log.tar.gz: .tar files are not read. Hint: unpack it: tar xf log.tar.gz"),
        ("log.parquet.gz", "a parquet file that is compressed as a whole. Hint: unpack it: gunzip log.parquet.gz"),
        ("log.csv.bz2", "log.csv.bz2: not a bzip2 file"),
        ("log.xlsx", "log.xlsx: .xlsx files are not read. Hint: save its sheet as CSV."),
    ],
)
def test_what_is_not_unpacked_says_how_to(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(text(TABLE)))
    with pytest.raises(SourceError) as raised:
        load(write_spec(tmp_path, source={"files": name}, **SECTIONS))
    assert said in str(raised.value)


@pytest.mark.parametrize("suffix", ["bz2", "xz", "zst", "zip", "gz"])
def test_a_compressed_file_that_ends_too_early_is_one_line(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log.csv.{suffix}"
    FILES[path.name](path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(SourceError, match=rf"log.csv.{suffix}: truncated or damaged \w+ \(") as raised:
        load(write_spec(tmp_path, source={"files": path.name}, **SECTIONS))
    assert "\n" not in str(raised.value)


def test_an_archive_of_several_files_and_a_file_beside_its_archive_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.csv.zip", "w") as archive:
        for name in ("a.csv", "b.csv"):
            archive.writestr(name, text(TABLE))
    with pytest.raises(SourceError) as raised:
        load(write_spec(tmp_path, source={"files": "log.csv.zip"}, **SECTIONS))
    said = "log.csv.zip: an archive of 2 files, where one is a table. Hint: unpack it: unzip log.csv.zip."
    assert str(raised.value) == f"{tmp_path}/{said}"
    folder = tmp_path / "both"
    folder.mkdir()
    for name in ("log.csv", "log.csv.gz"):
        FILES[name](folder / name)
    with pytest.raises(SourceError, match=r"are one file, packed and unpacked"):
        load(write_spec(tmp_path, source={"files": "both"}, **SECTIONS))


def test_lines_are_counted_from_the_one_that_names_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("sep=;\nt;ad;sold\n1;a;2\n2;b;x\n3;c\n")
    with pytest.raises(SourceError, match=r"log.csv line 5: 2 cells where 3\).*log.csv line 4: 'x'"):
        load(write_spec(tmp_path))
