"""Passes over several stretches of time at once, joined to what one pass over all would have found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock

from evaluator.datasets.asked_displays import AskedDisplays
from evaluator.datasets.assembly import DisplayBatches, PartPlace, write_part
from evaluator.datasets.intake import Intake
from evaluator.datasets.reading_plan import ReadingPlan
from evaluator.datasets.spool import Spool, Waiting
from evaluator.datasets.stretches.stretch import Ints, Stretch, distributed, rows_of, stretches
from evaluator.datasets.stretches.taken import Taken
from evaluator.datasets.stretches.time_ranges import time_ranges
from evaluator.errors import EvaluatorError
from evaluator.threads import in_threads

# Makes what the displays of a stretch are shown to, for each second table by the spec's name of the kind.
Asking = Callable[[], Mapping[str, AskedDisplays]]
Advance = Callable[[int], None]


class StretchesInThreads:
    """Threads of this process, which read stretches of a source and write parts of the log.

    Parameters
    ----------
    plan, jobs, new_spool
        What is read, number of threads, and function that makes a temporary file.
    """

    def __init__(self, plan: ReadingPlan, jobs: int, new_spool: Callable[[], Spool]) -> None:
        self._plan, self._jobs, self._new_spool = plan, jobs, new_spool
        # Files that are distributed at once.
        self.files_at_once = jobs

    def distribute(self, files: Sequence[int], edges: Ints) -> Iterable[Sequence[Waiting]]:
        """Yield the rows of each file, parted at some times."""
        return in_threads(lambda file: distributed(self._plan, file, edges, self._new_spool), files, self._jobs)

    def take_in(self, found: Sequence[Stretch], asking: Asking, advance: Advance) -> Iterator[Taken | None]:
        """Yield what each stretch holds, in their order; None of one that one pass over all must tell about."""
        one = Lock()

        def tell(rows: int) -> None:
            with one:
                advance(rows)

        def see(stretch: Stretch) -> Taken | None:
            intake = self._plan.intake(self._new_spool, asking(), before=stretch.before)
            intake.see(rows_of(self._plan, stretch, self._new_spool), tell)
            # Of a row that breaks a rule one pass tells in the order of the source.
            return intake.taken() if intake.rows == stretch.rows else None

        return in_threads(see, found, self._jobs, ready=self._jobs)

    def write(self, made: DisplayBatches, taken: Sequence[Taken], parts: Sequence[PartPlace], folder: Path) -> None:
        """Write parts of the displays into a folder."""
        for _ in in_threads(lambda part: write_part(made, part, folder), parts, self._jobs, ready=self._jobs):
            pass


def joined_intake(
    plan: ReadingPlan,
    workers: StretchesInThreads,
    whole: Intake,
    asking: Asking,
    advance: Advance,
    alone: Callable[[str], None],
) -> list[Taken] | None:
    """Return what passes over stretches of time have found, joined in `whole`, several of them at once.

    None where there are no several stretches, and where a row breaks a rule, or an id seems to be listed twice: one
    pass over all says which, in the order of the source.

    Parameters
    ----------
    plan
        What is read.
    workers
        Who reads the stretches.
    whole
        Intake that has seen nothing.
    asking
        What makes what the displays of a stretch are shown to.
    advance
        Function called with the number of rows read since the last call, by one thread at a time.
    alone
        Function that is told why one pass has to read all.
    """
    if not plan.in_stretches:
        alone("one file, a limit or a quarantine takes one")
        return None
    told = "a row breaks a rule, or an id seems to be listed twice, which one tells in the order of the source"
    try:
        ranges = time_ranges(plan.files, plan.spec, plan.kinds[plan.spec.display.time])
        if ranges is None:
            alone("its files do not say from when to when their rows are, as Parquet files do")
            return None
        found = stretches(ranges, workers.distribute, sort=plan.sort, files_at_once=workers.files_at_once)
        if found is None:
            alone("its files are no several stretches of time of a million rows, one after the other")
            return None
        seen: list[Taken] = []
        for stretch, taken in zip(found, workers.take_in(found, asking, advance), strict=True):
            if taken is None:
                alone(told)
                return None
            for spool in stretch.waiting or ():
                spool.discard()
            seen.append(taken)
    except EvaluatorError:
        alone(told)
        return None
    whole.join(seen)
    assert whole.ids is not None
    if len(whole.ids.suspects()):
        alone(told)
        return None
    return seen
