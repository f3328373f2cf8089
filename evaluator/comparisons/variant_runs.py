"""A study as a list of units, computed in this process or by the workers of an executor, and kept as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from evaluator.comparisons import variant_units
from evaluator.comparisons.kept import FoundResults, KeptResults
from evaluator.comparisons.variant_units import (
    DrawsUnit,
    ReplayUnit,
    VariantUnit,
    blocks_of_draws,
    scans,
)
from evaluator.log.schema import to_numpy
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.expected_values import ResampledValues, clusters_shown, with_expected_value
from evaluator.replays.values.resampled import Lived

NOTHING = FoundResults({}, 0, 0)


class Workers(Protocol):
    """Whoever computes units."""

    @property
    def work(self) -> int | None:
        """Displays times replays that a unit may have; None where only memory bounds it."""

    def results(
        self, units: Sequence[VariantUnit], plans: Sequence[ReplayPlan], advance: Callable[[int], None]
    ) -> Iterator[tuple[VariantUnit, Any]]:
        """Yield each unit with what was found, as soon as it is."""

    def key(self, plan: ReplayPlan) -> str:
        """Return the hash of all that fixes the result of a plan; empty where nobody asks for it."""


class InThreads:
    """Threads of this process: one scan at a time feeds as many replays as it may, in all of them.

    Parameters
    ----------
    work
        Displays times replays that a scan may have; None where only memory bounds it.
    """

    def __init__(self, work: int | None = None) -> None:
        self.work = work

    def results(
        self, units: Sequence[VariantUnit], plans: Sequence[ReplayPlan], advance: Callable[[int], None]
    ) -> Iterator[tuple[VariantUnit, Any]]:
        """Yield each unit with what was found, as soon as it is."""
        for unit in units:
            yield unit, unit.work([plans[i] for i in unit.variants], jobs=plans[0].options.jobs, advance=advance)

    def key(self, plan: ReplayPlan) -> str:
        """Return nothing: the plans are at hand."""
        return ""


class VariantRuns:
    """The replays of a study: what is left of them, in units.

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
        workers: Workers | None = None,
    ) -> None:
        self._plans = plans
        self._kept = kept
        kept_work = None if kept is None else variant_units.KEPT_WORK * plans[0].options.jobs
        self._workers = InThreads(kept_work) if workers is None else workers
        self._draws = plans[0].options.bootstrap
        self._results = dict(found.results)
        self._bare = {i: result for i, result in found.bare.items() if i not in self._results}
        self._values = {i: dict(of) for i, of in found.draws.items() if i not in self._results}
        self._asked = [i for i in range(len(plans)) if i not in self._results]
        self._keys = {i: self._workers.key(plans[i]) for i in self._asked}

    @property
    def total(self) -> int:
        """Displays that `run` tells of."""
        units = [*self._replays(), *(self._resampled() if self._draws else ())]
        return sum(unit.displays for unit in units)

    def run(self, advance: Callable[[int], None] = lambda displays: None) -> list[ReplayResult]:
        """Return the results of all variants, in their order."""
        plans = self._plans
        for unit, found in self._workers.results(self._replays(), plans, advance):
            for i, result in zip(unit.variants, found, strict=True):
                if self._draws:
                    self._bare[i] = result
                    if self._kept is not None:
                        self._kept.keep_bare(plans[i], result)
                else:
                    self._finish(i, result)
        if self._draws:
            self._close([i for i in self._asked if i not in self._results])
            for unit, draws in self._workers.results(self._resampled(), plans, advance):
                assert isinstance(unit, DrawsUnit)
                if self._kept is not None:
                    self._kept.keep_draws([plans[i] for i in unit.variants], unit.numbers, draws)
                for column, i in enumerate(unit.variants):
                    pairs = zip(draws.values[:, column].tolist(), draws.complete[:, column].tolist(), strict=True)
                    self._values.setdefault(i, {}).update(zip(unit.numbers, pairs, strict=True))
                self._close(unit.variants)
        return [self._results[i] for i in range(len(plans))]

    def _replays(self) -> list[ReplayUnit]:
        """Return the units of the replays that are left."""
        left = [i for i in self._asked if i not in self._bare]
        return [
            ReplayUnit(
                tuple(group),
                tuple(self._keys[i] for i in group),
                self._name(group),
                max(len(self._plans[i].rounds) for i in group),
            )
            for group in scans(self._plans, left, self._workers.work)
        ]

    def _resampled(self) -> list[DrawsUnit]:
        """Return the units of the resampled replays that are left."""
        units = []
        left = [i for i in self._asked if len(self._values.get(i, ())) < self._draws]
        for group in scans(self._plans, left, self._workers.work):
            for numbers in blocks_of_draws(self._plans, group, self._workers.work):
                some = [i for i in group if not self._values.get(i, {}).keys() >= set(numbers)]
                if some:
                    units.append(
                        DrawsUnit(
                            tuple(some),
                            tuple(self._keys[i] for i in some),
                            f"{self._name(some)}, resampled logs {numbers.start + 1:,} to {numbers.stop:,}",
                            len(numbers) * max(len(self._plans[i].rounds) for i in some),
                            tuple(_lived(self._bare[i]) if i in self._bare else () for i in some),
                            numbers,
                        )
                    )
        return units

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
