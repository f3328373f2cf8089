"""Displays listed twice, found exactly, in bounded memory where the hashes of their ids wait on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import polars as pl

from evaluator.datasets.labels import value_texts
from evaluator.datasets.spool import Spool, split

ID, HASH = "id", "hash"
# So many hashes are sorted in memory.
SORTED_HASHES = 4_000_000
# Files that hashes are distributed into.
MOST_PARTS = 64


def hashed(ids: pl.Series) -> pl.DataFrame:
    """Return ids as text, `ID`, with their hashes, `HASH` uint64; both null where an id is missing.

    Equal ids have equal hashes: without equal hashes there are no equal ids.
    """
    text = ids if ids.dtype == pl.String else value_texts(ids)
    found = _hashes(text)
    return pl.DataFrame({ID: text, HASH: found.set(text.is_null(), None) if text.null_count() else found})


def by_hash(frames: Iterable[pl.DataFrame], parts: int, new_spool: Callable[[], Spool]) -> list[Spool]:
    """Return rows in `parts` spools, in their order, those of equal `HASH` in the same one."""
    spools = [new_spool() for _ in range(parts)]
    for frame in frames:
        for part, rows in split(frame, frame[HASH].to_numpy() % np.uint64(parts), parts):
            spools[part].add(rows)
    for spool in spools:
        spool.close()
    return spools


class SeenIds:
    """The ids met so far, as hashes that wait in a spool; `repeated` settles equal ones by reading their ids again.

    Parameters
    ----------
    new_spool
        Function that makes a temporary file, in which 8 bytes of each display wait.
    """

    def __init__(self, new_spool: Callable[[], Spool]) -> None:
        self._new_spool = new_spool
        self._spool = new_spool()
        self._rows = 0

    def add(self, ids: pl.DataFrame) -> None:
        """Add the ids of a chunk, as of `hashed`, in any order; missing ones equal no other."""
        found = ids.select(HASH).drop_nulls()
        self._rows += found.height
        self._spool.add(found)

    def suspects(self) -> pl.Series:
        """Return the hashes met more than once."""
        found = [np.zeros(0, np.uint64)]
        for frames in self._parts():
            hashes = np.concatenate([np.zeros(0, np.uint64), *(frame[HASH].to_numpy() for frame in frames)])
            hashes.sort()
            found.append(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))
        return pl.Series(np.concatenate(found))

    def _parts(self) -> Iterator[Iterable[pl.DataFrame]]:
        """Yield all hashes, equal ones together, as many at a time as are sorted in memory."""
        parts = min(self._rows // SORTED_HASHES + 1, MOST_PARTS)
        if parts == 1:
            yield self._spool.frames()
        else:
            for spool in by_hash(self._spool.frames(), parts, self._new_spool):
                yield spool.frames()
                spool.discard()
        self._spool.discard()


def repeated(chunks: Iterable[pl.DataFrame], column: str, suspects: pl.Series) -> pl.DataFrame:
    """Return the rows whose id an earlier row has, in order: the number of each, ``row``, and where the earlier one is.

    Parameters
    ----------
    chunks
        All rows again, chunk by chunk, in the same order.
    column
        Name of their id; what else they have is returned of the first row with it.
    suspects
        Hashes of ids that were met more than once, from `SeenIds`.
    """
    found, before = [], 0
    for chunk in chunks:
        of = hashed(chunk[column])
        number = pl.int_range(before, before + chunk.height, dtype=pl.Int64, eager=True)
        rows = of[HASH].is_in(suspects.implode())
        found.append(chunk.drop(column).hstack([of[ID], number.alias("row")]).filter(rows))
        before += chunk.height
    rows_of = pl.concat(found)
    first = rows_of[ID].is_first_distinct()
    again = rows_of.filter(~first).select(ID, "row")
    return again.join(rows_of.filter(first).drop("row"), on=ID, how="left", maintain_order="left").drop(ID)


def _hashes(text: pl.Series) -> pl.Series:
    return text.hash()
