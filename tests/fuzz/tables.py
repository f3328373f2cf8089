"""Damage to Parquet and IPC files that leaves them Parquet and IPC files."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from tests.fuzz.bombs import swell_ipc, swell_parquet
from tests.fuzz.raw import Mutator, Rng


def _extreme(rng: Rng, column: pa.ChunkedArray) -> pa.Array:
    """Return another column of as many rows: another type, or the same with a value that does not belong there."""
    n = len(column)
    at = int(rng.integers(n)) if n else 0
    kinds: list[pa.Array] = [
        pa.nulls(n),
        pa.nulls(n, pa.int64()),
        pa.array(["x"] * n),
        pa.array([b"\xff\x00"] * n, pa.binary()),
        pa.array(np.full(n, np.nan)),
        pa.array(np.full(n, 2**63, np.uint64)),
        pa.array(np.zeros(n, bool)),
        pa.array([[1.0]] * n, pa.list_(pa.float64())),
        pa.array([{"a": 1}] * n, pa.struct([("a", pa.int8())])),
        pa.array(np.arange(n) % 3).dictionary_encode(),
        pa.array(np.arange(n), pa.timestamp("ns", tz="Europe/Paris")),
        pa.array(np.arange(n), pa.duration("us")),
        pa.array([None if i == at else i for i in range(n)], pa.decimal128(38, 2)),
    ]
    return kinds[int(rng.integers(len(kinds)))]


def _one_cell(rng: Rng, column: pa.ChunkedArray) -> pa.Array:
    values = column.to_pylist()
    if not values:
        return column
    at = int(rng.integers(len(values)))
    others = [
        None,
        0,
        -1,
        1e308,
        np.nan,
        np.inf,
        2**31 - 1,
        2**63 - 1,
        -(2**63),
        "",
        "\x1b[2J",
        "é",
        "a" * 1000,
        values[0],
    ]
    values[at] = others[int(rng.integers(len(others)))]
    try:
        return pa.array(values, column.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([None if i == at else v for i, v in enumerate(values)], column.type)


def _changed(rng: Rng, table: pa.Table) -> pa.Table:
    if not table.num_columns:
        return table
    i = int(rng.integers(table.num_columns))
    name, column = table.column_names[i], table.column(i)
    kind = rng.integers(9)
    if kind < 3:
        return table.set_column(i, name, _one_cell(rng, column))
    if kind < 5:
        return table.set_column(i, name, _extreme(rng, column))
    if kind == 5:
        return table.drop_columns([name])
    if kind == 6:
        return table.append_column(name if rng.integers(2) else "x", column)
    rows = np.arange(table.num_rows)
    chosen = (rows[::-1], rows[:0], np.repeat(rows, 2), rows[: len(rows) // 2])[int(rng.integers(4))]
    return table.take(pa.array(chosen))


def change_parquet(rng: Rng, data: bytes) -> bytes:
    try:
        table = _changed(rng, pq.read_table(io.BytesIO(data)))
        out = io.BytesIO()
        compression = ("zstd", "snappy", "none", "gzip")[int(rng.integers(4))]
        # No more groups than sixty rows have: tables that were swollen have tens of thousands.
        group = int(rng.integers(1, 100)) * max(1, table.num_rows // 60)
        pq.write_table(table, out, compression=compression, row_group_size=group)
    except (pa.ArrowException, OSError, KeyError, ValueError):  # damaged before, or without a form in this format
        return data
    return out.getvalue()


def change_ipc(rng: Rng, data: bytes) -> bytes:
    try:
        table = feather.read_table(io.BytesIO(data))
        table.validate(full=True)  # buffers damaged before end in errors of Python itself, or worse
        table = _changed(rng, table)
        if rng.integers(4) == 0:
            table = _claiming_to_be_python(table)
        out = io.BytesIO()
        feather.write_feather(table, out, compression=("zstd", "lz4", "uncompressed")[int(rng.integers(3))])
    except (pa.ArrowException, OSError, KeyError, ValueError):
        return data
    return out.getvalue()


def _claiming_to_be_python(table: pa.Table) -> pa.Table:
    """Name an extension type whose metadata Arrow once unpickled."""
    from tests.fuzz.canary import PICKLE

    said = {"ARROW:extension:name": b"arrow.py_extension_type", "ARROW:extension:metadata": PICKLE}
    schema = pa.schema([field.with_metadata(said) for field in table.schema])
    return pa.table(list(table.columns), schema=schema)


PARQUET: tuple[Mutator, ...] = (*[change_parquet] * 7, swell_parquet)
IPC: tuple[Mutator, ...] = (*[change_ipc] * 7, swell_ipc)
