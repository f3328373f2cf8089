"""What a log holds, in one hash: logs with the same one give the same results, wherever they were read from.

Displays are hashed in blocks of `BLOCK` rows, column by column: values as they are, without whatever differs between
equal ones (dictionaries, chunks, the sign of zero). So neither files nor batches matter, and parts of whole blocks are
hashed at once. A file that the package writes has the hashes of its blocks in its footer; nothing else reads its rows
to know the log again. The hash tells logs apart that nobody made to deceive; files are protected by their SHA-256.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evaluator.log.contract import Log
from evaluator.log.log_files import LogFile, open_parquet, part_batches
from evaluator.log.log_tables import CONVERSION, LogMeta, choose_kinds, outcomes_of
from evaluator.log.schema import BATCH, is_sets, is_uneven, to_numpy
from evaluator.log.stored import StoredLog
from evaluator.streams import STEP, mixed

BLOCK = 65_536
# Key of the hashes of a file's blocks in its footer; it says how they are made.
BLOCKS = b"evaluator.blocks.1"
# Words of 8 bytes that are summed at a time, each spread over 64 bits first and weighted by its place.
_WORDS = 1 << 15
_HALF = np.uint64(32)
_WEIGHTS = mixed(np.arange(_WORDS, dtype=np.uint64)) | np.uint64(1)  # odd: multiplying by one loses nothing


class BlockHashes:
    """Hashes of the blocks of a table whose rows come some at a time. Memory: the rows of a block."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        """Take in the next rows."""
        self._waiting.append(rows)
        self._rows += rows.num_rows
        while self._rows >= BLOCK:
            table = pa.concat_tables(self._waiting)
            self._found.append(_block_hash(table.slice(0, BLOCK)))
            self._waiting, self._rows = [table.slice(BLOCK)], self._rows - BLOCK

    def found(self) -> list[str]:
        """Return the hash of each block, the last of which may have fewer rows."""
        last = [_block_hash(pa.concat_tables(self._waiting))] if self._rows else []
        return [*self._found, *last]


def content_hash(log: Log) -> str:
    """Return the SHA-256, in hex, of all that a log holds: displays, events, actions and its description of itself.

    How its tables are cut into files, batches and chunks does not matter. Displays on disk count by the hashes in their
    files, and by which of them belong to the log; files of older releases have no hashes, so that their rows are read.
    Raises SourceError where a file of the displays cannot be read.
    """
    if not isinstance(log, StoredLog):
        return fingerprint_of(log.meta, _table_hash(log.displays), log.events, log.actions)
    chosen = {name: None if x is None else np.asarray(x).tolist() for name, x in vars(log.selection).items()}
    del chosen["file"], chosen["begins"]  # the rows of files count, not since when they are there, nor where
    displays, rows = stored_hash(log.paths)
    whole = {**dict.fromkeys(chosen), "rows": rows, "kept": rows, "passed": 0}
    if chosen != whole:
        displays = hashlib.sha256(f"{displays}{json.dumps(chosen)}".encode()).hexdigest()
    return fingerprint_of(log.meta, displays, log.events, log.actions)


def fingerprint_of(meta: LogMeta, displays: str, events: pa.Table, actions: pa.Table) -> str:
    """Return the hash of a log, from that of its displays, and its other tables; what `meta` has of it is left out.

    Conversions and other events are hashed apart, so that logs keep the hash that they had in two tables.
    """
    about = meta.to_dict()
    del about["fingerprint"]
    conversions = choose_kinds(events, [CONVERSION])
    tables = [displays, *map(_table_hash, (conversions, actions, outcomes_of(events)))]
    return hashlib.sha256(json.dumps([about, tables], sort_keys=True).encode()).hexdigest()


def stored_hash(paths: Sequence[LogFile]) -> tuple[str, int]:
    """Return the hash of the displays in some files, and their number; errors as of `content_hash`."""
    blocks: list[str] = []
    rows, told = 0, True
    for path in paths:
        with open_parquet(path) as file:
            schema = file.schema_arrow
            known = (file.metadata.metadata or {}).get(BLOCKS)
            told = told and known is not None and rows % BLOCK == 0
            blocks += (known or b"").decode().split()
            rows += file.metadata.num_rows
    if not told:
        hashes = BlockHashes()
        for batch in part_batches(paths, BATCH, schema.names):
            hashes.add(pa.Table.from_batches([batch]))
        blocks = hashes.found()
    return _joined(schema, rows, blocks), rows


def _table_hash(table: pa.Table) -> str:
    hashes = BlockHashes()
    hashes.add(table)
    return _joined(table.schema, table.num_rows, hashes.found())


def _joined(schema: pa.Schema, rows: int, blocks: Sequence[str]) -> str:
    columns = [(name, _kind(schema.field(name).type)) for name in _hashed(schema)]
    return hashlib.sha256(json.dumps([rows, columns, list(blocks)]).encode()).hexdigest()


def _kind(kind: pa.DataType) -> str:
    """Return the name of a type of column, the same for all that keep such values: files name the items of lists anew.

    >>> _kind(pa.list_(pa.field("item", pa.float32()), 3)), _kind(pa.dictionary(pa.int8(), pa.large_string()))
    ('float[3]', 'string')
    """
    if pa.types.is_fixed_size_list(kind):
        return f"{_kind(kind.value_type)}[{kind.list_size}]"
    if is_uneven(kind):
        return f"{_kind(kind.value_type)}[]"
    if pa.types.is_dictionary(kind) and not is_sets(kind):
        return _kind(kind.value_type)
    return "string" if pa.types.is_large_string(kind) else str(kind)


def _hashed(schema: pa.Schema) -> list[str]:
    """Return the names of the columns that count, in an order that memory and files share.

    The first ones of displays are their numbers in the log, which is what `BlockHashes` goes by.
    """
    return sorted(schema.names if "value" in schema.names else set(schema.names) - {"display_id"})


def _block_hash(table: pa.Table) -> str:
    digest = hashlib.sha256()
    for name in _hashed(table.schema):
        for piece in _canonical(table[name]):
            digest.update(len(piece).to_bytes(8, "little"))
            digest.update(piece)
    return digest.hexdigest()


def _canonical(column: pa.ChunkedArray) -> Iterator[bytes]:
    """Yield what a column holds, as bytes that equal columns have in common."""
    kind = column.type
    if pa.types.is_dictionary(kind) and not is_sets(kind):
        column = column.cast(kind.value_type)
    if column.null_count and not (is_sets(kind) or pa.types.is_nested(kind)):
        yield np.packbits(to_numpy(column.is_null())).tobytes()
        column = column.fill_null("" if _is_text(column.type) else 0)
    if is_sets(kind):
        column = column.unify_dictionaries()
        if column.num_chunks:
            used = pa.concat_arrays([chunk.indices for chunk in column.chunks]).dictionary_encode()
            sets = column.chunk(0).dictionary.take(used.dictionary).dictionary_encode()
            yield _condensed(sets.indices.take(used.indices).to_numpy(zero_copy_only=False))
            yield from _canonical(pa.chunked_array([sets.dictionary]))
    elif _is_text(column.type):
        for chunk in column.chunks if column.num_chunks == 1 else [pa.concat_arrays(column.chunks)]:
            wide = pa.types.is_large_string(chunk.type) or pa.types.is_large_binary(chunk.type)
            _, ends, text = chunk.buffers()
            if len(chunk) == 0 or ends is None:
                continue
            at = np.frombuffer(ends, np.int64 if wide else np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
            yield _condensed(np.diff(at).astype(np.int32))
            yield _condensed(np.frombuffer(text or b"", np.uint8)[at[0] : at[-1]])
    else:
        if is_uneven(kind):
            yield _condensed(to_numpy(pc.list_value_length(column)))
        yield _condensed(to_numpy(column))


def _is_text(kind: pa.DataType) -> bool:
    return any(
        of(kind) for of in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    )


def _condensed(array: npt.NDArray[np.generic]) -> bytes:
    """Return 8 bytes for `_WORDS` words of an array, and the bytes behind its last word as they are."""
    flat = np.ascontiguousarray(array).reshape(-1)
    step = _WORDS * 8 // flat.itemsize
    found = []
    for first in range(0, len(flat), step):
        part = flat[first : first + step]
        if part.dtype.kind == "f":
            part = part + part.dtype.type(0)  # of -0.0 the same as of 0.0
            if part.dtype == np.float64 and (none := np.isnan(part)).any():  # vectors have none
                part[none] = np.nan
        raw = part.view(np.uint8)
        words = raw[: len(raw) // 8 * 8].view(np.uint64) * STEP
        words ^= words >> _HALF
        found += [np.dot(words, _WEIGHTS[: len(words)]).tobytes(), raw[len(words) * 8 :].tobytes()]
    return b"".join(found)
