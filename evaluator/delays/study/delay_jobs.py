"""The jobs of a study of delays, and whoever computes them: threads of this process, or workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

from evaluator.delays.fitted_law import DelayFit
from evaluator.jobs.run_jobs import Job, Results, run_jobs
from evaluator.outputs.kept_units import KeptUnits

# What the units of one part of a study compute on: laws, bootstraps, permutations, and the tail have one each.
Sample: TypeAlias = Any


class DelayUnit(Protocol):
    """Part of a study: a frozen dataclass of plain values, by which and by a sample all that it finds is fixed."""

    of: ClassVar[str]
    """Name of the sample that it computes on (`evaluator.delays.study.studied_rows.StudiedRows.sample`)."""

    @property
    def name(self) -> str:
        """Name of the unit in messages."""

    @property
    def threads(self) -> bool:
        """Whether threads of one process compute its items sooner than one of them."""

    @property
    def items(self) -> Sequence[int]:
        """Numbers of what it is made of, each of which threads compute by itself."""

    @property
    def steps(self) -> int:
        """Steps of the progress that an item counts for."""

    def one(self, sample: Sample, item: int) -> Any:
        """Return what an item finds: plain values (`evaluator.jobs.serialise`)."""


class Studied(Protocol):
    """A study as plain values (`evaluator.delays.study.studied_rows.StudiedDelays`)."""

    def key(self, unit: DelayUnit) -> str:
        """Return the hash of all that fixes what a unit finds."""

    def open(self, of: str) -> Sample:
        """Open the delays, on a worker, and return the sample that the units of one part compute on."""


@dataclass(frozen=True)
class DelayJob(Job):
    """A unit of a study; the study is None where nothing is kept and there are no workers."""

    studied: Studied | None
    unit: DelayUnit
    classes = (DelayFit,)

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        return self.unit.name

    @property
    def key(self) -> str:
        """Hash of all that fixes what the unit finds, wherever the delays lie."""
        assert self.studied is not None
        return self.studied.key(self.unit)

    @property
    def items(self) -> Sequence[int]:
        """Numbers of what the unit is made of."""
        return self.unit.items

    def open(self) -> Sample:
        """Open the delays, and return the sample that the unit computes on."""
        assert self.studied is not None
        return self.studied.open(self.unit.of)

    def compute(self, opened: Sample, item: int) -> Any:
        """Return what an item finds."""
        return self.unit.one(opened, item)


class DelayWorkers:
    """Whoever computes units: threads of this process, or the workers of an executor.

    Parameters
    ----------
    jobs
        Number of threads; None for as many as there are processors.
    advance
        Function called with the number of steps that were finished since the last call.
    studied
        Study that the units are of; None where nothing is kept and there is no executor.
    kept
        Folder in which units are kept as they are finished, and looked for; None for none.
    executor
        Executor whose workers compute; None for threads of this process.
    """

    def __init__(
        self,
        jobs: int | None = None,
        advance: Callable[[int], None] = lambda steps: None,
        *,
        studied: Studied | None = None,
        kept: KeptUnits | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.advance, self._jobs = advance, jobs or os.cpu_count() or 1
        self._studied, self._kept, self._executor = studied, kept, executor

    def found(self, units: Sequence[DelayUnit], sample: Sample) -> Generator[Results, None, None]:
        """Yield what the items of each unit found, in the order of the units; who stops reading needs no more."""
        coming = run_jobs(
            [DelayJob(self._studied, unit) for unit in units],
            sample,
            threads=self._jobs if all(unit.threads for unit in units) else 1,
            kept=self._kept,
            executor=self._executor,
            advance=lambda job, items: self.advance(job.unit.steps * items),
        )
        with closing(coming):
            for _, results in coming:
                yield results


HERE = DelayWorkers()


class StepsByPart:
    """Steps of a study's progress: every part has as many as were said beforehand, whatever becomes of it.

    Parameters
    ----------
    advance
        Function that is told of steps.
    """

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
