"""The canonical folder: ``displays.parquet``, ``conversions.parquet``, ``actions.parquet``, ``meta.json``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.errors import SourceError
from evaluator.log import Log, LogMeta

SCHEMA_VERSION = 1
META = "meta.json"
TABLES = ("displays", "conversions", "actions")
ROWS_PER_GROUP = 65_536


def is_canonical(folder: Path) -> bool:
    """Whether `folder` looks like a converted log."""
    return (folder / META).is_file()


def open_canonical(folder: Path) -> Log:
    """Return the log in a canonical folder.

    Raises
    ------
    SourceError
        A file is missing or damaged, or was written in another version of the format.
    """
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        version = meta.pop("schema_version", None)
    except (OSError, ValueError, AttributeError) as error:
        raise _damaged(folder / META, error) from None
    if version != SCHEMA_VERSION:
        raise SourceError(
            f"{folder / META}: schema_version {version}, this version reads {SCHEMA_VERSION}.",
            hint="convert the dataset again.",
        )
    tables: dict[str, pa.Table] = {}
    for name in TABLES:
        path = folder / f"{name}.parquet"
        try:
            # One file, read as such: the folder's name never becomes a hive partition.
            tables[name] = pq.ParquetFile(path).read()
        except (OSError, pa.ArrowException) as error:
            raise _damaged(path, error) from None
    try:
        meta["notes"] = tuple(meta["notes"])
        described = LogMeta(**meta)
    except (KeyError, TypeError) as error:
        raise _damaged(folder / META, error) from None
    return Log(meta=described, **tables).validated()


def write_canonical(log: Log, folder: Path) -> None:
    """Write the log into the existing, empty `folder`, in row groups."""
    for name in TABLES:
        table: pa.Table = getattr(log, name)
        with pq.ParquetWriter(folder / f"{name}.parquet", table.schema, compression="zstd") as writer:
            for start in range(0, max(table.num_rows, 1), ROWS_PER_GROUP):
                writer.write_table(table.slice(start, ROWS_PER_GROUP))
    meta = {"schema_version": SCHEMA_VERSION, **asdict(log.meta)}
    (folder / META).write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")


def _damaged(path: Path, error: Exception) -> SourceError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return SourceError(f"{path}: missing or damaged ({reason}).", hint="convert the dataset again.")
