"""Displays listed twice, found exactly with two numbers a display in memory."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl


class SeenIds:
    """The ids met so far, as hashes: 8 bytes a display, and as much again for `suspects`.

    Equal ids have equal hashes, so that without equal hashes there are no equal ids; `repeated` settles the others by
    reading their ids again.
    """

    def __init__(self) -> None:
        self._hashes: list[npt.NDArray[np.uint64]] = []

    def add(self, ids: pl.Series) -> None:
        """Add the ids of a chunk; missing ones equal no other."""
        self._hashes.append(_hashes(ids.drop_nulls()))

    def suspects(self) -> pl.Series:
        """Return the hashes met more than once."""
        hashes = np.concatenate([np.zeros(0, np.uint64), *self._hashes])
        hashes.sort()
        return pl.Series(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))


def repeated(ids: Iterable[pl.Series], suspects: pl.Series) -> npt.NDArray[np.int64]:
    """Return the rows whose id an earlier row has, in order.

    Parameters
    ----------
    ids
        All ids again, chunk by chunk, in the same order.
    suspects
        Hashes of ids that were met more than once, from `SeenIds`.
    """
    found, before = [], 0
    for chunk in ids:
        rows = pl.Series(_hashes(chunk)).is_in(suspects.implode()) & chunk.is_not_null()
        number = pl.int_range(before, before + len(chunk), dtype=pl.Int64, eager=True)
        found.append(pl.DataFrame({"id": chunk.cast(pl.String), "row": number}).filter(rows))
        before += len(chunk)
    rows_of = pl.concat(found)
    return rows_of.filter(~rows_of["id"].is_first_distinct())["row"].to_numpy()


def _hashes(ids: pl.Series) -> npt.NDArray[np.uint64]:
    return ids.cast(pl.String).hash().to_numpy()
