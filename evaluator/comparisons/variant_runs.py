"""A study as a list of jobs, computed in this process or by the workers of an executor, and kept as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from evaluator.comparisons import variant_jobs
from evaluator.comparisons.kept import FoundResults, KeptResults
from evaluator.comparisons.variant_jobs import (
    DrawsJob,
    OpenPlans,
    ReplayJob,
    Study,
    StudyWorkers,
    VariantJob,
    blocks_of_draws,
    scans,
)
from evaluator.jobs.run_jobs import run_jobs
from evaluator.log.schema import to_numpy
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.expected_values import ResampledValues, clusters_shown, with_expected_value
from evaluator.replays.values.resampled import Lived

J = TypeVar("J", bound=VariantJob)

NOTHING = FoundResults({}, 0, 0)


class VariantRuns:
    """The replays of a study: what is left of them, as jobs.

    Parameters
    ----------
    plans
        Plans of the variants, in their order.
    kept
        Folder in which results and parts of them are kept as they are finished; None for none.
    found
        What is there already.
    workers
        Who computes; None for the threads of this process.
    """

    def __init__(
        self,
        plans: Sequence[ReplayPlan],
        *,
        kept: KeptResults | None = None,
        found: FoundResults = NOTHING,
        workers: StudyWorkers | None = None,
    ) -> None:
        self._plans = plans
        self._kept = kept
        self._workers = workers
        self._work = None if kept is None else variant_jobs.KEPT_WORK * plans[0].options.jobs
        if workers is not None:
            self._work = variant_jobs.WORK
        self._draws = plans[0].options.bootstrap
        self._results = dict(found.results)
        self._bare = {i: result for i, result in found.bare.items() if i not in self._results}
        self._values = {i: dict(of) for i, of in found.draws.items() if i not in self._results}
        self._asked = [i for i in range(len(plans)) if i not in self._results]
        self._keys = {i: "" if workers is None else workers.questions.key(plans[i]) for i in self._asked}

    @property
    def totals(self) -> dict[str, int]:
        """Displays that `run` tells of, by what it does with them."""
        resampled = self._resampled() if self._draws else ()
        return {
            "Replaying": sum(job.displays for job in self._replays()),
            "Resampling": sum(job.displays for job in resampled),
        }

    def run(self, advance: Callable[[int], None] = lambda displays: None) -> list[ReplayResult]:
        """Return the results of all variants, in their order."""
        plans = self._plans
        for job, (found,) in self._finished(self._replays(), advance):
            for i, result in zip(job.variants, found, strict=True):
                if self._draws:
                    self._bare[i] = result
                    if self._kept is not None:
                        self._kept.keep_bare(plans[i], result)
                else:
                    self._finish(i, result)
        if self._draws:
            self._close([i for i in self._asked if i not in self._results])
            for block, (draws,) in self._finished(self._resampled(), advance):
                if self._kept is not None:
                    self._kept.keep_draws([plans[i] for i in block.variants], block.numbers, draws)
                for column, i in enumerate(block.variants):
                    pairs = zip(draws.values[:, column].tolist(), draws.complete[:, column].tolist(), strict=True)
                    self._values.setdefault(i, {}).update(zip(block.numbers, pairs, strict=True))
                self._close(block.variants)
        return [self._results[i] for i in range(len(plans))]

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
        left = [i for i in self._asked if i not in self._bare]
        return [
            ReplayJob(*self._about(group), self._name(group), max(len(self._plans[i].rounds) for i in group))
            for group in scans(self._plans, left, self._work)
        ]

    def _resampled(self) -> list[DrawsJob]:
        """Return the jobs of the resampled replays that are left."""
        jobs = []
        left = [i for i in self._asked if len(self._values.get(i, ())) < self._draws]
        for group in scans(self._plans, left, self._work):
            for numbers in blocks_of_draws(self._plans, group, self._work):
                some = [i for i in group if not self._values.get(i, {}).keys() >= set(numbers)]
                if some:
                    jobs.append(
                        DrawsJob(
                            *self._about(some),
                            f"{self._name(some)}, resampled logs {numbers.start + 1:,} to {numbers.stop:,}",
                            len(numbers) * max(len(self._plans[i].rounds) for i in some),
                            tuple(_lived(self._bare[i]) if i in self._bare else () for i in some),
                            numbers,
                        )
                    )
        return jobs

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
        """Finish those of some variants whose resampled replays are all there."""
        for i in variants:
            values = self._values.get(i, {})
            if i in self._results or len(values) < self._draws:
                continue
            plan, bare = self._plans[i], self._bare[i]
            in_order = [values[b] for b in range(self._draws)]
            found = ResampledValues(
                np.array([value for value, _ in in_order]),
                sum(not complete for _, complete in in_order),
                clusters_shown(plan, _shown(plan, bare)),
            )
            self._finish(i, with_expected_value(bare, found))

    def _finish(self, variant: int, result: ReplayResult) -> None:
        if self._kept is not None:
            self._kept.keep(self._plans[variant], result)
        self._results[variant] = result


def _lived(result: ReplayResult) -> tuple[Lived, ...]:
    """Return how far each repeat of a replay came."""
    rounds = np.bincount(to_numpy(result.trajectory["repeat"]), minlength=len(result.read))
    return tuple(Lived(int(t), read) for t, read in zip(rounds, result.read, strict=True))


def _shown(plan: ReplayPlan, result: ReplayResult) -> list[np.ndarray]:
    """Return the displays of each repeat's rounds, as its plan numbers them."""
    repeat = to_numpy(result.trajectory["repeat"])
    displays = to_numpy(result.trajectory["display_id"]) - plan.before
    return [displays[repeat == r] for r in range(len(result.read))]
