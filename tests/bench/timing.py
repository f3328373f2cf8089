"""Processor times of jobs that are to be compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.engine.log_replay import BATCH, Replay, SamplerName, begin
from evaluator.engine.pushes import PushTimes
from evaluator.policies.base import Setting
from tests.logged_rounds import LoggedRounds

RUNS = 7
Job = Callable[[], object]


def seconds(jobs: dict[str, Job], *, runs: int = RUNS) -> dict[str, float]:
    """Median processor time of each job."""
    return {name: float(np.median(times)) for name, times in turns(jobs, runs=runs).items()}


def turns(jobs: dict[str, Job], *, runs: int = RUNS) -> dict[str, npt.NDArray[np.float64]]:
    """Processor times of each job, run in turns, after a first turn that compiles."""
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(runs + 1):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            taken[name].append(time.process_time() - start)
    return {name: np.array(times[1:]) for name, times in taken.items()}


def replay(
    policy: Any, setting: Setting, rounds: LoggedRounds, *, sampler: SamplerName, pushes: PushTimes | None = None
) -> Job:
    def job() -> Replay:
        replaying = begin(policy, setting, sampler=sampler, seed=0, repeat=0, pushes=pushes)
        for first, batch in rounds.batches(BATCH):
            replaying.read(first, batch)
            if replaying.done:
                break
        return replaying.result()

    return job
