"""The canonical folder: ``displays.parquet``, ``conversions.parquet``, ``actions.parquet``, ``meta.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.datasets.subset import first_displays, only_actions
from evaluator.errors import SourceError, UsageError
from evaluator.log import LogMeta, Selection, StoredLog

SCHEMA_VERSION = 1
META = "meta.json"


def is_canonical(folder: Path) -> bool:
    """Whether `folder` looks like a converted log."""
    return (folder / META).is_file()


def open_canonical(folder: Path, *, limit: int | None = None, actions: str | Sequence[str] | None = None) -> StoredLog:
    """Return the log in a canonical folder; its displays stay on disk.

    Parameters
    ----------
    folder
        Folder.
    limit
        The first n displays only, with their conversions.
    actions
        ``top:n``, ``used`` or labels, as `evaluator.datasets.load` takes them while reading files.

    Raises
    ------
    SourceError
        A file is missing or damaged, or was written in another version of the format.
    LogError
        The rows break the log contract. Contexts are not read here: a replay checks those that it reads.
    UsageError, UnknownNameError
        `limit` or `actions` do not fit.
    """
    meta = _read_meta(folder)
    if limit is not None and limit < 1:
        raise UsageError(f"limit={limit}.", hint="give the number of displays to read, at least 1.")
    try:
        # One file, read as such: the folder's name never becomes a hive partition.
        tables = {name: pq.ParquetFile(folder / f"{name}.parquet").read() for name in ("conversions", "actions")}
        path = folder / "displays.parquet"
        rows = pq.ParquetFile(path).metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        raise _damaged(folder, error) from None
    whole = StoredLog(path, Selection(rows, rows), meta=meta, **tables)
    try:
        whole.validated(vectors=False)
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, error) from None
    log = whole if limit is None or limit >= rows else first_displays(whole, limit)
    log = log if actions is None else only_actions(log, actions)
    return log.as_sound_as(whole)


def _read_meta(folder: Path) -> LogMeta:
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
    try:
        meta["notes"] = tuple(meta["notes"])
        return LogMeta(**meta)
    except (KeyError, TypeError) as error:
        raise _damaged(folder / META, error) from None


def _damaged(path: Path, error: Exception) -> SourceError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return SourceError(f"{path}: missing or damaged ({reason}).", hint="convert the dataset again.")
