"""Rewards observed by the last round: unbiased for the number of rounds that the log happened to give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.logs import bernoulli_log
from tests.statistical.runs import off, replays

MEANS = np.array([0.1, 0.3, 0.5])
MEAN_DELAY, WINDOW, N, RUNS = 60.0, 100, 900, 300


def within(age: np.ndarray) -> np.ndarray:
    """P(D <= age) of geometric delays on {0, 1, ...}."""
    return 1.0 - (MEAN_DELAY / (1.0 + MEAN_DELAY)) ** (age + 1.0)


@pytest.mark.parametrize(
    ("policy", "logger", "options"),
    [
        ("random", None, {"sampler": "rejection"}),
        ("ucb1", None, {"sampler": "rejection"}),
        ("delayed-ucb", [0.5, 0.3, 0.2], {"sampler": "rejection"}),
        ("ucb1", None, {"sampler": "keep"}),
    ],
)
def test_given_its_number_of_rounds_a_replay_observes_what_a_live_run_does(
    policy: str, logger: list[float] | None, options: Any
) -> None:
    [found] = replays(
        lambda seed: bernoulli_log(N, MEANS, mean_delay=MEAN_DELAY, seed=seed, logger=logger),
        [policy], runs=RUNS, window=WINDOW, reward="observed", **options,
    )  # fmt: skip
    assert len({result.rounds for result in found}) > 10  # T is random
    errors = []
    for result in found:
        t, action = result.rounds, result.trajectory["action"].to_numpy()
        expected = MEANS[action] * within(np.minimum(WINDOW, t - 1.0 - np.arange(t)))
        errors.append(result.value.estimate - expected.mean())
    assert abs(off(np.array(errors), 0.0)) < 4
    # What the log holds of the same rounds is another number.
    eventual = np.array([MEANS[result.trajectory["action"].to_numpy()].mean() for result in found])
    values = np.array([result.value.estimate for result in found])
    assert off(eventual, values) > 10
