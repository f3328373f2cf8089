"""The displays of stretches of time that were read by themselves, as one pass would have set them aside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.spool import Spool

Codes = npt.NDArray[np.int32]


class JoinedSpool:
    """Spools that follow each other. Codes of labels, which are those of a stretch, become those of all."""

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
