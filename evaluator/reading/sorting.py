"""Rows set aside until all of the source is known, in memory or in files, and sorted by time in bounded memory.

Ties keep the order of the file, or are shuffled as the log has them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.log.contract import tie_keys, tie_order, tied
from evaluator.reading import frames as scan

# So many rows are sorted in memory.
RANGE_ROWS = 500_000
# Files that one distribution writes; a larger source is distributed again.
MOST_RANGES = 128
# One of so many times guides the distribution, taken from the sorted ones of each frame.
SAMPLED = 64

_FIRST, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
Ints = npt.NDArray[np.int64]

# So many displays of one time are shuffled in memory, in units of what a sort takes.
HELD_RANGES = 4
# Columns of the displays of a large group of one time: the key that orders them, and their place in the source.
_KEY, _PLACE = "__tie_key", "__tie_place"

# Folder of the files, within the folder of an unfinished log.
SPOOL = "spool"
# Rows of a file of a spool, as many as a part of a log has displays: who reads some rows passes over whole files.
FILE_ROWS = 64 * 65_536


class MemorySpool:
    """A spool in memory: frames come back in the order they were added, as often as wanted.

    None may be added once they are asked for.
    """

    def __init__(self) -> None:
        self._frames: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        """Add a frame."""
        self._frames.append(frame)

    def frames(self, first: int = 0, end: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield the rows from number `first` to before `end`, None for all."""
        yield from _between(self._frames, first, end)

    def close(self) -> None:
        """Do nothing: adding takes nothing."""

    def discard(self) -> None:
        """Free the memory."""
        self._frames.clear()


class FileSpool:
    """A spool in Arrow streams, a new one after `FILE_ROWS` rows and wherever the columns change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parts: list[Path] = []
        self._rows: list[int] = []
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._schema: pa.Schema | None = None

    def add(self, frame: pl.DataFrame) -> None:
        """Write a frame."""
        table = frame.to_arrow()
        if self._writer is None or table.schema != self._schema or self._rows[-1] >= FILE_ROWS:
            self.close()
            self._rows.append(0)
            self._parts.append(self._path.with_suffix(f".{len(self._parts)}.arrows"))
            # Text shrinks to a fraction, numbers to two thirds: that costs more time than it saves.
            options = pa.ipc.IpcWriteOptions(compression="lz4" if pl.String in frame.dtypes else None)
            self._writer = pa.ipc.new_stream(str(self._parts[-1]), table.schema, options=options)
            self._schema = table.schema
        self._writer.write_table(table)
        self._rows[-1] += table.num_rows

    def frames(self, first: int = 0, end: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield the rows from number `first` to before `end`, None for all; files of others are not read."""
        self.close()
        before = 0
        for part, rows in zip(self._parts, self._rows, strict=True):
            if before + rows > first and (end is None or before < end):
                with pa.OSFile(str(part)) as file, pa.ipc.open_stream(file) as stream:
                    frames = (pl.DataFrame(pl.from_arrow(batch)) for batch in stream)
                    yield from _between(frames, first - before, None if end is None else end - before)
            before += rows

    def discard(self) -> None:
        """Remove the files."""
        self.close()
        for part in self._parts:
            part.unlink()
        self._parts.clear()
        self._rows.clear()

    def close(self) -> None:
        """Finish the stream being written."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


Spool = MemorySpool | FileSpool


def _between(frames: Iterable[pl.DataFrame], first: int, end: int | None) -> Iterator[pl.DataFrame]:
    """Yield the rows of some frames from number `first` to before `end`; a frame that is wanted whole stays itself."""
    at = 0
    for frame in frames:
        low, high = max(first - at, 0), frame.height if end is None else min(end - at, frame.height)
        if low < high or (frame.height == 0 and end is None):
            yield frame if (low, high) == (0, frame.height) else frame.slice(low, high - low)
        at += frame.height
        if end is not None and at >= end:
            return


def split(frame: pl.DataFrame, into: npt.NDArray[np.integer], parts: int) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the part, below `parts`, that some rows go into, and these rows in their order; `into` has shape (n,)."""
    into = into.astype(np.uint16)  # which NumPy sorts in one pass
    order = np.argsort(into, kind="stable")
    # Polars gathers from many pieces ten times as long.
    moved = frame.rechunk().select(pl.all().gather(pl.Series(order)))
    bounds = np.concatenate([[0], np.cumsum(np.bincount(into, minlength=parts))])
    for part, (low, high) in enumerate(itertools.pairwise(bounds.tolist())):
        if low < high:
            yield part, moved.slice(low, high - low)


def spools(folder: Path | None) -> Callable[[], Spool]:
    """Return what makes new spools: files in `folder`, or in memory."""
    if folder is None:
        return MemorySpool
    numbers = itertools.count()
    return lambda: FileSpool(folder / str(next(numbers)))


class SortedChunks:
    """The rows of `chunks` by time, missing times last, as frames of about `CHUNK_ROWS` rows.

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
        for frame in scan.of_similar_size(self._in_order(self._all), scan.CHUNK_ROWS):
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
        for frame in scan.of_similar_size(part.spool.frames(), max(RANGE_ROWS // 2, 1)):
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
        self._write, self._time, self.shuffles, self._limit = write, time, shuffle, limit
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
        the log is wanted: where displays are not shuffled, it is their place.
        """
        self._asked.append(asked)
        if frame.height == 0:
            return
        if not self.shuffles:
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
        order = tie_order(frame[self._time].to_numpy(), first=first) if self.shuffles else None
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
