"""Parquet files of a log: pages are verified as they are read, and several files give the batches of one."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.errors import EvaluatorError, SourceError
from evaluator.inputs.open_regular import NotRegularError, refuse_irregular
from evaluator.log.log_files import LogFile, RemoteFile, RemoteReader
from evaluator.log.schema import is_sets


def damaged(path: LogFile, reason: object) -> SourceError:
    """Return the error of a file that is not as it was written."""
    if isinstance(reason, RecursionError):
        line = "nested too deeply"
    elif isinstance(reason, OSError) and reason.errno is not None and not isinstance(reason, NotRegularError):
        line = os.strerror(reason.errno)
    else:
        line = next(iter(str(reason).splitlines()), type(reason).__name__)
    return SourceError(f"{path}: missing or damaged ({line}).", remedy="convert the dataset again.")


@contextmanager
def open_parquet(path: LogFile, reads: Collection[str] | None = ()) -> Iterator[pq.ParquetFile]:
    """Open a file that refuses to return a page whose checksum is not that of its bytes, where pages have one.

    One file, read as such: the name of its folder never becomes a hive partition.

    Parameters
    ----------
    path
        Place of the file.
    reads
        Columns whose rows will be read from the first to the last, None for all; far away they are fetched ahead.

    Raises
    ------
    SourceError
        The file is missing, or what was read of it inside the block is damaged.
    """
    try:
        if isinstance(path, RemoteFile):
            with (
                RemoteReader(path) as reader,
                _as_the_store_says(reader),
                pq.ParquetFile(reader, page_checksum_verification=True) as file,
            ):
                reader.expect(_places(file.metadata, reads))
                yield file
            return
        refuse_irregular(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except EvaluatorError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from None


@contextmanager
def _as_the_store_says(reader: RemoteReader) -> Iterator[None]:
    """Raise the store's own error if it gave no bytes, whatever error the reading library made of it."""
    try:
        yield
    except Exception:
        if reader.failure is not None:
            raise reader.failure from None
        raise


def _places(about: pq.FileMetaData, columns: Collection[str] | None) -> Iterator[tuple[int, int]]:
    """Yield from where to where the rows of some columns lie in a file."""
    for group in range(about.num_row_groups):
        for number in range(about.num_columns):
            chunk = about.row_group(group).column(number)
            path = chunk.path_in_schema
            if columns is None or any(path == name or path.startswith(f"{name}.") for name in columns):
                # 0 stands for no dictionary.
                start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
                yield start, start + chunk.total_compressed_size


def read_whole(path: LogFile) -> pa.Table:
    """Return all rows of a file; errors as `open_parquet`."""
    with open_parquet(path, None) as file:
        table = file.read()
        table.validate(full=True)  # text that is none
        return table


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
