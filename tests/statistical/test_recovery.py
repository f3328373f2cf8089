"""Replays recover what is known: the log's own mean, and the truth of synthetic logs within the intervals' level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evaluator.api import replay
from evaluator.estimates.confidence import Interval
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.replays.result import ReplayResult
from tests.logs import bernoulli_log, linear_log
from tests.statistical.runs import replays

LEVEL, RUNS = 0.8, 300
MEANS = (0.5, 0.3, 0.2, 0.4)


def arms_log(seed: int) -> Log:
    return bernoulli_log(3000, MEANS, mean_delay=30.0, seed=seed, logger=(0.4, 0.2, 0.2, 0.2))


def softmax_log(seed: int) -> Log:
    return linear_log(3000, n_actions=4, dimension=3, mean_delay=30.0, seed=seed, temperature=0.5)


def mean_reward(log: Log) -> float:
    return float(to_numpy(log.conversions["value"]).sum() / len(log))


@pytest.mark.parametrize("make_log", [arms_log, softmax_log])
def test_the_logging_policy_has_exactly_the_mean_of_the_log(make_log: Callable[[int], Log]) -> None:
    log = make_log(1)
    result = replay(log, "logging", window=50)
    assert result.value.estimate == mean_reward(log)
    assert result.uplift.estimate == 0.0
    assert (result.rounds, result.acceptance_rate) == (len(log), 1.0)


@pytest.mark.parametrize("sampler", ["keep", "queue", "rejection"])
def test_random_play_recovers_the_mean_of_a_log_made_at_random(sampler: str) -> None:
    log = bernoulli_log(20_000, MEANS, mean_delay=30.0, seed=2)
    result = replay(log, "random", sampler=sampler, seed=2)
    assert result.value.low <= mean_reward(log) <= result.value.high
    assert result.value.high - result.value.low < 0.1


def expected_of_rounds(log: Log, result: ReplayResult) -> np.ndarray:
    shown = to_numpy(result.trajectory["display_id"])
    return log.column("expected_reward")[shown, log.column("action")[shown]]


def values_of_fixed_actions(log: Log) -> float:
    """Return the value of the best fixed action; in the linear scenario all have the same by symmetry."""
    expected = log.column("expected_reward")
    if np.ptp(expected, axis=0).max() == 0:
        return float(expected[0].max())
    vectors = np.random.default_rng(3).random((400_000, 3))
    # Its standard error is below 0.2 / sqrt(400,000) = 0.0003, a hundredth of an interval's width.
    return float((vectors.sum(axis=1) / np.linalg.norm(vectors, axis=1)).mean() / 3**0.5)


def holds(interval: Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


@pytest.mark.parametrize(("make_log", "policy"), [(arms_log, "ucb1"), (softmax_log, "otflinucb")])
def test_intervals_hold_as_often_as_they_say(make_log: Callable[[int], Log], policy: str) -> None:
    (results,) = replays(make_log, [policy], runs=RUNS, window=50, level=LEVEL)
    held = np.zeros((RUNS, 3), bool)
    for i, result in enumerate(results):
        log = make_log(i)
        of_rounds = expected_of_rounds(log, result)
        value, t = float(of_rounds.mean()), result.rounds
        logging = float(log.column("expected_reward")[np.arange(len(log)), log.column("action")].mean())
        held[i] = (
            holds(result.value, value),
            holds(result.regret, t * (values_of_fixed_actions(log) - value)),
            holds(result.uplift, value - logging),
        )
        assert [result.value.level, result.regret.level, result.uplift.level] == pytest.approx([LEVEL] * 3)
    assert (held.mean(axis=0) >= LEVEL - 4 * (LEVEL * (1 - LEVEL) / RUNS) ** 0.5).all()
    # Not vacuous: an interval as wide as all rewards would hold always.
    assert np.mean([r.value.high - r.value.low for r in results]) < 0.25


def test_intervals_of_repeats_hold_together() -> None:
    # Five correlated repeats, whose interval is no wider than that of one: it must hold for the mean of all rounds.
    (results,) = replays(arms_log, ["ucb1"], runs=100, window=50, level=LEVEL, repeats=5)
    truths = [float(expected_of_rounds(arms_log(i), r).mean()) for i, r in enumerate(results)]
    held = np.mean([holds(r.value, truth) for r, truth in zip(results, truths, strict=True)])
    assert held >= LEVEL - 4 * (LEVEL * (1 - LEVEL) / 100) ** 0.5
