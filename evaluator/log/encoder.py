"""How columns of a source became context vectors, so that a display that comes later becomes one in the same way.

The text of a value (`value_text`) tells categories apart. White space around a text is none of it. A whole number is
written without a fraction: 7, 7.0 and "7.00" are one value; other digits stay as they are written, so that "08", "1e5"
and version "1.10" are none but themselves. The truth values that tables hold as True, TRUE and true are true. The
letters of a UUID are small.
"""

from __future__ import annotations

import re
import reprlib
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from evaluator.errors import ParameterError, SourceError, nearest
from evaluator.escape import shortened

# The widest hashed part that a spec may ask for.
WIDEST = 65_536
_HASH = "crc32"
# Words of a column whose numbers are scaled, alone.
_OF_SCALE = ("centre", "deviation")
# Hashed columns beyond this many are counted rather than named.
_NAMED = 2
WHOLE = r"^(?:-?(0)|(-?[1-9][0-9]*))\.0+$"
UUID = r"^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$"
UUID_LENGTH = 36
TRUTHS = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}

_WHOLE, _UUID = re.compile(WHOLE), re.compile(UUID)


def token_slot(column: str, label: str, width: int) -> tuple[int, int]:
    """Return position and sign of the token ``column=label`` among `width` hashed coordinates.

    Position from the low 31 bits of its CRC-32 (UTF-8), sign from the top bit.

    >>> token_slot("cat1", "10", 16)
    (15, 1)
    """
    code = zlib.crc32(f"{column}={label}".encode())
    return (code & 0x7FFFFFFF) % width, -1 if code >> 31 else 1


@dataclass(frozen=True)
class ContextColumn:
    """A column of a context: a category, or a number, which is a coordinate as it is.

    `missing` are values that mean "none" in it. `labels` are those of a one-hot category that occur, in the order of
    their coordinates, None for a missing one; no labels where the category is hashed, and for numbers. The coordinate
    of a number that is scaled is it less `centre`, over `deviation`.
    """

    name: str
    kind: Literal["category", "number"]
    missing: tuple[str, ...] = ()
    labels: tuple[str | None, ...] | None = None
    centre: float | None = None
    deviation: float | None = None

    def coordinate_of(self, number: float) -> float:
        """Return what the vector has of a number, before all coordinates are divided by the same."""
        if self.centre is None or self.deviation is None:
            return number
        return (number - self.centre) / self.deviation

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; without what it has not."""
        said = asdict(self)
        return said if self.centre is not None else {k: v for k, v in said.items() if k not in _OF_SCALE}


@dataclass(frozen=True)
class Coordinate:
    """What a coordinate of a context stands for.

    Its name is its column, ``device = phone`` for a label of one, or the bucket that labels are hashed into; displays
    without the label are called `without`: ``device != phone``; empty where it has no label. `column` is the one that
    it is made of; empty where there are several, or none. The coordinate times `unit`, plus `centre`, is the column's
    value; of a bucket the number of its labels.
    """

    name: str
    without: str = ""
    column: str = ""
    unit: float = 1.0
    centre: float = 0.0


@dataclass(frozen=True)
class ContextEncoder:
    """What turns a display, as a mapping of column values, into the context vector that the log would have had.

    Coordinates are the categories' (hashed: all columns into one part of that width, 0 where none is; one-hot: column
    by column), then one a number, then the intercept, a constant, all divided by sqrt(number of columns + intercept).
    Columns are in the order of the spec.
    """

    columns: tuple[ContextColumn, ...]
    hashed: int
    intercept: bool

    @property
    def scale(self) -> float:
        """Number that all coordinates are divided by."""
        return float(np.sqrt(len(self.columns) + self.intercept))

    def coordinates(self) -> list[Coordinate]:
        """Return what each coordinate of a vector stands for, p of them."""
        hashed = [column.name for column in self.columns if column.kind == "category" and column.labels is None]
        of = " and ".join(hashed) if len(hashed) <= _NAMED else f"{len(hashed)} columns"
        one = hashed[0] if len(hashed) == 1 else ""
        found = [Coordinate(f"hash bucket {i} of {of}", column=one, unit=self.scale) for i in range(self.hashed)]
        for column in self.columns:
            found += [_one_hot(column.name, label) for label in column.labels or ()]
        found += [
            Coordinate(c.name, column=c.name, unit=self.scale * (c.deviation or 1.0), centre=c.centre or 0.0)
            for c in self.columns
            if c.kind == "number"
        ]
        return found + [Coordinate("intercept")] * self.intercept

    @property
    def dimensions(self) -> int:
        """Length p of a vector."""
        return self._width + len(self._numbers) + self.intercept

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values, which `encoder_of` reads."""
        return {**asdict(self), "columns": [column.to_dict() for column in self.columns], "hash": _HASH}

    def encode(self, display: Mapping[str, object]) -> npt.NDArray[np.float32]:
        """Return the vector of a display, shape (p,): to the bit that of a row of the log with the same values.

        The display has a value for each column. Of a category its text, or a whole number; None, or empty text, where
        it is missing. Of a number a finite number. Raises ParameterError where a column is unknown or lacks, its value
        is of another type or not finite, or a one-hot label was never seen by the log: a vector has no place for it.
        """
        known = self._names
        for name in display:
            if name not in known:
                raise ParameterError(f"No context column {name!r}.", remedy=nearest(str(name), known))
        for name in known:
            if name not in display:
                raise ParameterError(
                    f"The display has no {name!r}.",
                    remedy=f"its columns are {', '.join(known)}; None where one is missing.",
                )
        vector = np.zeros(self.dimensions, np.float32)
        for column in self.columns:
            value = display[column.name]
            if column.kind == "number":
                vector[self._width + self._numbers[column.name]] = column.coordinate_of(_number(column, value))
                continue
            label = _label(column, value)
            if column.labels is None:
                place, sign = token_slot(column.name, label or "", self.hashed)
                vector[place] += sign
            else:
                vector[self._place(column, label)] = 1
        if self.intercept:
            vector[-1] = 1
        vector /= np.float32(self.scale)
        return vector

    def _place(self, column: ContextColumn, label: str | None) -> int:
        places = self._places[column.name]
        if label == "" and label not in places:
            label = None
        if label not in places:
            said = "a missing value" if label is None else repr(label)
            seen = [known for known in places if known is not None]
            hint = nearest(label or "", seen) if len(seen) <= 12 or label else f"{len(seen)} labels were seen."
            raise ParameterError(
                f"Column {column.name!r}: the log never had {said}, and one-hot vectors have no place for it.",
                remedy=f"{hint} Where new ones come, hash: context.encoding = 'hash'.",
            )
        return places[label]

    @cached_property
    def _names(self) -> dict[str, None]:
        return dict.fromkeys(column.name for column in self.columns)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(c.name for c in self.columns if c.kind == "number")}

    @cached_property
    def _places(self) -> dict[str, dict[str | None, int]]:
        places: dict[str, dict[str | None, int]] = {}
        at = 0
        for column in self.columns:
            if column.labels is not None:
                places[column.name] = {label: at + i for i, label in enumerate(column.labels)}
                at += len(column.labels)
        return places

    @cached_property
    def _width(self) -> int:
        return self.hashed or sum(map(len, self._places.values()))


def _one_hot(column: str, label: str | None) -> Coordinate:
    if label is None:
        return Coordinate(f"{column} missing", f"{column} not missing", column)
    word = shortened(label) if label else "''"
    return Coordinate(f"{column} = {word}", f"{column} != {word}", column)


def _label(column: ContextColumn, value: object) -> str | None:
    """Return the label of a category, None where it is missing."""
    if value is None:
        return None
    if isinstance(value, Integral) and not isinstance(value, bool):
        value = str(int(value))
    if not isinstance(value, str):
        _refuse(column, value, "a category's text", "write it as the log has it, as text: 'true', '1.5'.")
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse(column, value, "UTF-8", "repair the text.")
    if value in (column.labels or ()):  # a label of a log that was read before all of them were in one form
        return str(value)
    label = value_text(value)
    return None if label in map(value_text, column.missing) else label


def _number(column: ContextColumn, value: object) -> float:
    if isinstance(value, str) or not isinstance(value, Real | None) or isinstance(value, bool):
        _refuse(column, value, "a number", "convert it: float(...).")
    try:
        number = float("nan") if value is None else float(value)
        with np.errstate(over="ignore"):
            single = np.float32(number)
    except OverflowError:
        single = np.float32("inf")
    if not np.isfinite(single) or any(_says(word, number) for word in column.missing):
        _refuse(column, value, "a finite number", "the log has no missing ones: fill it in.")
    return number if column.centre is not None else float(single)


def _says(word: str, number: float) -> bool:
    try:
        return float(word) == number
    except ValueError:
        return False


def _refuse(column: ContextColumn, value: object, wanted: str, hint: str) -> NoReturn:
    raise ParameterError(f"Column {column.name!r}: {reprlib.repr(value)} is not {wanted}.", remedy=hint)


def encoder_of(said: object) -> ContextEncoder:
    """Return the encoder that JSON describes, after checking every word.

    Raises SourceError, which names a word that is missing, has another type or cannot be.
    """
    if not isinstance(said, dict) or set(said) != {"columns", "hashed", "intercept", "hash"}:
        raise _none(f"{reprlib.repr(said)} has not columns, hashed, intercept and hash")
    if said["hash"] != _HASH:
        raise _none(f"hash is {reprlib.repr(said['hash'])}, not {_HASH!r}")
    if type(said["hashed"]) is not int or not 0 <= said["hashed"] <= WIDEST:
        raise _none(f"hashed is {reprlib.repr(said['hashed'])}, not from 0 to {WIDEST:,}")
    if type(said["intercept"]) is not bool:
        raise _none(f"intercept is {reprlib.repr(said['intercept'])}, neither true nor false")
    if not isinstance(said["columns"], list) or not said["columns"]:
        raise _none(f"columns is {reprlib.repr(said['columns'])}, no list of them")
    columns = tuple(_column(one) for one in said["columns"])
    if len({column.name for column in columns}) < len(columns):
        raise _none("two columns have one name")
    hashed = [column for column in columns if column.kind == "category" and column.labels is None]
    one_hot = [column for column in columns if column.labels is not None]
    if bool(hashed) != (said["hashed"] > 0) or (hashed and one_hot):
        raise _none(f"hashed is {said['hashed']}, of {len(hashed)} hashed and {len(one_hot)} one-hot columns")
    return ContextEncoder(columns, said["hashed"], said["intercept"])


def _column(said: object) -> ContextColumn:
    if not isinstance(said, dict) or set(said) - set(_OF_SCALE) != {"name", "kind", "missing", "labels"}:
        raise _none(f"{reprlib.repr(said)} has not name, kind, missing and labels")
    scale = [said[word] for word in _OF_SCALE if word in said]
    if scale and (
        len(scale) < len(_OF_SCALE)
        or any(type(number) not in (int, float) or not np.isfinite(number) for number in scale)
        or scale[1] <= 0
        or said["kind"] != "number"
    ):
        raise _none(f"centre and deviation are {reprlib.repr(scale)}, not of a number that is scaled")
    name, kind, missing, labels = said["name"], said["kind"], said["missing"], said["labels"]
    if not isinstance(name, str):
        raise _none(f"name is {reprlib.repr(name)}")
    if kind not in ("category", "number"):
        raise _none(f"kind is {reprlib.repr(kind)}, neither category nor number")
    if not isinstance(missing, list) or not all(isinstance(word, str) for word in missing):
        raise _none(f"missing is {reprlib.repr(missing)}, no texts")
    if labels is None:
        return ContextColumn(name, kind, tuple(missing), None, *map(float, scale))
    texts = isinstance(labels, list) and all(label is None or isinstance(label, str) for label in labels)
    if not texts or len(set(labels)) < len(labels) or kind != "category":
        raise _none(f"labels is {reprlib.repr(labels)}, not the different labels of a category")
    return ContextColumn(name, kind, tuple(missing), tuple(labels))


def _none(why: str) -> SourceError:
    return SourceError(f"Its encoder of contexts is none: {why}.", remedy="save or convert it again.")


def value_text(text: str) -> str:
    """Return the text of a value as logs hold it, empty where it is missing; of columns: `datasets.labels.value_texts`.

    >>> [value_text(text) for text in (" a ", "7.0", "-0.0", "08", "1.10", "True")]
    ['a', '7', '0', '08', '1.10', 'true']
    """
    text = text.strip()
    if text in TRUTHS:
        return TRUTHS[text]
    if len(text) == UUID_LENGTH and _UUID.match(text):
        return text.lower()
    found = _WHOLE.match(text)
    return (found[1] or found[2]) if found else text
