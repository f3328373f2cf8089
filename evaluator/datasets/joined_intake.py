"""Passes over several stretches of time at once, joined to what one pass over all would have found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import numpy as np
import polars as pl

from evaluator.datasets.cells import Kind
from evaluator.datasets.frames import Chunks
from evaluator.datasets.identity import SeenIds
from evaluator.datasets.intake import Intake
from evaluator.datasets.row_breaches import FILE
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spool import Spool
from evaluator.datasets.stretches import Stretch, stretches
from evaluator.datasets.time_ranges import time_ranges
from evaluator.errors import EvaluatorError
from evaluator.threads import in_threads


class NewIntake(Protocol):
    """Makes an intake that has seen nothing; arguments as of `Intake`."""

    def __call__(self, *, ids: SeenIds | None = None, before: int = 0) -> Intake:
        """Return it."""


@dataclass(frozen=True)
class DisplayFiles:
    """The files of the displays, and how they are read.

    Parameters
    ----------
    files, spec, kinds
        Files, spec of the dataset, and kind of each column that is read, by name.
    new_spool
        Function that makes a temporary file.
    """

    files: Sequence[TablePart]
    spec: FileSpec
    kinds: Mapping[str, Kind]
    new_spool: Callable[[], Spool]

    def read(self, numbers: Sequence[int]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some files, which keep their numbers among all."""
        spec, number = self.spec, np.array(numbers, np.int32)
        files = [self.files[i] for i in numbers]
        for frame in Chunks(files, spec.source, self.kinds, None, spec.time, spec.display.eligible_separator):
            yield frame.with_columns(pl.Series(FILE, number[frame[FILE].to_numpy()]))

    def stretches(self, *, sort: bool, jobs: int) -> list[Stretch] | None:
        """Return the rows as stretches of time; None where they are no several, or nobody knows."""
        time = self.spec.display.time
        ranges = time_ranges(self.files, self.spec, self.kinds[time])
        if ranges is None:
            return None
        return stretches(ranges, self.read, time, sort=sort, jobs=jobs, new_spool=self.new_spool)


def joined_intake(
    source: DisplayFiles, new: NewIntake, *, sort: bool, jobs: int, advance: Callable[[int], None]
) -> Intake | None:
    """Return what passes over stretches of time have found, `jobs` of them at once.

    None where there are no several stretches, and where a row breaks a rule, or an id seems to be listed twice: one
    pass over all says which, in the order of the source.

    Parameters
    ----------
    source
        Files of the displays.
    new
        Function that makes an intake.
    sort
        Whether rows are to be sorted.
    jobs
        Number of threads.
    advance
        Function called with the number of rows read since the last call, by one thread at a time.
    """
    ids, one = SeenIds(source.new_spool), Lock()

    def tell(rows: int) -> None:
        with one:
            advance(rows)

    try:
        found = source.stretches(sort=sort, jobs=jobs)
        if found is None:
            return None

        def see(stretch: Stretch) -> Intake | None:
            intake = new(ids=ids, before=stretch.before)
            intake.see(stretch.chunks, tell)
            sound = not intake.breaches.rows and intake.order.kept and intake.rows == stretch.rows
            return intake if sound else None

        seen: list[Intake] = []
        for intake in in_threads(see, found, jobs, ready=jobs):
            if intake is None:
                return None
            seen.append(intake)
    except EvaluatorError:
        return None
    if len(ids.suspects()):
        return None
    whole = new()
    whole.join(seen)
    return whole
