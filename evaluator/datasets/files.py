"""The files behind a source: which, in what format, with which columns, and their fingerprint."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluator.datasets.spec import Source
from evaluator.errors import DataError, SourceError

Format = Literal["csv", "tsv", "parquet", "ipc"]
SUFFIXES: dict[str, Format] = {
    ".csv": "csv", ".tsv": "tsv", ".txt": "tsv", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc",
}  # fmt: skip
WHOLE_BELOW = 64 * 1024 * 1024
EDGE = 1024 * 1024
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class SourceFile:
    """One file of a source, with the values its hive folders (``day=3``) give to every row."""

    path: Path
    format: Format
    partitions: dict[str, str]

    @property
    def is_text(self) -> bool:
        """Whether rows are lines."""
        return self.format in ("csv", "tsv")


def find_files(source: Source, folder: Path, *, override: str | Path | None = None) -> list[SourceFile]:
    """Return the files of a source, in natural order of their paths (``day=2`` before ``day=10``).

    Parameters
    ----------
    source
        ``[source]`` of the spec.
    folder
        Folder that `source.files` is relative to.
    override
        Path, glob or folder to read instead, relative to the working folder.

    Raises
    ------
    SourceError
        No file matches, or the format cannot be told from the suffix.
    """
    pattern = Path(override) if override is not None else folder / source.files
    root = pattern
    if pattern.is_dir():
        paths = [p for p in pattern.rglob("*") if p.is_file() and not p.name.startswith((".", "_"))]
        paths = [p for p in paths if source.format or _suffix(p) in SUFFIXES]
    elif pattern.is_file():
        paths, root = [pattern], pattern.parent
    else:
        anchor = pattern
        while _is_glob(str(anchor)):
            anchor = anchor.parent
        paths = [p for p in anchor.glob(str(pattern.relative_to(anchor))) if p.is_file()] if anchor != pattern else []
        root = anchor
    if not paths:
        raise SourceError(f"No file matches {pattern}.", hint="download it (see the dataset's card) or give path=.")
    files = []
    for path in sorted(paths, key=lambda p: _natural(str(p))):
        kind = source.format or SUFFIXES.get(_suffix(path))
        if kind is None:
            raise SourceError(f"{path}: unknown suffix.", hint="set source.format to csv, tsv, parquet or ipc.")
        parts = (part.split("=", 1) for part in path.relative_to(root).parts[:-1] if "=" in part)
        files.append(SourceFile(path, kind, {part[0]: part[1] for part in parts}))
        _check_gzip(path)
    return files


@contextmanager
def unchanged(files: list[SourceFile]) -> Iterator[None]:
    """Raise SourceError if one of the files is not what it was when the block was entered.

    Bad data and failures to read are reported as such only if the files stayed as they were.
    """
    before = [_state(file.path) for file in files]

    def refuse_changed() -> None:
        for file, state in zip(files, before, strict=True):
            if _state(file.path) != state:
                raise SourceError(f"{file.path}: it changed while it was read.", hint="wait until it is written.")

    try:
        yield
    except (DataError, OSError):
        refuse_changed()
        raise
    refuse_changed()


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def fingerprint(files: list[SourceFile]) -> str:
    """Return a SHA-256 over the name, size and content of each file.

    Files of 64 MB and more count with their first and last MB; times of change never count.
    """
    digest = hashlib.sha256()
    for file in files:
        size = file.path.stat().st_size
        digest.update(f"{file.path.name}\0{size}\0".encode())
        with file.path.open("rb") as stream:
            if size < WHOLE_BELOW:
                while chunk := stream.read(EDGE):
                    digest.update(chunk)
            else:
                digest.update(stream.read(EDGE))
                stream.seek(-EDGE, io.SEEK_END)
                digest.update(stream.read(EDGE))
    return digest.hexdigest()


def delimiter(file: SourceFile, source: Source) -> str:
    """Return the delimiter of a text file."""
    return source.delimiter or ("\t" if file.format == "tsv" else ",")


def text_columns(file: SourceFile, source: Source) -> list[str]:
    """Return the column names of a text file, in file order.

    Raises
    ------
    SourceError
        The file is empty, truncated, not text, names a column twice, or its first line has another width than the spec.
    """
    try:
        with open_text(file.path) as stream:
            first = next(csv.reader(stream, delimiter=delimiter(file, source)), None)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise truncated(file.path, error) from None
    except UnicodeDecodeError:
        raise SourceError(f"{file.path}: not UTF-8 text.", hint="check source.format, or convert the file.") from None
    if not first:
        raise SourceError(f"{file.path}: the file is empty.", hint="check the download or export.")
    if source.columns is None:
        first[0] = first[0].removeprefix("\ufeff")
        twice = sorted({c for c in first if first.count(c) > 1})
        if twice:
            raise SourceError(f"{file.path}: line 1 names column {twice[0]!r} twice.", hint="rename one of them.")
        return first
    if len(first) != len(source.columns):
        raise SourceError(
            f"{file.path}: line 1 has {len(first)} columns, the spec names {len(source.columns)}.",
            hint=f"check source.delimiter (now {delimiter(file, source)!r}) and source.columns.",
        )
    return source.columns


def open_text(path: Path) -> io.TextIOWrapper:
    """Open a text file, gzipped or not."""
    if is_gzip(path):
        return io.TextIOWrapper(gzip.GzipFile(path), encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def is_gzip(path: Path) -> bool:
    """Whether the file starts like a gzip file, whatever its name."""
    with path.open("rb") as stream:
        return stream.read(2) == GZIP_MAGIC


def truncated(path: Path, error: Exception) -> SourceError:
    """Return the error for a compressed file that ends too early."""
    return SourceError(f"{path}: truncated or damaged gzip ({error}).", hint="download the file again.")


def refuse_truncated(path: Path) -> None:
    """Raise SourceError if a compressed file ends too early. Cost: one pass over the file."""
    if not is_gzip(path):
        return
    try:
        with gzip.open(path) as stream:
            while stream.read(EDGE):
                pass
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise truncated(path, error) from None


def _check_gzip(path: Path) -> None:
    if path.suffix == ".gz" and not is_gzip(path):
        raise SourceError(f"{path}: not a gzip file.", hint="remove .gz from its name, or download it again.")


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def _is_glob(text: str) -> bool:
    return any(c in text for c in "*?[")


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(t), "") if t.isdigit() else (-1, t) for t in re.split(r"(\d+)", text)]
