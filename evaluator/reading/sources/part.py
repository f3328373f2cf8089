"""What the reader asks of a part of a table, wherever it lies, and Arrow columns in types that Polars reads.

Those types are the same whether a file, a frame or a database holds them: UUIDs become the text that databases print,
JSON text, truth values of a byte truth values, runs the values that they repeat, and decimal numbers of 256 bits those
of 128.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.errors import DataError, SourceError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

# What no column is called.
NUMBER = "__number"
# Digits of a decimal that Polars has.
PRECISION = 38
_ROWS = 100_000


@dataclass(frozen=True)
class TablePart(ABC):
    """Rows of a table that lie together, in one order: a file, an object of a store, a frame, a table of a lake.

    Messages call it by `name`. Hive folders (``day=3``) give the values of `partitions` to every row, by column; None
    where one says that it is missing.
    """

    name: str
    partitions: dict[str, str | None]

    @property
    def is_text(self) -> bool:
        """Whether it is a table of text, its rows lines and its cells between delimiters."""
        return False

    @property
    def is_lines(self) -> bool:
        """Whether its rows stand in lines of text that are no table: they name their own columns."""
        return False

    @property
    def row_word(self) -> str:
        """What a row is called where its number is told."""
        return "line" if self.is_text or self.is_lines else "row"

    @property
    def note(self) -> str | None:
        """Sentence that a log needs about the source of these rows; None if the spec says it all."""
        return None

    @abstractmethod
    def names(self) -> list[str]:
        """Return its columns, if it is one whose columns have types."""

    @abstractmethod
    def scan(self, columns: Iterable[str], *, rows: int | None = None) -> pl.LazyFrame:
        """Return some of its columns, of the first rows alone where these are counted, if these have types."""

    def type_of(self, column: str) -> pl.DataType:
        """Return what one of its columns holds, if these have types."""
        return self.scan([column], rows=0).collect_schema()[column]

    @abstractmethod
    def state(self) -> object:
        """Return what changes when its rows do; None where it is no more."""

    def found(self) -> object:
        """Return its state when it was found."""
        return self.state()

    def keys(self, rows: Sequence[int]) -> list[str] | None:
        """Return what identifies some rows, by their numbers; None where their numbers do."""
        return None

    def places(self, rows: Sequence[int]) -> list[str]:
        """Return what messages call some rows, by their numbers: ``log.csv line 17``."""
        words = self.keys(rows) or [f"{self.row_word} {row}" for row in rows]
        return [f"{self.name} {word}" for word in words]

    def unreadable(self, error: BaseException, *, opening: bool = False) -> SourceError:
        """Return the error that says why its rows cannot be read, or not even its columns (`opening`)."""
        zone = re.search(r"unable to parse time zone: '([^']*)'", str(error))
        if zone is None:
            return self._unreadable(error, opening=opening)
        return SourceError(
            f"{self.name}: holds times of the zone {zone[1]!r}, which is none of the time zone database.",
            remedy="write the times in UTC: the moments stay the same.",
        )

    def _unreadable(self, error: BaseException, *, opening: bool) -> SourceError:
        """Return the error for what is of this kind of part."""
        return SourceError(f"{self.name}: cannot be read: {first_line(error)}.", remedy="check the source.")


@contextmanager
def unchanged(parts: Sequence[TablePart]) -> Iterator[None]:
    """Raise SourceError if one of the parts is not what it was when the block was entered.

    Bad data and failures to read are reported as such only if the parts stayed as they were.
    """
    before = [part.found() for part in parts]

    def refuse_changed() -> None:
        for part, state in zip(parts, before, strict=True):
            if (now := part.state()) != state:
                raise changed(part.name, gone=now is None)

    try:
        yield
    except (DataError, OSError):
        refuse_changed()
        raise
    refuse_changed()


def changed(name: str, *, gone: bool) -> SourceError:
    """Return the error that says that a part changed, or is `gone`, while it was read."""
    if gone:
        return SourceError(f"{name}: it vanished while it was read.", remedy="put it back, or read what is left.")
    return SourceError(f"{name}: it changed while it was read.", remedy="wait until it is written.")


def first_line(error: BaseException) -> str:
    """Return what an error says first, without a full stop."""
    return str(error).strip().split("\n")[0].rstrip(".")


@dataclass(frozen=True)
class KeyedPart(TablePart):
    """A part whose rows can be read again in the same order, and have no lines.

    Where nobody knows the `key`, its number has to do.
    """

    key: tuple[str, ...]

    def keys(self, rows: Sequence[int]) -> list[str] | None:
        """Return what identifies some rows, by their numbers, the first of which is 1: ``id = 17``. One more pass."""
        if not self.key:
            return None
        import polars as pl

        from evaluator.reading.labels import plain_decimals

        wanted = pl.Series(NUMBER, rows, dtype=pl.Int64)
        numbered = self.scan(self.key, rows=max(rows, default=0)).with_row_index(NUMBER, offset=1)
        asked = numbered.with_columns(pl.col(NUMBER).cast(pl.Int64)).filter(
            pl.col(NUMBER).is_in(wanted.unique().implode())
        )
        found = wanted.to_frame().join(asked.collect(engine="streaming"), on=NUMBER, how="left", maintain_order="left")
        found = found.with_columns(plain_decimals(pl.selectors.decimal().cast(pl.String)))
        return [", ".join(f"{name} = {row[name]}" for name in self.key) for row in found.iter_rows(named=True)]


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column of a type is read: the same, of most."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        known = {"arrow.uuid": pa.string(), "arrow.json": pa.string(), "arrow.bool8": pa.bool_()}
        return known.get(kind.extension_name, kind)
    if pa.types.is_run_end_encoded(kind) or (pa.types.is_dictionary(kind) and not is_plain(kind.value_type)):
        return plain_type(kind.value_type)
    if pa.types.is_decimal256(kind):
        return pa.decimal128(min(kind.precision, PRECISION), min(kind.scale, PRECISION))
    return kind


def is_plain(kind: pa.DataType) -> bool:
    """Return whether Polars reads a type, and every type within, as it is: at others it may panic, aloud."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return is_plain(kind.value_type)
    if pa.types.is_nested(kind) and not pa.types.is_run_end_encoded(kind):
        return all(is_plain(kind.field(i).type) for i in range(kind.num_fields))
    odd = isinstance(kind, pa.BaseExtensionType) or pa.types.is_run_end_encoded(kind) or pa.types.is_decimal256(kind)
    return not odd and getattr(kind, "precision", 0) <= PRECISION


def plain_cells(cells: pa.Array, to: pa.DataType) -> pa.Array:
    """Return cells in their `plain_type`, `to`; raises pyarrow.ArrowInvalid if a number has too many digits for it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_run_end_encoded(cells.type):
        return plain_cells(pc.run_end_decode(cells), to)
    if pa.types.is_dictionary(cells.type) and cells.type != to:
        return plain_cells(cells.dictionary_decode(), to)
    if isinstance(cells.type, pa.BaseExtensionType):
        kind = cells.type.extension_name
        cells = _uuids(cells.storage) if kind == "arrow.uuid" else cells.storage
        if kind == "arrow.bool8":
            cells = pc.not_equal(cells, 0)
    return cells if cells.type == to else cells.cast(to)


def series_of(cells: pa.ChunkedArray, column: str, where: str) -> pl.Series:
    """Return a column as Polars has it.

    Raises SourceError, where `where` says what holds it, if Polars has no such type, or none with so many digits.
    """
    import polars as pl
    import pyarrow as pa

    kind = plain_type(cells.type)
    try:
        if not is_plain(kind):
            raise TypeError("Polars has no such type, and may panic")
        if kind != cells.type:
            cells = pa.chunked_array([plain_cells(chunk, kind) for chunk in cells.chunks], kind)
        return pl.Series(column, cells)
    except (ValueError, TypeError, NotImplementedError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise SourceError(
            f"{where}: column {column!r} holds {cells.type}, which cannot be read.",
            remedy="write one number or text a row.",
        ) from None


def file_schema(path: Path, *, parquet: bool) -> pa.Schema | None:
    """Return the columns of a Parquet or IPC file, or None if it is damaged: its reader reports the damage."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if parquet:
            return pq.read_schema(path)
        with pa.OSFile(str(path)) as file:
            return pa.ipc.open_file(file).schema
    except (pa.ArrowException, OSError):
        return None


def file_rows(path: Path, schema: pa.Schema, name: str, *, parquet: bool, coded: bool = False) -> pl.LazyFrame:
    """Return the rows of a file, Parquet or else IPC, read by PyArrow, some at a time, in types that Polars has.

    Where they are `coded`, each text of a row group of Parquet is in memory once, whatever the number of its rows.
    """
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq
    from polars.io.plugins import register_io_source

    empty = schema.empty_table()
    types: dict[str, pl.DataType] = {}
    for field in schema:
        try:
            types[field.name] = series_of(empty[field.name], field.name, name).dtype
        except SourceError:
            types[field.name] = pl.Object()

    def tables(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        if parquet:
            texts = [field.name for field in schema if coded and is_text(field.type)]
            with pq.ParquetFile(path, read_dictionary=texts) as file:
                yield from file.iter_batches(_ROWS, columns=wanted)
            return
        with pa.memory_map(str(path)) as mapped:
            reader = pa.ipc.open_file(mapped)
            for place in range(reader.num_record_batches):
                yield reader.get_batch(place).select(wanted)

    def read(
        wanted: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        of = list(types) if wanted is None else wanted
        left = rows
        for batch in tables(of):
            table = pa.Table.from_batches([batch])
            frame = pl.DataFrame([series_of(table[column], column, name).cast(types[column]) for column in of])
            frame = frame if left is None else frame.head(left)
            left = None if left is None else left - frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if left == 0:
                return

    return register_io_source(read, schema=types, is_pure=True)


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is text, however Arrow lays it out."""
    import pyarrow as pa

    return any(check(kind) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _uuids(column: pa.Array) -> pa.Array:
    """Return 16 bytes a cell as the text that databases print."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = column.fill_null(bytes(16))
    data = whole.buffers()[1].slice(16 * whole.offset, 16 * len(whole))
    digits = np.frombuffer(data.to_pybytes().hex().encode(), np.uint8).reshape(-1, 32)
    text = np.full((len(whole), 36), ord("-"), np.uint8)
    text[:, [place for place in range(36) if place not in (8, 13, 18, 23)]] = digits
    ends = pa.array(36 * np.arange(len(whole) + 1, dtype=np.int64))
    found = pa.LargeStringArray.from_buffers(len(whole), ends.buffers()[1], pa.py_buffer(text))
    return pc.if_else(column.is_valid(), found, None)
