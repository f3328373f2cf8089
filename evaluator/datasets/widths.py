"""How many cells each row of a text file has: Polars fills short rows with nothing and forgets surplus cells."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl

from evaluator.datasets.text import unzipped_pieces

# Column that says of a row with too few or too many cells how many it has.
CELLS = "__cells"
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
_BOM = "\ufeff".encode()


class Widths:
    """The rows of a UTF-8 file that have too few or too many cells, found in step with those that Polars reads.

    Rows end, as for Polars, at newlines outside of quotes. Empty lines at the end of a file are no rows, unless a row
    is a single cell.

    Parameters
    ----------
    path
        Path of the file, compressed or not.
    delimiter
        Delimiter of the cells, one ASCII character.
    width
        Number of cells that a row should have.
    above
        Number of rows at the beginning that are none of the table: its header.

    Attributes
    ----------
    end
        Number of rows, the header not counted, once all are seen; None until then.
    """

    def __init__(self, path: Path, delimiter: str, width: int, *, above: int) -> None:
        self._delimiter, self._width = delimiter, width
        self._row = delimiter.encode() * (width - 1) + b"\n"
        self._other = bytes(set(range(256)) - {*delimiter.encode(), _NEWLINE, _QUOTE})
        self._texts = _whole_rows(path)
        self._seen = -above
        self._last = self._seen
        self._wrong: dict[int, int] = {}
        self.end: int | None = None

    def wrong(self, until: int) -> dict[int, int]:
        """Return the cells of each row of another width, by its number, up to row `until` of those not asked for yet.

        Cost: about 3 ns a byte, twice that with quotes, and the time to unzip it.
        """
        # Whether an empty line is a row is known at the next row that is not empty.
        while self.end is None and self._last < until:
            text = next(self._texts, None)
            if text is None:
                self.end = self._last
            else:
                self._count(text)
        found = {row: cells for row, cells in self._wrong.items() if 0 <= row < until}
        self._wrong = {row: cells for row, cells in self._wrong.items() if row >= until}
        return {row: cells for row, cells in found.items() if self.end is None or row < self.end}

    def _count(self, text: bytes) -> None:
        # Between two delimiters, quotes in pairs hide none. Most files are settled here.
        frame = text.translate(None, self._other).replace(b'""', b"")
        rows = len(frame) // self._width
        if frame == self._row * rows:
            self._seen += rows
            self._last = self._seen
        else:
            self._recount(text)

    def _recount(self, text: bytes) -> None:
        data = np.frombuffer(text, np.uint8)
        quotes = data == _QUOTE
        outside = np.bitwise_xor.accumulate(quotes) == 0
        ends = np.flatnonzero((data == _NEWLINE) & outside)
        starts = np.concatenate([[0], ends[:-1] + 1])
        cuts = np.flatnonzero((data == ord(self._delimiter)) & outside)
        cells = np.searchsorted(cuts, ends) - np.searchsorted(cuts, starts) + 1
        empty = (ends == starts) | ((ends - starts == 1) & (data[starts] == _RETURN))
        if self._width > 1:
            cells[empty] = 0
        # A quote inside a cell that is not quoted is a character as any other.
        opening = np.flatnonzero(quotes & ~outside)
        at_start = (opening == 0) | np.isin(data[opening - 1], [_NEWLINE, _QUOTE, ord(self._delimiter)])
        doubtful = np.union1d(np.flatnonzero(cells != self._width), np.searchsorted(ends, opening[~at_start]))
        for row in doubtful.tolist():
            line = text[starts[row] : ends[row]]
            count = self._read(line) if b'"' in line else int(cells[row])
            count = int(cells[row]) if count is None else count
            if count != self._width:
                self._wrong[self._seen + row] = count
        filled = np.flatnonzero(cells > 0)
        if len(filled):
            self._last = self._seen + int(filled[-1]) + 1
        self._seen += len(ends)

    def counted(self, frame: pl.DataFrame, start: int) -> pl.DataFrame:
        """Return the rows from number `start`, no empty lines at the end of the file, with `CELLS` if any differ."""
        wrong = self.wrong(start + frame.height)
        if self.end is not None:
            frame = frame.head(max(self.end - start, 0))
        if not wrong:
            return frame
        rows = [row - start for row in wrong]
        cells = [f"{count} {'cell' if count == 1 else 'cells'} where {self._width}" for count in wrong.values()]
        return frame.with_columns(
            pl.Series(CELLS, [None], dtype=pl.String).new_from_index(0, frame.height).scatter(rows, cells)
        )

    def _read(self, line: bytes) -> int | None:
        """Return how many cells csv reads; what it cannot read, Polars refuses."""
        with suppress(csv.Error):
            return len(next(csv.reader([line.rstrip(b"\r").decode(errors="replace")], delimiter=self._delimiter)))
        return None


def _whole_rows(path: Path) -> Iterator[bytes]:
    """Yield the text in pieces of whole rows, each of which ends with a newline."""
    waiting: list[bytes] = []
    first, open_quote = True, False
    for piece in unzipped_pieces(path):
        text, first = piece.removeprefix(_BOM) if first else piece, False
        # Looking for a quote is much quicker than counting quotes.
        inside = open_quote ^ bool(text.count(b'"') % 2) if b'"' in text else open_quote
        cut, open_quote = _last_end(text, inside), inside
        if cut == 0:
            waiting.append(text)
            continue
        yield b"".join([*waiting, text[:cut]])
        waiting = [text[cut:]]
    if rest := b"".join(waiting):
        yield rest + (b'"\n' if open_quote else b"\n")


def _last_end(text: bytes, inside: bool) -> int:
    """Return where the last whole row of a piece ends, 0 if none does; `inside`: the piece ends inside quotes."""
    stop = len(text)
    while (end := text.rfind(b"\n", 0, stop)) >= 0:
        inside ^= bool(text.count(b'"', end, stop) % 2)
        if not inside:
            return end + 1
        stop = end
    return 0
