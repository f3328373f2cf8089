"""Folders of converted logs, on disk and in object stores, and whether their files are those that were written."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow.parquet as pq

from evaluator.errors import EvaluatorError
from evaluator.log.log_files import LogFile, damaged, opened, size_of
from evaluator.outputs.atomic import checksum
from evaluator.reading.sources.objects import ObjectFile
from evaluator.reading.sources.stores import Store, StoredObject, open_store
from evaluator.store_addresses import as_given, is_address

# A Parquet file ends with its footer, the length of that (little-endian) and four letters.
_TAIL = 8


@dataclass(frozen=True)
class ObjectFolder:
    """A folder of an object store, as it was when it was listed first.

    The `key` is its path within the bucket, without a slash at the end; empty for the whole bucket.
    """

    store: Store
    key: str

    def __str__(self) -> str:
        return self.store.url(self.key).rstrip("/")

    def __truediv__(self, name: str) -> ObjectFile:
        return ObjectFile(self.store, f"{self.key}/{name}".lstrip("/"), self.objects.get(name))

    @property
    def name(self) -> str:
        """Last part of its address."""
        return str(self).rsplit("/", 1)[-1]

    @cached_property
    def objects(self) -> dict[str, StoredObject]:
        """What it holds, by the name within; one question, however many there are."""
        cut = len(self.key) + 1 if self.key else 0
        return {one.key[cut:]: one for one in self.store.objects(self.key)}

    def listed_anew(self) -> ObjectFolder:
        """Return it as it is now."""
        return ObjectFolder(self.store, self.key)


LogFolder = Path | ObjectFolder


def folder_at(place: str | Path) -> LogFolder:
    """Return the folder of a path or an address; credentials, endpoint and region are those of the environment.

    Raises SourceError for an address of no object store, and UsageError for one that holds a secret.
    """
    address = as_given(place)
    if not is_address(address):
        return Path(place)
    store, key = open_store(address, None)
    return ObjectFolder(store, key.strip("/"))


def names_in(folder: LogFolder) -> set[str]:
    """Return the names of all that a folder holds; OSError where it cannot be read."""
    return set(folder.objects) if isinstance(folder, ObjectFolder) else {path.name for path in folder.iterdir()}


def holds(folder: LogFolder, name: str) -> bool:
    """Whether a folder holds a file of a name."""
    return name in folder.objects if isinstance(folder, ObjectFolder) else (folder / name).is_file()


def folder_of(file: LogFile) -> LogFolder:
    """Return the folder of a file of a log."""
    if isinstance(file, Path):
        return file.parent
    assert isinstance(file, ObjectFile)
    return ObjectFolder(file.store, file.key.rpartition("/")[0])


@dataclass(frozen=True)
class StoredFile:
    """What a Parquet file is known by.

    Its end, `footer_bytes` long, says what columns it has, where their pages are and how to read them. Each page has a
    checksum of its own, so that with its footer a file is verified as far as it is read.
    """

    bytes: int
    rows: int
    sha256: str
    footer_bytes: int
    footer_sha256: str


def stored_file(path: Path) -> StoredFile:
    """Return what a Parquet file just written is known by."""
    return StoredFile(
        bytes=path.stat().st_size,
        rows=pq.read_metadata(path).num_rows,
        sha256=checksum(path),
        footer_bytes=(footer := _footer(path)),
        footer_sha256=_end(path, footer),
    )


def _footer(path: LogFile) -> int:
    """Return the size of the end of a Parquet file."""
    with opened(path) as stream:
        stream.seek(-_TAIL, os.SEEK_END)
        return int.from_bytes(stream.read(4), "little") + _TAIL


def check_end(path: LogFile, known: StoredFile) -> None:
    """Refuse a file of another size or with another footer; its pages are not read.

    Raises SourceError if the file is missing or damaged.
    """
    try:
        size, end = size_of(path), _end(path, known.footer_bytes)
    except EvaluatorError:  # of a store that does not give it
        raise
    except OSError as error:
        raise damaged(path, error) from None
    if size != known.bytes:
        raise damaged(path, f"{size:,} bytes where {known.bytes:,} were written")
    if end != known.footer_sha256:
        raise damaged(path, "its footer was changed")


def check_whole(path: LogFile, known: StoredFile) -> None:
    """Refuse a file of which any byte is another; errors as `check_end`."""
    check_end(path, known)
    try:
        with opened(path) as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except EvaluatorError:
        raise
    except OSError as error:
        raise damaged(path, error) from None
    if found != known.sha256:
        raise damaged(path, "its checksum is not that of what was written")


def check_rows(path: LogFile, rows: int, known: StoredFile) -> None:
    """Refuse a file with another number of rows than were written; errors as `check_end`."""
    if rows != known.rows:
        raise damaged(path, f"{rows:,} rows where {known.rows:,} were written")


def _end(path: LogFile, size: int) -> str:
    """Return the checksum of the last `size` bytes, or of all there are."""
    with opened(path) as stream:
        stream.seek(-min(size, size_of(path)), os.SEEK_END)
        return hashlib.sha256(stream.read()).hexdigest()
