"""A source of many files as stretches of time that can be read by themselves, each in the memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets import frames as scan
from evaluator.datasets.reading_plan import ReadingPlan
from evaluator.datasets.sorting import SortedChunks
from evaluator.datasets.spool import Spool, Waiting, split
from evaluator.datasets.stretches.time_ranges import TimeRanges

Ints = npt.NDArray[np.int64]

# A stretch has so many rows or more, where the files allow: fewer are not worth a worker's start.
STRETCH_ROWS = 1_000_000
# Files that are distributed into at a time, all together: systems allow some hundreds to be open.
MOST_OPEN = 256
# Times taken of each row group to guess where as many rows begin.
_SAMPLED = 64
_LATEST = np.iinfo(np.int64).max


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
    """Return times that part the rows into stretches, at most so many, if those of a row group are spread evenly."""
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
