"""JSON lines: one object a line, its values read as text, so that no number loses a digit."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyarrow import json as arrow_json

from evaluator.errors import SourceError
from evaluator.escape import shortened
from evaluator.reading.cells import WHOLE, Kind
from evaluator.reading.nested import elements, key_paths, value_at, with_element
from evaluator.reading.row_breaches import LINE
from evaluator.reading.text import Unpacked, decoded, longest_line, too_long

# Of a line that is no object: what it is instead.
BROKEN = "__broken"
# Lines that are read at once; where one of them asks for care, half of them, and so on down to so few.
PIECE, CAREFUL = 10_000, 50
# Fewer lines are read at once where so many pieces of text hold no more.
LONG = 8
# So many objects tell which columns there are.
SAMPLE = 1_000
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


def key_names(path: Path, encoding: str, *, until: Iterable[str] = (), explode: str | None = None) -> list[str]:
    """Return the keys of the first objects of a file, in order of appearance; read on until some keys are found.

    Those of objects within are among them, ``user.country``, and of the elements of the list or map `explode`.

    Raises SourceError if the file is empty, no text, or an array of objects.
    """
    keys: dict[str, None] = {}
    empty = True
    for read, (_, line) in enumerate(text_lines(path, encoding)):
        if read >= SAMPLE and all(key in keys for key in until):
            break
        if empty and line.lstrip().startswith("["):
            hint = "write one object a line, without brackets around them and commas between them."
            raise SourceError(f"{path}: an array, not JSON lines.", remedy=hint)
        empty = False
        found, _ = _object(line, ())
        keys.update(dict.fromkeys(key_paths(found, explode)))
    if empty:
        raise SourceError(f"{path}: the file is empty.", remedy="check the download or export.")
    return list(keys)


def object_frames(
    path: Path,
    encoding: str,
    kinds: Mapping[str, Kind],
    rows: int,
    limit: int | None,
    *,
    nested: bool = False,
    explode: str | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the first objects, `rows` at a time or fewer: a column for each key in `kinds`, and `LINE`.

    Some keys may be `nested` in others. Each element of the list or map `explode` makes a row.

    Columns hold text; those of numbers may hold numbers where they are the ones that the text says. A key that an
    object lacks is a missing cell. Where lines are no objects, or have a key of `kinds` twice, `BROKEN` says what they
    are, null elsewhere. Lines of spaces are skipped. Raises SourceError if a value is a list or an object, a line is
    too long, or text is no text.
    """
    quick, lists = ObjectColumns(kinds), "labels" in kinds.values() or nested or explode is not None
    wanted = {*kinds} if explode is None else {*kinds, explode}
    if nested:
        wanted = {".".join(steps[: n + 1]) for steps in (name.split(".") for name in wanted) for n in range(len(steps))}
    left = limit
    for taken in _groups(path, encoding, min(rows, PIECE)):
        waiting = [taken[:left]]
        while waiting:
            piece = waiting.pop()
            columns = None if lists else quick.read([line for _, line in piece])
            if columns is None and len(piece) > CAREFUL and not lists:
                half = len(piece) // 2
                waiting += [piece[half:], piece[:half]]
            elif columns is None:
                yield _with_care(path, kinds, piece, wanted, explode)
            else:
                yield pl.DataFrame({**columns, LINE: pl.Series([number for number, _ in piece], dtype=pl.Int64)})
        if left is not None and (left := left - len(taken)) <= 0:
            return


def _with_care(
    path: Path, kinds: Mapping[str, Kind], lines: list[tuple[int, str]], wanted: Container[str], explode: str | None
) -> pl.DataFrame:
    """Return the objects of some lines, each read by itself: columns of text; `wanted` keys stand once in each."""
    objects = [(number, *_object(line, wanted, explode)) for number, line in lines]
    if explode is not None:
        objects = [row for of in objects for row in _exploded(path, *of, explode)]
    numbers = [number for number, *_ in objects]
    columns = {
        column: _cells(path, column, kind, numbers, [value_at(found, column) for _, found, _ in objects])
        for column, kind in kinds.items()
    }
    broken = [said for *_, said in objects]
    more = {BROKEN: pl.Series(broken, dtype=pl.String)} if any(broken) else {}
    return pl.DataFrame({**columns, LINE: pl.Series(numbers, dtype=pl.Int64), **more})


def _exploded(
    path: Path, number: int, found: dict[str, Any], broken: str | None, column: str
) -> Iterator[tuple[int, dict[str, Any], str | None]]:
    """Yield an object once for each element of a list or map of it; once where it is none."""
    if broken is not None:
        yield number, found, broken
        return
    of = elements(value := value_at(found, column))
    if of is None:
        raise no_list(f"{path} line {number}", column, value)
    yield from ((number, with_element(found, column, element), None) for element in of)


def no_list(where: str, column: str, value: object) -> SourceError:
    """Return the error of a cell whose elements are to make rows, and that is no list."""
    return SourceError(
        f"{where}: column {column!r} holds {shortened(repr(value))}, which is no list.",
        remedy="write a list, or an object of values by their keys; explode makes a row of each element.",
    )


def text_lines(path: Path, encoding: str, *, empty: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file and their numbers: those that hold something, and `empty` ones if asked.

    Raises SourceError if a line is too long, the lines unpack to too much, or text is no text.
    """
    for first, lines in _line_pieces(path, encoding, "example" if empty else "line of JSON"):
        yield from enumerate(lines, first) if empty else _filled(first, lines)


def _groups(path: Path, encoding: str, most: int) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines that hold something, `most` at a time, or fewer where they are long."""
    taken: list[tuple[int, str]] = []
    pieces = 0
    for first, lines in _line_pieces(path, encoding, "line of JSON"):
        taken += _filled(first, lines)
        pieces += 1
        while len(taken) >= most or (taken and pieces >= LONG):
            yield taken[:most]
            taken, pieces = taken[most:], 0
    if taken:
        yield taken


def _filled(first: int, lines: list[str]) -> list[tuple[int, str]]:
    """Return those of some lines that hold something, with their numbers."""
    return [(number, line) for number, line in enumerate(lines, first) if line and not line.isspace()]


def _line_pieces(path: Path, encoding: str, word: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a file piece by piece, and the number of the first line of each piece."""
    newlines = io.IncrementalNewlineDecoder(None, translate=True)
    number, rest, blank, most = 1, "", 0, longest_line()
    unpacked = Unpacked(path, str(path))
    for text in chain(decoded(path, encoding), ["\n"]):
        *lines, rest = (rest + newlines.decode(text)).split("\n")
        blank = blank + len(text) if text.isspace() else 0
        if max(map(len, [*lines, rest])) > most or blank > most:
            what = "the empty text above it" if blank > most else f"no {word}, it"
            hint = "write one object a line, or one action of an example"
            raise too_long(f"{path} line {number}", what, "characters", hint)
        unpacked.add(len(text), len(lines), "the lines", times=2)
        if number == 1 and lines:
            lines[0] = lines[0].lstrip("\ufeff")
        yield number, lines
        number += len(lines)


class _Repeating(dict[str, Any]):
    """An object that has some keys twice."""

    twice: list[str]


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        found = _Repeating(found)
        found.twice = [key for key in found if keys.count(key) > 1]
    return found


_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_pairs)


def _object(line: str, wanted: Container[str], explode: str | None = None) -> tuple[dict[str, Any], str | None]:
    """Return the object on a line, or a description of a line that holds no object or a wanted key twice."""
    try:
        found = _DECODER.decode(line)
    except json.JSONDecodeError as error:
        return {}, f"{shortened(repr(line))} ({error.msg} at character {error.colno})"
    except RecursionError:
        return {}, f"{shortened(repr(line))} (nested too deeply)"
    if not isinstance(found, dict):
        return {}, shortened(repr(line))
    twice = next(_twice(found, wanted, explode), None)
    return (found, None) if twice is None else ({}, f"{shortened(repr(line))} (two values of {twice!r})")


def _twice(
    found: dict[str, Any], wanted: Container[str], explode: str | None, before: str = "", *, every: bool = False
) -> Iterator[str]:
    """Yield the wanted columns of which an object, or one within, has two values; any, where each key makes a row."""
    if isinstance(found, _Repeating):
        yield from (name for key in found.twice if (name := f"{before}{key}") in wanted or every)
    for key, value in found.items():
        if isinstance(value, dict):
            name = f"{before}{key}"
            yield from _twice(value, wanted, explode, f"{name}.", every=name == explode)
        elif isinstance(value, list) and explode == f"{before}{key}":
            for element in value:
                if isinstance(element, dict):
                    yield from _twice(element, wanted, explode, f"{explode}.")


def _cells(path: Path, column: str, kind: Kind, numbers: list[int], values: list[Any]) -> pl.Series:
    if kind == "labels":
        values = [json.dumps(value, ensure_ascii=False) if type(value) is list else value for value in values]
    types = set(map(type, values))
    for nested, what in ((dict, "an object"), (list, "a list")):
        if nested in types:
            line, value = next((n, of) for n, of in zip(numbers, values, strict=True) if type(of) is nested)
            named = next(iter(value), "") if nested is dict else ""
            tip = f"name a key of it, such as {f'{column}.{named}'!r}, or " if named else ""
            raise SourceError(
                f"{path} line {line}: column {column!r} holds {what}: several values a cell.",
                remedy=f"{tip}write one number or text a row.",
            )
    if bool in types:
        words = {True: "true", False: "false"} if kind == "category" else {True: "1", False: "0"}
        values = [words[value] if type(value) is bool else value for value in values]
    try:
        return pl.Series(values, dtype=pl.String)
    except UnicodeEncodeError:
        line = next(n for n, value in zip(numbers, values, strict=True) if value and not _is_text(value))
        raise SourceError(
            f"{path} line {line}: column {column!r} holds half a character (a lone surrogate).",
            remedy="repair the text.",
        ) from None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class ObjectColumns:
    """The columns of objects, in the types in which the objects so far held them.

    Arrow refuses what it does not read to the bit: a column of two types, a number that does not fit, a key twice. Then
    the types are looked at anew; columns of mixed ones, and numbers that are to be text, get quotes, so that their
    digits are read as they are written.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._types: dict[str, pa.DataType] = {}
        self._quoted: list[str] = []

    def read(self, lines: Sequence[str]) -> dict[str, pl.Series] | None:
        """Return the columns of some lines: text, or numbers where their kind is one; None where Arrow cannot tell.

        Each of the lines, which come without their ends, ought to be an object.
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
