"""Many replays of many logs, and the comparison of two samples of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.api import plan, replay
from evaluator.log import Log
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import _true_regret, execute, replay_all

Floats = npt.NDArray[np.float64]


def replays(
    make_log: Callable[[int], Log], policies: Sequence[Any], *, runs: int, first: int = 0, **options: Any
) -> list[list[ReplayResult]]:
    """Replay each policy on `runs` fresh logs; return a list of runs for each policy.

    Run i replays log i with seed i: that the log was drawn from the same seed must not matter.
    """

    def one(run: int) -> list[ReplayResult]:
        log = make_log(first + run)
        return [replay(log, policy, seed=first + run, **options) for policy in policies]

    with ThreadPoolExecutor(2) as pool:
        return [list(results) for results in zip(*pool.map(one, range(runs)), strict=True)]


def replayed_regrets(
    make_log: Callable[[int], Log], policies: Sequence[Any], *, runs: int, horizon: int, **options: Any
) -> list[Floats]:
    """Return the pseudo-regrets of each policy after `horizon` rounds on `runs` fresh logs: `regrets` of `replays`.

    Rounds are lived and nothing is estimated of them, which takes longer; but for the first log's, whose results must
    say the same regrets.
    """

    def one(run: int) -> list[float]:
        log = make_log(run)
        return [regret(log, plan(log, policy, horizon=horizon, seed=run, **options), run) for policy in policies]

    def regret(log: Log, planned: Any, run: int) -> float:
        (lived,) = replay_all([planned])
        displays = lived.replayed.displays
        assert len(displays) == horizon
        found = _true_regret(planned, displays, log.column("action")[displays])
        assert run > 0 or execute(planned).true_regret == found
        return found

    with ThreadPoolExecutor(2) as pool:
        return [np.array(found) for found in zip(*pool.map(one, range(runs)), strict=True)]


def regrets(results: list[ReplayResult], horizon: int) -> Floats:
    """Return each run's pseudo-regret; all must have reached the common horizon, lest slow runs be left out."""
    assert {r.rounds for r in results} == {horizon}
    return np.array([r.true_regret for r in results])


def standard_error(*samples: Floats) -> float:
    """Return the standard error of the difference of the samples' means (of the mean of a single one)."""
    return math.sqrt(sum(x.var(ddof=1) / len(x) for x in samples))


def off(a: Floats, b: Floats | float) -> float:
    """Return the difference of two means in its standard errors; `b` may be a known number."""
    if isinstance(b, float):
        return float(a.mean() - b) / standard_error(a)
    return float(a.mean() - b.mean()) / standard_error(a, b)
