"""Whoever computes a study of delays in units: kept from before, by threads of this process, or by workers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from evaluator.delays.fitted_law import DelayFit
from evaluator.delays.study.delay_units import DelaysInThreads, DelayUnit, DelayWorkers, Found, Sample
from evaluator.delays.study.studied_rows import StudiedRows, log_of
from evaluator.errors import WorkerError
from evaluator.jobs.run_jobs import run_jobs
from evaluator.jobs.serialise import as_text, from_text
from evaluator.jobs.software import refuse_other_software, software
from evaluator.jobs.workers import OpenedLast, tell, this_worker
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
class DelayJob:
    """A unit of a study, and the hash of all that fixes what it finds: all that a worker is sent."""

    studied: StudiedDelays
    unit: DelayUnit
    key: str

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        return self.unit.name

    @property
    def steps(self) -> int:
        """Steps of the progress that the job counts for."""
        return self.unit.steps * len(self.unit.items)

    def compute(self) -> str:
        """Compute the unit, on a worker, and return what its items found as text.

        Raises
        ------
        WorkerError
            The worker is refused: it has another version, or other delays under the name.
        """
        refuse_other_software(self.studied.software)
        sample = _opened(self.studied).sample(self.unit.of)
        return as_text(tuple(self.unit.one(sample, item) for item in self.unit.items))


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
        jobs = [DelayJob(self._studied, unit, self._studied.key(unit)) for unit in units]

        def here(left: Sequence[DelayJob]) -> Generator[tuple[DelayJob, str], None, None]:
            with closing(self._threads.found([job.unit for job in left], sample)) as coming:
                for job, found in zip(left, coming, strict=True):
                    yield job, as_text(found)

        coming = run_jobs(
            jobs, here, kept=self._kept, executor=self._executor, advance=lambda job: self._advance(job.steps)
        )
        with closing(coming):
            for _, text in coming:
                yield from_text(text, [DelayFit])

    def advance(self, steps: int) -> None:
        """Count steps that no unit counts for."""
        self._advance(steps)


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


def _open(studied: StudiedDelays) -> StudiedRows:
    assert studied.place is not None
    there = studied.place.opened()
    rows = there if isinstance(there, DelayRows) else delay_rows(log_of(there, studied.refunds), by=studied.by)
    if delays_hash(rows) != studied.content:
        raise WorkerError(
            f"Worker {this_worker()} is refused: it reads other delays than the command does.",
            remedy="let all workers see the same files, or copy them to each.",
        )
    tell("read the delays before its first unit")
    return StudiedRows(rows, studied.seed)


_opened = OpenedLast(_open)
