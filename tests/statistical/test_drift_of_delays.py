"""Drift of delays that do not drift is alarmed about at the stated rate."""

from __future__ import annotations

import math

import numpy as np

from evaluator.delays.study.changes import delay_drift
from tests.delays.test_drift import log_of_days


def test_alarms_without_drift_come_at_the_stated_rate() -> None:
    rng = np.random.default_rng(0)
    logs, rate = 200, 0.1
    alarms = 0
    for seed in range(logs):
        delays, limits, days = log_of_days(rng, days=8, displays=400, mean=150)
        drift = delay_drift(delays, limits, days=days, false_alarms=rate, permutations=99, seed=seed)
        alarms += drift.changed
    assert abs(alarms / logs - rate) <= 4 * math.sqrt(rate * (1 - rate) / logs)
    # The delays seen do shorten along the log.
    assert delays[days < 4].mean() > 1.2 * delays[days >= 4].mean()
