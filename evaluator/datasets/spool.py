"""Frames set aside until all of the source is known: in memory, or in a file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

# Folder of the files, within the folder of an unfinished log.
SPOOL = "spool"
# Rows of a file of a spool, as many as a part of a log has displays: who reads some rows passes over whole files.
FILE_ROWS = 64 * 65_536


class Spool(Protocol):
    """Frames that come back in the order they were added, as often as wanted."""

    def add(self, frame: pl.DataFrame) -> None:
        """Add a frame."""

    def frames(self, first: int = 0, end: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield the rows from number `first` to before `end`, None for all; none may be added afterwards."""

    def close(self) -> None:
        """Free what adding takes; none may be added afterwards."""

    def discard(self) -> None:
        """Free what the frames take."""


class MemorySpool:
    """A spool in memory."""

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
            options = pa.ipc.IpcWriteOptions(compression="lz4")
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
