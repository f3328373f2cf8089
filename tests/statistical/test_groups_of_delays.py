"""Groups of delays that are alike are told apart as often as the level says."""

from __future__ import annotations

import math

import numpy as np

from evaluator.delays.study.heterogeneity import grouped_delays, heterogeneity
from tests.delays.test_heterogeneity import truncated_arms


def test_level_holds_even_when_groups_were_watched_for_different_times() -> None:
    rng = np.random.default_rng(1)
    logs, level = 200, 0.1
    rejected = 0
    for seed in range(logs):
        delays, limits, arms = truncated_arms(rng, [100, 100, 100], [600, 300, 150], 150)
        test = heterogeneity(grouped_delays(delays, limits, groups=arms, seed=seed), permutations=99, level=0.5)
        rejected += test.p <= level
    assert abs(rejected / logs - level) <= 4 * math.sqrt(level * (1 - level) / logs)
    # Comparing the delays seen, blind to their limits, would have called them different.
    assert delays[arms == 0].mean() > 1.2 * delays[arms == 2].mean()
