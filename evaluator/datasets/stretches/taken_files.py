"""What a pass over a stretch has found, in files that another process reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from evaluator.datasets.spool import FileSpool, Waiting
from evaluator.datasets.stretches.taken import Ints, SettledTies, Taken
from evaluator.datasets.zones import Cell

Paths = tuple[str, ...]
# Of the files of a pass, beside those in which rows wait.
_PLACES, _NUMBERS = "places.npy", "numbers.npy"


@dataclass(frozen=True)
class WaitingFiles:
    """`Waiting` as plain values: the files in which rows wait."""

    paths: Paths
    rows: int
    sample: tuple[str, ...] = ()

    def opened(self) -> Waiting:
        """Return the spool of these files."""
        return Waiting(spool_of(self.paths), self.rows, self.sample)


@dataclass(frozen=True)
class TakenFiles:
    """`evaluator.datasets.stretches.taken.Taken` as plain values: what is long lies in files.

    Parameters
    ----------
    folder
        Folder that holds events, one file a kind, and their places and numbers.
    rows, last_time, displays, sharing
        Numbers of `Taken`, and of its ties.
    shown
        Number of displays of each action label, shape (labels,).
    labels
        Labels of each column of codes, by its name.
    spool, ids, asked
        Files of the displays, of their ids, and of those that each second table may name, by the name of the kind.
    zones
        First times with and without a zone, as of `Taken`.
    """

    folder: str
    rows: int
    last_time: int
    shown: Ints
    displays: int
    sharing: int
    labels: tuple[tuple[str, tuple[str, ...]], ...]
    spool: Paths
    ids: WaitingFiles
    asked: tuple[tuple[str, WaitingFiles], ...]
    zones: tuple[tuple[tuple[str, bool], Cell], ...] = ()

    def opened(self) -> Taken:
        """Return what was found, its events in memory, its displays where they are."""
        folder = Path(self.folder)
        found = sorted(folder.glob("found-*.arrow"), key=lambda path: int(path.stem.split("-")[1]))
        return self._taken(
            np.load(folder / _NUMBERS),
            np.load(folder / _PLACES),
            [pl.read_ipc(path) for path in found],
        )

    def displays_alone(self) -> Taken:
        """Return it without events."""
        return self._taken(np.zeros(0, np.int64), np.zeros(0, np.int64), [])

    def _taken(self, numbers: Ints, places: Ints, found: list[pl.DataFrame]) -> Taken:
        return Taken(
            rows=self.rows,
            last_time=self.last_time,
            labels=dict(self.labels),
            shown=self.shown,
            ties=SettledTies(self.displays, self.sharing, numbers),
            places=places,
            found=found,
            spool=spool_of(self.spool),
            ids=self.ids.opened(),
            asked={table: waiting.opened() for table, waiting in self.asked},
            zones=dict(self.zones),
        )


def as_files(taken: Taken, folder: Path) -> TakenFiles:
    """Return the files of a pass whose displays and ids wait in files; its events are those in a folder."""
    return TakenFiles(
        folder=str(folder),
        rows=taken.rows,
        last_time=taken.last_time,
        shown=taken.shown,
        displays=taken.ties.displays,
        sharing=taken.ties.sharing,
        labels=tuple((name, tuple(labels)) for name, labels in taken.labels.items()),
        spool=paths_of(taken.spool),
        ids=files_of(taken.ids),
        asked=tuple((table, files_of(waiting)) for table, waiting in taken.asked.items()),
        zones=tuple(taken.zones.items()),
    )


def write_taken(taken: Taken, folder: Path) -> TakenFiles:
    """Write the events of a pass into a folder, and return its files."""
    for number, rows in enumerate(taken.found):
        rows.write_ipc(folder / f"found-{number}.arrow")
    np.save(folder / _PLACES, taken.places)
    np.save(folder / _NUMBERS, taken.ties.found)
    return as_files(taken, folder)


def files_of(waiting: Waiting) -> WaitingFiles:
    """Return the files in which rows wait."""
    return WaitingFiles(paths_of(waiting.spool), waiting.rows, waiting.sample)


def paths_of(spool: object) -> Paths:
    """Return the files of a spool."""
    assert isinstance(spool, FileSpool)
    return tuple(map(str, spool.parts))


def spool_of(paths: Paths) -> FileSpool:
    """Return a spool of files."""
    return FileSpool(Path(), tuple(map(Path, paths)))
