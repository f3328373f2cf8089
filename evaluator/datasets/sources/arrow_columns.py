"""Columns of Arrow in types that Polars reads, the same whether a file, a frame or a database holds them.

UUIDs become the text that databases print, JSON text, truth values of a byte truth values, runs the values that they
repeat, and decimal numbers of 256 bits those of 128.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.errors import SourceError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

# Digits of a decimal that Polars has.
PRECISION = 38
_ROWS = 100_000


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

    Raises
    ------
    SourceError
        Polars has no such type, or none with so many digits; `where` says what holds it.
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
            texts = [field.name for field in schema if coded and _is_text(field.type)]
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


def _is_text(kind: pa.DataType) -> bool:
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
