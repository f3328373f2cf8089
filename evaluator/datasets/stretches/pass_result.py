"""What a pass over some displays has found, once they are set aside: all that passes are joined by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.spool import Spool, Waiting
from evaluator.datasets.zones import ZonedCells

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SettledTies:
    """Displays of a pass in the order of the log, as of `evaluator.datasets.sorting.Ties`."""

    displays: int
    sharing: int
    found: Ints

    def numbers(self) -> Ints:
        """Return the number of each display that was asked for, in the order asked."""
        return self.found


@dataclass(frozen=True)
class Taken:
    """The result of a pass whose displays are all sound.

    Parameters
    ----------
    rows
        Number of displays.
    last_time
        Latest time of one, in ticks.
    labels
        Labels of each column of codes, by its name in the spool, in order of appearance.
    shown
        Number of displays of each action label, shape (labels,).
    ties
        Order of the displays in the log.
    places
        Places among them, in the order of the source, of those that hold an event, sorted, shape (q,).
    found
        Rows that hold an event, by kind, with the place of their display.
    spool
        Spool of the displays, in that order.
    ids
        Hashes of their ids.
    asked
        Ids of those that a second table may name, by the spec's name of the kind.
    zones
        First times that say their zone, and that say none, as of `evaluator.datasets.zones.ZonesSeen`.
    """

    rows: int
    last_time: int
    labels: Mapping[str, Sequence[str]]
    shown: Ints
    ties: SettledTies
    places: Ints
    found: Sequence[pl.DataFrame]
    spool: Spool
    ids: Waiting
    asked: Mapping[str, Waiting]
    zones: ZonedCells
