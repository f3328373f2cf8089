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
from typing import NamedTuple, TextIO

from evaluator.datasets.spec_sections import FileFormat, Source
from evaluator.datasets.text import is_gzip, open_text, refuse_illegal, truncated
from evaluator.errors import DataError, SourceError, refuse_no_utf8
from evaluator.log.stored import file_state
from evaluator.visible import shortened

SUFFIXES: dict[str, FileFormat] = {
    ".csv": "csv", ".tsv": "tsv", ".txt": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc",
}  # fmt: skip
WHOLE_BELOW = 64 * 1024 * 1024
EDGE = 1024 * 1024
# Characters: thousands of columns fit, a file without any line end does not fill the memory.
LINE_MAX = 4 * 1024 * 1024


@dataclass(frozen=True)
class SourceFile:
    """One file of a source, with the values its hive folders (``day=3``) give to every row."""

    path: Path
    format: FileFormat
    partitions: dict[str, str]

    @property
    def is_text(self) -> bool:
        """Whether it is a table of text, its rows lines and its cells between delimiters."""
        return self.format in ("csv", "tsv")

    @property
    def is_lines(self) -> bool:
        """Whether its rows stand in lines of text that are no table: they name their own columns."""
        return self.format not in ("csv", "tsv", "parquet", "ipc")

    @property
    def row_word(self) -> str:
        """What a row is called where its number is told."""
        return "line" if self.is_text or self.is_lines else "row"


def find_files(source: Source, folder: Path, *, override: str | Path | None = None) -> list[SourceFile]:
    """Return the files of a source, in natural order of their paths (``day=2`` before ``day=10``).

    Globs and folders give neither hidden files nor files in hidden folders, unless the glob names them.

    Parameters
    ----------
    source
        Section ``[source]`` of the spec.
    folder
        Folder that `source.files` is relative to.
    override
        Path, glob or folder to read instead, relative to the working folder; None reads what the spec names.

    Raises
    ------
    SourceError
        No file matches, or the format cannot be told from the suffix.
    UsageError
        The name of a file is not UTF-8.
    """
    pattern = Path(override) if override is not None else folder / source.files
    root = pattern
    try:
        pattern.stat()  # from Python 3.14 on, is_dir says of every error that there is none
    except (FileNotFoundError, NotADirectoryError, ValueError):
        pass
    except OSError as error:  # a name that is too long
        raise SourceError(
            f"{shortened(str(pattern))}: {error.strerror}.", hint="name a file, folder or glob."
        ) from None
    if pattern.is_dir():
        paths = [p for p in pattern.rglob("*") if p.is_file() and not p.name.startswith("_")]
        paths = [p for p in paths if not _is_hidden(p, pattern) and (source.format or _suffix(p) in SUFFIXES)]
    elif pattern.is_file():
        paths, root = [pattern], pattern.parent
    else:
        anchor = pattern
        while _is_glob(str(anchor)):
            anchor = anchor.parent
        paths = [p for p in anchor.glob(str(pattern.relative_to(anchor))) if p.is_file()] if anchor != pattern else []
        if not _is_hidden(pattern, anchor):
            paths = [p for p in paths if not _is_hidden(p, anchor)]
        root = anchor
    if not paths:
        raise SourceError(f"No file matches {pattern}.", hint="download it (see the dataset's card) or give path=.")
    files = []
    for path in sorted(paths, key=lambda p: _natural(str(p))):
        refuse_no_utf8(str(path))
        kind = source.format or SUFFIXES.get(_suffix(path))
        if kind is None:
            raise SourceError(f"{path}: unknown suffix.", hint="set source.format to csv, tsv, jsonl, parquet or ipc.")
        parts = (part.split("=", 1) for part in path.relative_to(root).parts[:-1] if "=" in part)
        files.append(SourceFile(path, kind, {part[0]: part[1] for part in parts}))
        _check_gzip(path)
    return files


@contextmanager
def unchanged(files: list[SourceFile]) -> Iterator[None]:
    """Raise SourceError if one of the files is not what it was when the block was entered.

    Bad data and failures to read are reported as such only if the files stayed as they were.
    """
    before = [file_state(file.path) for file in files]

    def refuse_changed() -> None:
        for file, state in zip(files, before, strict=True):
            if file_state(file.path) != state:
                raise SourceError(f"{file.path}: it changed while it was read.", hint="wait until it is written.")

    try:
        yield
    except (DataError, OSError):
        refuse_changed()
        raise
    refuse_changed()


def fingerprint(files: list[SourceFile]) -> str:
    """Return a SHA-256 over the name, size and content of each file.

    Files of 64 MB and more count with their first and last MB; times of change never count. It says in manifests where
    a log came from: to know a log again, hash what it holds (`evaluator.log.content.content_hash`), of which columns
    that are not read, and rows beyond a limit, are no part.
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


class Header(NamedTuple):
    """What the first row of a text file says, or the spec in its place.

    Parameters
    ----------
    names
        Names of the columns, in file order.
    lines
        Number of lines that the header takes: 0 without one, more than one if a name is broken over lines.
    text
        Text of these lines, as they stand.
    returns
        Whether the lines of the file end with carriage returns alone, as old spreadsheets write them.
    """

    names: list[str]
    lines: int
    text: str
    returns: bool


def text_header(file: SourceFile, source: Source) -> Header:
    """Return the columns of a text file.

    Raises
    ------
    SourceError
        The file is empty, truncated, not text, names a column twice, or its first line has another width than the spec.
    """
    taken: list[str] = []
    try:
        with open_text(file.path, source.encoding) as stream:
            first = next(table_rows(file, source, stream, taken), None)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise truncated(file.path, error) from None
    except UnicodeError:
        refuse_illegal(file.path, source.encoding)
        raise
    if first is None:
        raise SourceError(f"{file.path}: the file is empty.", hint="check the download or export.")
    if not first:
        raise SourceError(f"{file.path}: line 1 is empty.", hint="remove the lines above the table.")
    text = "".join(taken)
    if "\ufffd" in text:
        refuse_illegal(file.path, source.encoding)
    if "\0" in text:
        hint = 'say so in [source] if it was saved as UTF-16 (encoding = "utf-16" or "utf-16-le"); check source.format.'
        raise SourceError(f"{file.path}: line 1 holds NUL characters: not {source.encoding} text.", hint=hint)
    if source.columns is None:
        twice = sorted({c for c in first if first.count(c) > 1})
        if twice:
            raise SourceError(f"{file.path}: line 1 names column {twice[0]!r} twice.", hint="rename one of them.")
        return Header(first, len(taken), text, text.endswith("\r"))
    if len(first) != len(source.columns):
        raise SourceError(
            f"{file.path}: line 1 has {len(first)} columns, the spec names {len(source.columns)}.",
            hint=f"check source.delimiter (now {delimiter(file, source)!r}) and source.columns.",
        )
    return Header(source.columns, 0, "", text.endswith("\r"))


def refuse_open_quote(file: SourceFile, source: Source) -> None:
    """Raise SourceError at the first row of a text file whose quotes do not fit together.

    Cost: one pass over the file.
    """
    row: list[str] = []
    last = 0

    def lines(stream: TextIO) -> Iterator[str]:
        while line := stream.readline(LINE_MAX):
            row.append(line)
            yield line

    with open_text(file.path, source.encoding) as stream:
        rows = csv.reader(lines(stream), delimiter=delimiter(file, source), strict=True)
        try:
            for _ in rows:
                last = rows.line_num
                row.clear()
        except csv.Error:
            said = shortened(repr(row[0].strip()))
            raise SourceError(
                f"{file.path} line {last + 1}: a quote is not closed, or closed inside a cell: {said}.",
                hint="close it; within a quoted cell, a quote is written twice.",
            ) from None


def table_rows(file: SourceFile, source: Source, stream: TextIO, taken: list[str] | None = None) -> Iterator[list[str]]:
    """Yield the rows of a text file as lists of cells; the lines of each are appended to `taken`.

    Raises
    ------
    SourceError
        A line, or a cell, is so long that this is no table.
    """
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        while line := stream.readline(LINE_MAX):
            number += 1
            if len(line) == LINE_MAX:
                raise csv.Error(f"it has more than {LINE_MAX:,} characters")
            line = line.removeprefix("\ufeff") if number == 1 else line
            if taken is not None:
                taken.append(line)
            yield line

    try:
        yield from csv.reader(lines(), delimiter=delimiter(file, source))
    except csv.Error as error:
        raise SourceError(
            f"{file.path} line {number}: no row of a table ({error}).",
            hint="check source.format, source.delimiter and the quotes of that line.",
        ) from None


def _check_gzip(path: Path) -> None:
    if path.suffix == ".gz" and not is_gzip(path):
        raise SourceError(f"{path}: not a gzip file.", hint="remove .gz from its name, or download it again.")


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def _is_glob(text: str) -> bool:
    return any(c in text for c in "*?[")


def _is_hidden(path: Path, root: Path) -> bool:
    """Whether the file, or a folder between it and `root`, is hidden: outputs in the making are."""
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(t), "") if t.isdigit() else (-1, t) for t in re.split(r"(\d+)", text)]
