"""Intervals by cluster against known truth: for users who are new."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.estimates.weighted import mean_value
from tests.estimates.test_clustered import LEVEL

LOGS = 600


def users(rng: np.random.Generator, sizes: np.ndarray, effect: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rewards and users: each of these has a rate of his own around .4."""
    user = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    rate = 0.4 + effect * rng.choice([-1.0, 1.0], len(sizes))
    return (rng.random(len(user)) < rate[user]).astype(np.float64), user


@pytest.mark.parametrize(
    ("sizes", "effect"),
    [
        (np.full(200, 100), 0.2),
        (np.full(12, 400), 0.2),
        (np.rint(5 + 400 / np.arange(1, 120)).astype(int), 0.2),
        (np.full(200, 20), 0.0),
    ],
    ids=["200 users", "12 users", "119 uneven users", "independent"],
)
def test_intervals_hold_for_new_users(sizes: np.ndarray, effect: float) -> None:
    rng = np.random.default_rng(11)
    held = np.zeros(2)
    for _ in range(LOGS):
        y, user = users(rng, sizes, effect)
        for i, code in enumerate((user, None)):
            value = mean_value(y, level=LEVEL, clusters=code).value
            held[i] += value.low <= 0.4 <= value.high
    share, error = held / LOGS, 4 * math.sqrt(LEVEL * (1 - LEVEL) / LOGS)
    assert abs(share[0] - LEVEL) < error, share
    # Displays taken as independent pass where they are, and fail where they are not.
    assert (share[1] > LEVEL - error) == (effect == 0.0), share
