"""Passes over several stretches of time at once, joined to what one pass over all would have found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from evaluator.datasets.assembly import DisplayBatches, PartPlace, write_part
from evaluator.datasets.cells import Kind, parse
from evaluator.datasets.frames import UNREADABLE, missing_values
from evaluator.datasets.intake import Intake
from evaluator.datasets.join_by_id import AskedDisplays
from evaluator.datasets.reading_plan import ReadingPlan
from evaluator.datasets.sorting import SortedChunks
from evaluator.datasets.sources.files import SourceFile
from evaluator.datasets.sources.objects import ObjectFile, ObjectPart
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spool import Spool, Waiting, split
from evaluator.datasets.stretches.pass_result import Taken
from evaluator.errors import EvaluatorError
from evaluator.log.log_files import LogFile, opened
from evaluator.threads import in_threads

# Makes what the displays of a stretch are shown to, for each second table by the spec's name of the kind.
Asking = Callable[[], Mapping[str, AskedDisplays]]
Advance = Callable[[int], None]
Ints = npt.NDArray[np.int64]

# A stretch has so many rows or more, where the files allow: fewer are not worth a worker's start.
STRETCH_ROWS = 1_000_000
# Files that are distributed into at a time, all together: systems allow some hundreds to be open.
MOST_OPEN = 256
# Times taken of each row group to guess where as many rows begin.
_SAMPLED = 64
_LATEST = np.iinfo(np.int64).max


class StretchesInThreads:
    """Threads of this process, which read stretches of a source and write parts of the log.

    Parameters
    ----------
    plan, jobs, new_spool
        What is read, number of threads, and function that makes a temporary file.
    """

    def __init__(self, plan: ReadingPlan, jobs: int, new_spool: Callable[[], Spool]) -> None:
        self._plan, self._jobs, self._new_spool = plan, jobs, new_spool
        # Files that are distributed at once.
        self.files_at_once = jobs

    def distribute(self, files: Sequence[int], edges: Ints) -> Iterable[Sequence[Waiting]]:
        """Yield the rows of each file, parted at some times."""
        return in_threads(lambda file: distributed(self._plan, file, edges, self._new_spool), files, self._jobs)

    def take_in(self, found: Sequence[Stretch], asking: Asking, advance: Advance) -> Iterator[Taken | None]:
        """Yield what each stretch holds, in their order; None of one that one pass over all must tell about."""
        one = Lock()

        def tell(rows: int) -> None:
            with one:
                advance(rows)

        def see(stretch: Stretch) -> Taken | None:
            intake = self._plan.intake(self._new_spool, asking(), before=stretch.before)
            intake.see(rows_of(self._plan, stretch, self._new_spool), tell)
            # Of a row that breaks a rule one pass tells in the order of the source.
            return intake.taken() if intake.rows == stretch.rows else None

        return in_threads(see, found, self._jobs, ready=self._jobs)

    def write(self, made: DisplayBatches, taken: Sequence[Taken], parts: Sequence[PartPlace], folder: Path) -> None:
        """Write parts of the displays into a folder."""
        for _ in in_threads(lambda part: write_part(made, part, folder), parts, self._jobs, ready=self._jobs):
            pass


def joined_intake(
    plan: ReadingPlan,
    workers: StretchesInThreads,
    whole: Intake,
    asking: Asking,
    advance: Advance,
    alone: Callable[[str], None],
) -> list[Taken] | None:
    """Return what passes over stretches of time have found, joined in `whole`, several of them at once.

    None where there are no several stretches, and where a row breaks a rule, or an id seems to be listed twice: one
    pass over all says which, in the order of the source.

    Parameters
    ----------
    plan
        What is read.
    workers
        Who reads the stretches.
    whole
        Intake that has seen nothing.
    asking
        What makes what the displays of a stretch are shown to.
    advance
        Function called with the number of rows read since the last call, by one thread at a time.
    alone
        Function that is told why one pass has to read all.
    """
    if not plan.in_stretches:
        alone("one file, a limit or a quarantine takes one")
        return None
    told = "a row breaks a rule, or an id seems to be listed twice, which one tells in the order of the source"
    try:
        ranges = time_ranges(plan.files, plan.spec, plan.kinds[plan.spec.display.time])
        if ranges is None:
            alone("its files do not say from when to when their rows are, as Parquet files do")
            return None
        found = stretches(ranges, workers.distribute, sort=plan.sort, files_at_once=workers.files_at_once)
        if found is None:
            alone("its files are no several stretches of time of a million rows, one after the other")
            return None
        seen: list[Taken] = []
        for stretch, taken in zip(found, workers.take_in(found, asking, advance), strict=True):
            if taken is None:
                alone(told)
                return None
            for spool in stretch.waiting or ():
                spool.discard()
            seen.append(taken)
    except EvaluatorError:
        alone(told)
        return None
    whole.join(seen)
    assert whole.ids is not None
    if len(whole.ids.suspects()):
        alone(told)
        return None
    return seen


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
    ranges: Sequence[TimeRanges],
    distribute: Callable[[Sequence[int], Ints], Iterable[Sequence[Waiting]]],
    *,
    sort: bool,
    files_at_once: int,
) -> list[Stretch] | None:
    """Return the rows of some files as stretches, in their order; None where they are no several.

    Files that overlap in time are one stretch, sorted by itself; where that would be too long, their rows are first
    distributed by time, file by file, in temporary files that take the space of these.

    Parameters
    ----------
    ranges
        Times of each file.
    distribute
        Function that parts the rows of files, by their numbers, at some times, shape (e,), as `distributed` those of
        one.
    sort
        Whether rows are to be sorted; otherwise they come in order, and files that do not are left to one pass, which
        says where.
    files_at_once
        Number of files that are distributed at once in one process.
    """
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
            edges = _edges([ranges[i] for i in mine], most=max(MOST_OPEN // files_at_once, 2))
            within = before
            for parts in zip(*distribute(mine, edges), strict=True):
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
