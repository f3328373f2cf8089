"""Context vectors from columns: hashed or one-hot categories, numbers, intercept."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.errors import UsageError
from evaluator.log.encoder import ContextColumn, ContextEncoder
from evaluator.reading.labels import Labels, coded
from evaluator.reading.spec import ColumnKind, Context, Encoding, FileSpec, Scale

ONE_HOT_MAX = 256
CODE = "__code_"

Array = npt.NDArray[Any]
Codes = Mapping[str, Array]


# Displays, the first of a log, whose numbers say how all are scaled: a tenth of them, and no fewer or more than these.
_FEWEST, _MOST = 1000, 100_000
_ONES = np.uint32(0xFFFFFFFF)
_FEATURES = re.compile(r"(?P<columns>[^:]*?):?(?:(?P<encoding>hash|one-hot|number)(?:[:=](?P<width>\d+))?)?")
_ENCODING_ALONE = re.compile(r"(hash|one-hot|number)(?:[:=]\d+)?")


class ContextCodes:
    """Context columns as small codes, chunk by chunk; vectors are made of them once all labels are known.

    Columns that are `hashed` where they are read are codes already. Memory: hashing keeps no label, one-hot keeps all
    that it meets.
    """

    def __init__(self, features: Features, hashed: Collection[str] = ()) -> None:
        self.features, self._hashed = features, hashed
        one_hot = features.encoding == "one-hot"
        self.labels = {column: Labels() for column in features.columns("category") if one_hot}

    def of(self, frame: pl.DataFrame) -> dict[str, Array]:
        """Return the codes of a chunk, by column."""
        codes: dict[str, Array] = {}
        for column, kind in self.features.kinds.items():
            if kind == "number":
                # A date in float32 is known to the minute or worse: it is scaled first.
                whole = pl.Float32 if self.features.scale is None else pl.Float64
                codes[CODE + column] = frame[column].cast(whole).to_numpy()
            elif column in self.labels:
                codes[CODE + column] = self.labels[column].codes(frame[column])
            elif column in self._hashed:
                codes[CODE + column] = frame[column].to_numpy()
            else:
                labels, code = coded(frame[column])
                codes[CODE + column] = self.features.slots(column, pl.Series(labels))[code]
        return codes


class ContextVectors:
    """Context vectors from the codes of `ContextCodes`.

    Every vector is divided by sqrt(number of columns + intercept), so that its norm is at most about 1 for categories.
    A missing category is a category of its own. Of all displays that are `kept`, the codes by column are looked at for
    one-hot encoding, whose positions are those of the labels that occur there, and for the means and deviations of
    numbers that are scaled. Raises UsageError if one-hot encoding needs more than 256 dimensions.
    """

    def __init__(self, codes: ContextCodes, kept: Iterable[Mapping[str, Array]], displays: int = 0) -> None:
        self._features = features = codes.features
        self._positions: dict[str, npt.NDArray[np.int64]] = {}
        self.one_hot: dict[str, tuple[str | None, ...]] = {}
        self.scales: dict[str, tuple[float, float]] = {}
        self._width = 0
        if features.scale is not None and displays:
            first, kept = _first(kept, min(displays, max(_FEWEST, min(displays // 10, _MOST))))
            for column in features.columns("number"):
                self.scales[column] = _centre_and_deviation(np.concatenate([part[CODE + column] for part in first]))
            kept = chain(first, kept)
        if codes.labels:
            self._one_hot(codes.labels, kept)
        elif features.columns("category"):
            self._width = features.dimensions

    def _one_hot(self, labels: Mapping[str, Labels], kept: Iterable[Mapping[str, Array]]) -> None:
        names = {column: found.names for column, found in labels.items()}
        # The last place answers code -1: missing.
        seen = {column: np.zeros(len(found) + 1, dtype=np.bool_) for column, found in names.items()}
        for batch in kept:
            for column in seen:
                seen[column][batch[CODE + column]] = True
        for column, found in names.items():
            order = [i for i in sorted(range(len(found)), key=found.__getitem__) if seen[column][i]]
            order += [len(found)] if seen[column][-1] else []
            self.one_hot[column] = tuple([*found, None][i] for i in order)
        self._place(names)
        if self._width > ONE_HOT_MAX:
            raise UsageError(
                f"One-hot encoding of {', '.join(names)} needs {self._width} dimensions, above {ONE_HOT_MAX}.",
                remedy="hash them: features='hash=16', or context.encoding = 'hash' in the spec.",
            )

    def _place(self, names: Mapping[str, Sequence[str]]) -> None:
        """Give each label that occurs its dimension."""
        for column, labels in self.one_hot.items():
            code = {name: i for i, name in enumerate(names[column])}
            order = [len(code) if label is None else code[label] for label in labels]
            self._positions[column] = np.full(len(code) + 1, -1, dtype=np.int64)
            self._positions[column][order] = np.arange(self._width, self._width + len(order))
            self._width += len(order)

    @property
    def dimensions(self) -> int:
        """Length p of a vector."""
        return self._width + len(self._features.columns("number")) + self._features.intercept

    def encoder(self, missing: Callable[[str], list[str]]) -> ContextEncoder:
        """Return the encoder that makes the same vectors of later displays; `missing` gives columns' "none" values."""
        columns = (
            ContextColumn(
                column, kind, tuple(missing(column)), self.one_hot.get(column), *self.scales.get(column, (None, None))
            )
            for column, kind in self._features.kinds.items()
        )
        return ContextEncoder(tuple(columns), 0 if self.one_hot else self._width, self._features.intercept)

    def build(self, codes: Mapping[str, Array]) -> npt.NDArray[np.float32]:
        """Return the vectors of some displays, shape (n, p) float32."""
        features = self._features
        n = len(next(iter(codes.values())))
        context = np.zeros((n, self.dimensions), dtype=np.float32)
        flat, row = context.reshape(-1), np.arange(n) * self.dimensions  # one index is twice as fast as two
        for column in features.columns("category"):
            code = codes[CODE + column]
            if column in self._positions:
                flat[row + self._positions[column][code]] = 1
            else:
                flat[row + (code >> 1)] += 1 - 2 * (code & 1).astype(np.float32)
        for i, column in enumerate(features.columns("number")):
            number = codes[CODE + column]
            if column in self.scales:
                centre, deviation = self.scales[column]
                number = (number - centre) / deviation
            context[:, self._width + i] = number
        if features.intercept:
            context[:, -1] = 1
        context /= np.float32(np.sqrt(len(features.kinds) + features.intercept))
        return context


def _first(batches: Iterable[Codes], n: int) -> tuple[list[Codes], Iterator[Codes]]:
    """Return the codes of the first n displays, and those of the others."""
    rest, found = iter(batches), 0
    first: list[Codes] = []
    for batch in rest:
        size = len(next(iter(batch.values())))
        first.append({name: array[: n - found] for name, array in batch.items() if name.startswith(CODE)})
        found += size
        if found >= n:
            over = {name: array[size - (found - n) :] for name, array in batch.items() if name.startswith(CODE)}
            return first, chain([over] if found > n else [], rest)
    return first, rest


def _centre_and_deviation(numbers: Array) -> tuple[float, float]:
    """Return mean and standard deviation, 1 where the numbers are all alike."""
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        return low, 1.0
    # No sum or square is beyond the largest number.
    centre = float((numbers / len(numbers)).sum())
    largest = max(abs(low - centre), abs(high - centre))
    return centre, float(np.sqrt((((numbers - centre) / largest) ** 2).mean()) * largest)


def token_slots(column: str, labels: pa.LargeStringArray, dimensions: int) -> npt.NDArray[np.uint32]:
    """Return where each token ``column=label`` goes: twice its position, plus one if its sign is minus, (n,) uint32.

    Position from the low 31 bits of its CRC-32 (UTF-8), sign from the top bit.

    >>> token_slots("cat1", pa.array(["9", "10"], pa.large_string()), 16).tolist()
    [0, 30]
    """
    code = _crc32(f"{column}=".encode(), labels)
    return (code & np.uint32(0x7FFFFFFF)) % np.uint32(dimensions) * np.uint32(2) + (code >> np.uint32(31))


def _crc32(prefix: bytes, labels: pa.LargeStringArray) -> npt.NDArray[np.uint32]:
    """Return zlib.crc32(prefix + label) of each label: the table-driven algorithm, one byte of all labels at a time."""
    n = len(labels)
    _, offset_buffer, data = labels.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, n + 1, labels.offset * 8)
    bytes_ = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    start, length = offsets[:-1], np.diff(offsets)
    state = np.full(n, zlib.crc32(prefix), np.uint32) ^ _ONES
    going = np.arange(n)
    for i in range(int(length.max(initial=0))):
        going = going[length[going] > i]
        old = state[going]
        state[going] = _TABLE[(old ^ bytes_[start[going] + i]) & np.uint32(0xFF)] ^ (old >> np.uint32(8))
    return state ^ _ONES


# What one byte does to a state of zero, read off the library.
_TABLE = np.array([zlib.crc32(bytes([byte]), 0xFFFFFFFF) for byte in range(256)], np.uint32) ^ _ONES


@dataclass(frozen=True)
class Features:
    """What a context vector is made of.

    The `kinds` of the context columns are empty for a log without context. The encoding ``number`` reads every column
    as a number; `dimensions` are those of the hashed part; the `intercept` is a constant 1 at the end; numbers stay as
    they are where `scale` is None.
    """

    kinds: Mapping[str, ColumnKind]
    encoding: Encoding
    dimensions: int
    intercept: bool
    scale: Scale | None = None

    def columns(self, kind: ColumnKind) -> list[str]:
        """Return the columns of a kind."""
        return [column for column, found in self.kinds.items() if found == kind]

    def slots(self, column: str, values: pl.Series) -> Array:
        """Return where some values of a hashed column go, as `token_slots` does, and behind them a missing one."""
        labels = values.to_arrow(compat_level=pl.CompatLevel.oldest())
        missing = pa.array([""], labels.type)  # the token "column="
        slots = token_slots(column, pa.concat_arrays([labels, missing]), self.dimensions)
        if values.null_count():
            slots[:-1][values.is_null().to_numpy()] = slots[-1]
        return slots.astype(np.min_scalar_type(2 * self.dimensions - 1))


def choose_features(spec: FileSpec, features: str | None) -> Features:
    """Return the features of the spec, changed by the call.

    None keeps the spec's; ``none`` is no context; ``col1,col2`` are these columns, encoded as in the spec;
    ``col1,col2:hash=32``, ``col1:one-hot`` and ``col1,col2:number`` are these columns, so encoded; ``hash=32`` (or
    ``hash:32``) the spec's columns, so encoded. A column that the spec does not list is a category, unless the encoding
    is ``number``. Raises UsageError if the text cannot be read, or names an outcome, which a policy would not know when
    it chooses.
    """
    given: Context = spec.context
    if features is None:
        return Features(given.kinds(), given.encoding, given.dimensions, given.intercept, given.scale)
    if features == "none":
        return Features({}, "hash", given.dimensions, False)
    alone = _ENCODING_ALONE.fullmatch(features)
    match = _FEATURES.fullmatch(f":{features}" if alone else features)
    if match is None or (match["width"] and (match["encoding"] != "hash" or int(match["width"]) < 1)):
        raise UsageError(f"features={features!r}.", remedy="write none, col1,col2, col1,col2:hash=32 or hash=32.")
    encoding: Encoding = match["encoding"] or given.encoding  # type: ignore[assignment]
    width = int(match["width"]) if match["width"] else given.dimensions
    names = [c.strip() for c in match["columns"].split(",") if c.strip()] or list(given.kinds())
    for name in names:
        if refused := spec.why_no_feature(name):
            raise UsageError(
                f"features={features!r}: {name!r} {refused}.",
                remedy="choose columns that are known before the display.",
            )
    kind: ColumnKind = "number" if encoding == "number" else "category"
    kinds = {n: given.kinds().get(n, kind) if match["encoding"] is None else kind for n in names}
    if alone:
        kinds = {n: given.kinds()[n] if encoding != "number" else "number" for n in names}
    return Features(kinds, encoding, width, given.intercept, given.scale)
