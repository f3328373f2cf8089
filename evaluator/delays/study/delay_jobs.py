"""The jobs of a study of delays, and whoever computes them: threads of this process, or workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeAlias

from evaluator.delays.families import DelayFit
from evaluator.jobs.run_jobs import Job, Results, run_jobs
from evaluator.log import Log
from evaluator.log.delay_rows import DelayRows
from evaluator.outputs.kept_folder import KeptJobs

# What the jobs of one part of a study compute on: laws, bootstraps, permutations, and the tail have one each.
Sample: TypeAlias = Any


class Studied(Protocol):
    """A study as plain values (`evaluator.delays.study.studied_rows.StudiedDelays`)."""

    def key(self, job: DelayJob) -> str:
        """Return the hash of all that fixes what a job finds."""

    def open(self, of: str) -> Sample:
        """Open the delays, on a worker, and return the sample that the jobs of one part compute on."""


class DelayPlace(Protocol):
    """Where delays lie, so that another process can open the same ones: a frozen dataclass of plain values.

    Of a log, `evaluator.comparisons.log_places.LogPlace`; of a file, `evaluator.reading.delay_file.DelayFilePlace`.
    """

    def opened(self) -> Log | DelayRows:
        """Return the log, or the rows of the file; raises WorkerError where it is not there, or something else is."""


@dataclass(frozen=True)
class DelayJob(Job):
    """Part of a study of delays: by it and by a sample all that it finds is fixed.

    The sample is that of its name, `of` (`evaluator.delays.study.studied_rows.StudiedRows`); an item counts for so many
    `steps` of the progress. `studied` is as of `DelayWorkers`.
    """

    of: ClassVar[str]
    steps: ClassVar[int] = 1
    classes = (DelayFit,)

    studied: Studied | None = field(default=None, kw_only=True)

    @property
    def threads(self) -> bool:
        """Whether threads of one process compute the items sooner than one of them."""
        return True

    @property
    def key(self) -> str:
        """Hash of all that fixes what the job finds, wherever the delays lie."""
        assert self.studied is not None
        return self.studied.key(self)

    def open(self) -> Sample:
        """Open the delays, and return the sample that the job computes on."""
        assert self.studied is not None
        return self.studied.open(self.of)


@dataclass(frozen=True)
class DelayWorkers:
    """Whoever computes the jobs of a study, on which nothing that it finds depends.

    These are the workers of an `executor`, which find the delays at a `place`; None for threads of this process, `jobs`
    of them, None for as many as there are processors. `advance` is called with the number of steps that were finished
    since the last call (`evaluator.delays.study.run.steps`), and finished jobs are looked for and `kept` in a folder,
    if any. `studied` is the study that they are of, None where nothing is kept and there is no executor.
    """

    advance: Callable[[int], None] = lambda steps: None
    kept: KeptJobs | None = None
    executor: Executor | None = None
    place: DelayPlace | None = None
    jobs: int | None = None
    studied: Studied | None = None

    def found(self, jobs: Sequence[DelayJob], sample: Sample) -> Generator[Results, None, None]:
        """Yield what the items of each job found, in the order of the jobs; who stops reading needs no more."""
        coming = run_jobs(
            [replace(job, studied=self.studied) for job in jobs],
            sample,
            threads=(self.jobs or os.cpu_count() or 1) if all(job.threads for job in jobs) else 1,
            kept=self.kept,
            executor=self.executor,
            advance=lambda job, items: self.advance(job.steps * items),
        )
        with closing(coming):
            for _, results in coming:
                yield results


HERE = DelayWorkers()


class StepsByPart:
    """Steps of a study's progress: every part has as many as were said beforehand, whatever becomes of it."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance
        self._left = 0

    def advance(self, steps: int) -> None:
        """Count steps of the part in progress."""
        self._advance(min(steps, self._left))
        self._left -= min(steps, self._left)

    @contextmanager
    def part(self, steps: int) -> Iterator[None]:
        """Begin a part of so many steps, which are all done when the block is left."""
        self._left = steps
        yield
        self.advance(self._left)
