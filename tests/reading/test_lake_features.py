"""Tables as other writers leave them: with rows that are marked as deleted, or what no reader here knows."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
from pyiceberg.typedef import Record

from evaluator import load
from evaluator.errors import SourceError
from tests.reading.lakes import append, iceberg_table
from tests.reading.sources import write_spec

ROWS = pa.table({"t": [1, 2, 2, 5], "ad": ["a", "b", "a", "b"], "sold": pa.array([4, None, 9, None], pa.int64())})
# Numbers of the format, as text: the letters of its base 85.
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def delta_table(
    folder: Path,
    *features: str,
    reader: int = 3,
    deleted: list[int] | None = None,
    physical: str = "",
    within: str = "",
) -> None:
    """Write a Delta table of two files by hand; the second file lacks some of its rows, and is said to be of shop a."""
    (folder / "_delta_log").mkdir(parents=True)
    names = {name: f"{physical}{name}" for name in ROWS.column_names}
    fields = [
        {"name": name, "type": "string" if name == "ad" else "long", "nullable": True,
         "metadata": {"delta.columnMapping.id": i, "delta.columnMapping.physicalName": of} if physical else {}}
        for i, (name, of) in enumerate(names.items())
    ]  # fmt: skip
    if within:
        fields.append({"name": "shop", "type": "string", "nullable": True, "metadata": {}})
    protocol: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": {2: 5, 3: 7}.get(reader, reader)}
    if reader == 3:
        protocol |= {"readerFeatures": list(features), "writerFeatures": list(features)}
    metadata = {
        "id": "0c0ffee0-0000-4000-8000-000000000000", "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}), "createdTime": 1,
        "partitionColumns": ["shop"] if within else [],
        "configuration": {"delta.columnMapping.mode": "name"} if physical else {},
    }  # fmt: skip
    actions: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": metadata}]
    for number, name in enumerate(
        ("shop=b/b.parquet", f"{within}/a.parquet") if within else ("b.parquet", "a.parquet")
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        pq.write_table(ROWS.rename_columns(list(names.values())), folder / name)
        of = {"shop": "ba"[number]} if within else {}
        add = {"path": name, "partitionValues": of, "size": (folder / name).stat().st_size, "modificationTime": number,
               "dataChange": True, "stats": json.dumps({"numRecords": len(ROWS)})}  # fmt: skip
        actions.append({"add": add | ({"deletionVector": deletion_vector(deleted)} if number and deleted else {})})
    log = "\n".join(json.dumps(action) for action in actions)
    (folder / "_delta_log" / f"{0:020}.json").write_text(log + "\n")


def deletion_vector(rows: list[int]) -> dict[str, Any]:
    """Return the numbers of some rows as the log keeps a few of them: a Roaring bitmap in base 85."""
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + b"".join(struct.pack("<H", row) for row in rows)
    data = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    words = [int.from_bytes(data[i : i + 4].ljust(4, b"\0"), "big") for i in range(0, len(data), 4)]
    text = "".join(LETTERS[word // 85**place % 85] for word in words for place in range(4, -1, -1))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(rows)}


def spec_of(folder: Path, **at: str) -> Path:
    return write_spec(folder, source={"files": None, "sort": True, **at}, time={"ties": "file"})


@pytest.mark.parametrize("name", ["log", "Läden & mehr, 100 %", "a+b#c?d"])
def test_rows_of_deletion_vectors_are_not_read(tmp_path: Path, name: str) -> None:
    features = ("deletionVectors", "timestampNtz", "v2Checkpoint")
    delta_table(tmp_path / name, *features, deleted=[1, 2])
    log = load(spec_of(tmp_path, delta=name))
    assert log.column("time").tolist() == [1, 1, 2, 2, 5, 5]
    assert log.conversions["time"].to_pylist() == [4, 4, 9]


def test_files_outside_of_the_folders_of_their_partitions_are_refused(tmp_path: Path) -> None:
    delta_table(tmp_path / "log", within="shop=a")
    kept = load(write_spec(tmp_path, source={"files": None, "delta": "log", "sort": True}, keep={"shop": "shop"}))
    assert sorted(kept.displays["shop"].to_pylist()) == list("aaaabbbb")
    for number, within in enumerate(("xz", "shop=c")):
        delta_table(tmp_path / f"log{number}", within=within)
        with pytest.raises(SourceError, match=r"a\.parquet lies in no folder that says shop=a"):
            load(spec_of(tmp_path, delta=f"log{number}"))


def test_what_a_table_asks_of_those_who_read_its_log_is_no_matter(tmp_path: Path) -> None:
    delta_table(tmp_path / "log", "vacuumProtocolCheck", "v2Checkpoint")
    assert len(load(spec_of(tmp_path, delta="log"))) == 8


def test_what_the_library_cannot_read_after_all_is_said_in_a_line(tmp_path: Path) -> None:
    delta_table(tmp_path / "log", "vacuumProtocolCheck", "deletionVectors", deleted=[1, 2])
    with pytest.raises(SourceError, match=r"log: version 0 cannot be read: .*VacuumProtocolCheck") as raised:
        load(spec_of(tmp_path, delta="log"))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("features", "reader", "physical", "said"),
    [
        ((), 2, "col-", "reader version 2"),
        (("columnMapping",), 3, "col-", "columnMapping"),
        (("timeTravelToTheMoon",), 3, "", "timeTravelToTheMoon"),
        ((), 9, "", "reader version 9"),
    ],
)
def test_what_a_table_asks_of_its_readers_is_said_in_a_line(
    tmp_path: Path, features: tuple[str, ...], reader: int, physical: str, said: str
) -> None:
    delta_table(tmp_path / "log", *features, reader=reader, physical=physical)
    with pytest.raises(SourceError, match=f"log: cannot be (opened|read): .*{said}") as raised:
        load(spec_of(tmp_path, delta="log"))
    assert "\n" not in str(raised.value)


class _DeletesWriter(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES


def delete(folder: Path, rows: list[int], *, content: DataFileContent, bounds: bool = True) -> None:
    """Mark rows of the only file of a table as deleted, as engines do that merge when they read.

    Without bounds nothing but the file of deletes itself says of which file they are.
    """
    with iceberg_table(folder, "log") as table:
        last = table.current_snapshot()
        assert last is not None
        (task,) = table.scan().plan_files()
        path, field = task.file.file_path, {b"PARQUET:field_id": b"2147483546"}
        schema = pa.schema([
            pa.field("file_path", pa.string(), False, field),
            pa.field("pos", pa.int64(), False, {b"PARQUET:field_id": b"2147483545"}),
        ])  # fmt: skip
        deletes = folder / "ns" / "log" / "data" / "deletes.parquet"
        pq.write_table(pa.table([[path] * len(rows), rows], schema=schema), deletes)
        bound = {2147483546: path.encode()} if bounds else {}
        file = DataFile.from_args(
            content=content, file_path=f"file://{deletes}", file_format=FileFormat.PARQUET, partition=Record(),
            record_count=len(rows), file_size_in_bytes=deletes.stat().st_size, lower_bounds=bound, upper_bounds=bound,
            equality_ids=[1] if content == DataFileContent.EQUALITY_DELETES else None,
        )  # fmt: skip
        file.spec_id = 0
        number, sequence, metadata = (
            last.snapshot_id + 1,
            table.metadata.last_sequence_number + 1,
            f"{table.location()}/metadata",
        )
        with _DeletesWriter(
            table.spec(), table.schema(), table.io.new_output(f"{metadata}/deletes.avro"), number, "null"
        ) as writer:
            writer.add_entry(ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=number, sequence_number=None, data_file=file
            ))  # fmt: skip
        manifests = [*last.manifests(table.io), writer.to_manifest_file()]
        with write_manifest_list(
            2, table.io.new_output(f"{metadata}/snap.avro"), number, last.snapshot_id, sequence, "null"
        ) as listed:
            listed.add_manifests(manifests)
        snapshot = Snapshot(
            snapshot_id=number, parent_snapshot_id=last.snapshot_id, sequence_number=sequence,
            manifest_list=f"{metadata}/snap.avro", summary=Summary(operation=Operation.DELETE),
            schema_id=table.metadata.current_schema_id, timestamp_ms=last.timestamp_ms + 1,
        )  # fmt: skip
        main = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=number)
        table.catalog.commit_table(table, (), (AddSnapshotUpdate(snapshot=snapshot), main))


@pytest.mark.parametrize("bounds", [True, False])
def test_rows_that_are_deleted_by_position_are_not_read(tmp_path: Path, bounds: bool) -> None:
    append("iceberg", tmp_path, "log", ROWS)
    assert len(load(spec_of(tmp_path, iceberg="ns/log"))) == 4
    delete(tmp_path, [1, 2], content=DataFileContent.POSITION_DELETES, bounds=bounds)
    log = load(spec_of(tmp_path, iceberg="ns/log"))
    assert log.column("time").tolist() == [1, 5]


def test_rows_that_are_deleted_by_their_values_are_said_in_a_line(tmp_path: Path) -> None:
    append("iceberg", tmp_path, "log", ROWS)
    delete(tmp_path, [1, 2], content=DataFileContent.EQUALITY_DELETES)
    with pytest.raises(SourceError, match=r"ns/log: .*equality") as raised:
        load(spec_of(tmp_path, iceberg="ns/log"))
    assert "\n" not in str(raised.value)
