"""Where rates change from day to day, `random` earns what it would have earned over the log's time, by any default."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.api import replay
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from tests.logs import build_log
from tests.statistical.runs import off

N, RUNS = 10_000, 60
LOGGER, RATES = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.15, 0.2, 0.2])


def drifting(seed: int, drift: float) -> Log:
    """Return a log whose rates grow linearly, from 1 - drift to 1 + drift times their mean."""
    rng = np.random.default_rng(seed)
    action = rng.choice(4, N, p=LOGGER)
    rate = RATES[action] * np.linspace(1 - drift, 1 + drift, N)
    converted = np.flatnonzero(rng.random(N) < rate)
    return build_log(
        time=np.arange(N), action=action, n_actions=4, propensity=LOGGER[action], conversion_display=converted,
        conversion_time=converted,
    )  # fmt: skip


def beginnings_of_queues(log: Log, seed: int) -> float:
    """Return the value of serving each action's displays from its first one on, as many rounds as the rarest has."""
    action = log.column("action")
    reward = np.bincount(to_numpy(log.conversions["display_id"]), minlength=N)
    rounds = int(np.bincount(action).min())
    wanted = np.bincount(np.random.default_rng(seed).integers(0, 4, rounds), minlength=4)
    return float(sum(reward[np.flatnonzero(action == k)[: wanted[k]]].sum() for k in range(4)) / rounds)


@pytest.mark.parametrize("drift", [0.2, 0.8])
def test_random_play_is_right_under_drift(drift: float) -> None:
    truth = float(RATES.mean())
    logs = [drifting(seed, drift) for seed in range(RUNS)]
    for options in ({}, {"sampler": "keep"}, {"sampler": "queue"}, {"sampler": "queue", "horizon": 500}):
        results = [replay(log, "random", seed=seed, **options) for seed, log in enumerate(logs)]
        values = np.array([result.value.estimate for result in results])
        assert abs(off(values, truth)) < 4, options
        assert sum(result.value.low <= truth <= result.value.high for result in results) >= 0.95 * RUNS
    old = np.array([beginnings_of_queues(log, seed) for seed, log in enumerate(logs)])
    assert off(old, truth) < -4


def test_one_drifting_replay_covers_the_truth() -> None:
    result = replay(drifting(1, 0.8), "random")
    assert result.plan["sampler"] == "rejection"
    assert result.value.low < RATES.mean() < result.value.high
