"""Tables of lakes that cannot be opened, or are no longer there: each is said in a line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from evaluator import load
from evaluator.errors import DataError, EvaluatorError, LogError, SourceError, SpecError
from tests.reading.lakes import KINDS, append, catalog, iceberg_table, place
from tests.reading.sources import write_spec
from tests.reading.test_lakes import N, displays, parts


def test_a_folder_that_does_not_say_which_metadata_is_the_last_is_refused(tmp_path: Path) -> None:
    append("iceberg", tmp_path, "log", pa.table({"id": range(6)}))
    metadata = tmp_path / "ns" / "log" / "metadata"
    last = max(metadata.glob("*.metadata.json"))
    (metadata / "00001-another.metadata.json").write_bytes(last.read_bytes())
    with pytest.raises(SourceError, match=r"metadata holds both 00001-\S+ and 00001-\S+\. Hint: name the metadata"):
        parts(tmp_path, iceberg="ns/log")


@pytest.mark.parametrize(
    ("at", "error", "said"),
    [
        ({"delta": "none"}, SourceError, r"none: no such folder"),
        ({"delta": "empty"}, SourceError, r"empty: no Delta table"),
        ({"delta": "log", "version": 7}, SourceError, r"log: no version 7 of the table is left; its last is 1\."),
        ({"delta": "gs://logs/log", "storage": {"endpoint": "http://here"}}, SourceError, r"an S3 store answers"),
        ({"delta": "s3://logs/log", "storage": {"anonymous": True}}, SourceError, r"storage\.anonymous is of files"),
        ({"iceberg": "none"}, SourceError, r"none/metadata holds no metadata\.json"),
        ({"iceberg": "none.metadata.json"}, SourceError, r"none\.metadata\.json: cannot be opened: .*No such file"),
        ({"iceberg": "ns/log", "snapshot": 7}, SourceError, r"no snapshot 7 .* its current one is \d+\. Hint: name"),
        ({}, SpecError, r"\$\.source`: give exactly one of files, delta, iceberg"),
        ({"delta": "log", "files": "log.csv"}, SpecError, r"give exactly one of files, delta, iceberg"),
        ({"delta": "log", "iceberg": "ns/log"}, SpecError, r"give exactly one of files, delta, iceberg"),
        ({"delta": "log", "snapshot": 7}, SpecError, r"snapshot goes with iceberg = '\.\.\.'"),
        ({"files": "log.csv", "version": 7}, SpecError, r"version goes with delta = '\.\.\.'"),
        ({"delta": "log", "version": -1}, SpecError, r"\$\.source\.version`: .*greater than or equal to 0, got -1"),
        ({"delta": "log", "format": "csv"}, SpecError, r"format goes with files = '\.\.\.', not with delta"),
    ],
)  # fmt: skip
def test_what_cannot_be_opened_is_said_in_a_line(
    tmp_path: Path, at: dict[str, Any], error: type[DataError], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    for kind in KINDS:
        append(kind, tmp_path, "log", displays().slice(0, 4), commits=2)
    with pytest.raises(error, match=said) as raised:
        load(write_spec(tmp_path, source={"files": None, **at}))
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 3


def test_a_version_whose_files_are_gone_is_said_in_a_line(tmp_path: Path) -> None:
    for _ in range(2):
        write_deltalake(tmp_path / "log", displays(), mode="overwrite")
    DeltaTable(tmp_path / "log").vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    spec = {"time": {"unit": "datetime"}, "conversion": {"time": "t"}}
    assert len(load(write_spec(tmp_path, source=place("delta", "log"), **spec))) == N
    with pytest.raises(SourceError, match=r"log: version 0 cannot be read: .*\. Hint: its files may have been removed"):
        load(write_spec(tmp_path, source=place("delta", "log", version=0), **spec))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_was_cut_off_is_said_in_a_line(tmp_path: Path, kind: str) -> None:
    append(kind, tmp_path, "log", displays(), commits=3)
    spec = write_spec(tmp_path, source=place(kind, "log"), time={"unit": "datetime"}, conversion={"time": "t"})
    assert len(load(spec)) == N
    file = max(tmp_path.rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(
        SourceError, match=r"log: (version|snapshot) \d+ cannot be read: .*\. Hint: its files"
    ) as raised:
        load(spec)
    assert "\n" not in str(raised.value)


def test_an_expired_snapshot_is_said_in_a_line(tmp_path: Path) -> None:
    append("iceberg", tmp_path, "log", displays(), commits=3)
    with iceberg_table(tmp_path, "log") as table:
        first = table.snapshots()[0].snapshot_id
        table.maintenance.expire_snapshots().by_id(first).commit()
    with pytest.raises(SourceError, match=f"no snapshot {first} of the table is left"):
        load(write_spec(tmp_path, source=place("iceberg", "log", snapshot=first)))


def test_a_table_without_a_snapshot_is_an_empty_log(tmp_path: Path) -> None:
    with catalog(tmp_path) as found:
        found.create_table("ns.log", displays().drop_columns(["who"]).schema)
    with pytest.raises(LogError, match="ns/log: the log is empty"):
        load(write_spec(tmp_path, source=place("iceberg", "log"), conversion={"time": "t"}, time={"unit": "datetime"}))


@pytest.mark.parametrize(("kind", "library"), [("delta", "deltalake"), ("iceberg", "pyiceberg.table")])
def test_what_is_not_installed_is_said_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(EvaluatorError, match=rf"is not installed\. Hint: pip install 'delayed-replay\[{kind}\]'\.$"):
        load(write_spec(tmp_path, source=place(kind, "log")))
