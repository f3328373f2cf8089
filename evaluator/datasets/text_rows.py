"""The rows of a text file as Python's csv module sees them: its header, and where its quotes do not fit together."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from typing import NamedTuple, TextIO

from evaluator.datasets.sources.files import SourceFile
from evaluator.datasets.spec_sections import Table
from evaluator.datasets.text import open_text, refuse_illegal, truncated
from evaluator.errors import SourceError
from evaluator.visible import shortened

# Characters: thousands of columns fit, a file without any line end does not fill the memory.
LINE_MAX = 4 * 1024 * 1024


def delimiter(file: SourceFile, source: Table) -> str:
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


def text_header(file: SourceFile, source: Table) -> Header:
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
        raise SourceError(f"{file.name}: the file is empty.", hint="check the download or export.")
    if not first:
        raise SourceError(f"{file.name}: line 1 is empty.", hint="remove the lines above the table.")
    text = "".join(taken)
    if "\ufffd" in text:
        refuse_illegal(file.path, source.encoding)
    if "\0" in text:
        hint = 'say so in [source] if it was saved as UTF-16 (encoding = "utf-16" or "utf-16-le"); check source.format.'
        raise SourceError(f"{file.name}: line 1 holds NUL characters: not {source.encoding} text.", hint=hint)
    if source.columns is None:
        twice = sorted({c for c in first if first.count(c) > 1})
        if twice:
            raise SourceError(f"{file.name}: line 1 names column {twice[0]!r} twice.", hint="rename one of them.")
        return Header(first, len(taken), text, text.endswith("\r"))
    if len(first) != len(source.columns):
        raise SourceError(
            f"{file.name}: line 1 has {len(first)} columns, the spec names {len(source.columns)}.",
            hint=f"check source.delimiter (now {delimiter(file, source)!r}) and source.columns.",
        )
    return Header(source.columns, 0, "", text.endswith("\r"))


def refuse_open_quote(file: SourceFile, source: Table) -> None:
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
                f"{file.name} line {last + 1}: a quote is not closed, or closed inside a cell: {said}.",
                hint="close it; within a quoted cell, a quote is written twice.",
            ) from None


def table_rows(file: SourceFile, source: Table, stream: TextIO, taken: list[str] | None = None) -> Iterator[list[str]]:
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
            f"{file.name} line {number}: no row of a table ({error}).",
            hint="check source.format, source.delimiter and the quotes of that line.",
        ) from None
