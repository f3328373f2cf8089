"""The rows of a text file as Python's csv module sees them: its header, and where its quotes do not fit together."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import NamedTuple, TextIO

from evaluator.datasets.sources.files import SourceFile
from evaluator.datasets.spec_sections import Table
from evaluator.datasets.text import longest_line, open_text, refuse_illegal, too_long, unpacking
from evaluator.errors import SourceError
from evaluator.visible import shortened

CHECK = "check source.format, source.delimiter and the quotes of that line"
# A first line that is no row: Excel reads there, and some write there, what parts the cells.
_SEPARATOR = re.compile(r'\ufeff?"?sep=([\t -!#-~])"?[\r\n]*', re.IGNORECASE)


class _Beginning(NamedTuple):
    """The first line of a text file, the delimiter of its cells, and whether the line is no row, but names it."""

    line: str
    delimiter: str
    told: bool


def _begin(file: SourceFile, source: Table, stream: TextIO) -> _Beginning:
    line = stream.readline(longest_line() + 1)
    told = _SEPARATOR.fullmatch(line)
    of_format = source.delimiter or ("\t" if file.format == "tsv" else ",")
    return _Beginning(line, of_format if told is None else told[1], told is not None)


def delimiter(file: SourceFile, source: Table) -> str:
    """Return the delimiter of a text file: that of its own first line, of the spec, or of its format."""
    with unpacking(file.path), open_text(file.path, source.encoding) as stream:
        return _begin(file, source, stream).delimiter


class Header(NamedTuple):
    """What the first row of a text file says, or the spec in its place.

    Parameters
    ----------
    names
        Names of the columns, in file order.
    lines
        Number of lines that the header takes: 0 without one, more than one if a name is broken over lines.
    delimiter
        Delimiter of the cells.
    above
        Number of lines above it that are no rows: 1 where the first names the delimiter.
    text
        Text of these lines, as they stand.
    returns
        Whether the lines of the file end with carriage returns alone, as old spreadsheets write them.
    size
        Number of bytes of all these lines in UTF-8.
    """

    names: list[str]
    lines: int
    text: str
    returns: bool
    delimiter: str
    above: int
    size: int


def text_header(file: SourceFile, source: Table) -> Header:
    """Return the columns of a text file.

    Raises
    ------
    SourceError
        The file is empty, truncated, not text, names a column twice, or its first line has another width than the spec.
    """
    taken: list[str] = []
    try:
        with unpacking(file.path), open_text(file.path, source.encoding) as stream:
            begun = _begin(file, source, stream)
            first = next(_rows(file, begun, stream, taken), None)
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
        return Header(first, len(taken), text, text.endswith("\r"), begun.delimiter, begun.told, _bytes(begun, text))
    if len(first) != len(source.columns):
        raise SourceError(
            f"{file.name}: line 1 has {len(first)} columns, the spec names {len(source.columns)}.",
            hint=f"check source.delimiter (now {begun.delimiter!r}) and source.columns.",
        )
    return Header(source.columns, 0, "", text.endswith("\r"), begun.delimiter, begun.told, _bytes(begun, ""))


def _bytes(begun: _Beginning, header: str) -> int:
    return len((begun.line.removeprefix("\ufeff") * begun.told + header).encode())


def refuse_open_quote(file: SourceFile, source: Table) -> None:
    """Raise SourceError at the first row of a text file whose quotes do not fit together.

    Cost: one pass over the file.
    """
    row: list[str] = []
    last = 0
    separator = delimiter(file, source)

    def lines(stream: TextIO) -> Iterator[str]:
        most = longest_line()
        while line := stream.readline(most):
            row.append(line)
            yield line

    with open_text(file.path, source.encoding) as stream:
        rows = csv.reader(lines(stream), delimiter=separator, strict=True)
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


def table_rows(file: SourceFile, source: Table, stream: TextIO) -> Iterator[list[str]]:
    """Yield the rows of a text file as lists of cells.

    Raises
    ------
    SourceError
        A line, or a cell, is so long that this is no table.
    """
    return _rows(file, _begin(file, source, stream), stream, [])


def _rows(file: SourceFile, begun: _Beginning, stream: TextIO, taken: list[str]) -> Iterator[list[str]]:
    """Yield the rows behind a beginning; the lines of each are appended to `taken`."""
    number, most = 0, longest_line()

    def lines() -> Iterator[str]:
        nonlocal number
        line = begun.line
        while line:
            number += 1
            if len(line) > most:
                raise too_long(f"{file.name} line {number}", "no row of a table, it", "characters", CHECK)
            if number > 1 or not begun.told:
                line = line.removeprefix("\ufeff") if number == 1 else line
                taken.append(line)
                yield line
            line = stream.readline(most + 1)

    try:
        yield from csv.reader(lines(), delimiter=begun.delimiter)
    except csv.Error as error:
        raise SourceError(
            f"{file.name} line {number}: no row of a table ({error}).",
            hint=f"{CHECK}.",
        ) from None
