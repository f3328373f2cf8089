"""Goodness of fit under truncation: p-values are uniform under the fitted law and small under others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evaluator.delays.study.fitting import fit_family
from evaluator.delays.study.goodness import FamilyChoice, _distances, choose_family, delays_under_test, goodness_of_fit
from evaluator.delays.study.likelihood import sample_of
from evaluator.errors import ParameterError
from tests.delays.laws import truncated_draws


def test_distances_are_those_of_scipy_without_truncation() -> None:
    x = np.random.default_rng(0).exponential(5, 300)
    fit = fit_family(x, family="exponential")
    smirnov, darling = _distances(fit, x, None)
    assert smirnov == pytest.approx(stats.kstest(fit.cdf(x), "uniform").statistic, rel=1e-10)
    u = np.sort(fit.cdf(x))
    slow = -300 - sum((2 * i + 1) * (math.log(u[i]) + math.log(1 - u[299 - i])) for i in range(300)) / 300
    assert darling == pytest.approx(slow, rel=1e-10)


def test_a_false_family_is_rejected() -> None:
    delays, limits = truncated_draws(np.random.default_rng(2), "lognormal", displays=3000)
    test = goodness_of_fit(delays_under_test(delays, limits, rows=1000), family="exponential", bootstraps=49)
    assert test.anderson_darling_p == test.kolmogorov_smirnov_p == 1 / 50
    assert test.rows == 1000
    assert test.conversions == delays.size
    observed, fitted = np.array(test.observed), np.array(test.fitted)
    assert np.abs(np.log((observed + 1) / (fitted + 1))).max() > 0.5


def test_quantiles_of_a_true_family_lie_on_the_diagonal() -> None:
    delays, limits = truncated_draws(np.random.default_rng(3), "lognormal", displays=6000)
    test = goodness_of_fit(delays_under_test(delays, limits, rows=4000), family="lognormal", bootstraps=9)
    middle = slice(9, 90)
    # Quantiles of 4,000 lognormal delays have relative errors below sigma sqrt(p (1 - p) / n) / phi, at most .05 there.
    ratio = np.array(test.observed)[middle] / np.array(test.fitted)[middle]
    assert np.abs(np.log(ratio)).max() < 4 * 1.5 * math.sqrt(0.09 / 4000) / stats.norm.pdf(stats.norm.ppf(0.9))


def choose(delays: np.ndarray, limits: np.ndarray | None, *, families: list[str], rows: int = 2000) -> FamilyChoice:
    tested = delays_under_test(delays, limits, rows=rows)
    return choose_family(sample_of(delays, limits), lambda: tested, families=families, bootstraps=39)


def test_none_fits_is_an_answer() -> None:
    rng = np.random.default_rng(4)
    delays = np.concatenate((rng.integers(10, 13, 900), rng.integers(5000, 5100, 900)))
    choice = choose(delays, None, families=["exponential", "lognormal", "gamma"])
    assert not choice.fits
    assert choice.verdict.startswith("none fits; ")
    good, limits = truncated_draws(rng, "weibull", displays=2000)
    choice = choose(good, limits, families=["exponential", "weibull", "lognormal"], rows=500)
    assert choice.fits
    assert choice.verdict.startswith("weibull fits best (AIC ")
    with pytest.raises(ParameterError, match="bootstraps is 0"):
        goodness_of_fit(delays_under_test([1], None), family="gamma", bootstraps=0)
