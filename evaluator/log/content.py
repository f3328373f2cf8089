"""What a log holds, in one hash: logs with the same one give the same results, wherever they were read from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

import numpy as np
import pyarrow as pa

from evaluator.log.contract import Log
from evaluator.log.one_file import checksum_as_one
from evaluator.log.schema import BATCH, is_sets, to_numpy
from evaluator.log.stored import StoredLog


def content_hash(log: Log) -> str:
    """Return the SHA-256, in hex, of all that a log holds: displays, events, actions and what it says of itself.

    How its tables are cut into chunks does not matter. Displays on disk count with their file, byte by byte, and with
    which of them belong to the log; parts of a log count as the one file that they would be.

    Raises
    ------
    OSError
        A file of the displays cannot be read.
    """
    digest = hashlib.sha256()
    if isinstance(log, StoredLog):
        chosen = {name: None if x is None else np.asarray(x).tolist() for name, x in vars(log.selection).items()}
        del chosen["file"]  # of which the bytes count, not since when they are there
        digest.update(f"{checksum_as_one(log.paths)}{json.dumps(chosen)}".encode())
        tables = [log.conversions, log.actions]
    else:
        tables = [log.displays, log.conversions, log.actions]
    about = asdict(log.meta)
    if log.meta.outcomes:
        tables.append(log.outcomes)
    else:  # known by the same hash as before logs could have outcomes
        del about["outcomes"]
    digest.update(json.dumps(about, sort_keys=True).encode())
    for table in tables:
        digest.update(f"\n{table.num_rows}".encode())
        for field, column in zip(table.schema, table.columns, strict=True):
            digest.update(f"\n{field.name}: {field.type}\n".encode())
            _add(digest, column)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, column: pa.ChunkedArray) -> None:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        codes = column.dictionary_encode().unify_dictionaries()
        digest.update(json.dumps(codes.chunk(0).dictionary.to_pylist() if codes.num_chunks else []).encode())
        column = pa.chunked_array([chunk.indices.fill_null(-1) for chunk in codes.chunks], pa.int32())
    elif column.null_count and pa.types.is_integer(column.type):
        digest.update(np.ascontiguousarray(to_numpy(column.is_null())).data)
        column = column.fill_null(0)
    pieces = [column.slice(i, BATCH) for i in range(0, len(column), BATCH)] if is_sets(column.type) else column.chunks
    for chunk in pieces:  # whichever sets share their bytes
        digest.update(np.ascontiguousarray(to_numpy(chunk)).data)
