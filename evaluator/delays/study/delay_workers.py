"""Whoever computes a study of delays in units: kept from before, by threads of this process, or by workers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from evaluator.delays.fitted_law import DelayFit
from evaluator.delays.study.delay_units import DelaysInThreads, DelayUnit, DelayWorkers, Found, Sample
from evaluator.delays.study.studied_rows import StudiedRows, log_of
from evaluator.errors import WorkerError
from evaluator.jobs.run_jobs import finished
from evaluator.jobs.serialise import as_text, from_text
from evaluator.jobs.software import refuse_other_software, software
from evaluator.jobs.workers import tell, this_worker
from evaluator.log import Log
from evaluator.log.delay_rows import DelayRows, delay_rows, delays_hash
from evaluator.outputs.kept_units import KeptUnits


class DelayPlace(Protocol):
    """Where delays lie, so that another process can open the same ones: a frozen dataclass of plain values.

    Of a log, `evaluator.comparisons.log_places.LogPlace`; of a bare file,
    `evaluator.datasets.delay_file.DelayFilePlace`.
    """

    def opened(self) -> Log | DelayRows:
        """Return the log, or the rows of the file, if it is what was meant.

        Raises
        ------
        WorkerError
            It is not there for this worker, or something else is there.
        """


@dataclass(frozen=True)
class StudiedDelays:
    """What a worker has to know of a study, as plain values.

    Parameters
    ----------
    place
        Place of the log, or of the file, with the hash of what it holds.
    by
        Name of what makes groups of a log's delays; None for no groups.
    refunds
        Whether refunds are studied, or what is not refunded; None for all conversions.
    seed
        Seed of the study.
    software
        What computes (`evaluator.jobs.software.software`).
    content
        Hash of the delays (`evaluator.log.delay_rows.delays_hash`).
    """

    place: DelayPlace | None
    by: str | None
    refunds: bool | None
    seed: int
    software: tuple[str, ...]
    content: str

    def key(self, unit: DelayUnit) -> str:
        """Return the hash of all that fixes what a unit finds, wherever the delays lie."""
        said = [self.content, self.seed, self.software, unit.of, as_text(unit)]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


@dataclass(frozen=True)
class DelayTask:
    """A unit of a study, and the hash of all that fixes what it finds: all that a worker is sent."""

    studied: StudiedDelays
    unit: DelayUnit
    key: str

    @property
    def name(self) -> str:
        """Name of the unit in messages."""
        return self.unit.name


class DelaysInUnits:
    """Units that are looked for among those kept, and else computed, and kept as they are finished.

    Parameters
    ----------
    studied
        Study that they are of.
    kept
        Folder of the units; None for none.
    executor
        Executor whose workers compute them; None for threads of this process.
    jobs, advance
        Number of threads, and function that counts steps, as of `DelaysInThreads`.
    """

    def __init__(
        self,
        studied: StudiedDelays,
        *,
        kept: KeptUnits | None,
        executor: Executor | None,
        jobs: int | None,
        advance: Callable[[int], None],
    ) -> None:
        self._studied, self._kept, self._executor, self._advance = studied, kept, executor, advance
        self._threads = DelaysInThreads(jobs, advance)

    def found(self, units: Sequence[DelayUnit], sample: Sample) -> Iterator[Found]:
        """Yield what the items of each unit found, in the order of the units."""
        tasks = [DelayTask(self._studied, unit, self._studied.key(unit)) for unit in units]
        there = {} if self._kept is None else self._kept.find(task.key for task in tasks)
        left = [task for task in tasks if task.key not in there]
        self._advance(sum(_steps(task) for task in tasks if task.key in there))
        coming = self._on_executor(left) if self._executor is not None else self._here(left, sample)
        try:
            for task in tasks:
                while task.key not in there:
                    done, text = next(coming)
                    if self._kept is not None:
                        self._kept.keep(done.key, text)
                    there[done.key] = text
                yield from_text(there.pop(task.key), [DelayFit])
        finally:
            coming.close()  # type: ignore[attr-defined]

    def advance(self, steps: int) -> None:
        """Count steps that no unit counts for."""
        self._advance(steps)

    def _here(self, tasks: Sequence[DelayTask], sample: Sample) -> Iterator[tuple[DelayTask, str]]:
        coming = self._threads.found([task.unit for task in tasks], sample)
        try:
            for task, found in zip(tasks, coming, strict=True):
                yield task, as_text(found)
        finally:
            coming.close()  # type: ignore[attr-defined]

    def _on_executor(self, tasks: Sequence[DelayTask]) -> Iterator[tuple[DelayTask, str]]:
        assert self._executor is not None
        for task, text in finished(compute_delays, tasks, self._executor):
            self._advance(_steps(task))
            yield task, text


def _steps(task: DelayTask) -> int:
    return task.unit.steps * len(task.unit.items)


@dataclass(frozen=True)
class Spread:
    """How a study is computed; nothing that it finds depends on it.

    Parameters
    ----------
    advance
        Function called with the number of steps that were finished since the last call (`steps` of the study's run).
    kept
        Folder in which units are kept as they are finished, and looked for; None for none.
    executor, place
        Executor whose workers compute the units, and place at which they find the delays; None for threads of this
        process.
    """

    advance: Callable[[int], None] = lambda steps: None
    kept: KeptUnits | None = None
    executor: Executor | None = None
    place: DelayPlace | None = None

    def workers(
        self, rows: DelayRows, *, by: str | None, refunds: bool | None, seed: int, jobs: int | None
    ) -> DelayWorkers:
        """Return whoever computes the units of a study of some rows, in so many threads where it is this process."""
        if self.kept is None and self.executor is None:
            return DelaysInThreads(jobs, self.advance)
        studied = StudiedDelays(self.place, by, refunds, seed, software(), delays_hash(rows))
        return DelaysInUnits(studied, kept=self.kept, executor=self.executor, jobs=jobs, advance=self.advance)


def compute_delays(task: DelayTask) -> str:
    """Compute a unit, on a worker, and return what its items found as text.

    Raises
    ------
    WorkerError
        The worker is refused: it has another version, or other delays under the name.
    """
    refuse_other_software(task.studied.software)
    sample = _opened(task.studied).sample(task.unit.of)
    return as_text(tuple(task.unit.one(sample, item) for item in task.unit.items))


_open: list[tuple[StudiedDelays, StudiedRows]] = []
_opening = Lock()


def _opened(studied: StudiedDelays) -> StudiedRows:
    """Return the delays of a study as this process read them, once."""
    with _opening:
        for known, opened in _open:
            if known == studied:
                return opened
        _open.clear()
        assert studied.place is not None
        there = studied.place.opened()
        rows = there if isinstance(there, DelayRows) else delay_rows(log_of(there, studied.refunds), by=studied.by)
        if delays_hash(rows) != studied.content:
            raise WorkerError(
                f"Worker {this_worker()} is refused: it reads other delays than the command does.",
                hint="let all workers see the same files, or copy them to each.",
            )
        opened = StudiedRows(rows, studied.seed)
        tell("read the delays before its first unit")
        _open.append((studied, opened))
        return opened
