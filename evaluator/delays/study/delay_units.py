"""What a study of delays is cut into, and threads of this process that compute it."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeAlias

from evaluator.threads import in_threads

# What the units of one part of a study compute on: laws, bootstraps, permutations, and the tail have one each.
Sample: TypeAlias = Any
Found: TypeAlias = tuple[Any, ...]


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


class DelayWorkers(Protocol):
    """Whoever computes units."""

    def found(self, units: Sequence[DelayUnit], sample: Sample) -> Iterator[Found]:
        """Yield what the items of each unit found, in the order of the units; who stops reading needs no more."""

    def advance(self, steps: int) -> None:
        """Count steps that no unit counts for."""


class DelaysInThreads:
    """Threads of this process.

    Parameters
    ----------
    jobs
        Number of threads; None for as many as there are processors.
    advance
        Function called with the number of steps that were finished since the last call.
    """

    def __init__(self, jobs: int | None = None, advance: Callable[[int], None] = lambda steps: None) -> None:
        self._jobs = jobs or os.cpu_count() or 1
        self._advance = advance

    def found(self, units: Sequence[DelayUnit], sample: Sample) -> Generator[Found, None, None]:
        """Yield what the items of each unit found: items of several units are computed at a time."""
        coming = in_threads(
            lambda task: task[0].one(sample, task[1]), [(unit, item) for unit in units for item in unit.items],
            self._jobs if all(unit.threads for unit in units) else 1,
        )  # fmt: skip
        try:
            for unit in units:
                of_unit = []
                for one in islice(coming, len(unit.items)):
                    of_unit.append(one)
                    self._advance(unit.steps)
                yield tuple(of_unit)
        finally:
            coming.close()  # type: ignore[attr-defined]

    def advance(self, steps: int) -> None:
        """Count steps that no unit counts for."""
        self._advance(steps)


HERE = DelaysInThreads()


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
