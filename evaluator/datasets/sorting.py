"""Sort the rows of a source by time in bounded memory; ties keep the order of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets import frames as scan
from evaluator.datasets.spool import Spool

# So many rows are sorted in memory.
RANGE_ROWS = 500_000
# Files that one distribution writes; a larger source is distributed again.
MOST_RANGES = 64
# Times of each frame that guide the distribution: it misjudges a range by at most this fraction of the rows.
SAMPLED = 1_024

_LAST = np.iinfo(np.int64).max


class SortedChunks:
    """The rows of `chunks` by time, missing times last, as frames of `CHUNK_ROWS` rows.

    Distribution sort: rows are spooled, distributed into ranges of times, and each range is sorted in memory. A range
    of a single time, of whatever size, needs no sorting. Disk: twice the rows for the time of the iteration.

    Parameters
    ----------
    chunks
        Frames to sort, in any order.
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
        return frame[self._time].fill_null(_LAST).to_numpy()

    def _in_order(self, part: _Range) -> Iterator[pl.DataFrame]:
        if part.in_order:
            yield from part.spool.frames()
        elif part.rows <= RANGE_ROWS:
            whole = pl.concat(part.spool.frames(), how="diagonal")
            order = np.argsort(self._times(whole), kind="stable")
            yield whole.select(pl.all().gather(pl.Series(order)))
        else:
            for smaller in self._distributed(part):
                yield from self._in_order(smaller)
                smaller.spool.discard()

    def _distributed(self, part: _Range) -> list[_Range]:
        edges = part.edges()
        ranges = [_Range(self._new_spool()) for _ in range(len(edges) + 1)]
        for frame in part.spool.frames():
            times = self._times(frame)
            into = np.searchsorted(edges, times, side="right")
            order = np.argsort(into, kind="stable")
            moved = frame.select(pl.all().gather(pl.Series(order)))
            bounds = np.searchsorted(into[order], np.arange(len(ranges) + 1))
            for found, low, high in zip(ranges, bounds[:-1], bounds[1:], strict=True):
                if low < high:
                    found.add(moved.slice(low, high - low), times[order[low:high]])
        return ranges


class _Range:
    """Rows of a range of times."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.rows = 0
        self.in_order = True
        self._last = np.iinfo(np.int64).min
        self._sample: list[npt.NDArray[np.int64]] = []

    def add(self, frame: pl.DataFrame, times: npt.NDArray[np.int64]) -> None:
        """Add rows and their times."""
        self.spool.add(frame)
        self.rows += len(times)
        self.in_order = self.in_order and bool(times[0] >= self._last) and bool((times[1:] >= times[:-1]).all())
        self._last = int(times[-1])
        ranked = np.sort(times)
        self._sample.append(ranked[np.linspace(0, len(times) - 1, min(SAMPLED, len(times))).astype(np.int64)])

    def edges(self) -> npt.NDArray[np.int64]:
        """Return times that part the rows, a time that holds many rows by itself."""
        sample = np.sort(np.concatenate(self._sample))
        parts = min(MOST_RANGES, 2 * self.rows // RANGE_ROWS + 1)
        picked, often = np.unique(sample[np.arange(1, parts) * len(sample) // parts], return_counts=True)
        heavy = picked[(often > 1) | (picked == sample[0])]
        edges = np.unique(np.concatenate([picked, heavy[heavy < _LAST] + 1]))
        # The least time is on one side of every edge, the greatest on the other: both parts are smaller than the whole.
        inside: npt.NDArray[np.int64] = edges[(edges > sample[0]) & (edges <= sample[-1])]
        return inside
