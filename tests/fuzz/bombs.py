"""Small files that unpack to much: long cells, lines and labels, and text without end, made without unpacking them."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.raw import Rng

MB = 1024 * 1024


def coded(table: pa.Table, *, rows: int, size: int) -> pa.Table:
    """Return many rows like the first, all with one long label in the place of its first text."""
    label = pa.array([chr(120) * size])
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), label)
    return _with_text(table.take(pa.array(np.zeros(rows, np.int32))), column)


def one_cell(table: pa.Table, *, size: int) -> pa.Table:
    """Return the first row with a long text in the place of its first one; its memory is never written."""
    ends = pa.py_buffer(np.array([0, size]))
    return _with_text(
        table.slice(0, 1), pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(np.zeros(size, np.uint8)))
    )


def _with_text(table: pa.Table, column: pa.Array) -> pa.Table:
    texts = [
        i for i, kind in enumerate(table.schema.types) if pa.types.is_string(kind) or pa.types.is_large_string(kind)
    ]
    return table.set_column(texts[0], table.column_names[texts[0]], column) if texts else table


def as_parquet(table: pa.Table, *, store_schema: bool = True) -> bytes:
    """Return a table as a file; without its schema dictionaries come back as text."""
    out = io.BytesIO()
    dictionaries = [f.name for f in table.schema if pa.types.is_dictionary(f.type)]
    pq.write_table(
        table, out, compression="zstd", use_dictionary=dictionaries, write_statistics=False, store_schema=store_schema
    )
    return out.getvalue()


def hidden(data: bytes) -> bytes:
    """Return a file of Parquet whose footer says of its second column that it unpacks to 32 bytes."""
    number = pq.read_metadata(io.BytesIO(data)).row_group(0).column(1).total_uncompressed_size << 1
    digits = [number >> shift & 127 for shift in range(0, number.bit_length(), 7)]
    said = bytes(digit | 128 for digit in digits[:-1]) + bytes(digits[-1:])
    begin, end = data.rsplit(said, 1)
    return begin + bytes([64 | 128, *[128] * (len(said) - 2), 0]) + end


def as_ipc(table: pa.Table, compression: str = "zstd") -> bytes:
    """Return a table as a file whose buffers are compressed."""
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write(table)
    return out.getvalue()


@cache
def _member(text: bytes) -> bytes:
    return gzip.compress((text * (MB // len(text) + 1))[:MB], 9, mtime=0)


def zipped(start: bytes, text: bytes, megabytes: int) -> bytes:
    """Return a gzip of a start and so many MB of a short text that repeats itself, each MB packed once for all."""
    return gzip.compress(start, mtime=0) + _member(text) * megabytes


def _table() -> pa.Table:
    return pa.table({"t": np.zeros(1, np.int64), "ad": ["a"], "sold": pa.nulls(1, pa.int64())})


_START = b"t,ad,sold\n0,a,1\n"
_OBJECT = b'{"t": 0, "ad": "a", "sold": 1}\n'
# By the suffix of its file, what makes a bomb, and what its one line says.
BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "labels of Parquet": (".parquet", lambda: as_parquet(coded(_table(), rows=40_000, size=100_000)), "long cells of"),
    "longer labels": (".parquet", lambda: as_parquet(coded(_table(), rows=200_000, size=2_000_000)), "long cells of"),
    "labels of text": (
        ".parquet", lambda: as_parquet(coded(_table(), rows=200_000, size=2_000_000), store_schema=False), "long cells",
    ),
    "a label": (".parquet", lambda: as_parquet(coded(_table(), rows=9, size=5_000_000)), "a cell has more than"),
    "a cell of Parquet": (".parquet", lambda: as_parquet(one_cell(_table(), size=200_000_000)), "row group 1 unpack"),
    "a cell that the footer hides": (
        ".parquet", lambda: hidden(as_parquet(one_cell(_table(), size=200_000_000))), "row group 1 unpack",
    ),
    "a cell of IPC": (".arrow", lambda: as_ipc(one_cell(_table(), size=500_000_000)), "batch 1 unpack"),
    "a cell of IPC, lz4": (".arrow", lambda: as_ipc(one_cell(_table(), size=500_000_000), "lz4"), "batch 1 unpack"),
    "labels of IPC": (".arrow", lambda: as_ipc(coded(_table(), rows=40_000, size=100_000)), "long cells"),
    "a line": (".csv.gz", partial(zipped, _START + b"1,", b"x", 600), "line 3: no row of a table"),
    "a quote": (".csv.gz", partial(zipped, _START + b'1,"', b"x\n", 600), "line 3: a quote is open"),
    "zeros": (".csv.gz", partial(zipped, b"", b"\0", 10_000), "line 1: no row of a table"),
    "empty lines": (".csv.gz", partial(zipped, _START, b"\n", 10_000), "line 3: the empty text from here on has more"),
    "long cells": (".csv.gz", partial(zipped, _START, b"0," + b"x" * 99_995 + b",\n", 200), "long cells of"),
    "a line of objects": (".jsonl.gz", partial(zipped, _OBJECT + b'{"ad": "', b"x", 600), "line 2: no line of JSON"),
    "empty lines of objects": (".jsonl.gz", partial(zipped, _OBJECT, b"\n", 10_000), "empty text above it has more"),
}  # fmt: skip


def swell_gzip(rng: Rng, data: bytes) -> bytes:
    """Append a text that repeats itself; other damage unpacks it."""
    texts = (b"\0", b"\n", b"x", b'"', b"0\t" + b"y" * 9_999 + b"\n")
    return data + _member(texts[int(rng.integers(len(texts)))]) * 100


def swell_table(
    rng: Rng, data: bytes, read: Callable[[io.BytesIO], pa.Table], write: Callable[[pa.Table], bytes]
) -> bytes:
    """Make the first row many with one long label, or give it a long cell."""
    try:
        table = read(io.BytesIO(data))
        swollen = coded(table, rows=40_000, size=100_000) if rng.integers(2) else one_cell(table, size=140_000_000)
        return write(swollen)
    except (pa.ArrowException, OSError, KeyError, ValueError, IndexError):  # damaged before, or of other types
        return data


def swell_parquet(rng: Rng, data: bytes) -> bytes:
    return swell_table(rng, data, pq.read_table, as_parquet)


def swell_ipc(rng: Rng, data: bytes) -> bytes:
    return swell_table(rng, data, lambda file: pa.ipc.open_file(file).read_all(), as_ipc)
