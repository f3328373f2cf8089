"""What a study is cut into: replays of some variants in one scan, and replays of them on some resampled logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evaluator.comparisons.written_result import read_back, written
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute_all
from evaluator.replays.values.resampled import TOGETHER, Draws, Lived, Resampling

# Replays that walk through the log together: they bound the memory of a scan.
LANES = 64
# Displays times replays of a unit that a worker of a cluster gets: some seconds of work, so that little is lost with a
# worker, and heartbeats, scheduling and the scan itself cost little beside it.
WORK = 16_000_000
# The same of a scan by threads of this process whose results are kept, for each of the threads: half a minute or so is
# lost at most when the process is killed, and a scan of a large log is worth making.
KEPT_WORK = 16 * WORK
# ... and fewest replays of a unit, by which a scan of a large log is not made for too little.
FEWEST = 4

Advance = Callable[[int], None]


class VariantUnit(Protocol):
    """What both kinds of units do."""

    @property
    def variants(self) -> tuple[int, ...]:
        """Numbers of the variants."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Hash of all that fixes the result of each."""

    @property
    def name(self) -> str:
        """Name of the unit in messages."""

    @property
    def displays(self) -> int:
        """Displays that the unit counts for in the progress."""

    def work(self, plans: Sequence[ReplayPlan], *, jobs: int = 1, advance: Advance = ...) -> Any:
        """Compute the unit by the plans of its variants."""

    def packed(self, found: Any) -> Any:
        """Return what was found as a worker sends it."""

    def unpacked(self, sent: Any, plans: Sequence[ReplayPlan]) -> Any:
        """Return what was found from what a worker sent."""


def _silent(displays: int) -> None:
    pass


@dataclass(frozen=True)
class ReplayUnit:
    """Replays of some variants in one scan of the log, without the expected values that they ask for.

    Parameters
    ----------
    variants
        Numbers of the variants.
    keys
        Hash of all that fixes the result of each.
    name
        Name of the unit in messages.
    displays
        Displays that are read.
    """

    variants: tuple[int, ...]
    keys: tuple[str, ...]
    name: str
    displays: int

    def work(self, plans: Sequence[ReplayPlan], *, jobs: int = 1, advance: Advance = _silent) -> list[ReplayResult]:
        """Return the results of the variants with these plans."""
        return execute_all(plans, jobs=jobs, advance=advance, resampled=False)

    def packed(self, found: Sequence[ReplayResult]) -> list[bytes]:
        """Return each result as the bytes of a Parquet file: its rounds, and some numbers."""
        return [written(result, key) for result, key in zip(found, self.keys, strict=True)]

    def unpacked(self, sent: Sequence[bytes], plans: Sequence[ReplayPlan]) -> list[ReplayResult]:
        """Return the results that such bytes hold."""
        found = [read_back(*of) for of in zip(sent, self.keys, plans, strict=True)]
        assert None not in found
        return [result for result in found if result is not None]


@dataclass(frozen=True)
class DrawsUnit:
    """Replays of some variants on some resampled logs.

    Parameters
    ----------
    variants, keys, name, displays
        Variants of the unit and its words, as of `ReplayUnit`.
    lived
        How far the original replays of each variant came, repeat by repeat.
    numbers
        Numbers of the resampled logs.
    """

    variants: tuple[int, ...]
    keys: tuple[str, ...]
    name: str
    displays: int
    lived: tuple[tuple[Lived, ...], ...]
    numbers: range

    def work(self, plans: Sequence[ReplayPlan], *, jobs: int = 1, advance: Advance = _silent) -> Draws:
        """Return the values of the variants with these plans, shape (resampled logs, variants)."""
        return Resampling(plans, self.lived).draws(self.numbers, jobs=jobs, advance=advance)

    def packed(self, found: Draws) -> Draws:
        """Return the values."""
        return found

    def unpacked(self, sent: Draws, plans: Sequence[ReplayPlan]) -> Draws:
        """Return the values."""
        return sent


def scans(plans: Sequence[ReplayPlan], left: Sequence[int], work: int | None) -> list[list[int]]:
    """Return which of the variants that are left are replayed together, never less than a variant.

    At most 64 replays a scan, and, where `work` says so, at most so many displays times replays.
    """
    groups: list[list[int]] = []
    lanes = 0
    for i in left:
        repeats = plans[i].options.repeats
        most = LANES if work is None else min(LANES, max(work // max(len(plans[i].rounds), 1), FEWEST))
        if not groups or lanes + repeats > most:
            groups.append([])
            lanes = 0
        groups[-1].append(i)
        lanes += repeats
    return groups


def blocks_of_draws(plans: Sequence[ReplayPlan], group: Sequence[int], work: int | None) -> Iterator[range]:
    """Yield which resampled logs of some variants are replayed in one unit."""
    lanes = sum(plans[i].options.repeats for i in group)
    displays = max(len(plans[i].rounds) for i in group)
    size = TOGETHER if work is None else min(max(work // max(lanes * displays, 1), -(-FEWEST // lanes)), TOGETHER)
    logs = plans[group[0]].options.bootstrap
    for start in range(0, logs, size):
        yield range(start, min(start + size, logs))
