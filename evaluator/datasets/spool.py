"""Frames set aside until all of the source is known: in memory, or in a file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

# Folder of the files, within the folder of an unfinished log.
SPOOL = "spool"
Codes = npt.NDArray[np.int32]


class Spool(Protocol):
    """Frames that come back in the order they were added, as often as wanted."""

    def add(self, frame: pl.DataFrame) -> None:
        """Add a frame."""

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield all frames; none may be added afterwards."""

    def close(self) -> None:
        """Free what adding takes; none may be added afterwards."""

    def discard(self) -> None:
        """Free what the frames take."""


@dataclass(frozen=True)
class Waiting:
    """Rows that wait in a spool, how many they are, and the ids of some displays where they are asked for."""

    spool: Spool
    rows: int
    sample: tuple[str, ...] = ()


class MemorySpool:
    """A spool in memory."""

    def __init__(self) -> None:
        self._frames: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        """Add a frame."""
        self._frames.append(frame)

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield all frames."""
        yield from self._frames

    def close(self) -> None:
        """Do nothing: adding takes nothing."""

    def discard(self) -> None:
        """Free the memory."""
        self._frames.clear()


class FileSpool:
    """A spool in Arrow streams, a new one wherever the columns change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parts: list[Path] = []
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._schema: pa.Schema | None = None

    def add(self, frame: pl.DataFrame) -> None:
        """Write a frame."""
        table = frame.to_arrow()
        if self._writer is None or table.schema != self._schema:
            self.close()
            self._parts.append(self._path.with_suffix(f".{len(self._parts)}.arrows"))
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_stream(str(self._parts[-1]), table.schema, options=options)
            self._schema = table.schema
        self._writer.write_table(table)

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield all frames."""
        self.close()
        for part in self._parts:
            with pa.OSFile(str(part)) as file, pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    yield pl.DataFrame(pl.from_arrow(batch))

    def discard(self) -> None:
        """Remove the files."""
        self.close()
        for part in self._parts:
            part.unlink()
        self._parts.clear()

    def close(self) -> None:
        """Finish the stream being written."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


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


class JoinedSpool:
    """Spools that follow each other; codes of labels, numbered in each stretch, are renumbered for all of them."""

    def __init__(self) -> None:
        self._spools: list[tuple[Spool, int, dict[str, Codes]]] = []

    def append(self, spool: Spool, rows: int, codes: Mapping[str, Codes]) -> None:
        """Add a spool of so many rows, and by column the code that each of its codes becomes; the last one is of -1."""
        moved = {name: of for name, of in codes.items() if not np.array_equal(of[:-1], np.arange(len(of) - 1))}
        self._spools.append((spool, rows, moved))

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield all frames."""
        return self.between(0, sum(rows for _, rows, _ in self._spools))

    def between(self, first: int, end: int) -> Iterator[pl.DataFrame]:
        """Yield the rows from number `first` to before `end`. Spools before and behind are not read."""
        before = 0
        for spool, rows, codes in self._spools:
            if before < end and before + rows > first:
                at = before
                for frame in spool.frames():
                    part = frame.slice(max(first - at, 0), max(end - max(at, first), 0))
                    if part.height:
                        moved = (pl.Series(name, of[part[name].to_numpy()]) for name, of in codes.items())
                        yield part.with_columns(moved)
                    at += frame.height
                    if at >= end:
                        break
            before += rows

    def add(self, frame: pl.DataFrame) -> None:
        """Refuse: what is joined is whole."""
        raise NotImplementedError

    def close(self) -> None:
        """Free what adding takes."""
        for spool, _, _ in self._spools:
            spool.close()

    def discard(self) -> None:
        """Free what the frames take."""
        for spool, _, _ in self._spools:
            spool.discard()
