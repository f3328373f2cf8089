"""From when to when the rows of a Parquet file are, as its end says without a row being read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.datasets.cells import Kind, parse
from evaluator.datasets.frames import UNREADABLE, missing_values
from evaluator.datasets.sources.files import SourceFile
from evaluator.datasets.sources.objects import ObjectPart
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.sources.remote_objects import ObjectFile
from evaluator.datasets.spec import FileSpec
from evaluator.log.log_files import LogFile, opened

Ints = npt.NDArray[np.int64]


class TimeRanges(NamedTuple):
    """First and last time in ticks, and number of rows, of each row group of a file, shape (g,)."""

    first: Ints
    last: Ints
    rows: Ints

    @property
    def n(self) -> int:
        """Number of rows of the file."""
        return int(self.rows.sum())

    @property
    def ends(self) -> tuple[int, int]:
        """First and last time of the file."""
        return int(self.first.min()), int(self.last.max())


def time_ranges(parts: Sequence[TablePart], spec: FileSpec, kind: Kind) -> list[TimeRanges] | None:
    """Return the ranges of each part; None where they are not known of all.

    Known are those of Parquet files, on disk or in an object store, that keep statistics, of times that are whole
    numbers or dates with times, which no zone of the spec places.

    Parameters
    ----------
    parts
        Parts of the table of displays.
    spec
        Spec of the dataset, which names the column of the time.
    kind
        Kind of the times.
    """
    found = []
    for part in parts:
        file = parquet_of(part)
        one = None if file is None else _of_file(file, part, spec, kind)
        if one is None:
            return None
        found.append(one)
    return found


def parquet_of(part: TablePart) -> LogFile | None:
    """Return the Parquet file, here or in an object store, that a part is; None where it is none."""
    if isinstance(part, SourceFile) and part.format == "parquet":
        return part.path
    if isinstance(part, ObjectPart) and part.format == "parquet":
        return ObjectFile(part.store, part.listed.key, part.listed)
    return None


def _of_file(file: LogFile, part: TablePart, spec: FileSpec, kind: Kind) -> TimeRanges | None:
    column = spec.display.time
    try:
        with opened(file) as stream:
            about = pq.read_metadata(stream)
        stored = part.type_of(column)
    except (pa.ArrowException, *UNREADABLE):
        return None  # which reading it tells better
    places = [about.schema.column(i).path for i in range(about.num_columns)]
    if column not in places or not (stored.is_integer() or isinstance(stored, pl.Datetime)):
        return None
    if spec.time.zone_of(column) or spec.time.offset_of(column):
        return None  # the least local time need not be the first moment
    at, groups = places.index(column), [about.row_group(i) for i in range(about.num_row_groups)]
    groups = [group for group in groups if group.num_rows]
    if not groups or about.schema.column(at).physical_type not in ("INT32", "INT64"):
        return None
    known = [group.column(at).statistics for group in groups]
    if any(of is None or not of.has_min_max or of.null_count for of in known):
        return None
    raw = pl.Series([value for of in known for value in (of.min_raw, of.max_raw)], dtype=pl.Int64)
    cells = parse(raw.cast(stored), kind, missing_values(spec.source, column), spec.time.format_of(column))
    if cells.values.null_count():
        return None
    ends = cells.values.to_numpy().astype(np.int64).reshape(-1, 2)
    return TimeRanges(ends[:, 0].copy(), ends[:, 1].copy(), np.array([group.num_rows for group in groups]))
