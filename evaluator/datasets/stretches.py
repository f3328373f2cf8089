"""A source of many files as stretches of time that can be read by themselves, each in the memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets import frames as scan
from evaluator.datasets.sorting import SortedChunks
from evaluator.datasets.spool import Spool, split
from evaluator.datasets.time_ranges import TimeRanges
from evaluator.threads import in_threads

Ints = npt.NDArray[np.int64]

# A stretch has so many rows or more, where the files allow: fewer are not worth a worker's start.
STRETCH_ROWS = 1_000_000
# Files that threads distribute rows into at a time, all together: systems allow some hundreds to be open.
_MOST_OPEN = 256
# Times taken of each row group to guess where as many rows begin.
_SAMPLED = 64
_LATEST = np.iinfo(np.int64).max

Read = Callable[[Sequence[int]], Iterable[pl.DataFrame]]


@dataclass(frozen=True)
class Stretch:
    """Rows of a stretch of time; no time is of two.

    Parameters
    ----------
    chunks
        The rows in the order of their times, rows of one time in the order of the source.
    before, rows
        Number of rows of the stretches before it, and its own.
    """

    chunks: Iterable[pl.DataFrame]
    before: int
    rows: int


def stretches(
    ranges: Sequence[TimeRanges],
    read: Read,
    time: str,
    *,
    sort: bool,
    jobs: int,
    new_spool: Callable[[], Spool],
) -> list[Stretch] | None:
    """Return the rows of some files as stretches, in their order; None where they are no several.

    Files that overlap in time are one stretch, sorted by itself; where that would be too long, their rows are first
    distributed by time, file by file, in temporary files that take the space of these.

    Parameters
    ----------
    ranges
        Times of each file.
    read
        Function that gives the rows of files, by their numbers, as of `evaluator.datasets.frames.Chunks`.
    time
        Name of the column of the time.
    sort
        Whether rows are to be sorted; otherwise they come in order, and files that do not are left to one pass, which
        says where.
    jobs
        Number of threads that distribute rows.
    new_spool
        Function that makes a temporary file.
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
        mine = sorted(group)  # rows of one time are in the order of the source
        rows = sum(ranges[i].n for i in mine)
        if sort and rows > 2 * STRETCH_ROWS and len(mine) > 1:
            found += _distributed(mine, ranges, read, time, before, jobs=jobs, new_spool=new_spool)
        else:
            chunks = read(mine)
            found.append(Stretch(SortedChunks(chunks, time, None, new_spool) if sort else chunks, before, rows))
        before += rows
    return found if len(found) > 1 else None


def _distributed(
    files: Sequence[int],
    ranges: Sequence[TimeRanges],
    read: Read,
    time: str,
    before: int,
    *,
    jobs: int,
    new_spool: Callable[[], Spool],
) -> list[Stretch]:
    """Return stretches of files that overlap, once their rows are parted by time, each file's in spools of its own."""
    edges = _edges([ranges[i] for i in files], most=max(_MOST_OPEN // jobs, 2))

    def part(file: int) -> list[tuple[Spool, int]]:
        found = [(new_spool(), 0) for _ in range(len(edges) + 1)]
        for frame in scan.of_equal_size(read([file]), STRETCH_ROWS // 4 or 1):
            into = np.searchsorted(edges, _times(frame, time), side="right")
            for number, rows in split(frame, into, len(found)):
                spool, known = found[number]
                spool.add(rows)
                found[number] = (spool, known + rows.height)
        for spool, _ in found:
            spool.close()
        return found

    stretches = []
    for parts in zip(*in_threads(part, files, jobs), strict=True):
        rows = sum(known for _, known in parts)
        if rows:
            stretches.append(Stretch(_Parted([spool for spool, _ in parts], rows, time, new_spool), before, rows))
        before += rows
    return stretches


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


class _Parted:
    """The rows of a stretch, which wait in spools, in the order of their times; read once."""

    def __init__(self, spools: Sequence[Spool], rows: int, time: str, new_spool: Callable[[], Spool]) -> None:
        self._spools, self._rows, self._time, self._new_spool = spools, rows, time, new_spool

    def __iter__(self) -> Iterator[pl.DataFrame]:
        frames = chain.from_iterable(spool.frames() for spool in self._spools)
        if self._rows > 2 * STRETCH_ROWS:  # more than the ends of the files let expect
            yield from SortedChunks(frames, self._time, None, self._new_spool)
        else:
            whole = pl.concat(frames, how="diagonal", rechunk=True)
            order = pl.Series(np.argsort(_times(whole, self._time), kind="stable"))
            for part in order.to_frame("row").iter_slices(scan.CHUNK_ROWS):
                yield whole.select(pl.all().gather(part["row"]))
        for spool in self._spools:
            spool.discard()


def _times(frame: pl.DataFrame, time: str) -> Ints:
    times = frame[time]
    return (times.fill_null(_LATEST) if times.null_count() else times).to_numpy()
