"""JSON lines as Arrow reads them: many at a time, and only where that is what reading each with care would give."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import polars as pl
import pyarrow as pa
from pyarrow import json as arrow_json

from evaluator.datasets.cells import WHOLE, Kind

_NUMBER = rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|NaN|-?Infinity"
_FRACTION, _NOT_FINITE = rb"-?[0-9]+[.eE]|-0|NaN|-?Inf", rb"NaN|-?Inf"
# What Arrow takes for numbers and Python does not.
_NO_NUMBER = re.compile(rb"-NaN|[\s:,\[-]Inf(?!inity)")
# A number that Arrow takes for 0, and that is another text.
_ZERO = re.compile(rb":[ \t]*-0[ \t]*[,}]")
# Python gives up between this depth and a thousand, Arrow never.
_DEPTH = 900
# Arrow counts the bytes of a block in 32 bits.
_BYTES = 2**30


class ObjectColumns:
    """The columns of objects, in the types in which the objects so far held them.

    Arrow refuses what it does not read to the bit: a column of two types, a number that does not fit, a key twice. Then
    the types are looked at anew; columns of mixed ones, and numbers that are to be text, get quotes, so that their
    digits are read as they are written.

    Parameters
    ----------
    kinds
        Kind of each column, by key.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._types: dict[str, pa.DataType] = {}
        self._quoted: list[str] = []

    def read(self, lines: Sequence[str]) -> dict[str, pl.Series] | None:
        """Return the columns of some lines: text, or numbers where their kind is one; None where Arrow cannot tell.

        Parameters
        ----------
        lines
            Lines without their ends, each of which ought to be an object.
        """
        text = "\n".join(lines)
        # Of an object broken over lines, none begins where another ends: what fits here is one a line.
        if not text.startswith("{") or not text.endswith("}") or text.count("}\n{") != len(lines) - 1:
            return None
        if text.count("{") + text.count("[") > len(lines) + _DEPTH and max(map(_openings, lines)) > _DEPTH:
            return None
        data = text.encode(errors="surrogatepass")
        if len(data) > _BYTES or ((b"-NaN" in data or b"Inf" in data) and _NO_NUMBER.search(data)):
            return None
        if self._types and (found := self._columns(data, len(lines))) is not None:
            return found
        return self._columns(data, len(lines)) if self._look(data) else None

    def _columns(self, data: bytes, rows: int) -> dict[str, pl.Series] | None:
        for column in self._quoted:
            data = re.sub(_value(column, rb"(%s)(?=[ \t]*[,}])" % _NUMBER), _with_quotes, data)
        try:
            table = arrow_json.read_json(
                pa.py_buffer(data),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=pa.schema(list(self._types.items())),
                    newlines_in_values=False,
                    unexpected_field_behavior="ignore",
                ),
            )
            table.validate(full=True)  # bytes that are no UTF-8
        except pa.ArrowInvalid:
            return None
        if table.num_rows != rows:
            return None
        found = {column: pl.Series(column, table[column]) for column in self._types}
        if any(cells.dtype == pl.Float64 and not cells.is_finite().all() for cells in found.values()):
            return None
        as_text = [cells for column, cells in found.items() if self._kinds[column] not in (*WHOLE, "float")]
        if any(cells.dtype == pl.Int64 and (cells == 0).any() for cells in as_text) and _ZERO.search(data):
            return None
        return {column: _as_text(cells, self._kinds[column]) for column, cells in found.items()}

    def _look(self, data: bytes) -> bool:
        """Look at the types of some lines; whether they are other ones than before."""
        before = dict(self._types), self._quoted
        self._quoted = []
        for column, kind in self._kinds.items():

            def holds(value: bytes, column: str = column) -> bool:
                return re.search(_value(column, b"(?:%s)" % value), data) is not None

            self._types[column] = pa.string()
            if holds(rb"[tf]"):
                self._types[column] = pa.bool_()
            elif holds(rb"[-0-9NI]"):
                if holds(_NOT_FINITE if kind == "float" else _FRACTION) or holds(rb'"'):
                    self._quoted.append(column)
                else:
                    self._types[column] = pa.float64() if kind == "float" else pa.int64()
        return before != (self._types, self._quoted)


def _as_text(cells: pl.Series, kind: Kind) -> pl.Series:
    """Return truth values as the words of their kind, numbers as text unless they are to be numbers."""
    if cells.dtype == pl.Boolean and kind != "category":
        cells = cells.cast(pl.Int8)
    return cells if cells.dtype.is_float() or (cells.dtype == pl.Int64 and kind in WHOLE) else cells.cast(pl.String)


def _value(column: str, value: bytes) -> bytes:
    """Return the pattern of a key with a value: no other text, as the quotes of a key have no backslash before them."""
    key = re.escape(json.dumps(column, ensure_ascii=False).encode(errors="surrogatepass"))
    return rb"%s(?<!\\%s)[ \t]*:[ \t]*%s" % (key, key, value)


def _with_quotes(found: re.Match[bytes]) -> bytes:
    start = found.start()
    return b'%b"%b"' % (found[0][: found.start(1) - start], found[1])


def _openings(line: str) -> int:
    return line.count("{") + line.count("[")
