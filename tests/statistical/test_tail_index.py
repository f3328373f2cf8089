"""The tail index of truncated delays covers the true one."""

from __future__ import annotations

import math

import numpy as np

from evaluator.delays.study.tail import tail_delays, tail_index
from tests.delays.test_tail import pareto


def test_interval_covers_where_hill_is_too_large() -> None:
    rng = np.random.default_rng(2)
    logs, alpha = 400, 0.7
    covered = 0
    errors = []
    hills = []
    for _ in range(logs):
        limits = rng.uniform(5, 400, 1500)
        x = pareto(rng, alpha, 1500)
        seen = x <= limits
        tail = tail_index(tail_delays(x[seen], limits[seen]), threshold=1.0)
        covered += tail.low <= alpha <= tail.high
        hills.append(tail.hill)
        errors.append(tail.alpha - alpha)
    assert abs(covered / logs - 0.95) <= 4 * math.sqrt(0.95 * 0.05 / logs)
    assert abs(np.mean(errors)) <= 4 * np.std(errors) / math.sqrt(logs)
    assert np.mean(hills) - alpha > 10 * np.std(hills) / math.sqrt(logs)
