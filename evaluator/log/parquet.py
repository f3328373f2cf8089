"""Parquet files of a log, their pages verified as they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.errors import EvaluatorError, SourceError
from evaluator.inputs.regular import NotRegularError, refuse_irregular


def damaged(path: Path, reason: object) -> SourceError:
    """Return the error of a file that is not as it was written."""
    if isinstance(reason, RecursionError):
        line = "nested too deeply"
    elif isinstance(reason, OSError) and reason.errno is not None and not isinstance(reason, NotRegularError):
        line = os.strerror(reason.errno)
    else:
        line = next(iter(str(reason).splitlines()), type(reason).__name__)
    return SourceError(f"{path}: missing or damaged ({line}).", hint="convert the dataset again.")


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a file that refuses to return a page whose checksum is not that of its bytes, where pages have one.

    One file, read as such: the name of its folder never becomes a hive partition.

    Raises
    ------
    SourceError
        The file is missing, or what was read of it inside the block is damaged.
    """
    try:
        refuse_irregular(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except EvaluatorError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from None


def read_whole(path: Path) -> pa.Table:
    """Return all rows of a file; errors as `open_parquet`."""
    with open_parquet(path) as file:
        table = file.read()
        table.validate(full=True)  # text that is none
        return table
