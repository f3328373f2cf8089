"""Passes over several stretches of time at once, joined to what one pass over all would have found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.datasets import frames as scan
from evaluator.datasets.assembly import DisplayBatches, on_disk
from evaluator.datasets.cells import Kind, parse
from evaluator.datasets.frames import UNREADABLE, missing_values
from evaluator.datasets.intake import Intake, Taken
from evaluator.datasets.join_by_id import AskedDisplays
from evaluator.datasets.meta_file import DISPLAYS, part_name
from evaluator.datasets.reading_plan import ReadingPlan
from evaluator.datasets.sorting import SortedChunks
from evaluator.datasets.sources.files import SourceFile
from evaluator.datasets.sources.objects import ObjectFile, ObjectPart
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spool import JoinedSpool, Spool, Waiting, split
from evaluator.datasets.writing import ROWS_PER_GROUP
from evaluator.errors import EvaluatorError
from evaluator.log.log_files import LogFile, opened
from evaluator.threads import in_threads

# Makes what the displays of a stretch are shown to, for each second table by the spec's name of the kind.
Asking = Callable[[], Mapping[str, AskedDisplays]]
Advance = Callable[[int], None]
Ints = npt.NDArray[np.int64]

# A stretch has so many rows or more, where the files allow: fewer are not worth a worker's start.
STRETCH_ROWS = 1_000_000
# Displays of a part of a log: whole row groups, so that parts hold what one file would.
PART_ROWS = 64 * ROWS_PER_GROUP
# Files that are distributed into at a time, all together: systems allow some hundreds to be open.
MOST_OPEN = 256
# Times taken of each row group to guess where as many rows begin.
_SAMPLED = 64
_LATEST = np.iinfo(np.int64).max


def joined_intake(
    plan: ReadingPlan, asking: Asking, new_spool: Callable[[], Spool], advance: Advance, jobs: int
) -> Intake | None:
    """Return what passes over stretches of time have found, joined, several of them at once.

    None where there are no several stretches, and where a row breaks a rule, or an id seems to be listed twice: one
    pass over all says which, in the order of the source.

    Parameters
    ----------
    plan
        What is read.
    asking
        What makes what the displays of a stretch are shown to.
    new_spool
        Function that makes a temporary file.
    advance
        Function called with the number of rows read since the last call, by one thread at a time.
    jobs
        Number of threads.
    """
    if not plan.in_stretches:
        return None
    try:
        ranges = time_ranges(plan.files, plan.spec, plan.kinds[plan.spec.display.time])
        found = None if ranges is None else stretches(ranges, plan, new_spool, jobs)
        if found is None:
            return None
        whole, seen = plan.intake(new_spool, asking()), []
        for stretch, taken in zip(found, _seen(plan, found, asking, new_spool, advance, jobs), strict=True):
            if taken is None:
                return None
            for spool in stretch.waiting or ():
                spool.discard()
            seen.append(taken)
    except EvaluatorError:
        return None
    whole.join(seen)
    assert whole.ids is not None
    return None if len(whole.ids.suspects()) else whole


def _seen(
    plan: ReadingPlan,
    found: Sequence[Stretch],
    asking: Asking,
    new_spool: Callable[[], Spool],
    advance: Advance,
    jobs: int,
) -> Iterator[Taken | None]:
    """Yield what each stretch holds, in their order; None of one that one pass over all must tell about."""
    one = Lock()

    def tell(rows: int) -> None:
        with one:
            advance(rows)

    def see(stretch: Stretch) -> Taken | None:
        intake = plan.intake(new_spool, asking(), before=stretch.before)
        intake.see(rows_of(plan, stretch, new_spool), tell)
        # Of a row that breaks a rule one pass tells in the order of the source.
        return intake.taken() if intake.rows == stretch.rows else None

    return in_threads(see, found, jobs, ready=jobs)


def write_parts(made: DisplayBatches, spool: JoinedSpool, folder: Path, jobs: int) -> None:
    """Write displays, all of which stay, into a folder, in parts of `PART_ROWS` each; few are one file."""
    n = made.kept.displays
    starts = range(0, n, PART_ROWS)

    def write(number: int) -> None:
        first = starts[number]
        name = DISPLAYS if len(starts) == 1 else part_name(number + 1)
        frames = spool.between(first, min(first + PART_ROWS, n))
        on_disk(made.of(frames), folder, made.kept.kept_labels(), name=name, number=first)

    for _ in in_threads(write, range(len(starts)), jobs, ready=jobs):
        pass


@dataclass(frozen=True)
class Stretch:
    """Rows of a stretch of time; no time is of two.

    Parameters
    ----------
    files
        Numbers of the files that hold them.
    before, rows
        Number of rows of the stretches before it, and its own.
    waiting
        Spool of the rows of each file, where files hold others, too; None where they hold no others.
    """

    files: tuple[int, ...]
    before: int
    rows: int
    waiting: tuple[Spool, ...] | None = None


def stretches(
    ranges: Sequence[TimeRanges], plan: ReadingPlan, new_spool: Callable[[], Spool], jobs: int
) -> list[Stretch] | None:
    """Return the rows of some files as stretches, in their order; None where they are no several.

    Files that overlap in time are one stretch, sorted by itself; where that would be too long, their rows are first
    distributed by time, file by file, in temporary files that take the space of these.

    Parameters
    ----------
    ranges
        Times of each file.
    plan
        What is read. Where it is not sorted, files come in order, and those that do not are left to one pass, which
        says where.
    new_spool
        Function that makes a temporary file.
    jobs
        Number of files that are distributed at once.
    """
    sort = plan.sort
    order = sorted(range(len(ranges)), key=lambda i: ranges[i].ends[0]) if sort else range(len(ranges))
    groups: list[list[int]] = []
    last, rows = -_LATEST, 0
    for i in order:
        first, end = ranges[i].ends
        if not sort and first < last:
            return None
        if not groups or (first > last and rows >= STRETCH_ROWS):
            groups.append([])
            rows = 0
        groups[-1].append(i)
        last, rows = max(last, end), rows + ranges[i].n
    found: list[Stretch] = []
    before = 0
    for group in groups:
        mine = tuple(sorted(group))  # rows of one time are in the order of the source
        rows = sum(ranges[i].n for i in mine)
        if sort and rows > 2 * STRETCH_ROWS and len(mine) > 1:
            edges = _edges([ranges[i] for i in mine], most=max(MOST_OPEN // jobs, 2))
            within = before
            of_files = in_threads(partial(distributed, plan, edges=edges, new_spool=new_spool), mine, jobs)
            for parts in zip(*of_files, strict=True):
                n = sum(part.rows for part in parts)
                if n:
                    found.append(Stretch(mine, within, n, tuple(part.spool for part in parts)))
                within += n
        else:
            found.append(Stretch(mine, before, rows))
        before += rows
    return found if len(found) > 1 else None


def distributed(plan: ReadingPlan, file: int, edges: Ints, new_spool: Callable[[], Spool]) -> list[Waiting]:
    """Return the rows of a file before, between and after some times, as they wait in spools."""
    spools, rows = [new_spool() for _ in range(len(edges) + 1)], [0] * (len(edges) + 1)
    for frame in scan.of_equal_size(plan.rows_of([file]), STRETCH_ROWS // 4 or 1):
        into = np.searchsorted(edges, _times(frame, plan.spec.display.time), side="right")
        for number, part in split(frame, into, len(spools)):
            spools[number].add(part)
            rows[number] += part.height
    for spool in spools:
        spool.close()
    return list(map(Waiting, spools, rows))


def rows_of(plan: ReadingPlan, stretch: Stretch, new_spool: Callable[[], Spool]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a stretch in the order of their times, rows of one time in the order of the source; once."""
    time = plan.spec.display.time
    if stretch.waiting is None:
        rows = plan.rows_of(stretch.files)
        yield from SortedChunks(rows, time, None, new_spool) if plan.sort else rows
        return
    frames = chain.from_iterable(spool.frames() for spool in stretch.waiting)
    if stretch.rows > 2 * STRETCH_ROWS:  # more than the ends of the files let expect
        yield from SortedChunks(frames, time, None, new_spool)
    else:
        whole = pl.concat(frames, how="diagonal", rechunk=True)
        order = pl.Series(np.argsort(_times(whole, time), kind="stable"))
        for part in order.to_frame("row").iter_slices(scan.CHUNK_ROWS):
            yield whole.select(pl.all().gather(part["row"]))


def _edges(ranges: Sequence[TimeRanges], *, most: int) -> Ints:
    """Return times that cut the rows into stretches, as if the rows of each row group were spread evenly."""
    shares = np.linspace(0.0, 1.0, _SAMPLED)
    times = np.concatenate(
        [np.ravel(np.interp(shares, (0, 1), ends)) for of in ranges for ends in zip(*of[:2], strict=True)]
    )
    weight = np.repeat(np.concatenate([of.rows for of in ranges]) / _SAMPLED, _SAMPLED)
    order = np.argsort(times, kind="stable")
    passed = np.cumsum(weight[order])
    parts = min(int(passed[-1] // STRETCH_ROWS), most)
    at = np.searchsorted(passed, np.arange(1, parts) * passed[-1] / max(parts, 1))
    return np.unique(times[order][at].astype(np.int64))


def _times(frame: pl.DataFrame, time: str) -> Ints:
    times = frame[time]
    return (times.fill_null(_LATEST) if times.null_count() else times).to_numpy()


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
    """Return the Parquet file of a part, here or in an object store, or None if the part is not Parquet."""
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
