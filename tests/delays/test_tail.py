"""The tail index: Hill's estimator, its truncated twin, and the coverage of the interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from evaluator.delays.study.tail import _log_likelihood, tail_delays, tail_index
from evaluator.errors import DataError, ParameterError


def pareto(rng: np.random.Generator, alpha: float, size: int) -> np.ndarray:
    return rng.random(size) ** (-1 / alpha)


def test_without_limits_it_is_hill() -> None:
    x = pareto(np.random.default_rng(0), 0.8, 2000)
    tail = tail_index(tail_delays(x), threshold=5.0)
    y = np.log(x[x > 5] / 5)
    assert tail.exceedances == y.size
    assert tail.alpha == pytest.approx(1 / y.mean(), rel=1e-10)
    assert tail.alpha == tail.hill
    drop = [y.size * (math.log(a * y.mean()) + 1) - a * y.sum() for a in (tail.low, tail.high)]
    assert drop == pytest.approx([-0.5 * 1.959964**2] * 2, rel=1e-5)


def test_truncated_estimate_maximises_the_likelihood() -> None:
    rng = np.random.default_rng(1)
    limits = rng.uniform(10, 500, 3000)
    x = pareto(rng, 0.6, 3000)
    seen = (x <= limits) & (x > 2)
    y, ends = np.log(x[seen] / 2), np.log(limits[seen] / 2)
    for alpha in (-0.7, 0.3, 2.0):
        slow = (math.log(abs(alpha)) - alpha * y - np.log(np.abs(-np.expm1(-alpha * ends)))).sum()
        assert _log_likelihood(y, ends, alpha) == pytest.approx(slow, rel=1e-10)
    assert _log_likelihood(y, ends, 1e-9) == pytest.approx(-np.log(ends).sum(), rel=1e-6)
    best = optimize.minimize_scalar(lambda a: -_log_likelihood(y, ends, a), (0.1, 1.0), options={"xtol": 1e-12})
    assert tail_index(tail_delays(x[seen], limits[seen]), threshold=2.0).alpha == pytest.approx(best.x, rel=1e-6)


def test_automatic_threshold_finds_where_the_tail_begins() -> None:
    rng = np.random.default_rng(3)
    # Uniform up to 100, a Pareto tail with index 0.5 beyond.
    x = np.where(rng.random(20_000) < 0.6, rng.uniform(0, 100, 20_000), 100 * pareto(rng, 0.5, 20_000))
    tail = tail_index(tail_delays(x))
    assert "Clauset" in tail.rule
    assert tail.threshold >= 80
    assert abs(tail.alpha - 0.5) <= 4 * 0.5 / math.sqrt(tail.exceedances)
    whole = tail_index(tail_delays(np.floor(x).astype(int)))
    assert abs(whole.alpha - 0.5) <= 4 * 0.5 / math.sqrt(whole.exceedances)


def test_a_short_look_shows_no_power_tail() -> None:
    rng = np.random.default_rng(4)
    x = rng.uniform(10, 20, 200)
    tail = tail_index(tail_delays(x, 20.0), threshold=10.0)
    assert tail.low < 0
    assert tail.notes == ("no power tail shown: the interval of alpha reaches 0",)
    few = tail_index(tail_delays(rng.exponential(3, 60)))
    assert few.threshold > 0


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(DataError, match="Only 2 of 3 delays lie above 2"):
        tail_index(tail_delays([1, 2, 3]), threshold=2)
    with pytest.raises(ParameterError, match="threshold is 0"):
        tail_index(tail_delays([1, 2, 3]), threshold=0)
    with pytest.raises(ParameterError, match="confidence is 2"):
        tail_index(tail_delays([1, 2, 3]), threshold=1, confidence=2)


def test_ties_that_leave_no_tail_are_an_error() -> None:
    with pytest.raises(DataError, match="Only 0 of 570 delays lie above"):
        tail_index(tail_delays(np.repeat([10, 40], [270, 300]), 1000))
