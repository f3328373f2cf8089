"""Tests of how well a family of delays fits keep their levels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.delays.study.goodness import delays_under_test, goodness_of_fit
from tests.delays.laws import truncated_draws


@pytest.mark.parametrize("rounding", ["floor", "none"])
def test_a_true_family_is_rejected_as_often_as_the_level_says(rounding: str) -> None:
    rng = np.random.default_rng(1)
    logs, level = 40, 0.2
    rejected = np.zeros(2)
    for seed in range(logs):
        delays, limits = truncated_draws(rng, "exponential", displays=250, span=700, rounding=rounding)
        tested = delays_under_test(delays, limits, rounding=rounding, seed=seed)
        test = goodness_of_fit(tested, family="exponential", bootstraps=19, seed=seed)
        rejected += np.array([test.kolmogorov_smirnov_p, test.anderson_darling_p]) <= level
    assert (np.abs(rejected / logs - level) <= 4 * math.sqrt(level * (1 - level) / logs)).all()
