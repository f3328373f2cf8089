"""JSON lines: one object a line, its values read as text, so that no number loses a digit."""

from __future__ import annotations

import io
import json
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from evaluator.datasets.cells import Kind
from evaluator.datasets.json_columns import ObjectColumns
from evaluator.datasets.row_breaches import LINE
from evaluator.datasets.sources.unpacking import Unpacked
from evaluator.datasets.text import decoded, longest_line, too_long
from evaluator.errors import SourceError
from evaluator.visible import shortened

# Of a line that is no object: what it is instead.
BROKEN = "__broken"
# Lines that are read at once; where one of them asks for care, half of them, and so on down to so few.
PIECE, CAREFUL = 10_000, 50
# Fewer lines are read at once where so many pieces of text hold no more.
LONG = 8
# So many objects tell which columns there are.
SAMPLE = 1_000


def key_names(path: Path, encoding: str, *, until: Iterable[str] = ()) -> list[str]:
    """Return the keys of the first objects of a file, in order of appearance; read on until some keys are found.

    Raises
    ------
    SourceError
        The file is empty, no text, or an array of objects.
    """
    keys: dict[str, None] = {}
    empty = True
    for read, (_, line) in enumerate(text_lines(path, encoding)):
        if read >= SAMPLE and all(key in keys for key in until):
            break
        if empty and line.lstrip().startswith("["):
            hint = "write one object a line, without brackets around them and commas between them."
            raise SourceError(f"{path}: an array, not JSON lines.", hint=hint)
        empty = False
        found, _ = _object(line, ())
        keys.update(dict.fromkeys(found))
    if empty:
        raise SourceError(f"{path}: the file is empty.", hint="check the download or export.")
    return list(keys)


def object_frames(
    path: Path, encoding: str, kinds: Mapping[str, Kind], rows: int, limit: int | None
) -> Iterator[pl.DataFrame]:
    """Yield the first objects, `rows` at a time or fewer: a column for each key in `kinds`, and `LINE`.

    Columns hold text; those of numbers may hold numbers where they are the ones that the text says. A key that an
    object lacks is a missing cell. Where lines are no objects, or have a key of `kinds` twice, `BROKEN` says what they
    are, null elsewhere. Lines of spaces are skipped.

    Raises
    ------
    SourceError
        A value is a list or an object, a line is too long, or text is no text.
    """
    quick, lists = ObjectColumns(kinds), "labels" in kinds.values()
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
                yield _with_care(path, kinds, piece)
            else:
                yield pl.DataFrame({**columns, LINE: pl.Series([number for number, _ in piece], dtype=pl.Int64)})
        if left is not None and (left := left - len(taken)) <= 0:
            return


def _with_care(path: Path, kinds: Mapping[str, Kind], lines: list[tuple[int, str]]) -> pl.DataFrame:
    """Return the objects of some lines, each read by itself: columns of text."""
    numbers = [number for number, _ in lines]
    objects = [_object(line, kinds) for _, line in lines]
    columns = {
        column: _cells(path, column, kind, numbers, [found.get(column) for found, _ in objects])
        for column, kind in kinds.items()
    }
    broken = [said for _, said in objects]
    more = {BROKEN: pl.Series(broken, dtype=pl.String)} if any(broken) else {}
    return pl.DataFrame({**columns, LINE: pl.Series(numbers, dtype=pl.Int64), **more})


def text_lines(path: Path, encoding: str, *, empty: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file and their numbers: those that hold something, and `empty` ones if asked.

    Raises
    ------
    SourceError
        A line is too long, the lines unpack to too much, or text is no text.
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
    """Yield the lines of a file, those of some text at a time, and the number of the first of them."""
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


def _object(line: str, wanted: Container[str]) -> tuple[dict[str, Any], str | None]:
    """Return the object on a line, and what the line is if it holds none, or a wanted key twice."""
    try:
        found = _DECODER.decode(line)
    except json.JSONDecodeError as error:
        return {}, f"{shortened(repr(line))} ({error.msg} at character {error.colno})"
    except RecursionError:
        return {}, f"{shortened(repr(line))} (nested too deeply)"
    if not isinstance(found, dict):
        return {}, shortened(repr(line))
    twice = next((key for key in found.twice if key in wanted), None) if isinstance(found, _Repeating) else None
    return (found, None) if twice is None else ({}, f"{shortened(repr(line))} (two values of {twice!r})")


def _cells(path: Path, column: str, kind: Kind, numbers: list[int], values: list[Any]) -> pl.Series:
    if kind == "labels":
        values = [json.dumps(value, ensure_ascii=False) if type(value) is list else value for value in values]
    types = set(map(type, values))
    for nested, what in ((dict, "an object"), (list, "a list")):
        if nested in types:
            line = next(n for n, value in zip(numbers, values, strict=True) if type(value) is nested)
            raise SourceError(
                f"{path} line {line}: column {column!r} holds {what}: several values a cell.",
                hint="write one number or text a row.",
            )
    if bool in types:
        words = {True: "true", False: "false"} if kind == "category" else {True: "1", False: "0"}
        values = [words[value] if type(value) is bool else value for value in values]
    try:
        return pl.Series(values, dtype=pl.String)
    except UnicodeEncodeError:
        line = next(n for n, value in zip(numbers, values, strict=True) if value and not _is_text(value))
        raise SourceError(
            f"{path} line {line}: column {column!r} holds half a character (a lone surrogate).", hint="repair the text."
        ) from None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
