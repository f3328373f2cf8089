"""A study on the workers of an executor: each opens the log itself, and plans what it is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Lock
from typing import Any

from evaluator.arguments import as_description, loaded_by
from evaluator.comparisons import variant_units
from evaluator.comparisons.log_places import LogPlace
from evaluator.comparisons.question import Questions
from evaluator.comparisons.variant_units import VariantUnit
from evaluator.comparisons.variants import Variants, Window
from evaluator.errors import WorkerError
from evaluator.jobs.run_jobs import finished
from evaluator.jobs.software import refuse_other_software
from evaluator.jobs.workers import tell, this_worker
from evaluator.own_code import CodeOfPolicy
from evaluator.replays.one_scan import compile_loops
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan

# Logs that a worker keeps open, each with what was read of it for its replays.
_KEPT_OPEN = 2


@dataclass(frozen=True)
class Study:
    """What a worker has to know of a study, as plain values.

    Parameters
    ----------
    place
        Place of the log, with the hash of what it holds.
    policies
        Words by which a worker loads each policy.
    windows, options
        Windows of each policy, and options that all variants share.
    software
        What computes (`evaluator.jobs.software.software`).
    codes
        Hashes of each policy's code.
    """

    place: LogPlace
    policies: tuple[str, ...]
    windows: tuple[Window, ...]
    options: ReplayOptions
    software: tuple[str, ...]
    codes: tuple[CodeOfPolicy, ...]


@dataclass(frozen=True)
class StudyTask:
    """A unit, and the study that it is of: all that a worker is sent."""

    study: Study
    unit: VariantUnit

    @property
    def name(self) -> str:
        """Name of the unit in messages."""
        return self.unit.name


class OnExecutor:
    """The workers of an executor, who compute units of some seconds.

    Parameters
    ----------
    executor
        Executor that the units are given to.
    study
        The study that they are of.
    questions
        What fixes the results, asked of the log of the study.
    """

    def __init__(self, executor: Executor, study: Study, questions: Questions) -> None:
        self._executor = executor
        self._study = study
        self._questions = questions

    @property
    def work(self) -> int:
        """Displays times replays that a unit may have."""
        return variant_units.WORK

    def results(
        self, units: Sequence[VariantUnit], plans: Sequence[ReplayPlan], advance: Callable[[int], None]
    ) -> Iterator[tuple[VariantUnit, Any]]:
        """Yield each unit with what was found, as soon as it is."""
        tasks = [StudyTask(self._study, unit) for unit in units]
        for task, sent in finished(compute, tasks, self._executor):
            unit = task.unit
            advance(unit.displays)
            yield unit, unit.unpacked(sent, [plans[i] for i in unit.variants])

    def key(self, plan: ReplayPlan) -> str:
        """Return the hash of all that fixes the result of a plan."""
        return self._questions.key(plan)


def study_on(
    executor: Executor, place: LogPlace, policies: Sequence[Any], windows: Sequence[Window], options: ReplayOptions
) -> OnExecutor:
    """Return the workers of an executor for a study of some policies on the log at a place.

    Raises
    ------
    UsageError
        A policy has no name by which workers could load it.
    """
    questions = Questions(policies)
    questions.log = place.content
    words = tuple(loaded_by(policy) for policy in policies)
    study = Study(place, words, tuple(windows), options, questions.software, questions.codes)
    return OnExecutor(executor, study, questions)


def compute(task: StudyTask) -> Any:
    """Compute a unit, on a worker.

    Raises
    ------
    WorkerError
        The worker is refused: it has another version, or another log or policy under the name.
    """
    study, unit = task.study, task.unit
    refuse_other_software(study.software)
    own = _opened(study)
    plans = [own.plan(*of) for of in zip(unit.variants, unit.keys, strict=True)]
    return unit.packed(unit.work(plans))


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
        first = {policy.name: i * len(study.windows) for i, policy in reversed(list(enumerate(policies)))}
        names = compile_loops([self._planned(number) for number in sorted(first.values())])
        took = time.monotonic() - begun
        what = f"compiled {', '.join(dict.fromkeys(names))}" if names else "found everything compiled"
        tell(f"{what} before its first unit ({took:.1f} s)")

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


_open: list[tuple[Study, _OpenStudy]] = []
_opening = Lock()


def _opened(study: Study) -> _OpenStudy:
    """Return the study as this process has it open, opened once."""
    with _opening:
        for known, own in _open:
            if known == study:
                return own
        del _open[: len(_open) - _KEPT_OPEN + 1]
        own = _OpenStudy(study)
        _open.append((study, own))
        return own
