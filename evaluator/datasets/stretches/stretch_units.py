"""Stretches of a source, and parts of its log, as units that workers read and write in a folder that all see."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

import numpy as np

from evaluator.datasets.asked_displays import AskedDisplays
from evaluator.datasets.assembly import DisplayBatches, PartPlace, write_part
from evaluator.datasets.integrity import stored_end
from evaluator.datasets.named_ids import NamedIds
from evaluator.datasets.options import ReadingOptions
from evaluator.datasets.reading_plan import ReadingPlan, plan_reading
from evaluator.datasets.sources.databases import Databases
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.sources.places import find_parts
from evaluator.datasets.sources.staging import staging
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spec_tables import DISPLAYS, SpecTable, spec_tables
from evaluator.datasets.spool import Spool, Waiting, spools
from evaluator.datasets.stretches.assembly_file import Assembly, assembled, assembly_of
from evaluator.datasets.stretches.joined_intake import Advance, Asking, taken_in
from evaluator.datasets.stretches.stretch import Ints, Stretch, distributed
from evaluator.datasets.stretches.taken import Taken
from evaluator.datasets.stretches.taken_files import (
    Paths,
    TakenFiles,
    WaitingFiles,
    files_of,
    paths_of,
    spool_of,
    write_taken,
)
from evaluator.datasets.stretches.time_ranges import parquet_of
from evaluator.errors import EvaluatorError, WorkerError
from evaluator.executors.finished import finished
from evaluator.executors.plain_values import as_text, from_text
from evaluator.executors.software import refuse_other_software, software
from evaluator.executors.workers import in_folder, this_folder, this_worker

# File that says which conversion a folder of temporary files is of.
_RUN = "conversion"
_CLASSES = (WaitingFiles, TakenFiles)


@dataclass(frozen=True)
class ConvertedSource:
    """What a worker has to know of a conversion, as plain values.

    Parameters
    ----------
    spec, home
        Spec of the dataset as JSON, and folder that its names are relative to.
    asked
        Options of the reading.
    folder
        Working folder of the command, in which relative names are looked up.
    room, into
        Folder of temporary files, and folder of the log, which all workers see.
    software
        What computes (`evaluator.executors.software.software`).
    key
        Hash of all that fixes what is read of the displays, with size and end of each file.
    run
        Name of this conversion, which no other has: what a worker keeps of one is nothing to the next.
    """

    spec: str
    home: str
    asked: ReadingOptions
    folder: str
    room: str
    into: str
    software: tuple[str, ...]
    key: str
    run: str


@dataclass(frozen=True)
class FileTask:
    """Rows of a file to be parted at some times: all that a worker is sent."""

    source: ConvertedSource
    file: int
    edges: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of the unit in messages."""
        return f"The distribution of file {self.file + 1:,}"


@dataclass(frozen=True)
class StretchTask:
    """A stretch to be read: all that a worker is sent.

    Parameters
    ----------
    source
        Conversion that it is of.
    files, before, rows, waiting
        Numbers and files of the stretch, as of `evaluator.datasets.stretches.stretch.Stretch`.
    named
        File of the ids that each second table names, by the spec's name of the kind.
    """

    source: ConvertedSource
    files: tuple[int, ...]
    before: int
    rows: int
    waiting: tuple[Paths, ...] | None
    named: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Name of the unit in messages."""
        return f"The reading of rows {self.before + 1:,} to {self.before + self.rows:,}"


@dataclass(frozen=True)
class PartTask:
    """A part of the log to be written: all that a worker is sent.

    Parameters
    ----------
    source
        Conversion that it is of.
    assembly
        File that says what the displays are made of.
    part
        Displays of the part, and its name.
    """

    source: ConvertedSource
    assembly: str
    part: PartPlace

    @property
    def name(self) -> str:
        """Name of the unit in messages."""
        return f"The writing of {self.part.name}"


class StretchesOnExecutor:
    """The workers of an executor.

    Parameters
    ----------
    executor
        Executor that the units are given to.
    plan
        What is read.
    home
        Folder that names in the spec are relative to.
    room, into
        Existing folder of temporary files, and folder of the log, which all workers see.
    """

    # Each file is distributed by a process of its own.
    files_at_once = 1

    def __init__(self, executor: Executor, plan: ReadingPlan, home: Path, room: Path, into: Path) -> None:
        self._executor, self._room = executor, room.resolve()
        said = plan.spec.model_dump_json()
        key = source_key(plan)
        run = secrets.token_hex(8)
        self._source = ConvertedSource(
            said, str(home), plan.asked, this_folder(), str(self._room), str(into.resolve()), software(), key, run
        )
        (self._room / _RUN).write_text(run, encoding="ascii")

    def distribute(self, files: Sequence[int], edges: Ints) -> Iterable[Sequence[Waiting]]:
        """Yield the rows of each file, parted at some times."""
        tasks = [FileTask(self._source, file, tuple(edges.tolist())) for file in files]
        done = {task.file: text for task, text in finished(distribute_file, tasks, self._executor)}
        for file in files:
            yield [waiting.opened() for waiting in from_text(done[file], _CLASSES)]

    def take_in(self, found: Sequence[Stretch], asking: Asking, advance: Advance) -> Iterator[Taken | None]:
        """Yield what each stretch holds."""
        named = tuple((table, self._named(asked.named, n)) for n, (table, asked) in enumerate(asking().items()))
        tasks = [
            StretchTask(
                self._source,
                stretch.files,
                stretch.before,
                stretch.rows,
                None if stretch.waiting is None else tuple(map(paths_of, stretch.waiting)),
                named,
            )
            for stretch in found
        ]
        there: dict[int, str] = {}
        coming = finished(take_in_stretch, tasks, self._executor)
        for task in tasks:
            while task.before not in there:
                done, text = next(coming)
                there[done.before] = text
                advance(done.rows)
            taken = from_text(there.pop(task.before), _CLASSES)
            yield None if taken is None else taken.opened()

    def write(self, made: DisplayBatches, taken: Sequence[Taken], parts: Sequence[PartPlace], folder: Path) -> None:
        """Write parts of the displays."""
        file = self._room / "assembly"
        file.write_text(as_text(assembly_of(made, taken)), encoding="utf-8")
        tasks = [PartTask(self._source, str(file), part) for part in parts]
        for _ in finished(write_part_of_log, tasks, self._executor):
            pass

    def _named(self, ids: NamedIds, number: int) -> str:
        path = self._room / f"named-{number}.npy"
        np.save(path, ids.bits)
        return str(path)


def source_key(plan: ReadingPlan) -> str:
    """Return the hash of what is asked of which source: spec, options, and size and end of each file of displays."""
    files = []
    for part in plan.files:
        file = parquet_of(part)
        assert file is not None
        files.append([part.name, part.partitions, *stored_end(file)])
    said = [plan.spec.model_dump(mode="json"), asdict(plan.asked), files]
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def distribute_file(task: FileTask) -> str:
    """Part the rows of a file at some times, on a worker.

    Raises
    ------
    WorkerError
        The worker is refused: it has another version, other files under the names, or does not see the folder.
    """
    plan = _opened(task.source)
    _, new_spool = _folder(task.source)
    parts = distributed(plan, task.file, np.array(task.edges, np.int64), new_spool)
    return as_text(tuple(map(files_of, parts)))


def take_in_stretch(task: StretchTask) -> str:
    """Read a stretch, on a worker; raises as `distribute_file`."""
    plan = _opened(task.source)
    folder, new_spool = _folder(task.source)
    waiting = None if task.waiting is None else tuple(map(spool_of, task.waiting))
    asked = {table: AskedDisplays(_ids(path), new_spool) for table, path in task.named}
    try:
        taken = taken_in(plan, Stretch(task.files, task.before, task.rows, waiting), asked, new_spool)
    except WorkerError:
        raise
    except EvaluatorError:  # which one pass over all tells better
        taken = None
    return as_text(None if taken is None else write_taken(taken, folder))


def write_part_of_log(task: PartTask) -> str:
    """Write a part of the log, whole or not at all, on a worker; raises as `distribute_file`."""
    plan = _opened(task.source)
    folder, _ = _folder(task.source)
    write_part(_made(plan, task.assembly), task.part, folder)
    if not (there := Path(task.source.into) / task.part.name).exists():  # else another worker had the same unit
        os.replace(folder / task.part.name, there)
    return as_text(task.part.name)


# What was asked for last: sources that are planned, ids that are named, displays as they are assembled.
_open: list[tuple[ConvertedSource, ReadingPlan]] = []
_bits: dict[str, NamedIds] = {}
_assembled: list[tuple[str, DisplayBatches]] = []
_opening = Lock()


def _opened(source: ConvertedSource) -> ReadingPlan:
    """Return what is read of a source as this process planned it, once."""
    refuse_other_software(source.software)
    with _opening:
        for known, plan in _open:
            if known == source:
                return plan
        _open.clear()
        _bits.clear()
        _assembled.clear()
        in_folder(source.folder)
        try:
            there = (Path(source.room) / _RUN).read_text(encoding="ascii") == source.run
        except OSError:
            there = False
        if not there:
            raise WorkerError(
                f"Worker {this_worker()} does not see {source.into}, into which the log is written.",
                hint="name a folder on a file system that all workers share.",
            )
        plan = _planned(source)
        _open.append((source, plan))
        return plan


def _planned(source: ConvertedSource) -> ReadingPlan:
    spec = FileSpec.model_validate_json(source.spec)
    found = {}
    try:
        for name, of in spec_tables(spec).items():
            override = source.asked.path if of.table.place == spec.source.place else None
            # Rows of other tables are read where the command runs; that they have one, counts here.
            found[name] = _parts(of, Path(source.home), override) if name == DISPLAYS else []
        plan = plan_reading(spec, found.pop(DISPLAYS), found, [], source.asked)
        same = source_key(plan) == source.key
    except (EvaluatorError, OSError) as error:
        raise WorkerError(
            f"Worker {this_worker()} cannot read the source: {error}",
            hint="let all workers see its files under the same names.",
        ) from error
    if not same:
        raise WorkerError(
            f"Worker {this_worker()} is refused: it sees other files of {spec.name} under the same names.",
            hint="let all workers see the same files.",
        )
    return plan


def _parts(of: SpecTable, home: Path, override: str | Path | None) -> list[TablePart]:
    with staging(None) as place, Databases() as databases:
        return find_parts(of, home, staging=place, databases=databases, override=override)


def _folder(source: ConvertedSource) -> tuple[Path, Callable[[], Spool]]:
    """Return a new folder of temporary files, of this attempt alone, and what makes spools there."""
    folder = Path(source.room) / secrets.token_hex(8)
    folder.mkdir()
    return folder, spools(folder)


def _ids(path: str) -> NamedIds:
    with _opening:
        if path not in _bits:
            _bits[path] = NamedIds(np.load(path))
        return _bits[path]


def _made(plan: ReadingPlan, path: str) -> DisplayBatches:
    with _opening:
        for known, made in _assembled:
            if known == path:
                return made
        text = Path(path).read_text(encoding="utf-8")
        made = assembled(plan, from_text(text, (*_CLASSES, Assembly)))
        _assembled[:] = [(path, made)]
        return made
