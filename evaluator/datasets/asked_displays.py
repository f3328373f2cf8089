"""Displays that a second table may name, whose ids wait in a spool until all have passed by."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from evaluator.datasets.identity import HASH, ID
from evaluator.datasets.named_ids import NamedIds
from evaluator.datasets.row_breaches import SHOWN
from evaluator.datasets.spool import Spool, Waiting

# Number of a display among those that may be named.
ASKED = "asked"


class AskedDisplays:
    """The displays of a pass that a table may name: in memory nothing but their number.

    Parameters
    ----------
    named
        Ids that the table names.
    new_spool
        Function that makes a temporary file.

    Attributes
    ----------
    sample
        Ids of the first displays, whether they may be named or not.
    """

    def __init__(self, named: NamedIds, new_spool: Callable[[], Spool]) -> None:
        self.named, self._spool = named, new_spool()
        self._joined: list[tuple[Waiting, int]] = []
        self.rows = 0
        self.sample: tuple[str, ...] = ()

    def wanted(self, displays: pl.DataFrame) -> pl.DataFrame:
        """Return those of the next displays that may be named, without their ids, numbered in `ASKED`.

        Parameters
        ----------
        displays
            Displays with the columns of `evaluator.datasets.identity.hashed`, and others.
        """
        if len(self.sample) < SHOWN:
            self.sample = (*self.sample, *displays[ID].drop_nulls().head(SHOWN))[:SHOWN]
        known = displays if displays[HASH].null_count() == 0 else displays.filter(pl.col(HASH).is_not_null())
        found = known.filter(pl.Series(self.named.may_hold(known[HASH])))
        found = found.with_columns(pl.int_range(self.rows, self.rows + found.height, dtype=pl.Int64).alias(ASKED))
        self.rows += found.height
        self._spool.add(found.select(ID, HASH, ASKED))
        return found.drop(ID, HASH)

    @property
    def waiting(self) -> Waiting:
        """The ids of this pass."""
        self._spool.close()
        return Waiting(self._spool, self.rows, self.sample)

    def join(self, following: Waiting) -> int:
        """Add the displays of a pass that follows; return the number that its first one gets."""
        before = self.rows
        self._joined.append((following, before))
        self.rows += following.rows
        self.sample = self.sample or following.sample
        return before

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield the ids of all displays, with their hashes and numbers."""
        yield from self._spool.frames()
        for waiting, before in self._joined:
            for frame in waiting.spool.frames():
                yield frame.with_columns(pl.col(ASKED) + before)

    def discard(self) -> None:
        """Free what the ids take."""
        for spool in (self._spool, *(waiting.spool for waiting, _ in self._joined)):
            spool.discard()
