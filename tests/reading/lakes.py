"""Tables of lakes that the libraries write on this machine, a commit at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

KINDS = ("delta", "iceberg")
STATE = {"delta": "version", "iceberg": "snapshot"}


@contextmanager
def catalog(folder: Path, warehouse: str = "", **properties: str) -> Iterator[SqlCatalog]:
    """Give a catalog of Iceberg whose tables lie below the folder, or in a warehouse elsewhere."""
    where = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": warehouse or f"file://{folder}", **properties}
    with closing(SqlCatalog("tests", **where)) as found:
        found.create_namespace_if_not_exists("ns")
        yield found


@contextmanager
def iceberg_table(folder: Path, name: str) -> Iterator[Table]:
    with catalog(folder) as found:
        yield found.load_table(f"ns.{name}")


def append(kind: str, folder: Path, name: str, rows: pa.Table, *, commits: int = 1, **options: Any) -> None:
    """Append rows to a table, in some commits of their own."""
    size = -(-len(rows) // commits)
    parts = [rows.slice(first, size) for first in range(0, len(rows), size)]
    if kind == "delta":
        for part in parts:
            write_deltalake(folder / name, part, mode="append", **options)
        return
    with catalog(folder) as found:
        table = found.create_table_if_not_exists(f"ns.{name}", rows.schema)
        for part in parts:
            table.append(part)


def place(kind: str, name: str, **state: int) -> dict[str, Any]:
    """Return what a spec in the folder says of where such a table lies."""
    return {"files": None, kind: name if kind == "delta" else f"ns/{name}", **state}


def current(kind: str, folder: Path, name: str) -> int:
    """Return the version, or snapshot, that a table is at."""
    if kind == "delta":
        return DeltaTable(folder / name).version()
    with iceberg_table(folder, name) as found:
        snapshot = found.current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id


def rows_of(kind: str, folder: Path, name: str) -> pa.Table:
    """Return the rows of a table as its own library reads them."""
    if kind == "delta":
        return DeltaTable(folder / name).to_pyarrow_table()
    with iceberg_table(folder, name) as found:
        return found.scan().to_arrow().cast(found.schema().as_arrow())
