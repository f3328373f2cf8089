"""Sort the rows of a source by time in bounded memory; ties keep the order of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets import frames as scan
from evaluator.datasets.spool import Spool, split

# So many rows are sorted in memory.
RANGE_ROWS = 500_000
# Files that one distribution writes; a larger source is distributed again.
MOST_RANGES = 128
# One of so many times guides the distribution, taken from the sorted ones of each frame.
SAMPLED = 64

_FIRST, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class SortedChunks:
    """The rows of `chunks` by time, missing times last, as frames of `CHUNK_ROWS` rows.

    Distribution sort: rows are spooled, distributed into ranges of times, and each range is sorted in memory. A range
    of a single time, of whatever size, needs no sorting. Disk: twice the rows for the time of the iteration.

    Parameters
    ----------
    chunks
        Frames to sort, in any order; none where `add` gets them.
    time
        Name of the column of the time.
    limit
        Number of rows to yield, the first ones in time; None yields all.
    new_spool
        Function that makes a temporary file in which rows wait.
    """

    def __init__(
        self, chunks: Iterable[pl.DataFrame], time: str, limit: int | None, new_spool: Callable[[], Spool]
    ) -> None:
        self._time, self._limit, self._new_spool = time, limit, new_spool
        self._all: _Range | None = None
        self._chunks = chunks

    def add(self, frame: pl.DataFrame) -> None:
        """Take the next rows to sort."""
        if self._all is None:
            self._all = _Range(self._new_spool())
        self._all.add(frame, self._times(frame))

    def discard(self) -> None:
        """Free what the rows take."""
        if self._all is not None:
            self._all.spool.discard()

    def __iter__(self) -> Iterator[pl.DataFrame]:
        if self._all is None:
            self._all = self._range(self._chunks)
        left = self._limit
        for frame in scan.of_equal_size(self._in_order(self._all), scan.CHUNK_ROWS):
            yield frame if left is None else frame.head(left)
            if left is not None:
                left -= frame.height
                if left <= 0:
                    return

    def _range(self, frames: Iterable[pl.DataFrame]) -> _Range:
        found = _Range(self._new_spool())
        for frame in frames:
            found.add(frame, self._times(frame))
        return found

    def _times(self, frame: pl.DataFrame) -> npt.NDArray[np.int64]:
        times = frame[self._time]
        return (times.fill_null(_LAST) if times.null_count() else times).to_numpy()

    def _in_order(self, part: _Range) -> Iterator[pl.DataFrame]:
        if part.in_order:
            yield from part.spool.frames()
        elif part.rows <= RANGE_ROWS:
            whole = pl.concat(part.spool.frames(), how="diagonal", rechunk=True)
            order = np.argsort(self._times(whole), kind="stable")
            yield whole.select(pl.all().gather(pl.Series(order)))
        else:
            for smaller in self._distributed(part):
                yield from self._in_order(smaller)
                smaller.spool.discard()

    def _distributed(self, part: _Range) -> list[_Range]:
        edges = part.edges()
        ranges = [_Range(self._new_spool()) for _ in range(len(edges) + 1)]
        # Of larger frames each range gets fewer and larger pieces.
        for frame in scan.of_equal_size(part.spool.frames(), max(RANGE_ROWS // 2, 1)):
            into = np.searchsorted(edges, self._times(frame), side="right")
            for number, rows in split(frame, into, len(ranges)):
                ranges[number].add(rows, self._times(rows))
        for found in ranges:
            found.spool.close()
        return ranges


class _Range:
    """Rows of a range of times."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.rows = 0
        self.in_order = True
        self._least, self._greatest, self._last = _LAST, _FIRST, _FIRST
        self._sample: list[npt.NDArray[np.int64]] = []

    def add(self, frame: pl.DataFrame, times: npt.NDArray[np.int64]) -> None:
        """Add rows and their times."""
        self.spool.add(frame)
        self.in_order = self.in_order and bool(times[0] >= self._last) and bool((times[1:] >= times[:-1]).all())
        self._last = int(times[-1])
        ranked = np.sort(times)
        self._least, self._greatest = min(self._least, int(ranked[0])), max(self._greatest, int(ranked[-1]))
        self._sample.append(ranked[-self.rows % SAMPLED :: SAMPLED].copy())
        self.rows += len(times)

    def edges(self) -> npt.NDArray[np.int64]:
        """Return times that part the rows, a time that holds many rows by itself."""
        sample = np.sort(np.concatenate(self._sample))
        parts = min(MOST_RANGES, 2 * self.rows // RANGE_ROWS + 1)
        picked, often = np.unique(sample[np.arange(1, parts) * len(sample) // parts], return_counts=True)
        heavy = picked[(often > 1) | (picked == self._least)]
        edges = np.unique(np.concatenate([picked, heavy[heavy < _LAST] + 1]))
        # The least time is on one side of every edge, the greatest on the other: both parts are smaller than the whole.
        inside: npt.NDArray[np.int64] = edges[(edges > self._least) & (edges <= self._greatest)]
        return inside
