"""Rows of tables of text, and how many cells each has: Polars fills short ones up and forgets surplus cells."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl

from evaluator.datasets.text import longest_line, too_long, utf8_pieces
from evaluator.datasets.text_rows import CHECK, Header
from evaluator.errors import SourceError

# Column that says of a row with too few or too many cells how many it has.
CELLS = "__cells"
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
_BOM = "\ufeff".encode()
# Rows and cells at once where some rows have another width: Polars fills the short ones up.
_ROWS, _CELLS = 100_000, 4_000_000


def text_frames(
    path: Path, encoding: str, header: Header, wanted: Sequence[str], *, limit: int | None
) -> Iterator[pl.DataFrame]:
    """Yield the wanted columns of a table of text, some rows at a time, with `CELLS` where rows have another width.

    Rows end at newlines outside of quotes. Empty lines at the end are no rows, unless a row is a single cell.

    Parameters
    ----------
    path, encoding
        Path and encoding of the file, compressed or not.
    header
        What its first lines say: columns, delimiter, what ends its lines.
    wanted
        Columns to yield.
    limit
        Number of rows to yield, the first ones; None yields all.

    Raises
    ------
    SourceError
        A row is too long, or text is no text.
    """
    width = len(header.names)
    # Behind names an empty line is a row wherever a piece of the text begins.
    names = [str(place) for place in range(width)]
    top = header.delimiter.join(names).encode() + b"\n"
    places = {names[header.names.index(column)]: column for column in wanted}
    widths = Widths(header.delimiter, width)
    for piece in _whole_rows(path, encoding, header, single=width == 1):
        for text, wrong in widths.parts(piece):
            lazy = pl.scan_csv(
                top + text,
                separator=header.delimiter,
                schema=dict.fromkeys(names, pl.String()),
                truncate_ragged_lines=True,  # `Widths` tells
            )
            frame = lazy.select(list(places)).rename(places).collect()
            frame = _with_cells(frame, wrong, width).head(frame.height if limit is None else limit)
            yield from (frame.slice(start, _ROWS) for start in range(0, frame.height, _ROWS))
            if limit is not None and (limit := limit - frame.height) <= 0:
                return


def _with_cells(frame: pl.DataFrame, wrong: dict[int, int], width: int) -> pl.DataFrame:
    if not wrong:
        return frame
    cells = [f"{count} {'cell' if count == 1 else 'cells'} where {width}" for count in wrong.values()]
    none = pl.Series(CELLS, [None], dtype=pl.String).new_from_index(0, frame.height)
    return frame.with_columns(none.scatter(list(wrong), cells))


class Widths:
    """What finds the rows of UTF-8 text that have too few or too many cells.

    Parameters
    ----------
    delimiter
        Delimiter of the cells, one ASCII character.
    width
        Number of cells that a row should have.
    """

    def __init__(self, delimiter: str, width: int) -> None:
        self._delimiter, self._width = delimiter, width
        self._row = delimiter.encode() * (width - 1) + b"\n"
        self._other = bytes(set(range(256)) - {*delimiter.encode(), _NEWLINE, _QUOTE})

    def parts(self, text: bytes) -> Iterator[tuple[bytes, dict[int, int]]]:
        """Yield a text of whole rows, with the cells of each row of another width, by its number.

        It comes in several parts where rows have another width: of short ones it holds very many.

        Cost: about 2 ns a byte, twice that with quotes.
        """
        # Between two delimiters, quotes in pairs hide none. Most files are settled here.
        frame = text.translate(None, self._other).replace(b'""', b"")
        if frame == self._row * (len(frame) // self._width):
            yield text, {}
            return
        closed = text if text.endswith(b"\n") else text + b"\n"
        closed = closed + b'"\n' if text.count(b'"') % 2 else closed
        data = np.frombuffer(closed, np.uint8)
        quotes = data == _QUOTE
        outside = np.bitwise_xor.accumulate(quotes) == 0
        ends = np.flatnonzero((data == _NEWLINE) & outside)
        starts = np.concatenate([[0], ends[:-1] + 1])
        cuts = np.flatnonzero((data == ord(self._delimiter)) & outside)
        cells = np.searchsorted(cuts, ends) - np.searchsorted(cuts, starts) + 1
        if self._width > 1:
            cells[(ends == starts) | ((ends - starts == 1) & (data[starts] == _RETURN))] = 0
        # A quote inside a cell that is not quoted is a character as any other.
        opening = np.flatnonzero(quotes & ~outside)
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


def _whole_rows(path: Path, encoding: str, header: Header, *, single: bool) -> Iterator[bytes]:
    """Yield the text in pieces of whole rows, none of which ends with an empty one, unless rows are `single` cells."""
    top, returns = header.size, header.returns
    waiting: list[bytes] = []
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
        yield b"".join([*waiting, text[:cut]])
        waiting, length = [text[cut:]], len(text) - cut
    rest = b"".join(waiting)
    rest = rest if single or open_quote else rest[: _filled_end(rest, len(rest))]
    if rest:
        yield rest


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
