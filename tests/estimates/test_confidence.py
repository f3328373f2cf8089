"""The confidence sequence covers, at every time at once, and its boundary is the one of the paper."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from evaluator.errors import DataError, ParameterError
from evaluator.estimates import confidence
from evaluator.estimates.confidence import (
    gamma_exponential_boundary,
    log_mixture,
    mean_interval,
    mean_sequence,
)

Floats = NDArray[np.float64]
ALPHA, PATHS, HORIZON = 0.05, 2000, 2000


def log_m(s: float, v: float, rho: float) -> float:
    return float(log_mixture(np.asarray(s), np.asarray(v), rho)[0])


def integrated_log_m(s: float, v: float, rho: float) -> float:
    """Integrate exp(lambda s - psi(lambda) v) over the truncated gamma prior, on a grid around the peak."""

    def log_integral(s: float, v: float) -> float:
        def log_integrand(lam: Floats) -> Floats:
            prior = (rho - 1) * np.log1p(-lam) - rho * (1 - lam)
            return lam * s + v * (np.log1p(-lam) + lam) + prior

        peak, width = (s + 1) / (s + v + rho), 1 / math.sqrt(v + rho)
        low, high = max(0.0, peak - 12 * width), min(1.0, peak + 12 * width)
        edges = np.linspace(low, high, 400_001)
        lam = (edges[1:] + edges[:-1]) / 2
        values = log_integrand(lam)
        return float(values.max() + np.log(np.exp(values - values.max()).sum() * (edges[1] - edges[0])))

    return log_integral(s, v) - log_integral(0.0, 0.0)


def rounds_of(kind: str, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return observations and their conditional means, each of shape (PATHS, HORIZON)."""
    shape = (PATHS, HORIZON)
    if kind != "learning":
        means = np.full(shape, float(kind))
        return (rng.random(shape) < means).astype(float), means
    # Greedy on two arms with one round in ten at random: means depend on the past and differ between paths.
    rates, wins, plays = np.array([0.6, 0.1]), np.ones((PATHS, 2)), np.full((PATHS, 2), 2.0)
    x, means, row = np.empty(shape), np.empty(shape), np.arange(PATHS)
    for t in range(HORIZON):
        greedy = (wins / plays).argmax(axis=1)
        arm = np.where(rng.random(PATHS) < 0.1, rng.integers(0, 2, PATHS), greedy)
        x[:, t] = rng.random(PATHS) < rates[arm]
        means[:, t] = 0.9 * rates[greedy] + 0.1 * rates.mean()
        wins[row, arm] += x[:, t]
        plays[row, arm] += 1
    return x, means


@pytest.mark.parametrize("kind", ["0.5", "0.05", "0.004", "learning"])
def test_mean_is_covered_at_every_time_at_once(kind: str) -> None:
    x, means = rounds_of(kind, np.random.default_rng(20_240_101))
    t = np.arange(1, HORIZON + 1)
    past = np.cumsum(x, axis=1) - x
    variation = np.cumsum((x - (0.5 + past) / t) ** 2, axis=1)
    # The boundary at the grid point below V is lower than at V: misses are over-counted, if anything.
    step = 0.25
    table = gamma_exponential_boundary(np.arange(0, HORIZON, step), alpha=ALPHA / 2)
    radius = table[(variation / step).astype(int)]
    missed = (np.abs(np.cumsum(x - means, axis=1)) >= radius).any(axis=1).mean()
    assert missed <= ALPHA + 4 * math.sqrt(ALPHA * (1 - ALPHA) / PATHS)

    checkpoints = np.array([1, 10, 777, HORIZON])
    lows, highs = mean_sequence(x[0], upper=1, alpha=ALPHA, at=checkpoints)
    exact = gamma_exponential_boundary(variation[0, checkpoints - 1], alpha=ALPHA / 2) / checkpoints
    middle = np.cumsum(x[0])[checkpoints - 1] / checkpoints
    np.testing.assert_allclose(lows, np.maximum(middle - exact, 0), atol=1e-12)
    np.testing.assert_allclose(highs, np.minimum(middle + exact, 1), atol=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_exponential_process_is_a_supermartingale(sign: int) -> None:
    # Exact: every path of 10 rounds whose rate depends on the rounds before, weighted by its probability.
    depth = 10
    lam = np.linspace(0.0, 0.99, 34)
    psi = -np.log1p(-lam) - lam
    expected = np.zeros((depth, lam.size))
    for path in product([0, 1], repeat=depth):
        weight, total, s, v = 1.0, 0, 0.0, 0.0
        for i, x in enumerate(path):
            rate = 0.05 + 0.9 * (total + 1) / (i + 2) if i % 3 else 0.02
            predicted = (0.5 + total) / (i + 1)
            weight *= rate if x else 1 - rate
            s, v, total = s + sign * (x - rate), v + (x - predicted) ** 2, total + x
            # The prefix is met once for each of its 2^(depth - 1 - i) continuations.
            expected[i] += weight * np.exp(lam * s - psi * v) / 2 ** (depth - 1 - i)
    assert (np.diff(expected, axis=0, prepend=1.0) <= 1e-12).all()


@pytest.mark.parametrize(("s", "v"), [(0.5, 0.0), (3, 1), (30, 2.5), (10, 100), (400, 1e4), (5e4, 1e8), (3e5, 1e8)])
@pytest.mark.parametrize("rho", [1.5, 12.6])
def test_closed_form_equals_the_integrated_mixture(s: float, v: float, rho: float) -> None:
    # The midpoint rule's error is of the order of (24/400,000)^2, relative to the integral.
    assert log_m(s, v, rho) == pytest.approx(integrated_log_m(s, v, rho), abs=1e-7)


def test_boundary_equals_the_authors_software() -> None:
    # Golden values of confseq (Howard), test/uniform_boundaries_unittest.cpp, from its R reference, 7 digits:
    # GammaExponentialMixture(v_opt=100, alpha_opt=0.05, c=2). Scale 2 is scale 1 with s/2, v/4, v_opt/4.
    optimum = 2 * math.log(1 / (2 * 0.05))
    rho = 25 / (optimum + math.log1p(optimum))
    assert log_m(10 / 2, 100 / 4, rho) == pytest.approx(-0.2490165, abs=5e-8)
    boundary = 2 * gamma_exponential_boundary(np.array([100 / 4]), alpha=0.05, tuned_for=25)
    assert boundary[0] == pytest.approx(33.02017, abs=5e-6)


@pytest.mark.parametrize("alpha", [0.49, 0.025, 1e-12, 1e-300])
def test_boundary_solves_its_equation_and_increases(alpha: float) -> None:
    v = np.concatenate(([0.0], np.logspace(-6, 8, 57)))
    u = gamma_exponential_boundary(v, alpha=alpha)
    optimum = 2 * math.log(0.5 / alpha)
    rho = 100 / (optimum + math.log1p(optimum))
    np.testing.assert_allclose(log_mixture(u, v, rho)[0], -math.log(alpha), rtol=1e-9)
    assert (np.diff(u) > 0).all()


def test_slope_is_the_derivative() -> None:
    s, v, h = np.array([0.3, 5.0, 200.0]), np.array([0.0, 7.0, 3000.0]), 1e-4
    difference = (log_mixture(s + h, v, 12.6)[0] - log_mixture(s - h, v, 12.6)[0]) / (2 * h)
    np.testing.assert_allclose(log_mixture(s, v, 12.6)[1], difference, rtol=1e-6)


def test_interval_is_not_vacuous() -> None:
    n = 10_000
    x = np.random.default_rng(5).random(n) < 0.5
    interval = mean_interval(x, upper=1, alpha=ALPHA)
    clt_width = 2 * norm.ppf(1 - ALPHA / 2) * math.sqrt(0.25 / n)
    assert clt_width < interval.high - interval.low < 3 * clt_width


def test_interval_mirrors_and_scales_with_the_data() -> None:
    x = np.random.default_rng(6).random(500) ** 3
    at = np.array([0, 1, 20, 500])
    lows, highs = mean_sequence(x, upper=1, at=at)
    # The start value upper/2 is its own mirror image, so the symmetry is exact.
    mirrored_lows, mirrored_highs = mean_sequence(1 - x, upper=1, at=at)
    np.testing.assert_allclose((mirrored_lows, mirrored_highs), (1 - highs, 1 - lows), atol=1e-12)
    scaled = mean_sequence(40 * x, upper=40, at=at)
    np.testing.assert_allclose(scaled, (40 * lows, 40 * highs), rtol=1e-12)


def test_sequence_ends_in_the_interval() -> None:
    x = np.random.default_rng(7).random(300)
    interval = mean_interval(x, upper=2, alpha=0.1)
    lows, highs = mean_sequence(x, upper=2, alpha=0.1, at=np.array([300]))
    assert (interval.low, interval.high, interval.n, interval.level) == (lows[0], highs[0], 300, 0.9)
    assert interval.estimate == x.mean()
    assert "anytime" in interval.kind


def test_later_rounds_do_not_change_earlier_intervals() -> None:
    x = np.random.default_rng(8).random(300)
    at = np.array([5, 100])
    np.testing.assert_array_equal(mean_sequence(x, upper=1, at=at), mean_sequence(x[:100], upper=1, at=at))


def test_no_rounds_give_nan_and_the_whole_range() -> None:
    interval = mean_interval([], upper=3)
    assert math.isnan(interval.estimate)
    assert (interval.low, interval.high, interval.n) == (0, 3, 0)
    # Even at an alpha so generous that the boundary is short.
    assert mean_interval([], upper=3, alpha=0.999).high == 3


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_constant_rounds_are_covered_tightly(value: float) -> None:
    n = 10_000
    interval = mean_interval(np.full(n, value), upper=1)
    assert interval.low <= value <= interval.high
    # V never exceeds sum (1/(2i))^2 < 1/4 * pi^2/6, so the width decays as 1/n, not as 1/sqrt(n).
    widest = gamma_exponential_boundary(np.array([math.pi**2 / 24]), alpha=ALPHA / 2)[0]
    assert interval.high - interval.low <= 2 * widest / n + 1e-12


@pytest.mark.parametrize("bad", [-0.1, 1.5, math.nan, math.inf])
def test_value_outside_the_range_is_named(bad: float) -> None:
    with pytest.raises(DataError, match=r"Observation 2 is .*outside \[0, 1\] \(2 such"):
        mean_interval([0, 1, bad, 0.5, -3], upper=1)


def test_matrix_is_refused() -> None:
    with pytest.raises(DataError, match="shape"):
        mean_interval(np.zeros((2, 2)), upper=1)


@pytest.mark.parametrize(
    "options", [{"upper": 0}, {"upper": math.inf}, {"upper": 1, "alpha": 0}, {"upper": 1, "alpha": 1}]
)
def test_parameters_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        mean_interval([0.5], **options)


def test_tuning_and_checkpoints_out_of_range_are_refused() -> None:
    with pytest.raises(ParameterError, match="tuned_for"):
        mean_interval([0.5], upper=1, tuned_for=0)
    with pytest.raises(ParameterError, match="Checkpoints"):
        mean_sequence([0.5], upper=1, at=np.array([2]))


@pytest.mark.parametrize("n", [1, 7, 16, 50])
def test_rounds_read_in_blocks_give_the_same_to_the_bit(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, at = np.random.default_rng(n).uniform(-0.5, 1.5, n), np.arange(n + 1)
    whole = mean_sequence(x, lower=-0.5, upper=1.5, at=at)
    monkeypatch.setattr(confidence, "_BLOCK", 8)
    np.testing.assert_array_equal(mean_sequence(x, lower=-0.5, upper=1.5, at=at), whole)
