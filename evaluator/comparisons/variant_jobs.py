"""The jobs of a study: replays of some variants in one scan, and replays of them on some resampled logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

from evaluator.arguments import as_description, loaded_by
from evaluator.comparisons.kept import Questions, read_back, written
from evaluator.comparisons.log_places import LogPlace
from evaluator.comparisons.variants import Variants, Window, pairs_of
from evaluator.errors import WorkerError
from evaluator.jobs.run_jobs import Job
from evaluator.jobs.workers import OpenedLast, tell, this_worker
from evaluator.own_code import CodeOfPolicy
from evaluator.replays.one_scan import compile_loops
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute_all
from evaluator.replays.values.resampled import TOGETHER, Draws, Lived, Resampling

# Replays that walk through the log together: they bound the memory of a scan.
LANES = 64
# Displays times replays of a job that a worker of a cluster gets: some seconds of work, so that little is lost with a
# worker, and heartbeats, scheduling and the scan itself cost little beside it.
WORK = 16_000_000
# The same of a scan by threads of this process whose results are kept, for each of the threads: half a minute or so is
# lost at most when the process is killed, and a scan of a large log is worth making.
KEPT_WORK = 16 * WORK
# ... and fewest replays of a job, by which a scan of a large log is not made for too little.
FEWEST = 4

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Study:
    """What a worker has to know of a study, as plain values: the place of its log, and its policies with their code."""

    place: LogPlace
    policies: tuple[str, ...]
    windows: tuple[Window, ...]
    options: ReplayOptions
    codes: tuple[CodeOfPolicy, ...]


class OpenPlans(NamedTuple):
    """What the jobs of a study are computed on: a function from a variant's number and key to its plan, and threads."""

    plan: Callable[[int, str], ReplayPlan]
    jobs: int = 1
    advance: Advance = lambda displays: None


@dataclass(frozen=True)
class VariantJob(Job):
    """What both kinds of jobs have: variants by number and key, and the displays that it counts for in the progress.

    Without workers there is no study, and keys are empty.
    """

    study: Study | None
    variants: tuple[int, ...]
    keys: tuple[str, ...]
    title: str
    displays: int

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        return self.title

    @property
    def items(self) -> tuple[tuple[int, ...]]:
        """All variants at once, as one scan reads the log."""
        return (self.variants,)

    def open(self) -> OpenPlans:
        """Open the log."""
        assert self.study is not None
        return OpenPlans(_opened(self.study).plan)

    def plans(self, opened: OpenPlans) -> list[ReplayPlan]:
        """Return the plans of the variants."""
        return [opened.plan(*of) for of in zip(self.variants, self.keys, strict=True)]


@dataclass(frozen=True)
class ReplayJob(VariantJob):
    """Replays of some variants in one scan of the log, without the expected values that they ask for."""

    def compute(self, opened: OpenPlans, item: tuple[int, ...]) -> list[ReplayResult]:
        """Return the results of the variants."""
        return execute_all(self.plans(opened), jobs=opened.jobs, advance=opened.advance, resampled=False)

    def pack(self, results: tuple[list[ReplayResult]]) -> list[bytes]:
        """Return each result as the bytes of a Parquet file: its rounds, and some numbers."""
        return [written(result, key) for result, key in zip(results[0], self.keys, strict=True)]

    def unpack(self, packed: Sequence[bytes], opened: OpenPlans) -> tuple[list[ReplayResult]]:
        """Return the results that such bytes hold."""
        found = [read_back(*of) for of in zip(packed, self.keys, self.plans(opened), strict=True)]
        assert None not in found
        return ([result for result in found if result is not None],)


@dataclass(frozen=True)
class DrawsJob(VariantJob):
    """Replays of some variants on the resampled logs of these numbers, as far as the original replays of each came."""

    lived: tuple[tuple[Lived, ...], ...]
    numbers: range
    classes = (Draws,)

    def compute(self, opened: OpenPlans, item: tuple[int, ...]) -> Draws:
        """Return the values of the variants, shape (resampled logs, variants)."""
        resampling = Resampling(self.plans(opened), self.lived)
        return resampling.draws(self.numbers, jobs=opened.jobs, advance=opened.advance)


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


def blocks_of_draws(
    plans: Sequence[ReplayPlan], group: Sequence[int], work: int | None, logs: range
) -> Iterator[range]:
    """Yield which of the resampled logs with these numbers are replayed in one job, of some variants."""
    lanes = sum(plans[i].options.repeats for i in group)
    displays = max(len(plans[i].rounds) for i in group)
    size = TOGETHER if work is None else min(max(work // max(lanes * displays, 1), -(-FEWEST // lanes)), TOGETHER)
    for start in range(logs.start, logs.stop, size):
        yield range(start, min(start + size, logs.stop))


class StudyWorkers(NamedTuple):
    """The workers of an executor, the study that they compute, and what fixes its results, asked of its log."""

    executor: Executor
    study: Study
    questions: Questions


def study_on(
    executor: Executor, place: LogPlace, policies: Sequence[Any], windows: Sequence[Window], options: ReplayOptions
) -> StudyWorkers:
    """Return the workers of an executor for a study of some policies on the log at a place.

    UsageError if a policy has no name by which workers could load it.
    """
    questions = Questions(policies)
    questions.log = place.content
    words = tuple(loaded_by(policy) for policy in policies)
    study = Study(place, words, tuple(windows), options, questions.codes)
    return StudyWorkers(executor, study, questions)


class _OpenStudy:
    """A study on a worker: its log, and the plans that were asked for."""

    def __init__(self, study: Study) -> None:
        log = study.place.opened()
        policies = [as_description(words) for words in study.policies]
        self._questions = Questions(policies, study.codes)
        self._questions.log = study.place.content
        self._variants = Variants(log, policies, study.windows, study.options)
        self._plans: dict[int, ReplayPlan] = {}
        self._lock = Lock()
        begun = time.monotonic()
        numbered = reversed(list(enumerate(pairs_of(policies, study.windows))))
        first = {policy.name: i for i, (policy, _) in numbered}
        names = compile_loops([self._planned(number) for number in sorted(first.values())])
        took = time.monotonic() - begun
        what = f"compiled {', '.join(dict.fromkeys(names))}" if names else "found everything compiled"
        tell(f"{what} before its first job ({took:.1f} s)")

    def plan(self, number: int, key: str) -> ReplayPlan:
        """Return the plan of a variant, if its result is what the key stands for."""
        with self._lock:
            plan = self._planned(number)
        if self._questions.key(plan) != key:
            raise WorkerError(
                f"Worker {this_worker()} is refused: it plans {plan.policy.spec} otherwise than the command does.",
                remedy="files that options and policies name must be the same there, and so must installed packages.",
            )
        return plan

    def _planned(self, number: int) -> ReplayPlan:
        if number not in self._plans:
            self._plans[number] = self._variants.plan(number)
        return self._plans[number]


# The log, and the one that a rule has checked.
_opened = OpenedLast(_OpenStudy, most=2)
