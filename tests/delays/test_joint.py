"""The joint model: derivatives against differences, coefficients against known truth, the correction it is for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from evaluator.delays.study.joint_rate import _gradient, _hessian, _Rows, _value, fit_joint
from evaluator.errors import DataError, ParameterError

W, V = np.array([0.8, -0.5, -1.5]), np.array([-0.4, 0.7, -5.0])


def young_displays(
    rng: np.random.Generator, n: int, *, span: int = 400, rounding: str = "floor"
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return contexts, delays seen (-1 where none), elapsed times and eventual conversions."""
    contexts = rng.standard_normal((n, 2))
    design = np.column_stack((contexts, np.ones(n)))
    converts = rng.random(n) < expit(design @ W)
    delay = rng.exponential(np.exp(-(design @ V)))
    elapsed = rng.integers(0, span, n).astype(float)
    if rounding == "floor":
        delay = np.floor(delay)
    return contexts, np.where(converts & (delay <= elapsed), delay, -1), elapsed, converts


@pytest.mark.parametrize("rounding", ["floor", "none"])
def test_derivatives_are_those_of_the_likelihood(rounding: str) -> None:
    contexts, delays, elapsed, _ = young_displays(np.random.default_rng(0), 300, rounding=rounding)
    width = 3.0 if rounding == "floor" else 0.0
    converted = delays >= 0
    penalty = np.array([0.5, 0.0, 2.0, 0.0])
    rows = _Rows(contexts, converted, np.where(converted, delays, elapsed + width), width, penalty)

    def value(at: np.ndarray) -> float:
        return _value(rows, at) - 0.5 * float(penalty @ at**2)

    theta = np.array([0.3, -0.2, -0.5, 0.4])
    for i, unit in enumerate(np.eye(4) * 1e-5):
        slope = (value(theta + unit) - value(theta - unit)) / 2e-5
        assert _gradient(rows, theta)[i] == pytest.approx(slope, rel=1e-5)
        bend = (_gradient(rows, theta + unit) - _gradient(rows, theta - unit)) / 2e-5
        np.testing.assert_allclose(_hessian(rows, theta)[i], bend, rtol=1e-5, atol=1e-4)


def test_likelihood_of_a_row_by_hand() -> None:
    x = np.ones((2, 1))
    theta = np.array([0.4, -2.0])
    p, r = expit(0.4), math.exp(-2.0)
    rows = _Rows(x, np.array([True, False]), np.array([3.0, 8.0]), 1.0, np.zeros(2))
    seen = p * (math.exp(-3 * r) - math.exp(-4 * r))
    assert _value(rows, theta) == pytest.approx(math.log(seen) + math.log(1 - p + p * math.exp(-8 * r)))
    exact = rows._replace(width=0.0)
    assert _value(exact, theta) == pytest.approx(
        math.log(p * r * math.exp(-3 * r)) + math.log(1 - p + p * math.exp(-8 * r))
    )


@pytest.mark.parametrize("rounding", ["floor", "none"])
def test_coefficients_are_recovered(rounding: str) -> None:
    contexts, delays, elapsed, _ = young_displays(np.random.default_rng(1), 30_000, rounding=rounding)
    fit = fit_joint(contexts, delays, elapsed, width=1.0 if rounding == "floor" else 0.0)
    assert fit.converged
    assert (np.abs(fit.conversion - W) <= 4 * fit.conversion_errors).all()
    assert (np.abs(fit.rate - V) <= 4 * fit.rate_errors).all()


def test_standard_errors_are_those_of_repetition() -> None:
    rng = np.random.default_rng(2)
    drawn = 100
    z = []
    for _ in range(drawn):
        contexts, delays, elapsed, _ = young_displays(rng, 4000)
        fit = fit_joint(contexts, delays, elapsed)
        z.append(np.concatenate(((fit.conversion - W) / fit.conversion_errors, (fit.rate - V) / fit.rate_errors)))
    assert (np.abs(np.mean(z, axis=0)) <= 4 / math.sqrt(drawn)).all()
    assert (np.abs(np.var(z, axis=0) - 1) <= 4 * math.sqrt(2 / drawn)).all()


def test_conversion_rate_of_young_displays_is_corrected() -> None:
    rng = np.random.default_rng(3)
    errors, naive = [], []
    for _ in range(40):
        contexts, delays, elapsed, converts = young_displays(rng, 5000, span=200)
        fit = fit_joint(contexts, delays, elapsed)
        errors.append(fit.corrected_rate(contexts, delays, elapsed) - converts.mean())
        naive.append((delays >= 0).mean() - converts.mean())
    assert abs(np.mean(errors)) <= 4 * np.std(errors) / math.sqrt(40)
    assert np.mean(naive) < -10 * np.std(errors) / math.sqrt(40)
    # Of displays that have shown nothing, the share that the fit says will convert does.
    silent = delays < 0
    expected = fit.pending_probability(contexts[silent], elapsed[silent])
    assert abs(expected.mean() - converts[silent].mean()) <= 4 * np.std(errors) * 5000 / silent.sum()


def test_collinear_features_are_said_to_be_unidentified_and_ridge_helps() -> None:
    contexts, delays, elapsed, _ = young_displays(np.random.default_rng(4), 2000)
    twice = np.column_stack((contexts, contexts[:, 0]))
    fit = fit_joint(twice, delays, elapsed)
    assert not fit.converged
    assert "not identified" in fit.notes[0]
    steady = fit_joint(twice, delays, elapsed, ridge=1.0)
    assert steady.converged
    assert steady.conversion[0] == pytest.approx(steady.conversion[2], rel=1e-6)


def test_impossible_displays_are_refused() -> None:
    x = np.ones((3, 1))
    with pytest.raises(DataError, match="0 of 3 displays converted"):
        fit_joint(x, [-1, -1, np.nan], 5)
    with pytest.raises(DataError, match=r"Delay 1 is 9.*above its limit 5"):
        fit_joint(x, [1, 9, -1], 5)
    with pytest.raises(DataError, match="elapsed"):
        fit_joint(x, [1, 2, -1], [5, 5])
    with pytest.raises(DataError, match=r"contexts of shape \(3, 1\)"):
        fit_joint(x, [1, -1], 5)
    with pytest.raises(DataError, match="Context 0, feature 0 is nan"):
        fit_joint(x * np.nan, [1, 2, -1], 5)
    with pytest.raises(DataError, match="Delays have shape"):
        fit_joint(x, x, 5)
    with pytest.raises(ParameterError, match="ridge is -1"):
        fit_joint(x, [1, 2, -1], 5, ridge=-1)
    with pytest.raises(ParameterError, match="width is -1"):
        fit_joint(x, [1, 2, -1], 5, width=-1)


@pytest.mark.parametrize("ridge", [0.0, 5.0])
@pytest.mark.parametrize("unit", [60, 1_000_000])
def test_the_unit_of_time_changes_the_intercept_of_the_rate_alone(unit: int, ridge: float) -> None:
    contexts, delays, elapsed, _ = young_displays(np.random.default_rng(5), 3000)
    one = fit_joint(contexts, delays, elapsed, ridge=ridge)
    other = fit_joint(contexts, np.where(delays < 0, -1, delays * unit), elapsed * unit, ridge=ridge, width=unit)
    np.testing.assert_allclose(other.conversion, one.conversion, rtol=1e-9)
    np.testing.assert_allclose(other.covariance, one.covariance, rtol=1e-6)
    np.testing.assert_allclose(other.rate[:2], one.rate[:2], rtol=1e-9)
    assert other.rate[2] == pytest.approx(one.rate[2] - math.log(unit), rel=1e-12)
    assert other.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-12)
    exact = [fit_joint(contexts, delays * u, elapsed * u, ridge=ridge, width=0) for u in (1.0, float(unit))]
    assert exact[1].log_likelihood == pytest.approx(
        exact[0].log_likelihood - exact[0].conversions * math.log(unit), rel=1e-9
    )


def test_a_ridge_leaves_the_constant_alone() -> None:
    contexts, delays, elapsed, _ = young_displays(np.random.default_rng(6), 3000)
    free = fit_joint(np.empty((3000, 0)), delays, elapsed)
    held = fit_joint(contexts, delays, elapsed, ridge=1e9)
    assert held.conversion[-1] == pytest.approx(free.conversion[-1], abs=1e-4)
    assert held.rate[-1] == pytest.approx(free.rate[-1], abs=1e-4)
    assert np.abs(np.concatenate((held.conversion[:2], held.rate[:2]))).max() < 1e-4
