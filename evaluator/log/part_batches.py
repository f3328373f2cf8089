"""Batches of displays that lie in several files, as if they lay in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from evaluator.log.log_files import LogFile
from evaluator.log.parquet import open_parquet
from evaluator.log.schema import is_sets


def part_batches(paths: Sequence[LogFile], size: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of the rows of Parquet files, one file after the other, `size` rows at a time.

    Batches are those of one file with all rows: one goes on in the next file where its own ends before. Such a batch is
    a copy, so that files of whole multiples of `size` rows cost nothing. With sets of actions, whose dictionary differs
    from file to file, a batch ends with its file, as it does with its row group in any case.

    Raises
    ------
    SourceError
        A file is missing, or a page that is read is damaged.
    """
    waiting: list[pa.RecordBatch] = []
    held = 0
    for path in paths:
        with open_parquet(path, columns) as file:
            as_they_are = len(paths) == 1 or any(is_sets(file.schema_arrow.field(name).type) for name in columns)
            for batch in file.iter_batches(size, columns=list(columns)):
                if as_they_are:
                    yield batch
                    continue
                while batch.num_rows:
                    piece = batch.slice(0, size - held)
                    batch = batch.slice(piece.num_rows)
                    waiting.append(piece)
                    held += piece.num_rows
                    if held == size:
                        yield one_batch(waiting)
                        waiting, held = [], 0
    if held:
        yield one_batch(waiting)


def one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches of the same columns as one, a copy where there are several."""
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays([batch.column(i) for batch in batches]) for i in range(batches[0].num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)
