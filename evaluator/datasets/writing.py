"""Write the canonical folder: tables whose pages have checksums, and ``meta.json``, which knows every file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.datasets.meta_file import ACTIONS, DISPLAYS, EVENTS, QUARANTINE, display_files, write_meta
from evaluator.log import Log, LogMeta
from evaluator.log.eligible import packed, sizes
from evaluator.log.fingerprint import BLOCKS, BlockHashes, fingerprint_of, stored_hash
from evaluator.log.ragged_vectors import is_uneven, uneven_lists
from evaluator.log.schema import ACTION_SET, ELIGIBLE, OWN_COLUMNS, fixed_size_lists, is_number

ROWS_PER_GROUP = 65_536
# Columns that hardly move from row to row: as differences they take half of the file's time and space.
RISING = ("display_id", "time", "position")
WRITTEN = {"compression": "zstd", "write_page_checksum": True}


class DisplayWriter:
    """``displays.parquet`` in row groups of `ROWS_PER_GROUP` displays, whatever the batches it is given.

    Parameters
    ----------
    folder
        Existing folder that the file is written to.
    schema
        Arrow schema of the displays.
    name
        Name of the file, where it holds only a part of them.
    """

    def __init__(self, folder: Path, schema: pa.Schema, name: str = DISPLAYS) -> None:
        delta = {name: "DELTA_BINARY_PACKED" for name in RISING if name in schema.names}
        others = [path for path in map(_leaf, schema) if path not in RISING]
        self._writer = pq.ParquetWriter(folder / name, schema, use_dictionary=others, column_encoding=delta, **WRITTEN)
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._hashes = BlockHashes()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is None:
            if self._rows:
                self._writer.write_table(pa.concat_tables(self._waiting))
            self._writer.add_key_value_metadata({BLOCKS: " ".join(self._hashes.found())})
        self._writer.close()

    def add(self, displays: pa.Table) -> None:
        """Write some displays."""
        self._hashes.add(displays)
        self._waiting.append(displays)
        self._rows += displays.num_rows
        if self._rows < ROWS_PER_GROUP:
            return
        table = pa.concat_tables(self._waiting)
        full = self._rows - self._rows % ROWS_PER_GROUP
        self._writer.write_table(table.slice(0, full), row_group_size=ROWS_PER_GROUP)
        self._waiting, self._rows = [table.slice(full)], self._rows - full


def _leaf(field: pa.Field) -> str:
    """Return the path of a column's values inside the file."""
    path, kind = str(field.name), field.type
    while pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        path, kind = f"{path}.list.element", kind.value_type
    return path


def displays_table(
    columns: Mapping[str, Any], *, first: int = 0, labels: Mapping[str, pa.Array] = MappingProxyType({})
) -> pa.Table:
    """Return displays as the contract has them.

    Parameters
    ----------
    columns
        Columns of the displays by name, ``time``, ``action`` and the optional ones, NumPy of shape (n,), (n, p) or
        (n, K, d), or Arrow.
    first
        Number of the first display in the log.
    labels
        Labels of code 0, 1, ... of each column that holds codes, by its name, shape (labels,); -1 is none.
    """
    n = len(columns["time"])
    table = {
        "display_id": pa.array(np.arange(first, first + n), pa.int64()),
        "time": pa.array(columns["time"], pa.int64()),
        "action": pa.array(columns["action"], pa.int32()),
        "propensity": pa.nulls(n, pa.float64()),
    }
    for name, array in columns.items():
        if name in labels:
            table[name] = labels[name].take(pa.array(array, mask=array < 0))
        elif isinstance(array, pa.Array | pa.ChunkedArray):
            table[name] = array
        elif name == ELIGIBLE:
            table[name] = packed(array)
        elif array.dtype == object:
            table[name] = pa.array(array, pa.string())
        elif name not in table or name == "propensity":
            table[name] = fixed_size_lists(array)
    return pa.table(table)


def write_rest(
    folder: Path,
    *,
    events: pa.Table,
    actions: pa.Table,
    meta: LogMeta,
    quarantine: pa.Table | None = None,
    fingerprint: str | None = None,
) -> None:
    """Write all but the displays, which are there; the rows left out of the log, if there are any.

    Its metadata get the fingerprint of what is written, unless one is given.
    """
    pq.write_table(events, folder / EVENTS, row_group_size=ROWS_PER_GROUP, **WRITTEN)
    pq.write_table(actions, folder / ACTIONS, **WRITTEN)
    if quarantine is not None and quarantine.num_rows:
        pq.write_table(quarantine, folder / QUARANTINE, **WRITTEN)
    if fingerprint is None:
        displays, _ = stored_hash([folder / name for name in display_files(folder)])
        fingerprint = fingerprint_of(meta, displays, events, actions)
    write_meta(folder, replace(meta, fingerprint=fingerprint))


def write_canonical(log: Log, folder: Path, *, fingerprint: str | None = None) -> None:
    """Write the log into the existing, empty `folder`, batch by batch; `fingerprint` as of `write_rest`."""
    absent = {"display_id"} | ({"propensity"} if log.meta.propensity == "absent" else set())
    columns = [name for name in log.schema.names if name not in absent]
    numbers = [name for name in columns if name not in OWN_COLUMNS and is_number(log.schema.field(name).type)]
    uneven = ACTION_SET in columns and is_uneven(log.schema.field(ACTION_SET).type)
    with DisplayWriter(folder, log.schema) as displays:
        kept = zip(*(log.arrays(name) for name in numbers), strict=True) if numbers else repeat(())
        for (first, batch), own in zip(log.batches(columns), kept, strict=False):
            if uneven:
                batch |= {ACTION_SET: uneven_lists(batch[ACTION_SET], sizes(batch[ELIGIBLE]))}
            batch |= {name: column for name, (_, column) in zip(numbers, own, strict=True)}
            displays.add(displays_table(batch, first=first).select(log.schema.names))
    write_rest(folder, events=log.events, actions=log.actions, meta=log.meta, fingerprint=fingerprint)
