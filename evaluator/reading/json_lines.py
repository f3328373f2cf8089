"""JSON lines: one object a line, its values read as text, so that no number loses a digit.

Fields within columns, ``user.country``, and columns of lists or maps each of whose elements makes a row, are those of
any source.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyarrow import json as arrow_json

from evaluator.errors import SourceError
from evaluator.escape import shortened
from evaluator.reading.cells import WHOLE, Kind, label_array
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
# What Arrow takes for numbers and Python does not.
_NO_NUMBER = re.compile(rb"-NaN|[\s:,\[-]Inf(?!inity)")
# A number that Arrow takes for 0, and that is another text.
_ZERO = re.compile(rb"[:,\[][ \t]*-0[ \t]*[],}]")
_INTEGER = re.compile(r"-?[1-9][0-9]*|0")
# A letter, digit, dot, dash or underline of a key that nobody needs to write so.
_ESCAPED = re.compile(rb"\\u00(?:2[dDeE]|3[0-9]|[4-7][0-9a-fA-F])")
# Python gives up between this depth and a thousand, Arrow never.
_DEPTH = 900
# Arrow counts the bytes of a block in 32 bits.
_BYTES = 2**30
# What is neither an object nor missing where a column is within one, nor a list where its elements make rows.
_ODD = object()
_WITH_QUOTES = pa.null()
# Fields of the elements of a map.
KEY, VALUE = "key", "value"
# What no column is called: the element that makes a row.
_ELEMENT = "__element"
# Polars has maps since 2.0; before, they are lists of such fields.
_MAPS: Any = getattr(pl, "Map", ())


def key_names(path: Path, encoding: str, *, until: Iterable[str] = (), explode: str | None = None) -> list[str]:
    """Return the keys of the first objects of a file, in order of appearance; read on until some keys are found.

    Those of objects within are among them, ``user.country``, and of the elements of the list or map `explode`.

    Raises SourceError if the file is empty, no text, or an array of objects.
    """
    keys: dict[str, None] = {}
    empty, broken = True, None
    for read, (number, line) in enumerate(text_lines(path, encoding)):
        if read >= SAMPLE and all(key in keys for key in until):
            break
        if empty and line.lstrip().startswith("["):
            hint = "write one object a line, without brackets around them and commas between them."
            raise SourceError(f"{path}: an array, not JSON lines.", remedy=hint)
        empty = False
        found, said = _object(line, ())
        broken = broken or (None if said is None else f"{path} line {number}: no JSON object, {said}.")
        keys.update(dict.fromkeys(key_paths(found, explode)))
    if empty:
        raise SourceError(f"{path}: the file is empty.", remedy="check the download or export.")
    if broken is not None and not keys:
        raise SourceError(broken, remedy="write one object a line, without breaks in it and commas between them.")
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
    quick = ObjectColumns(kinds, explode, nested=nested)
    wanted = {*kinds} if explode is None else {*kinds, explode}
    if nested:
        wanted = {".".join(steps[: n + 1]) for steps in (name.split(".") for name in wanted) for n in range(len(steps))}
    left = limit
    for taken in _groups(path, encoding, min(rows, PIECE)):
        waiting = [taken[:left]]
        while waiting:
            piece = waiting.pop()
            found = quick.read(piece)
            if found is None and len(piece) > CAREFUL and quick.reads:
                half = len(piece) // 2
                waiting += [piece[half:], piece[:half]]
            else:
                yield _with_care(path, kinds, piece, wanted, explode) if found is None else found
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

    Columns may be `nested` in others, and each element of the list `explode` makes a row. Arrow refuses what it does
    not read to the bit: a column of two types, a number that does not fit, a key twice. Then the types are looked at
    anew; columns of mixed ones, and numbers that are to be text, get quotes, so that their digits are read as they are
    written.
    """

    def __init__(self, kinds: Mapping[str, Kind], explode: str | None = None, *, nested: bool = False) -> None:
        self._kinds = kinds
        self._paths = {column: tuple(column.split(".")) if nested else (column,) for column in kinds}
        self._explode = () if explode is None else tuple(explode.split(".")) if nested else (explode,)
        paths = set(self._paths.values())
        apart = not any(path[:n] in paths for path in paths for n in range(1, len(path)))
        # No column is within another one, and some are of the elements.
        self.reads = apart and any(path[: len(self._explode)] == self._explode for path in paths)
        # A key that has the dot in its own name comes before one within.
        dotted = {".".join(path[:n]) for path in paths for n in range(2, len(path) + 1)}
        self._dotted = [_key(name) for name in sorted(dotted)]
        self._types: dict[tuple[str, ...], pa.DataType] = {}
        self._schema = pa.schema([])
        self._quoted: set[str] = set()

    def read(self, piece: Sequence[tuple[int, str]]) -> pl.DataFrame | None:
        """Return the columns of some lines, which come with their numbers, and `LINE`; None where Arrow cannot tell.

        They are text, or numbers where their kind is one, or lists of labels. Each of the lines, which come without
        their ends, ought to be an object.
        """
        lines = [line for _, line in piece]
        text = "\n".join(lines)
        # Of an object broken over lines, none begins where another ends: what fits here is one a line.
        if not self.reads or not text.startswith("{") or not text.endswith("}"):
            return None
        if text.count("}\n{") != len(lines) - 1:
            return None
        if text.count("{") + text.count("[") > len(lines) + _DEPTH and max(map(_openings, lines)) > _DEPTH:
            return None
        data = text.encode(errors="surrogatepass")
        if len(data) > _BYTES or ((b"-NaN" in data or b"Inf" in data) and _NO_NUMBER.search(data)):
            return None
        if self._dotted and (any(key in data for key in self._dotted) or _ESCAPED.search(data)):
            return None
        numbers = pl.Series(LINE, [number for number, _ in piece], dtype=pl.Int64)
        if self._types and (found := self._columns(data, numbers)) is not None:
            return found
        return self._columns(data, numbers) if self._look(lines) else None

    def _columns(self, data: bytes, numbers: pl.Series) -> pl.DataFrame | None:
        for key in self._quoted:
            data = re.sub(_value(key, rb"(%s)(?=[ \t]*[,}])" % _NUMBER), _with_quotes, data)
        try:
            table = arrow_json.read_json(
                pa.py_buffer(data),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=self._schema, newlines_in_values=False, unexpected_field_behavior="ignore"
                ),
            )
            table.validate(full=True)  # bytes that are no UTF-8
        except pa.ArrowInvalid:
            return None
        if table.num_rows != len(numbers):
            return None
        raw = pl.DataFrame([*(pl.Series(name, table[name]) for name in self._schema.names), numbers])
        if self._explode:
            raw = with_elements(raw, field_of(raw[self._explode[0]], self._explode[1:]))
        found = flat_columns(raw, self._paths, self._explode)
        if any(cells.dtype == pl.Float64 and not cells.is_finite().all() for cells in found.values()):
            return None
        as_text = [cells for column, cells in found.items() if self._kinds[column] not in (*WHOLE, "float")]
        wholes = (cells.explode() if cells.dtype == pl.List(pl.Int64) else cells for cells in as_text)
        if any(cells.dtype == pl.Int64 and (cells == 0).any() for cells in wholes) and _ZERO.search(data):
            return None
        return pl.DataFrame([*(_as_text(cells, self._kinds[column]) for column, cells in found.items()), raw[LINE]])

    def _look(self, lines: Sequence[str]) -> bool:
        """Look at the types of some lines; whether they are other ones than before, and all of them known."""
        held: dict[str, set[str]] = {column: set() for column in self._kinds}
        for line in lines:
            try:
                found = _TYPED.decode(line)
            except (ValueError, RecursionError):
                return False
            for column, path in self._paths.items():
                held[column].update(map(_held, self._values(found, path)))
            if not self.reads or any("other" in words for words in held.values()):
                return False
        before, self._types = (self._types, self._quoted), {}
        types = {column: _type_of(self._kinds[column], words) for column, words in held.items()}
        self._quoted = {self._paths[column][-1] for column, kind in types.items() if kind == _WITH_QUOTES}
        for column, kind in types.items():
            path = self._paths[column]
            within_quotes = path[-1] in self._quoted and kind in (pa.int64(), pa.float64())
            if kind is None or ((within_quotes or kind == _WITH_QUOTES) and path == self._explode):
                self._types = {}
                return False
            self._types[path] = pa.string() if within_quotes or kind == _WITH_QUOTES else kind
        self._schema = pa.schema(self._fields(()))
        return before != (self._types, self._quoted)

    def _values(self, found: Any, path: tuple[str, ...]) -> list[Any]:
        """Return what stands in the place of a column in an object: several values where elements make rows."""
        values = [found]
        for step in range(len(path)):
            values = [of.get(path[step]) if type(of) is dict else None if of is None else _ODD for of in values]
            if path[: step + 1] == self._explode:
                self.reads &= dict not in map(type, values)  # Arrow needs to know the keys of a map
                values = [one for of in values if of is not None for one in (of if type(of) is list else [_ODD])]
        return values

    def _fields(self, before: tuple[str, ...]) -> list[pa.Field]:
        """Return the fields within a column, or all columns."""
        depth = len(before)
        keys = dict.fromkeys(path[depth] for path in self._types if path[:depth] == before and len(path) > depth)
        return [pa.field(key, self._type_at((*before, key))) for key in keys]

    def _type_at(self, path: tuple[str, ...]) -> pa.DataType:
        kind = self._types[path] if path in self._types else pa.struct(self._fields(path))
        return pa.list_(kind) if path == self._explode else kind


class _Number(str):
    """A number, as it is written."""


_TYPED = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=_Number)


def _held(value: Any) -> str:
    """Return the word for what a value is, none for a missing one."""
    if type(value) is _Number:
        return "whole" if _INTEGER.fullmatch(value) else "infinite" if value[-1] in "yN" else "number"
    if type(value) is list:
        words = {_held(one) for one in value} - {""}
        return {0: "list", 1: f"list of {min(words, default='')}"}.get(len(words), "other")
    return {str: "text", bool: "flag", type(None): ""}.get(type(value), "other")


def _type_of(kind: Kind, words: set[str]) -> pa.DataType | None:
    """Return as what Arrow is to read a column that holds such values; None where it cannot."""
    words = words - {""}
    if words <= {"text"}:
        return pa.string()
    if words == {"flag"}:
        return pa.bool_()
    if kind == "labels" and words <= {"list", "list of text"}:
        return pa.list_(pa.string())
    if kind == "labels" and words <= {"list", "list of whole"}:
        return pa.list_(pa.int64())
    if words <= {"whole"} or (words <= {"whole", "number"} and kind == "float"):
        return pa.float64() if kind == "float" else pa.int64()
    return _WITH_QUOTES if words <= {"whole", "number", "infinite", "text"} else None


def _as_text(cells: pl.Series, kind: Kind) -> pl.Series:
    """Return truth values as the words of their kind, numbers as text unless they are to be numbers."""
    if cells.dtype == pl.Boolean and kind != "category":
        cells = cells.cast(pl.Int8)
    if cells.dtype.is_float() or cells.dtype.is_nested() or (cells.dtype == pl.Int64 and kind in WHOLE):
        return cells
    return cells.cast(pl.String)


def _key(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False).encode(errors="surrogatepass")


def _value(name: str, value: bytes) -> bytes:
    """Return the pattern of a key with a value: no other text, as the quotes of a key have no backslash before them."""
    key = re.escape(_key(name))
    return rb"%s(?<!\\%s)[ \t]*:[ \t]*%s" % (key, key, value)


def _with_quotes(found: re.Match[bytes]) -> bytes:
    start = found.start()
    return b'%b"%b"' % (found[0][: found.start(1) - start], found[1])


def _openings(line: str) -> int:
    return line.count("{") + line.count("[")


def path_of(column: str, names: Collection[str]) -> tuple[str, ...] | None:
    """Return the column that holds another one, and the fields on the way to it; None where none does.

    >>> path_of("user.home.land", ["t", "user"]), path_of("a.b", ["a.b", "a"]), path_of("b.c", ["a"])
    (('user', 'home', 'land'), ('a.b',), None)
    """
    if column in names:
        return (column,)
    root = next((root for root in _roots(column) if root in names), None)
    return None if root is None else (root, *column[len(root) + 1 :].split("."))


def _roots(column: str) -> Iterator[str]:
    """Yield what stands before a dot of a name, the longest first."""
    root = column
    while "." in root:
        root = root.rpartition(".")[0]
        yield root


def element_type(kind: pl.DataType) -> pl.DataType | None:
    """Return what the elements of a column of lists, or of a map, are; of text, text. None of other columns."""
    if isinstance(kind, pl.List | pl.Array):
        inner: pl.DataType = kind.inner  # type: ignore[assignment]
        return inner
    if isinstance(kind, _MAPS):
        return pl.Struct({KEY: kind.key, VALUE: kind.value})
    return kind if kind == pl.String else None


def field_type(kind: pl.DataType | None, fields: Collection[str]) -> pl.DataType | None:
    """Return the type of a field within a column, None where there is no such field."""
    for field in fields:
        held: dict[str, Any] = dict(kind) if isinstance(kind, pl.Struct) else {}
        kind = held.get(field)
    return kind


def within(column: str, kind: pl.DataType) -> str:
    """Return what to do about a column that holds several values a cell: how those within it are named."""
    of = kind if isinstance(kind, pl.Struct) else element_type(kind)
    if isinstance(kind, pl.Struct) and kind.fields:
        return f"name a field of it, such as {f'{column}.{kind.fields[0].name}'!r}, or write one number or text a row."
    if isinstance(of, pl.Struct) and of.fields:
        named = f"{column}.{of.fields[0].name}"
        return f"explode = {column!r} makes a row of each element, such as {named!r}; or write one value a row."
    return "write one number or text a row."


def field_of(cells: pl.Series, fields: Collection[str]) -> pl.Series:
    """Return a field within a column."""
    for field in fields:
        cells = cells.struct.field(field)
    return cells


def with_elements(raw: pl.DataFrame, lists: pl.Series, also: pl.Series | None = None) -> pl.DataFrame:
    """Return rows once for each element of their lists, in a column of its own; without any, only those `also` kept."""
    some = (lists.list.len() > 0).fill_null(False)
    rows = raw.with_columns(lists.alias(_ELEMENT)).filter(some if also is None else some | also)
    return rows.explode(_ELEMENT)


def flat_columns(
    raw: pl.DataFrame, paths: Mapping[str, Sequence[str]], explode: Sequence[str] = ()
) -> dict[str, pl.Series]:
    """Return columns by their `paths`, those of elements from rows `with_elements` of the column `explode`."""
    columns = {}
    for column, path in paths.items():
        root, *fields = path
        if explode and tuple(path[: len(explode)]) == tuple(explode):
            root, fields = _ELEMENT, list(path[len(explode) :])
        columns[column] = field_of(raw[root], fields).alias(column)
    return columns


def value_at(found: dict[str, Any], column: str) -> Any:
    """Return the value of a column in an object, whose keys may hold others; None where there is none."""
    path = path_of(column, found)
    if path is None:
        return None
    value: Any = found[path[0]]
    for field in path[1:]:
        value = value.get(field) if isinstance(value, dict) else None
    return value


def elements(value: Any) -> list[Any] | None:
    """Return the elements of a list, of a text that is a JSON array of labels, or the keys and values of an object.

    Without elements where it is missing. None of another value.
    """
    if value is None or value == "":
        return []
    if isinstance(value, dict):
        return [{KEY: key, VALUE: of} for key, of in value.items()]
    if isinstance(value, str):
        return label_array(value)
    return value if isinstance(value, list) else None


def with_element(found: dict[str, Any], column: str, element: Any) -> dict[str, Any]:
    """Return an object in which an element stands in the place of the list that it is of."""
    path = path_of(column, found)
    assert path is not None
    root, *fields = path
    if not fields:
        return {**found, root: element}
    return {**found, root: with_element(found[root], ".".join(fields), element)}


def key_paths(found: dict[str, Any], explode: str | None, before: str = "") -> Iterator[str]:
    """Yield the columns that an object names: its keys, those of objects within, and of the elements of a list."""
    for key, value in found.items():
        name = f"{before}{key}"
        yield name
        if name == explode:
            value = next(iter(elements(value) or ()), None)
        if isinstance(value, dict):
            yield from key_paths(value, explode, f"{name}.")
