"""The twins of an audit as units: drawn and replayed anywhere, from a truth that is fitted to the same log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from evaluator.arguments import as_description, loaded_by
from evaluator.audits.fitted_truth import Fitted, fit
from evaluator.audits.live_runs import Floats, LiveRuns, Task
from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import IntervalAndTruth, TwinReplay, TwinReplays, replay_twin
from evaluator.audits.shown_displays import MeasuredDifference
from evaluator.comparisons.log_places import LogPlace
from evaluator.comparisons.question import Questions
from evaluator.comparisons.realised import RealisedEvidence
from evaluator.delays.cdf import DelayCDF
from evaluator.delays.moments import DelayMoments
from evaluator.errors import WorkerError
from evaluator.estimates.confidence import Interval
from evaluator.estimates.contrast import Contrast
from evaluator.estimates.paired import RewardSums
from evaluator.jobs.run_jobs import finished
from evaluator.jobs.serialise import as_text, from_text
from evaluator.jobs.software import refuse_other_software
from evaluator.jobs.workers import OpenedLast, tell, this_worker
from evaluator.own_code import CodeOfPolicy
from evaluator.policies.base import Setting
from evaluator.replays.one_scan import compile_loops
from evaluator.threads import in_threads

# Some live runs, and the values of each.
LivePart = tuple[Task, ...]
Values = tuple[Floats, ...]
# Displays times policies of a unit on a cluster: some seconds of work.
WORK = 4_000_000
# What the replays of a twin are made of.
_CLASSES = (
    TwinReplays, TwinReplay, IntervalAndTruth, Interval, MeasuredDifference, RealisedEvidence, Contrast, RewardSums,
    Setting, DelayCDF, DelayMoments,
)  # fmt: skip


def twins_key(plans: Sequence[str], options: AuditOptions) -> str:
    """Return the hash of all that fixes the replays of every twin, from the keys of the plans on the log itself."""
    own = {name: value for name, value in asdict(options).items() if name not in ("jobs", "twins")}
    return hashlib.sha256(json.dumps([list(plans), own], sort_keys=True, default=str).encode()).hexdigest()


def twin_key(key: str, twin: int, horizon: int | None) -> str:
    """Return the hash of all that fixes the replays of a twin, compared at a horizon, from that of every twin."""
    return hashlib.sha256(json.dumps([key, "twin", twin, horizon]).encode()).hexdigest()


def twin_text(found: TwinReplays) -> str:
    """Return the replays of a twin as text."""
    return as_text(found)


def twin_of(text: str) -> TwinReplays:
    """Return the replays of a twin from `twin_text`."""
    found = from_text(text, _CLASSES)
    assert isinstance(found, TwinReplays)
    return found


class TwinWorkers(Protocol):
    """Whoever draws and replays twins, and plays live."""

    def results(self, twins: Sequence[int], horizon: int) -> Iterator[tuple[int, TwinReplays]]:
        """Yield each twin, by its number, with its replays as they are finished."""

    def live(self, runs: LiveRuns, parts: Sequence[LivePart]) -> Iterator[tuple[LivePart, Values]]:
        """Yield some live runs at a time, with their values as they are finished."""


class TwinsInThreads:
    """Threads of this process, one twin each.

    Parameters
    ----------
    fitted, policies, options
        Truth, policies and options of the audit.
    """

    def __init__(self, fitted: Fitted, policies: Sequence[Any], options: AuditOptions) -> None:
        self._fitted, self._policies, self._options = fitted, policies, options

    def results(self, twins: Sequence[int], horizon: int) -> Iterator[tuple[int, TwinReplays]]:
        """Yield each twin with its replays, in their order."""

        def one(twin: int) -> tuple[int, TwinReplays]:
            return twin, _replayed(self._fitted, self._policies, self._options, twin, horizon)

        return in_threads(one, twins, self._options.jobs)

    def live(self, runs: LiveRuns, parts: Sequence[LivePart]) -> Iterator[tuple[LivePart, Values]]:
        """Yield live runs with their values, in their order."""
        return in_threads(lambda part: (part, tuple(map(runs.value, part))), parts, self._options.jobs)


def _replayed(
    fitted: Fitted, policies: Sequence[Any], options: AuditOptions, twin: int, horizon: int | None
) -> TwinReplays:
    return replay_twin(fitted.truth, policies, options, fitted.claimed, twin, horizon=horizon)


@dataclass(frozen=True)
class AuditedLog:
    """What a worker has to know of an audit, as plain values.

    Parameters
    ----------
    place
        Place of the log, with the hash of what it holds.
    policies
        Words by which a worker loads each policy.
    options
        Options of the audit.
    software
        What computes (`evaluator.jobs.software.software`).
    codes
        Hashes of each policy's code.
    key
        Hash of all that fixes the replays of every twin.
    """

    place: LogPlace
    policies: tuple[str, ...]
    options: AuditOptions
    software: tuple[str, ...]
    codes: tuple[CodeOfPolicy, ...]
    key: str


@dataclass(frozen=True)
class TwinsTask:
    """Some twins of an audit: all that a worker is sent."""

    audited: AuditedLog
    twins: range | tuple[int, ...]
    horizon: int

    @property
    def name(self) -> str:
        """Name of the unit in messages."""
        return f"The replay of twins {self.twins[0] + 1:,} to {self.twins[-1] + 1:,}"


@dataclass(frozen=True)
class LiveTask:
    """Some live runs of an audit: all that a worker is sent.

    Parameters
    ----------
    audited
        Audit that they are of.
    told
        What the replays of every policy told, twin by twin, as text.
    common
        Number of rounds at which policies are compared.
    part
        Numbers of the runs, and of their policies.
    """

    audited: AuditedLog
    told: str
    common: int
    part: LivePart

    @property
    def name(self) -> str:
        """Name of the unit in messages."""
        return f"Live runs {self.part[0][0] + 1:,} to {self.part[-1][0] + 1:,}"


class TwinsOnExecutor:
    """The workers of an executor, who draw and replay some twins at a time, and play some live runs.

    Parameters
    ----------
    executor
        Executor that the units are given to.
    audited
        Audit that they are of.
    displays
        Number of displays of a twin.
    """

    def __init__(self, executor: Executor, audited: AuditedLog, displays: int) -> None:
        self._executor, self._audited, self._displays = executor, audited, displays

    def results(self, twins: Sequence[int], horizon: int) -> Iterator[tuple[int, TwinReplays]]:
        """Yield each twin with its replays, as they are finished."""
        size = max(WORK // (self._displays * len(self._audited.policies)), 1)
        parts = [tuple(twins[at : at + size]) for at in range(0, len(twins), size)]
        tasks = [TwinsTask(self._audited, part, horizon) for part in parts]
        for task, texts in finished(compute_twins, tasks, self._executor):
            yield from zip(task.twins, map(twin_of, texts), strict=True)

    def live(self, runs: LiveRuns, parts: Sequence[LivePart]) -> Iterator[tuple[LivePart, Values]]:
        """Yield live runs with their values, as they are finished."""
        told = as_text(tuple(runs.told))
        tasks = [LiveTask(self._audited, told, runs.common, part) for part in parts]
        for task, text in finished(compute_live, tasks, self._executor):
            yield task.part, from_text(text, ())


def audited_on(
    place: LogPlace, policies: Sequence[Any], options: AuditOptions, questions: Questions, key: str
) -> AuditedLog:
    """Return what workers have to know of an audit of the log at a place, whose questions gave it its key.

    Raises
    ------
    UsageError
        A policy has no name by which workers could load it.
    """
    words = tuple(loaded_by(policy) for policy in policies)
    return AuditedLog(place, words, options, questions.software, questions.codes, key)


def compute_twins(task: TwinsTask) -> list[str]:
    """Draw and replay some twins, on a worker.

    Raises
    ------
    WorkerError
        The worker is refused: it has another version, or another log or policy under the name.
    """
    audited = task.audited
    refuse_other_software(audited.software)
    fitted, policies = _opened(audited)
    return [twin_text(_replayed(fitted, policies, audited.options, twin, task.horizon)) for twin in task.twins]


def compute_live(task: LiveTask) -> str:
    """Play some live runs, on a worker; raises as `compute_twins`."""
    refuse_other_software(task.audited.software)
    runs = _live((task.audited, task.told, task.common))
    return as_text(tuple(map(runs.value, task.part)))


def _open(audited: AuditedLog) -> tuple[Fitted, list[Any]]:
    policies = [as_description(words) for words in audited.policies]
    log = audited.place.opened()
    questions = Questions(policies, audited.codes)
    questions.log = audited.place.content
    fitted = fit(log, policies, audited.options)
    if twins_key([questions.key(plan) for plan in fitted.plans], audited.options) != audited.key:
        raise WorkerError(
            f"Worker {this_worker()} is refused: it plans the replays otherwise than the command does.",
            remedy="files that options and policies name must be the same there, and so must installed packages.",
        )
    names = compile_loops(fitted.plans)
    compiled = f"compiled {', '.join(dict.fromkeys(names))}" if names else "found everything compiled"
    tell(f"fitted the truth and {compiled} before its first twin")
    return fitted, policies


def _prepare_live(asked: tuple[AuditedLog, str, int]) -> LiveRuns:
    audited, told, common = asked
    fitted, policies = _opened(audited)
    return LiveRuns(fitted, policies, audited.options, from_text(told, _CLASSES), common)


_opened = OpenedLast(_open)
# The live runs that were asked for last: what they are drawn from is made once.
_live = OpenedLast(_prepare_live)
