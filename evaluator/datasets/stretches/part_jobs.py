"""Parts of a log as jobs of an executor's workers, who write them into a folder that all see."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evaluator.datasets.assembly import DisplayBatches, DisplayNumbers, KeptDisplays, PartPlace, write_part
from evaluator.datasets.contexts import ContextVectors
from evaluator.datasets.labels import KeptPropensities, by_design
from evaluator.datasets.metadata import propensity_kind
from evaluator.datasets.reading_plan import ReadingPlan
from evaluator.datasets.spool import FileSpool, MemorySpool, Spool, Waiting
from evaluator.datasets.stretches.joined_intake import StretchesInThreads
from evaluator.datasets.stretches.pass_result import Ints, SettledTies, Taken
from evaluator.errors import WorkerError
from evaluator.jobs.run_jobs import Job, run_jobs
from evaluator.jobs.serialise import as_text, from_text
from evaluator.jobs.workers import OpenedLast, this_worker

# Files in the folder of temporary files: which conversion it is of, and what its displays are made of.
_RUN, _ASSEMBLY = "conversion", "assembly"

Names = tuple[tuple[str, tuple[str | None, ...]], ...]


@dataclass(frozen=True)
class StretchFiles:
    """Displays of a stretch that was read.

    Parameters
    ----------
    rows
        Number of displays.
    shown
        Number of displays of each action label, shape (labels,).
    labels
        Labels of each column of codes, by its name.
    spool
        Files of the displays.
    """

    rows: int
    shown: Ints
    labels: Names
    spool: tuple[str, ...]


@dataclass(frozen=True)
class Assembly:
    """The displays of a log, all of which stay.

    Parameters
    ----------
    stretches
        Displays of each stretch, in the order of these.
    labels
        Labels of the K actions.
    new_action
        Index of the action of each action code, shape (codes,).
    one_hot
        Labels of each one-hot column of the context; None where the log gets no contexts.
    scales
        Mean and deviation of each number of the context that is scaled.
    """

    stretches: tuple[StretchFiles, ...]
    labels: tuple[str, ...]
    new_action: npt.NDArray[np.int32]
    one_hot: Names | None
    scales: tuple[tuple[str, tuple[float, float]], ...]


@dataclass(frozen=True)
class Conversion:
    """What a worker has to know of a conversion, as plain values.

    Parameters
    ----------
    run
        Name of the conversion, which no other has: what a worker keeps of one is nothing to the next.
    room, into
        Folder of temporary files, and folder of the log, which all workers see.
    plan
        What was read; without the files, of which workers need none.
    """

    run: str
    room: str
    into: str
    plan: ReadingPlan = field(compare=False)


@dataclass(frozen=True)
class PartJob(Job):
    """A part of the log to be written: its displays, and its name."""

    conversion: Conversion
    part: PartPlace

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        return f"The writing of {self.part.name}"

    @property
    def items(self) -> tuple[PartPlace]:
        """The part."""
        return (self.part,)

    def open(self) -> DisplayBatches:
        """Open the displays of the log."""
        return _opened(self.conversion)

    def compute(self, opened: DisplayBatches, item: PartPlace) -> str:
        """Write the part, whole or not at all, and return its name."""
        folder = Path(self.conversion.room) / secrets.token_hex(8)  # of this attempt alone
        folder.mkdir()
        write_part(opened, item, folder)
        if not (there := Path(self.conversion.into) / item.name).exists():  # else another worker had the same job
            os.replace(folder / item.name, there)
        return item.name


class PartsOnWorkers(StretchesInThreads):
    """Threads of this process read, and the workers of an executor write the parts.

    Parameters
    ----------
    plan, jobs, new_spool
        What is read, number of threads, and function that makes a temporary file, as of `StretchesInThreads`.
    executor
        Executor that the jobs are given to.
    room
        Existing folder of temporary files, which all workers see.
    """

    def __init__(
        self, plan: ReadingPlan, jobs: int, new_spool: Callable[[], Spool], executor: Executor, room: Path
    ) -> None:
        super().__init__(plan, jobs, new_spool)
        self._executor, self._room = executor, room.resolve()

    def write(self, made: DisplayBatches, taken: Sequence[Taken], parts: Sequence[PartPlace], folder: Path) -> None:
        """Write parts of the displays into a folder."""
        kept, vectors, run = made.kept, made.vectors, secrets.token_hex(8)
        assembly = Assembly(
            stretches=tuple(map(_files_of, taken)),
            labels=tuple(kept.labels),
            new_action=kept.new_action,
            one_hot=None if vectors is None else _names(vectors.one_hot),
            scales=() if vectors is None else tuple(vectors.scales.items()),
        )
        (self._room / _ASSEMBLY).write_text(as_text(assembly), encoding="utf-8")
        (self._room / _RUN).write_text(run, encoding="ascii")
        plan, into = self._plan.without_files(), str(folder.resolve())
        conversion = Conversion(run, str(self._room), into, plan)
        for _ in run_jobs([PartJob(conversion, part) for part in parts], executor=self._executor):
            pass


def _open(conversion: Conversion) -> DisplayBatches:
    room = Path(conversion.room)
    try:
        there = (room / _RUN).read_text(encoding="ascii") == conversion.run
    except OSError:
        there = False
    if not there:
        raise WorkerError(
            f"Worker {this_worker()} does not see {conversion.into}, into which the log is written.",
            remedy="name a folder on a file system that all workers share.",
        )
    text = (room / _ASSEMBLY).read_text(encoding="utf-8")
    return _assembled(conversion.plan, from_text(text, (StretchFiles, Assembly)))


_opened = OpenedLast(_open)


def _assembled(plan: ReadingPlan, assembly: Assembly) -> DisplayBatches:
    whole = plan.intake(MemorySpool, {})
    whole.join_displays([_taken(one) for one in assembly.stretches])
    kind, labels, design = propensity_kind(plan.spec), list(assembly.labels), plan.spec.display.design
    propensities = KeptPropensities(kind, None if design is None else by_design(design, labels))
    kept = KeptDisplays(whole, labels, assembly.new_action, whole.sound, propensities)
    one_hot = assembly.one_hot
    vectors = None if one_hot is None else ContextVectors.known(whole.codes, dict(one_hot), dict(assembly.scales))
    return DisplayBatches(kept, vectors, DisplayNumbers(np.zeros(0, np.int64)), uniform=kind == "uniform")


def _files_of(taken: Taken) -> StretchFiles:
    assert isinstance(taken.spool, FileSpool)
    spool = tuple(str(path.resolve()) for path in taken.spool.parts)
    return StretchFiles(taken.rows, taken.shown, _names(taken.labels), spool)


def _taken(files: StretchFiles) -> Taken:
    """Return the displays of a stretch, without ids and events."""
    none = np.zeros(0, np.int64)
    return Taken(
        rows=files.rows, last_time=0, labels=dict(files.labels), shown=files.shown,  # type: ignore[arg-type]
        ties=SettledTies(files.rows, 0, none), places=none, found=[],
        spool=FileSpool(Path(), tuple(map(Path, files.spool))), ids=Waiting(MemorySpool(), 0), asked={}, zones={},
    )  # fmt: skip


def _names(labels: Mapping[str, Sequence[str | None]]) -> Names:
    return tuple((name, tuple(of)) for name, of in labels.items())
