"""A table of Apache Iceberg, at one snapshot."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.datasets.sources.lakes import LakeTable, lake_table, not_installed, store_options
from evaluator.datasets.sources.part import first_line
from evaluator.datasets.spec_sections import Storage, Table
from evaluator.errors import SourceError

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table.snapshots import Snapshot

ENDPOINT, REGION = "s3.endpoint", "s3.region"
METADATA = ".metadata.json"
_IN_CATALOG = re.compile(r"(?!.*\.json$)[^./\\]+(\.[^./\\]+){2,}")
_OF_STORES = ("s3.", "gcs.", "adls.")
_NUMBER = re.compile(r"v?(\d+)")


def open_iceberg(table: Table, folder: Path, *, key: Sequence[str]) -> LakeTable:
    """Return an Iceberg table at the snapshot that a spec names, or at its current one.

    Its files are read in the order in which they were committed, those of one commit by name; deleted rows are not.

    Parameters
    ----------
    table
        Section of the spec that says where it lies: its folder, one of its metadata files, or
        ``catalog.namespace.name`` of a catalog that the configuration of PyIceberg knows.
    folder
        Folder that a path is relative to.
    key
        Columns that identify a row, as far as the spec tells.

    Raises
    ------
    SourceError
        There is no such table or snapshot, or it cannot be reached or read.
    EvaluatorError
        The extra `iceberg` is not installed.
    """
    try:
        import pyiceberg.table  # noqa: F401
    except ImportError:
        raise not_installed("iceberg", "pyiceberg") from None
    import polars as pl

    given = str(table.iceberg)
    in_catalog = bool(_IN_CATALOG.fullmatch(given)) and not (folder / given).exists()
    name = given if in_catalog or "://" in given else str(folder / given)
    # Another planner of Polars lists files in an order of its own, and warns where it is not installed.
    os.environ["POLARS_ICEBERG_PLANNER"] = "pyiceberg"
    try:
        found = _of_catalog(name) if in_catalog else _of_metadata(name, table.storage)
        snapshot = _snapshot(found, table.snapshot, name)
        rows = pl.scan_iceberg(
            _in_order(found, snapshot), snapshot_id=table.snapshot,
            # Polars reads files by itself: it is told of what answers for their store, secrets of a catalog among it.
            storage_options={word: of for word, of in found.io.properties.items() if word.startswith(_OF_STORES)},
        )  # fmt: skip
        return lake_table(
            rows, name, key, kind="iceberg", identity=str(found.metadata.table_uuid),
            pinned="no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}",
        )  # fmt: skip
    except SourceError:
        raise
    except Exception as error:  # the library's own, or of any of the catalogs and stores that it speaks to
        raise SourceError(
            f"{name}: cannot be opened: {first_line(error)}.",
            remedy="name a table folder, a metadata.json or catalog.namespace.name.",
        ) from None


def _snapshot(table: IcebergTable, number: int | None, name: str) -> Snapshot | None:
    """Return the snapshot of a table that is asked for, or its current one; None where it never had one."""
    current = table.current_snapshot()
    found = current if number is None else table.snapshot_by_id(number)
    if found is None and number is not None:
        raise SourceError(
            f"{name}: no snapshot {number} of the table is left"
            + ("." if current is None else f"; its current one is {current.snapshot_id}."),
            remedy="name another snapshot, or none for the current one.",
        )
    return found


def _of_catalog(name: str) -> IcebergTable:
    """Return a table of a catalog, whose configuration says where its store answers, too."""
    from pyiceberg.catalog import load_catalog

    catalog, _, rest = name.partition(".")
    with closing(load_catalog(catalog)) as found:
        return found.load_table(rest)


def _of_metadata(name: str, storage: Storage | None) -> IcebergTable:
    from pyiceberg.table import StaticTable

    options = _with_environment(name, store_options(name, storage, endpoint=ENDPOINT, region=REGION))
    return StaticTable.from_metadata(name if name.endswith(METADATA) else _last_metadata(name, options), options)


def _last_metadata(name: str, options: dict[str, str]) -> str:
    """Return the metadata file of a table folder that its hint names, or else the one with the highest number."""
    import pyarrow.fs
    from pyiceberg.io.pyarrow import PyArrowFileIO

    within = f"{name.rstrip('/')}/metadata"
    scheme, netloc, path = PyArrowFileIO.parse_location(within, options)
    store = PyArrowFileIO(options).fs_by_scheme(scheme, netloc)
    files = [file.base_name for file in store.get_file_info(pyarrow.fs.FileSelector(path, allow_not_found=True))]
    if "version-hint.text" in files:
        return name
    numbers = {file: int(found[1]) for file in files if file.endswith(METADATA) and (found := _NUMBER.match(file))}
    last = sorted(file for file, number in numbers.items() if number == max(numbers.values()))
    if len(last) != 1:
        found_here = f"both {last[0]} and {last[1]}" if last else "no metadata.json"
        raise SourceError(
            f"{within} holds {found_here}.", remedy="name the metadata file, or the table in its catalog."
        )
    return f"{within}/{last[0]}"


def _with_environment(location: str, options: dict[str, str]) -> dict[str, str]:
    """Return what PyIceberg must be told of an S3 store, with what the environment says, as other libraries read it."""
    if not location.startswith(("s3://", "s3a://")):
        return options
    words = {
        "s3.endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        "s3.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    }
    said = {key: os.environ[word] for key, of in words.items() for word in reversed(of) if word in os.environ}
    said |= options
    # Without a region PyIceberg asks Amazon for that of the bucket.
    return {"s3.region": "us-east-1", **said} if "s3.endpoint" in said else said


def _in_order(table: IcebergTable, snapshot: Snapshot | None) -> IcebergTable:
    """Return a table whose files are planned as they were committed: its manifests list the last first."""
    from pyiceberg.manifest import DataFileContent
    from pyiceberg.table import DataScan
    from pyiceberg.table import Table as IcebergTable

    order: dict[str, tuple[int, int]] = {}
    at = {of.snapshot_id: of.timestamp_ms for of in table.snapshots()}
    for manifest in [] if snapshot is None else snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            if entry.data_file.content == DataFileContent.DATA:
                # Tables of the first format have no sequence numbers.
                committed = entry.sequence_number or 0, at.get(entry.snapshot_id or 0, 0)
                order[entry.data_file.file_path] = committed
    found = () if snapshot is None else table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
    planned = sorted(found, key=lambda task: (order[task.file.file_path], task.file.file_path))

    class InOrder(DataScan):
        def plan_files(self) -> Iterable[FileScanTask]:
            return planned

    class Pinned(IcebergTable):
        def scan(self, *args: Any, **keywords: Any) -> DataScan:
            scan = super().scan(*args, **keywords)
            scan.__class__ = InOrder
            return scan

    return Pinned(table.name(), table.metadata, table.metadata_location, table.io, table.catalog, table.config)
