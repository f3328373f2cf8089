"""A study as a list of jobs, computed in this process or by the workers of an executor, and kept as they finish.

The jobs of a study: replays of some variants in one scan, and replays of them on some resampled logs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from evaluator.arguments import as_description, loaded_by
from evaluator.comparisons.expected import at_horizon, why_not_expected
from evaluator.comparisons.kept import FoundResults, KeptResults, Questions, read_back, written
from evaluator.comparisons.log_places import LogPlace
from evaluator.comparisons.variants import (
    Case,
    CommonHorizon,
    Variants,
    Window,
    cases_of,
    common_horizon,
    comparable,
    pairs_of,
)
from evaluator.errors import UsageError, WorkerError
from evaluator.estimates.standard_errors import error_of_spread, too_few
from evaluator.jobs.run_jobs import Job, run_jobs
from evaluator.jobs.workers import OpenedLast, tell, this_worker
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.own_code import CodeOfPolicy
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import compile_loops, execute, execute_all
from evaluator.replays.values.resampled import (
    LOGGED,
    TOGETHER,
    Draws,
    Lived,
    ResampledValues,
    Resampling,
    clusters_shown,
    with_expected_value,
)

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
NOTHING = FoundResults({}, 0, 0)
# Resampled logs that decide, where their number was not asked for: so many at first, and so many more each time until
# the spread of the values is known to this share of it (one standard error: no number asks which side of a rule an end
# is on), and no more than the most. What that says of the ends: `evaluator.estimates.standard_errors.error_of_spread`.
FIRST, STEP, MOST, ENOUGH = 100, 50, 200, 0.075
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Study:
    """What a worker has to know of a study, as plain values: the place of its log, and its policies with their code."""

    place: LogPlace
    policies: tuple[str, ...]
    cases: tuple[Case, ...]
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


J = TypeVar("J", bound=VariantJob)


class VariantRuns:
    """The replays of a study by its plans, as jobs: what is left of them.

    `kept` is the folder in which results and parts of them are kept, None for none, and `found` what is there already.
    Without `workers` threads of this process compute. `pairs` (variant, baseline) are those whose expected difference
    decides, where no number of resampled logs was asked for: as many are replayed as it needs (`ENOUGH`); none of them:
    no log is resampled.
    """

    def __init__(
        self,
        plans: Sequence[ReplayPlan],
        *,
        kept: KeptResults | None = None,
        found: FoundResults = NOTHING,
        workers: StudyWorkers | None = None,
        pairs: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._plans = plans
        self._kept = kept
        self._workers = workers
        self._work = None if kept is None else KEPT_WORK * plans[0].options.jobs
        if workers is not None:
            self._work = WORK
        self._draws = plans[0].options.bootstrap
        self._pairs = () if self._draws else tuple(pairs)
        self._results = dict(found.results)
        self._bare = {i: result for i, result in found.bare.items() if i not in self._results}
        self._values = {i: dict(of) for i, of in found.draws.items()}
        self._horizon: CommonHorizon | None = None
        self._keys = {i: "" if workers is None else workers.questions.key(plan) for i, plan in enumerate(plans)}
        self.compared: dict[int, ResampledValues] = {}

    @property
    def totals(self) -> dict[str, int]:
        """Displays that `run` tells of, by what it does with them; of resampled logs at most."""
        lines = sorted({i for pair in self._pairs for i in pair})
        if self._draws:
            lines = [i for i in range(len(self._plans)) if i not in self._results]
        resampled = self._resampled(lines, range(self._draws or MOST))
        return {
            "Replaying": sum(job.displays for job in self._replays()),
            "Resampling": sum(job.displays for job in resampled),
        }

    def run(
        self,
        advance: Callable[[int], None] = lambda displays: None,
        show_first: Callable[[Sequence[ReplayResult]], None] = lambda results: None,
    ) -> list[ReplayResult]:
        """Return the results of all variants, in their order.

        `show_first` is given what the replays found before any log is resampled. `compared` then has what the resampled
        logs say of those that are compared, after the rounds of the common horizon; of the logging policy after all of
        its own.
        """
        plans, total = self._plans, self.totals["Resampling"]
        for job, (found,) in self._finished(self._replays(), advance):
            for i, result in zip(job.variants, found, strict=True):
                if self._draws:
                    self._bare[i] = result
                    if self._kept is not None:
                        self._kept.keep_bare(plans[i], result)
                else:
                    self._finish(i, result)
        replayed = [self._results.get(i) or self._bare[i] for i in range(len(plans))]
        if len(plans) > 1 and any(result.rounds for result in replayed):
            self._horizon = common_horizon(plans, replayed)
        rounds = self._horizon.rounds if self._horizon else 0
        for i, values in self._values.items():
            self._values[i] = {b: of for b, of in values.items() if of[-1] == rounds}
        if total and all(result.rounds for result in replayed):
            show_first(replayed)
        if self._draws:
            self._close([i for i in range(len(plans)) if i not in self._results])
            lacking = [i for i, result in enumerate(replayed) if i not in self._results or self._own(result) is None]
            self._resample(lacking, range(self._draws), advance)
            for i in comparable(replayed) if self._horizon else ():
                own = self._own(self._results[i])
                self.compared[i] = self._drawn(i, self._results[i], self._draws, compared=True) if own is None else own
        elif self._pairs and self._horizon is not None:
            left = total
            pairs = self._telling(replayed)
            lines = sorted({i for pair in pairs for i in pair})
            logs = range(FIRST)
            while lines:
                left -= self._resample(lines, logs, advance)
                self.compared = {i: self._drawn(i, self._results[i], logs.stop, compared=True) for i in lines}
                gaps = [
                    self.compared[i].values - self.compared[j].values for i, j in pairs
                    if self._plans[i].policy.learns or self._plans[j].policy.learns
                ]  # fmt: skip
                if logs.stop == MOST or max(map(error_of_spread, gaps), default=0.0) <= ENOUGH:
                    break
                logs = range(logs.stop, logs.stop + STEP)
            advance(max(left, 0))
        return [self._results[i] for i in range(len(plans))]

    def _telling(self, replayed: Sequence[ReplayResult]) -> list[tuple[int, int]]:
        """Return the pairs whose expected difference tells something of what its replays are to decide."""
        if self._horizon is None or not self._horizon.fixed:
            return []
        plans, compared = self._plans, set(comparable(replayed))
        few = [too_few(clusters_shown(plan, _shown(plan, replayed[i]))) for i, plan in enumerate(plans)]
        at = [at_horizon(plan, of, self._horizon.rounds) for plan, of in zip(plans, replayed, strict=True)]
        return [
            (i, j) for i, j in self._pairs
            if {i, j} <= compared and not (few[i] or few[j] or why_not_expected((plans[i], plans[j]), (at[i], at[j])))
        ]  # fmt: skip

    def _own(self, result: ReplayResult) -> ResampledValues | None:
        """Return what a finished result says of the rounds that are compared, where these are all of its own."""
        rounds = self._horizon.rounds if self._horizon else 0
        if result.plan["sampler"] != LOGGED and rounds not in (0, result.rounds):
            return None
        return ResampledValues(np.array(result.resampled), 0, result.clusters)

    def _drawn(self, variant: int, result: ReplayResult, logs: int, *, compared: bool) -> ResampledValues:
        """Return a variant's values in the first resampled logs, of all its rounds or of those that are compared."""
        in_order = [self._values[variant][b] for b in range(logs)]
        plan, values = self._plans[variant], np.array([of[2 if compared else 0] for of in in_order])
        return ResampledValues(values, sum(not of[1] for of in in_order), clusters_shown(plan, _shown(plan, result)))

    def _resample(self, variants: Sequence[int], logs: range, advance: Callable[[int], None]) -> int:
        """Replay variants on resampled logs, as far as that is left; return for how many displays that counts."""
        jobs = self._resampled(variants, logs)
        rounds = self._horizon.rounds if self._horizon else 0
        for block, (draws,) in self._finished(jobs, advance):
            if self._kept is not None:
                self._kept.keep_draws([self._plans[i] for i in block.variants], block.numbers, draws, rounds)
            for column, i in enumerate(block.variants):
                values = (of[:, column].tolist() for of in draws)
                drawn = ((*of, rounds) for of in zip(*values, strict=True))
                self._values.setdefault(i, {}).update(zip(block.numbers, drawn, strict=True))
            self._close(block.variants)
        return sum(job.displays for job in jobs)

    def _finished(self, jobs: Sequence[J], advance: Callable[[int], None]) -> Iterator[tuple[J, Any]]:
        """Yield each job with its result as soon as it is finished."""
        plans, workers = self._plans, self._workers
        opened = OpenPlans(lambda number, key: plans[number], plans[0].options.jobs, advance)
        if workers is None:
            return run_jobs(jobs, opened)
        return run_jobs(
            jobs, opened, executor=workers.executor, ordered=False, advance=lambda job, _: advance(job.displays)
        )

    def _replays(self) -> list[ReplayJob]:
        """Return the jobs of the replays that are left."""
        left = [i for i in range(len(self._plans)) if i not in self._results and i not in self._bare]
        return [
            ReplayJob(*self._about(group), self._name(group), max(len(self._plans[i].rounds) for i in group))
            for group in scans(self._plans, left, self._work)
        ]

    def _resampled(self, variants: Sequence[int], logs: range) -> list[DrawsJob]:
        """Return the jobs that are left of variants' replays of resampled logs."""
        jobs = []
        left = [i for i in variants if not self._values.get(i, {}).keys() >= set(logs)]
        for group in scans(self._plans, left, self._work):
            for numbers in blocks_of_draws(self._plans, group, self._work, logs):
                some = [i for i in group if not self._values.get(i, {}).keys() >= set(numbers)]
                if some:
                    jobs.append(
                        DrawsJob(
                            *self._about(some),
                            f"{self._name(some)}, resampled logs {numbers.start + 1:,} to {numbers.stop:,}",
                            len(numbers) * max(len(self._plans[i].rounds) for i in some),
                            tuple(self._lived(i) for i in some),
                            numbers,
                        )
                    )
        return jobs

    def _lived(self, variant: int) -> tuple[Lived, ...]:
        """Return how far each repeat of a variant came; where its rounds decide alone, as far as they are compared."""
        result = self._bare.get(variant) or self._results.get(variant)
        if result is None:
            return ()
        rounds = np.bincount(to_numpy(result.trajectory["repeat"]), minlength=len(result.read))
        most = self._horizon.rounds if self._horizon else 0
        if result.plan["sampler"] == LOGGED:
            most = result.rounds
        return tuple(
            Lived(int(t) if self._draws else most, read, min(most, int(t)))
            for t, read in zip(rounds, result.read, strict=True)
        )

    def _about(self, group: Sequence[int]) -> tuple[Study | None, tuple[int, ...], tuple[str, ...]]:
        """Return the study of some variants, their numbers and their keys."""
        study = None if self._workers is None else self._workers.study
        return study, tuple(group), tuple(self._keys[i] for i in group)

    def _name(self, group: Sequence[int]) -> str:
        """Return how messages call the replays of some variants."""
        first = self._plans[group[0]]
        more = f" and {len(group) - 1:,} more" if len(group) > 1 else ""
        return f"The replay of {first.policy.spec} with window {first.window.describe(first.clock)}{more}"

    def _close(self, variants: Sequence[int]) -> None:
        """Finish those of some variants whose resampled replays are all there, where their results ask for these."""
        for i in variants:
            if i in self._results or len(self._values.get(i, {})) < self._draws:
                continue
            bare = self._bare[i]
            self._finish(i, with_expected_value(bare, self._drawn(i, bare, self._draws, compared=False)))

    def _finish(self, variant: int, result: ReplayResult) -> None:
        if self._kept is not None:
            self._kept.keep(self._plans[variant], result)
        self._results[variant] = result


def _shown(plan: ReplayPlan, result: ReplayResult) -> list[np.ndarray]:
    """Return the displays of each repeat's rounds, as its plan numbers them."""
    repeat = to_numpy(result.trajectory["repeat"])
    displays = to_numpy(result.trajectory["display_id"]) - plan.before
    return [displays[repeat == r] for r in range(len(result.read))]


def refuse_nothing_to_spread(options: ReplayOptions) -> None:
    """Raise UsageError where workers were asked for and there is no bootstrap: one replay is one job."""
    if not options.bootstrap:
        raise UsageError(
            "Workers have nothing to do: a replay without a bootstrap stays on one core, round by round.",
            remedy="ask for resampled logs, `bootstrap=200`, or leave the workers out.",
        )


def execute_in_jobs(
    plan: ReplayPlan,
    log: Log,
    *,
    kept: KeptResults | None = None,
    executor: Executor | None = None,
    place: LogPlace | None = None,
    advance: Callable[[int], None] = lambda displays: None,
    say: Callable[[str], None] = lambda sentence: None,
    show_first: Callable[[Sequence[ReplayResult]], None] = lambda results: None,
) -> ReplayResult:
    """Replay a plan here, and then what it asks of resampled logs in jobs; the same to the bit as `execute`.

    The log is the one planned for, as it was read. Without an executor, whose workers find the log at a place, threads
    of this process compute. `say` is told in a sentence what was found in the folder of kept jobs, `show_first` as in
    `VariantRuns.run`.
    """
    workers = None
    if executor is not None and place is not None:
        workers = study_on(executor, place, [plan.policy], [plan.options.window], plan.options)
    found = NOTHING if kept is None else kept.find([plan], log)
    if kept is not None and 0 in found.draws:
        logs = f"{len(found.draws[0]):,} of {plan.options.bootstrap:,} resampled logs"
        say(f"Took up the replays of {logs}, finished before, from {kept.folder}.")
    # It is replayed anew whatever was kept: what a policy learned is not written.
    bare = execute(plan, advance=advance, resampled=False)
    runs = VariantRuns([plan], kept=kept, found=replace(found, results={}, bare={0: bare}), workers=workers)
    return runs.run(advance, show_first)[0]


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
    executor: Executor,
    place: LogPlace,
    policies: Sequence[Any],
    windows: Sequence[Window],
    options: ReplayOptions,
    *,
    schedules: Sequence[str | int | None] | None = None,
) -> StudyWorkers:
    """Return the workers of an executor for a study of some policies on the log at a place.

    UsageError if a policy has no name by which workers could load it.
    """
    questions = Questions(policies)
    questions.log = place.content
    words = tuple(loaded_by(policy) for policy in policies)
    study = Study(place, words, cases_of(windows, schedules, options), options, questions.codes)
    return StudyWorkers(executor, study, questions)


class _OpenStudy:
    """A study on a worker: its log, and the plans that were asked for."""

    def __init__(self, study: Study) -> None:
        log = study.place.opened()
        policies = [as_description(words) for words in study.policies]
        self._questions = Questions(policies, study.codes)
        self._questions.log = study.place.content
        self._variants = Variants(log, policies, study.cases, study.options)
        self._plans: dict[int, ReplayPlan] = {}
        self._lock = Lock()
        begun = time.monotonic()
        numbered = reversed(list(enumerate(pairs_of(policies, study.cases))))
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
