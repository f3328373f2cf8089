"""Rows of a text file as Python's csv module sees them: header, quotes that do not fit, and how many cells each has."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TextIO

import numpy as np
import polars as pl

from evaluator.errors import SourceError
from evaluator.escape import shortened
from evaluator.reading.sources.files import SourceFile
from evaluator.reading.spec_sections import Table
from evaluator.reading.text import (
    ROWS,
    longest_line,
    open_text,
    refuse_illegal,
    too_long,
    unpacking,
    utf8_pieces,
)

CHECK = "check source.format, source.delimiter and the quotes of that line"
# A first line that is no row: Excel reads there, and some write there, what parts the cells.
_SEPARATOR = re.compile(r'\ufeff?"?sep=([\t -!#-~])"?[\r\n]*', re.IGNORECASE)
# Column that says of a row with too few or too many cells how many it has.
CELLS = "__cells"
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
_BOM = "\ufeff".encode()
# Rows at once, and cells where some rows have another width: Polars fills the short ones up.
_ROWS, _CELLS = 250_000, 4_000_000
# Bytes that are compared at once: few enough that they stay in the processor's cache.
_BLOCK = 1 << 18
# Pieces of text that are parsed at once, at most: fewer where rows are so short that these hold the rows of a chunk.
_PIECES = 4


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

    `names` are in file order. The header takes `lines`: 0 without one, more than one if a name is broken over lines;
    `text` is theirs, as it stands, and `size` the number of its bytes in UTF-8. `above` it are lines that are no rows:
    1 where the first names the delimiter. `returns` says whether lines end with carriage returns alone, as old
    spreadsheets write them.
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

    Raises SourceError if the file is empty, truncated, not text, names a column twice, or if its first line has another
    width than the spec.
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
        raise SourceError(f"{file.name}: the file is empty.", remedy="check the download or export.")
    if not first:
        raise SourceError(f"{file.name}: line 1 is empty.", remedy="remove the lines above the table.")
    text = "".join(taken)
    if "\ufffd" in text:
        refuse_illegal(file.path, source.encoding)
    if "\0" in text:
        hint = 'say so in [source] if it was saved as UTF-16 (encoding = "utf-16" or "utf-16-le"); check source.format.'
        raise SourceError(f"{file.name}: line 1 holds NUL characters: not {source.encoding} text.", remedy=hint)
    if source.columns is None:
        twice = sorted({c for c in first if first.count(c) > 1})
        if twice:
            raise SourceError(f"{file.name}: line 1 names column {twice[0]!r} twice.", remedy="rename one of them.")
        return Header(first, len(taken), text, text.endswith("\r"), begun.delimiter, begun.told, _bytes(begun, text))
    if len(first) != len(source.columns):
        raise SourceError(
            f"{file.name}: line 1 has {len(first)} columns, the spec names {len(source.columns)}.",
            remedy=f"check source.delimiter (now {begun.delimiter!r}) and source.columns.",
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
                remedy="close it; within a quoted cell, a quote is written twice.",
            ) from None


def table_rows(file: SourceFile, source: Table, stream: TextIO) -> Iterator[list[str]]:
    """Yield the rows of a text file as lists of cells.

    Raises SourceError if a line, or a cell, is so long that this is no table.
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
            remedy=f"{CHECK}.",
        ) from None


def text_frames(
    path: Path,
    encoding: str,
    header: Header,
    wanted: Sequence[str],
    *,
    limit: int | None,
    numbers: Mapping[str, pl.DataType] = MappingProxyType({}),
) -> Iterator[pl.DataFrame]:
    """Yield the wanted columns of a table of text, some rows at a time, with `CELLS` where rows have another width.

    They are text, but for `numbers`, each up to the rows where a cell of it is none.

    Rows end at newlines outside of quotes. Empty lines at the end are no rows, unless a row is a single cell. Raises
    SourceError if a row is too long, or if text is no text.
    """
    width = len(header.names)
    # Behind names an empty line is a row wherever a piece of the text begins.
    names = [str(place) for place in range(width)]
    top = header.delimiter.join(names).encode() + b"\n"
    places = {names[header.names.index(column)]: column for column in wanted}
    last = names[-1]
    widths = Widths(header.delimiter, width)
    typed = {name: numbers[column] for name, column in places.items() if column in numbers and name != last}

    def parse(text: bytes, typed: Mapping[str, pl.DataType]) -> pl.DataFrame:
        lazy = pl.scan_csv(
            text,
            separator=header.delimiter,
            schema={**dict.fromkeys(names, pl.String()), **typed},
            truncate_ragged_lines=True,  # `Widths` tells
        )
        return lazy.select(list(dict.fromkeys([*places, last]))).collect()

    def read(text: bytes) -> pl.DataFrame:
        try:
            return parse(text, typed)
        except pl.exceptions.ComputeError:
            if not typed:
                raise
        frame = parse(text, {})
        broken = [name for name, kind in typed.items() if not _are_numbers(frame[name], kind)]
        for name in broken or list(typed):
            del typed[name]
        return frame

    for piece in _whole_rows(path, encoding, header, top, single=width == 1):
        frame = read(piece) if b'"' not in piece else None
        if frame is not None and widths.fit(piece, frame.height + 1, frame[last]):
            parts = iter([(frame, dict[int, int]())])
        else:
            parts = (
                (frame if frame is not None and len(text) + len(top) == len(piece) else read(top + text), wrong)
                for text, wrong in widths.parts(piece[len(top) :])
            )
        for found, wrong in parts:
            rows = _with_cells(found.select(list(places)).rename(places), wrong, width)
            rows = rows.head(rows.height if limit is None else limit)
            yield from rows.iter_slices(_ROWS)
            if limit is not None and (limit := limit - rows.height) <= 0:
                return


def _are_numbers(cells: pl.Series, kind: pl.DataType) -> bool:
    filled = cells.set(cells == "", None)
    return filled.cast(kind, strict=False).null_count() == filled.null_count()


def _with_cells(frame: pl.DataFrame, wrong: dict[int, int], width: int) -> pl.DataFrame:
    if not wrong:
        return frame
    cells = [f"{count} {'cell' if count == 1 else 'cells'} where {width}" for count in wrong.values()]
    none = pl.Series(CELLS, [None], dtype=pl.String).new_from_index(0, frame.height)
    return frame.with_columns(none.scatter(list(wrong), cells))


class Widths:
    """What finds the rows of UTF-8 text that have too few or too many cells.

    The delimiter is one ASCII character, `width` the number of cells that a row should have.
    """

    def __init__(self, delimiter: str, width: int) -> None:
        self._delimiter, self._width = delimiter, width
        self._row = delimiter.encode() * (width - 1) + b"\n"
        self._other = bytes(set(range(256)) - {*delimiter.encode(), _NEWLINE, _QUOTE})

    def fit(self, text: bytes, rows: int, last: pl.Series) -> bool:
        """Return whether all rows of a text without quotes are known to have `width` cells, by their `last` ones.

        None of them is missing, so that no row has too few delimiters; all rows together have not too many. `rows` are
        those of the text. Cost: a tenth of a nanosecond a byte.
        """
        if last.null_count():
            return False
        found, data = 0, np.frombuffer(text, np.uint8)
        for first in range(0, len(data), _BLOCK):
            found += int(np.count_nonzero(data[first : first + _BLOCK] == ord(self._delimiter)))
        return found == rows * (self._width - 1)

    def parts(self, text: bytes) -> Iterator[tuple[bytes, dict[int, int]]]:
        """Yield a text of whole rows, with the cells of each row of another width, by its number.

        It comes in several parts where rows have another width: of short ones it holds very many.

        Cost: about 3 ns a byte, twice that where many cells are quoted.
        """
        # Between two delimiters, quotes in pairs hide none. Most files are settled here.
        frame = text.translate(None, self._other)
        cleared = frame.replace(b'""', b"")
        if cleared == self._row * (len(cleared) // self._width):
            yield text, {}
            return
        closing = b"" if text.endswith(b"\n") else b"\n"
        closing += b'"\n' if text.count(b'"') % 2 else b""
        closed = text + closing
        data, marks = np.frombuffer(closed, np.uint8), np.frombuffer(frame + closing, np.uint8)
        quotes, newlines = marks == _QUOTE, marks == _NEWLINE
        outside = np.bitwise_xor.accumulate(quotes) == 0
        ends = np.flatnonzero(data == _NEWLINE)[outside[newlines]]
        starts = np.concatenate([[0], ends[:-1] + 1])
        cells = np.diff(np.flatnonzero(newlines[outside & ~quotes]), prepend=-1)
        if self._width > 1:
            cells[(ends == starts) | ((ends - starts == 1) & (data[starts] == _RETURN))] = 0
        # A quote inside a cell that is not quoted is a character as any other.
        opening = np.flatnonzero(data == _QUOTE)[~outside[quotes]]
        at_start = (opening == 0) | np.isin(data[opening - 1], [_NEWLINE, _QUOTE, ord(self._delimiter)])
        doubtful = np.union1d(np.flatnonzero(cells != self._width), np.searchsorted(ends, opening[~at_start]))
        step = max(min(_CELLS // self._width, _ROWS), 1)
        for first in range(0, len(ends), step):
            wrong = {}
            for row in doubtful[slice(*np.searchsorted(doubtful, [first, first + step]))].tolist():
                line = closed[starts[row] : ends[row]]
                count = self._read(line) if b'"' in line else int(cells[row])
                count = int(cells[row]) if count is None else count
                if count != self._width:
                    wrong[row - first] = count
            last = min(first + step, len(ends)) - 1
            yield text[starts[first] : ends[last] + 1], wrong

    def _read(self, line: bytes) -> int | None:
        """Return how many cells csv reads; what it cannot read, Polars refuses."""
        with suppress(csv.Error):
            return len(next(csv.reader([line.rstrip(b"\r").decode(errors="replace")], delimiter=self._delimiter)))
        return None


def _whole_rows(path: Path, encoding: str, header: Header, names: bytes, *, single: bool) -> Iterator[bytes]:
    """Yield the text in pieces of whole rows behind the `names` of columns: a small one, then some of a chunk's rows.

    None of them ends with an empty row, unless rows are `single` cells.
    """
    top, returns = header.size, header.returns
    # Whole rows that are not yielded yet, and what is behind them.
    rows: list[bytes | memoryview] = []
    waiting: list[bytes | memoryview] = []
    size, enough = 0, 1
    length, read, open_quote, most = 0, 0, False, longest_line()
    for piece in utf8_pieces(path, encoding, returns=returns):
        text = piece if read else piece.removeprefix(_BOM)
        text, top = text[top:] if top else text, max(top - len(text), 0)
        # Looking for a quote is much quicker than counting quotes.
        inside = open_quote ^ bool(text.count(b'"') % 2) if b'"' in text else open_quote
        cut, open_quote = _last_end(text, inside), inside
        if not single and (cut == 1 or text.endswith((b"\n\n", b"\r\n"), 0, cut)):
            cut = _filled_end(text, cut)
        if length + (text.find(b"\n") if cut else len(text)) > most:
            raise _too_long(
                path, utf8_pieces(path, encoding, returns=returns), read - length, b"".join([*waiting, text])
            )
        read += len(piece)
        if cut == 0:
            waiting.append(text)
            length += len(text)
            continue
        whole = memoryview(text)
        rows += [*waiting, whole[:cut]]
        size += length + cut
        waiting, length = [whole[cut:]], len(text) - cut
        if size >= enough:
            if enough == 1:
                enough = min(ROWS * size // max(text.count(b"\n", 0, cut), 1), _PIECES * len(piece)) - len(piece) // 2
            yield b"".join([names, *rows])
            rows, size = [], 0
    rest = b"".join(waiting)
    rest = rest if single or open_quote else rest[: _filled_end(rest, len(rest))]
    if rows or rest:
        yield b"".join([names, *rows, rest])


def _too_long(path: Path, pieces: Iterator[bytes], begin: int, held: bytes) -> SourceError:
    """Return the error for the text `held`, which begins behind so many bytes of the pieces of a file."""
    line, row = 1, held.lstrip(b"\r\n")
    for piece in pieces:
        line += piece.count(b"\n", 0, max(begin, 0))
        begin -= len(piece)
        if begin <= 0:
            break
    line += held.count(b"\n", 0, len(held) - len(row)) if row else 0
    what = (
        "a quote is open: its row" if b'"' in row else "no row of a table, it" if row else "the empty text from here on"
    )
    return too_long(f"{path} line {line}", what, "bytes", CHECK)


def _filled_end(text: bytes, cut: int) -> int:
    """Return where the last row before a cut ends that is not empty, 0 if all are."""
    filled = len(text[:cut].rstrip(b"\r\n"))
    return (text.find(b"\n", filled, cut) + 1 or cut) if filled else 0


def _last_end(text: bytes, inside: bool) -> int:
    """Return where the last whole row of a piece ends, 0 if none does; `inside`: the piece ends inside quotes."""
    stop = len(text)
    while (end := text.rfind(b"\n", 0, stop)) >= 0:
        inside ^= bool(text.count(b'"', end, stop) % 2)
        if not inside:
            return end + 1
        stop = text.rfind(b'"', 0, end) + 1  # up to the quote that opens, newlines are inside too
    return 0
