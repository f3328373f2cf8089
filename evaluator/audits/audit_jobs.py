"""The jobs of an audit: twins, drawn and replayed, and live runs, from a truth that is fitted to the same log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.arguments import as_description, loaded_by
from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import (
    Fitted,
    IntervalAndTruth,
    MeasuredDifference,
    TwinReplay,
    TwinReplays,
    fit,
    replay_twin,
)
from evaluator.comparisons.differences import RealisedEvidence
from evaluator.comparisons.kept import Questions
from evaluator.comparisons.log_places import LogPlace
from evaluator.delays.cdf import DelayCDF, DelayMoments
from evaluator.errors import WorkerError
from evaluator.estimates.confidence import Interval
from evaluator.estimates.paired import Contrast, RewardSums
from evaluator.jobs.run_jobs import Job, as_text, from_text
from evaluator.jobs.workers import OpenedLast, tell, this_worker
from evaluator.log import Log
from evaluator.log.fingerprint import content_hash
from evaluator.own_code import CodeOfPolicy
from evaluator.policies.base import Setting
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.run import compile_loops
from evaluator.worlds.live_policy import LivePolicy, LiveSpan

# Displays times policies that a worker of a cluster is given at a time: some seconds of work.
WORK = 4_000_000
# Rounds of the live runs of a job, about a second of work, and runs at most.
LIVE_WORK = 4_000_000
MOST_RUNS = 64
# What the replays of a twin are made of.
_CLASSES = (
    TwinReplays, TwinReplay, IntervalAndTruth, Interval, MeasuredDifference, RealisedEvidence, Contrast, RewardSums,
    Setting, DelayCDF, DelayMoments,
)  # fmt: skip
# Live runs a twin: their error is then small beside that of the replays.
RUNS_PER_TWIN = 2
# Number of a run, and of its policy.
Task = tuple[int, int]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AuditedLog:
    """What a worker has to know of an audit, as plain values.

    `place` says where the log lies, with the hash of what it holds; None where there are no workers. `policies` are the
    words by which a worker loads each policy, `codes` the hashes of their code. `key` is the hash of all that fixes the
    replays of every twin; empty where nothing is kept and there are no workers.
    """

    options: AuditOptions
    place: LogPlace | None = None
    policies: tuple[str, ...] = ()
    codes: tuple[CodeOfPolicy, ...] = ()
    key: str = ""

    def key_of(self, *part: object) -> str:
        """Return the hash of all that fixes the results of a part of the audit."""
        return hashlib.sha256(json.dumps([self.key, *part]).encode()).hexdigest()


@dataclass(frozen=True)
class TwinJob(Job):
    """A twin of an audit, compared at a horizon; None for the fewest rounds that any policy has on it."""

    audited: AuditedLog
    twin: int
    horizon: int | None
    classes = _CLASSES

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        return f"The replay of twin {self.twin + 1:,}"

    @property
    def key(self) -> str:
        """Hash of all that fixes the replays of the twin."""
        return self.audited.key_of("twin", self.twin, self.horizon)

    @property
    def items(self) -> tuple[int]:
        """The twin."""
        return (self.twin,)

    def open(self) -> tuple[Fitted, Sequence[Any]]:
        """Open the log, and fit the truth to it."""
        return _opened(self.audited)

    def compute(self, opened: tuple[Fitted, Sequence[Any]], item: int) -> TwinReplays:
        """Draw the twin, and replay every policy on it."""
        fitted, policies = opened
        options = self.audited.options
        return replay_twin(fitted.truth, policies, options, fitted.claimed, item, horizon=self.horizon)


@dataclass(frozen=True)
class LiveJob(Job):
    """Some live runs of an audit: numbers of the runs and of their policies.

    `told` is what the replays of every policy told, twin by twin, as text; empty where there are no workers. Policies
    are compared at `common` rounds.
    """

    audited: AuditedLog
    told: str
    common: int
    runs: tuple[Task, ...]

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        return f"Live runs {self.runs[0][0] + 1:,} to {self.runs[-1][0] + 1:,}"

    @property
    def key(self) -> str:
        """Hash of all that fixes the runs, which depend on all twins."""
        return self.audited.key_of("live", self.audited.options.twins, self.common, self.runs)

    @property
    def items(self) -> tuple[Task, ...]:
        """The runs."""
        return self.runs

    def open(self) -> LiveRuns:
        """Open what the runs are drawn from."""
        return _live((self.audited, self.told, self.common))

    def compute(self, opened: LiveRuns, item: Task) -> Floats:
        """Play a run, and return its value."""
        return opened.value(item)


def audited_log(
    log: Log,
    plans: Sequence[ReplayPlan],
    policies: Sequence[Any],
    options: AuditOptions,
    *,
    place: LogPlace | None,
    workers: bool,
) -> AuditedLog:
    """Return what fixes an audit of a log, with the plans of its replays, and what workers have to know, if there are.

    UsageError if a policy has no name by which workers could load it.
    """
    words = tuple(loaded_by(policy) for policy in policies) if workers else ()
    questions = Questions(policies)
    questions.log = content_hash(log) if place is None else place.content
    key = _key(questions, plans, options)
    return AuditedLog(options, place, words, questions.codes, key)


def live_jobs(audited: AuditedLog, runs: LiveRuns, *, workers: bool) -> list[LiveJob]:
    """Return the jobs of all live runs."""
    told, tasks = as_text(tuple(runs.told)) if workers else "", runs.tasks
    size = min(max(LIVE_WORK // runs.rounds, 1), MOST_RUNS)
    return [LiveJob(audited, told, runs.common, tuple(tasks[at : at + size])) for at in range(0, len(tasks), size)]


def _key(questions: Questions, plans: Sequence[ReplayPlan], options: AuditOptions) -> str:
    keys = [questions.key(plan) for plan in plans]
    own = {name: value for name, value in asdict(options).items() if name not in ("jobs", "twins")}
    return hashlib.sha256(json.dumps([keys, own], sort_keys=True, default=str).encode()).hexdigest()


def _open(audited: AuditedLog) -> tuple[Fitted, list[Any]]:
    assert audited.place is not None
    policies = [as_description(words) for words in audited.policies]
    log = audited.place.opened()
    questions = Questions(policies, audited.codes)
    questions.log = audited.place.content
    fitted = fit(log, policies, audited.options)
    if _key(questions, fitted.plans, audited.options) != audited.key:
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
    fitted, _ = _opened(audited)
    return LiveRuns(fitted, audited.options, from_text(told, _CLASSES), common)


_opened = OpenedLast(_open)
# The live runs that were asked for last: what they are drawn from is made once.
_live = OpenedLast(_prepare_live)


class LiveRuns:
    """Live runs of the audited policies, on the truth that the twins were drawn from.

    `told` is what the replays of each policy told, twin by twin; policies are compared at `common` rounds.
    """

    def __init__(
        self, fitted: Fitted, options: AuditOptions, told: Sequence[tuple[TwinReplay, ...]], common: int
    ) -> None:
        self.told, self.common, self._seed = told, common, options.seed
        self._live = []
        for p, (plan, claim) in enumerate(zip(fitted.plans, fitted.claimed, strict=True)):
            lengths = [t for of in told for t in of[p].rounds]
            # Where replays found their rounds.
            first, last = np.mean([of[p].arrivals for of in told], axis=0)
            self._live.append(
                LivePolicy(
                    fitted.truth,
                    plan.policy,  # as planned on the log, which says what its actions are called
                    claim,
                    lengths,
                    common,
                    reach=int(min(*(of[p].setting.window for of in told), max(*lengths, common) - 1)),
                    arrivals=(float(first), float(last)),
                    told_costs=options.taught_by == "objective",
                    deployment=plan.deployment,
                    clock=plan.clock,
                )
            )

    @property
    def tasks(self) -> list[Task]:
        """All runs of all policies."""
        return [(run, p) for run in range(RUNS_PER_TWIN * len(self.told)) for p in range(len(self._live))]

    @property
    def rounds(self) -> int:
        """Rounds of the longest run."""
        return max(live.rounds for live in self._live)

    def value(self, task: Task) -> Floats:
        """Return the value of a run after its replays' rounds, and after the common ones, shape (2,)."""
        run, p = task
        told = self.told[run % len(self.told)][p]
        length = told.rounds[run // len(self.told) % len(told.rounds)]
        return self._live[p].value(run, told.setting, LiveSpan(length, *told.arrivals), self._seed)
