"""Drift: young days are not mistaken for quick ones, alarms come at the stated rate, changes are dated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.delays.study.changes import delay_drift
from evaluator.errors import DataError, ParameterError

DAY = 100


def log_of_days(
    rng: np.random.Generator, *, days: int, displays: int, mean: float, later_mean: float | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return delays, limits and days of a log that ends after its last day; the mean may change half way."""
    time = rng.integers(0, days * DAY, displays)
    limits = days * DAY - 1 - time
    day = time // DAY
    means = np.where(day >= days // 2, mean if later_mean is None else later_mean, mean)
    delays = rng.exponential(means).astype(int)
    seen = delays <= limits
    return delays[seen], limits[seen], day[seen]


def test_a_change_is_flagged_and_dated() -> None:
    delays, limits, days = log_of_days(np.random.default_rng(1), days=12, displays=8000, mean=100, later_mean=200)
    drift = delay_drift(delays, limits, days=days, longest=300)
    assert drift.changed
    assert drift.p == 1 / 1000
    assert drift.change_after in (4, 5, 6)
    before, after = drift.days[2], drift.days[8]
    assert before.position < 0.5 < after.position
    truth = -100 * math.log(1 - 0.5 * (1 - math.exp(-301 / 100)))
    assert before.low[1] - 1 <= truth <= before.high[1] + 1
    assert after.quantiles[1] > before.quantiles[1]
    assert before.longest == 300
    assert drift.days[-1].longest < 300
    assert drift.to_dict()["days"][0]["day"] == 0
    assert sum(day.conversions for day in drift.days) == (delays <= 300).sum()


def test_large_logs_are_subsampled() -> None:
    delays, limits, days = log_of_days(np.random.default_rng(2), days=5, displays=2000, mean=100)
    drift = delay_drift(delays, limits, days=days, rows=500, permutations=99)
    assert (drift.rows, drift.conversions) == (500, delays.size)
    assert drift.change_after is None or drift.changed


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(DataError, match="one day a delay"):
        delay_drift([1, 2], days=[0])
    with pytest.raises(ParameterError, match="9 permutations cannot show"):
        delay_drift([1, 2], days=[0, 1], permutations=9)
