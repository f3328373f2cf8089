"""Sort the rows of a source by time in bounded memory; ties keep the order of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets import frames as scan
from evaluator.datasets.spool import Spool, split
from evaluator.log.contract import tie_keys, tie_order, tied

# So many rows are sorted in memory.
RANGE_ROWS = 500_000
# Files that one distribution writes; a larger source is distributed again.
MOST_RANGES = 128
# One of so many times guides the distribution, taken from the sorted ones of each frame.
SAMPLED = 64

_FIRST, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
Ints = npt.NDArray[np.int64]

# Rows read beyond a limit at first, to see where the displays of its last time end.
MARGIN = 10_000
# So many displays of one time are shuffled in memory, in units of what a sort takes.
HELD_RANGES = 4
# Columns of the displays of a large group of one time: the key that orders them, and their place in the source.
_KEY, _PLACE = "__tie_key", "__tie_place"


class SortedChunks:
    """The rows of `chunks` by time, missing times last, as frames of `CHUNK_ROWS` rows.

    Distribution sort: rows are spooled, distributed into ranges of times, and each range is sorted in memory. A range
    of a single time, of whatever size, needs no sorting. Disk: twice the rows for the time of the iteration. `chunks`
    are frames in any order, none where `add` gets them; `limit` yields the first rows in time.
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


class TieShuffler:
    """Hands displays on in the order of the log.

    A group of one time is shuffled in memory; a larger one than `HELD_RANGES` ranges of a sort is sorted by the keys of
    its displays, as a source is by time. Memory: the chunk at hand, such a group, and a byte a display of a larger one.
    `write` gets the displays, frame by frame; with a `limit` the first ones in the log's order. Unless displays of one
    time are to `shuffle`, they keep the order they come in. `displays` counts those handed on, `sharing` those that
    share their time with another.
    """

    def __init__(
        self,
        write: Callable[[pl.DataFrame], None],
        time: str,
        *,
        shuffle: bool,
        new_spool: Callable[[], Spool],
        limit: int | None = None,
    ) -> None:
        self._write, self._time, self._shuffle, self._limit = write, time, shuffle, limit
        self._new_spool = new_spool
        # Displays of the last time, whose group may go on: in memory, or behind each other where they are many.
        self._held: list[pl.DataFrame] = []
        self._held_rows, self._held_time = 0, 0
        self._large: SortedChunks | None = None
        self._asked: list[Ints] = [np.zeros(0, np.int64)]
        self._found: list[Ints] = [np.zeros(0, np.int64)]
        self._settled = 0
        self._last: tuple[int, bool] | None = None
        self.displays = self.sharing = 0

    def add(self, frame: pl.DataFrame, asked: Ints) -> None:
        """Take the next displays.

        They come in the order of the source; `asked` (q,) are the places in `frame`, sorted, of those whose number in
        the log is wanted.
        """
        self._asked.append(asked)
        if frame.height == 0:
            return
        if not self._shuffle:
            self._hand_on([frame])
            return
        times = frame[self._time].to_numpy()
        starts = np.flatnonzero(times[1:] != times[:-1]) + 1
        goes_on = self._held_rows > 0 and self._held_time == times[0]
        if goes_on and len(starts) == 0:
            self._hold(frame)
            return
        start, end = int(starts[-1]) if len(starts) else 0, 0
        if self._large is not None:
            end = int(starts[0]) if goes_on else 0
            if end:
                self._hold(frame.head(end))
            self._hand_on_large(self._large)
        whole = [*self._held, frame.slice(end, start - end)] if start > end else self._held
        self._held, self._held_rows, self._held_time = [], 0, int(times[-1])
        self._hand_on(whole)
        # The last group may go on in the next chunk.
        self._hold(frame.slice(start))

    def close(self) -> None:
        """Hand on what was held back."""
        if self._large is not None:
            self._hand_on_large(self._large)
        self._hand_on(self._held)
        self._held, self._held_rows = [], 0

    def numbers(self) -> Ints:
        """Return the number in the log of each display that was asked for, in the order asked."""
        return np.concatenate([*self._found, *self._asked])

    def _hold(self, frame: pl.DataFrame) -> None:
        """Hold back displays of the last time."""
        self._held.append(frame)
        self._held_rows += frame.height
        if self._large is None and self._held_rows > HELD_RANGES * RANGE_ROWS:
            self._large = SortedChunks((), _KEY, None, self._new_spool)
        if self._large is not None:
            place = self._settled + self._held_rows - sum(held.height for held in self._held)
            for held in self._held:
                places = np.arange(place, place + held.height)
                keys = tie_keys(places).astype(np.int64)
                self._large.add(held.with_columns(pl.Series(_KEY, keys), pl.Series(_PLACE, places)))
                place += held.height
            self._held = []

    def _hand_on_large(self, group: SortedChunks) -> None:
        """Hand on all displays of one time."""
        first, self._settled = self._settled, self._settled + self._held_rows
        asked, at = np.unique(self._settled_ones(), return_inverse=True)
        is_asked = np.zeros(self._held_rows, np.bool_)
        is_asked[asked - first] = True
        number, position = np.empty_like(asked), first
        for frame in group:
            place = frame[_PLACE].to_numpy()
            wanted = np.flatnonzero(is_asked[place - first])
            number[np.searchsorted(asked, place[wanted])] = position + wanted
            position += frame.height
            self._pass_on(frame.drop(_KEY, _PLACE))
        self._found.append(number[at])
        group.discard()
        self._large = None

    def _hand_on(self, frames: list[pl.DataFrame]) -> None:
        """Hand on displays whose last group is whole."""
        if not frames:
            return
        frame = frames[0] if len(frames) == 1 else pl.concat(frames)
        first, self._settled = self._settled, self._settled + frame.height
        order = tie_order(frame[self._time].to_numpy(), first=first) if self._shuffle else None
        self._settle(first, order)
        if order is not None:
            frame = frame.select(pl.all().gather(pl.Series(order)))
        self._pass_on(frame)

    def _pass_on(self, frame: pl.DataFrame) -> None:
        """Write the next displays in the order of the log, up to the limit."""
        if self._limit is not None:
            frame = frame.head(self._limit - self.displays)
        if frame.height:
            self._count(frame[self._time].to_numpy())
            self.displays += frame.height
            self._write(frame)

    def _settled_ones(self) -> Ints:
        """Return the places of the displays asked for whose numbers are to be known now, and ask no more for them."""
        asked = np.concatenate(self._asked)
        known = int(np.searchsorted(asked, self._settled))
        self._asked = [asked[known:]]
        return asked[:known]

    def _settle(self, first: int, order: Ints | None) -> None:
        now = self._settled_ones()
        if order is not None:
            new = np.empty_like(order)
            new[order] = np.arange(len(order))
            now = np.where(now >= first, first + new[np.maximum(now - first, 0)], now)
        self._found.append(now)

    def _count(self, times: Ints) -> None:
        same = tied(times)
        last, shared = self._last or (0, False)
        same[0] = self._last is not None and int(times[0]) == last
        begun = same & ~np.append(shared, same[:-1])
        self.sharing += int(same.sum() + begun.sum())
        self._last = int(times[-1]), bool(same[-1])


def whole_ties(read: Callable[[int | None], Iterable[pl.DataFrame]], time: str, limit: int) -> Iterator[pl.DataFrame]:
    """Yield the first `limit` rows and those after them that share the time of the last one.

    `read` gives so many of the first rows, or all for None.
    """
    left, last = limit, None
    for chunk in _as_needed(read, limit + MARGIN):
        taken = chunk.head(left)
        left -= taken.height
        if left == 0:
            last = taken[time][-1] if taken.height else last
            rest = chunk[time].slice(taken.height)
            # A time that cannot be read ties with none.
            other = rest.is_null() | (pl.Series([True]) if last is None else rest != last).fill_null(True)
            taken = chunk.head(taken.height + int(other.arg_max() or 0) if other.any() else chunk.height)
        if taken.height:
            yield taken
        if taken.height < chunk.height:
            return


def _as_needed(read: Callable[[int | None], Iterable[pl.DataFrame]], rows: int) -> Iterator[pl.DataFrame]:
    """Yield the first `rows` rows, which are read without the rest of a file; then, if asked for, the others."""
    seen = 0
    for chunk in read(rows):
        seen += chunk.height
        yield chunk
    if seen < rows:
        return
    for chunk in read(None):
        skipped = min(seen, chunk.height)
        seen -= skipped
        if skipped < chunk.height:
            yield chunk.slice(skipped)
