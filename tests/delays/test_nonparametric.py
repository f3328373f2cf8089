"""Bands of the product limit: against closed forms, against lifelines, and their coverage of known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.nonparametric import _supremum_quantile, fit_nonparametric
from evaluator.delays.product_limit import product_limit
from evaluator.errors import DataError, ParameterError

DECILES = np.arange(1, 10) / 10
logs = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 8)), min_size=1, max_size=40).map(
    lambda drawn: (np.array([d for d, _ in drawn]), np.array([d + slack for d, slack in drawn]))
)


def continuous_log(
    rng: np.random.Generator, *, displays: int, mean: float, span: float
) -> tuple[np.ndarray, np.ndarray]:
    limits = rng.uniform(0, span, displays)
    delays = rng.exponential(mean, displays)
    seen = delays <= limits
    return delays[seen], limits[seen]


def exponential_cdf(a: np.ndarray, mean: float, top: float) -> np.ndarray:
    return np.expm1(-a / mean) / np.expm1(-top / mean)


@settings(deadline=None)
@given(logs)
def test_estimate_is_the_product_limit(log: tuple[np.ndarray, np.ndarray]) -> None:
    delays, limits = log
    fit, reference = fit_nonparametric(delays, limits), product_limit(delays, limits)
    assert fit.delay_cdf().delays.tolist() == reference.delays.tolist()
    np.testing.assert_allclose(fit.cdf, reference.cdf, rtol=1e-12)
    assert fit.conversions + fit.left_out == delays.size


@settings(deadline=None)
@given(logs, st.sampled_from([0.5, 0.95, 0.999]))
def test_bands_are_cdfs_around_the_estimate(log: tuple[np.ndarray, np.ndarray], confidence: float) -> None:
    fit = fit_nonparametric(*log, confidence=confidence)
    for low, high in [(fit.low, fit.high), (fit.band_low, fit.band_high)]:
        assert ((low >= 0) & (low <= fit.cdf + 1e-12) & (fit.cdf <= high + 1e-12) & (high <= 1)).all()
        assert (np.diff(low) >= 0).all()
        assert (np.diff(high) >= 0).all()


@settings(deadline=None)
@given(logs, st.floats(0.01, 100))
@example((np.array([5, 7, 10]), np.array([10, 7, 10])), 10.04117301932552)
def test_counting_whole_ticks_and_sorting_fractions_agree(log: tuple[np.ndarray, np.ndarray], unit: float) -> None:
    delays, limits = log
    whole, fractions = fit_nonparametric(delays, limits), fit_nonparametric(delays * unit, limits * unit)
    assert (whole.delays * unit).tolist() == fractions.delays.tolist()
    for name in ("cdf", "naive", "low", "high", "band_low", "band_high"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(fractions, name))


def test_greenwood_against_a_slow_loop() -> None:
    rng = np.random.default_rng(3)
    limits = rng.integers(0, 60, 400)
    delays = rng.geometric(1 / 20, 400) - 1
    delays, limits = delays[delays <= limits], limits[delays <= limits]
    fit = fit_nonparametric(delays, limits, confidence=0.9)
    inside = (fit.delays >= fit.band_from) & (fit.delays <= fit.band_to)
    greenwood = []
    for a in fit.delays[inside]:
        variance = 0.0
        for d in np.unique(delays[delays > a]):
            n, r = (delays == d).sum(), ((delays <= d) & (limits >= d)).sum()
            variance += n / (r * (r - n))
        greenwood.append(variance)
    width = _supremum_quantile(greenwood[0] / greenwood[-1], 0.9)
    cdf = fit.cdf[inside]
    shift = width * np.sqrt(greenwood) / np.log(cdf)
    np.testing.assert_allclose(fit.band_low[inside], cdf ** np.exp(-shift), rtol=1e-10)
    np.testing.assert_allclose(fit.band_high[inside], cdf ** np.exp(shift), rtol=1e-10)


@pytest.mark.parametrize("n", [7, 200, 5000])
def test_without_truncation_intervals_are_those_of_clopper_and_pearson(n: int) -> None:
    delays = np.random.default_rng(0).exponential(5, n)
    fit = fit_nonparametric(delays)
    np.testing.assert_array_equal(fit.cdf, fit.naive)
    k = np.arange(1, n + 1)
    width = fit.high - fit.low
    assert (np.abs(fit.low - beta.ppf(0.025, k, n - k + 1)) <= 1e-3 * width).all()
    assert (np.abs(fit.high[:-1] - beta.ppf(0.975, k[:-1] + 1, n - k[:-1])) <= 1e-3 * width[:-1]).all()
    assert (fit.high[-1], fit.longest) == (1, math.inf)
    assert fit.low[-1] == pytest.approx(0.025 ** (1 / n))  # n of n is not all
    longer = fit_nonparametric(delays, 1000)
    assert longer.longest == 1000
    np.testing.assert_array_equal(longer.low, fit.low)


def test_a_displays_limit_between_two_delays_is_that_of_half_a_display_at_risk() -> None:
    # Three limits are 9; the display with limit 6 comes under risk after the event at 8 and before the one at 5.
    fit = fit_nonparametric([1, 8, 2, 5], [9, 9, 6, 9])
    assert fit.low[2] == pytest.approx(_matched_beta(0.025, [(3, 1)], 2.5), rel=1e-6)
    assert fit.high[2] == pytest.approx(beta.ppf(0.975, 3, 1), rel=1e-6)
    # Two delays apart by one tick leave no room between: limits at a tick are under risk there.
    ticks = fit_nonparametric([0, 3, 1, 2, 0], [3, 3, 1, 2, 1])
    assert ticks.low[2] == pytest.approx(_matched_beta(0.025, [(2, 1)], 2), rel=1e-6)


def _matched_beta(level: float, events: list[tuple[float, int]], at_risk: float) -> float:
    """Quantile of the beta law with the moments of the product, spelt out."""
    one = two = 1.0
    for r, n in events:
        one, two = one * (r - n + 1) / (r + 1), two * (r - n + 1) * (r - n + 2) / (r + 1) / (r + 2)
    one, two = one * at_risk / (at_risk + 1), two * at_risk / (at_risk + 2)
    size = (one - two) / (two - one**2)
    return float(beta.ppf(level, one * size, (1 - one) * size))


def test_quantile_of_the_supremum_is_that_of_a_brownian_motion() -> None:
    # |W(t)| / sqrt(t) is an Ornstein-Uhlenbeck process in log(t) / 2, drawn here on a fine grid
    # whose supremum misses little: c falls short of the continuous one by a few hundredths at most.
    rng = np.random.default_rng(1)
    paths, steps, x = 20_000, 1500, 0.05
    rho = math.exp(-math.log((1 - x) / x) / steps)
    z = rng.standard_normal(paths)
    sup = np.abs(z)
    for _ in range(steps):
        z = rho * z + math.sqrt(1 - rho * rho) * rng.standard_normal(paths)
        np.maximum(sup, np.abs(z), out=sup)
    c = _supremum_quantile(((1 - x) / x) ** 2, 0.95)
    share = (sup > c).mean()
    assert 0.05 - 0.005 - 4 * math.sqrt(0.05 * 0.95 / paths) < share < 0.05 + 4 * math.sqrt(0.05 * 0.95 / paths)
    assert _supremum_quantile(1.0, 0.95) == pytest.approx(norm.ppf(0.975))


def test_unbiased_and_covering_where_the_naive_cdf_is_far_off() -> None:
    rng = np.random.default_rng(5)
    drawn, mean, span = 500, 300.0, 1000.0
    errors, naive_errors, covered = np.empty((drawn, 9)), np.empty((drawn, 9)), np.empty((drawn, 9), bool)
    simultaneous = 0
    for i in range(drawn):
        fit = fit_nonparametric(*continuous_log(rng, displays=1500, mean=mean, span=span))
        deciles = -mean * np.log1p(DECILES * np.expm1(-fit.longest / mean))
        errors[i] = fit(deciles) - DECILES
        naive_errors[i] = fit.naive[np.searchsorted(fit.delays, deciles, side="right") - 1] - DECILES
        low, high = fit.interval(deciles)
        covered[i] = (low <= DECILES) & (high >= DECILES)
        # Between two delays the truth rises and the band is flat.
        truth = exponential_cdf(fit.delays, mean, fit.longest)
        simultaneous += bool((fit.band_low <= truth).all() and (truth[1:] <= fit.band_high[:-1]).all())
    error = errors.std(axis=0, ddof=1) / math.sqrt(drawn)
    naive_error = naive_errors.std(axis=0, ddof=1) / math.sqrt(drawn)
    assert (np.abs(errors.mean(axis=0)) <= 3 * error).all()
    assert (naive_errors.mean(axis=0) > 10 * naive_error).all()
    # Clopper and Pearson's intervals are cautious: 95 % at least.
    assert (covered.mean(axis=0) >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / drawn)).all()
    assert covered.mean() <= 0.985
    assert 0.93 <= simultaneous / drawn <= 0.97


def test_quantile_intervals_cover() -> None:
    rng = np.random.default_rng(6)
    drawn, covered = 500, 0
    for _ in range(drawn):
        fit = fit_nonparametric(*continuous_log(rng, displays=600, mean=300, span=1000))
        low, high = fit.quantile_intervals([0.5])
        median = -300 * math.log1p(0.5 * math.expm1(-fit.longest / 300))
        covered += low[0] <= median <= high[0]
    assert abs(covered / drawn - 0.95) <= 4 * math.sqrt(0.95 * 0.05 / drawn)


# Made by lifelines 0.30.3 (not needed to test: pandas and matplotlib come with it), in reversed time, which is
# longest - delay and begins at longest - limit; lifelines counts those who entered strictly before, hence the half
# step. S just before longest - a is P(D <= a).
#   i, step = np.arange(500), 1
#   delays, limits = i * 7919 % 331 * step, (i * 7919 % 331 + i * 104729 % 401) * step
#   longest = limits.max()
#   reverse = lifelines.KaplanMeierFitter().fit(longest - delays, entry=longest - limits - step / 2)
#   print(reverse.predict(longest - np.arange(0, 331, 30) * step - 1e-9).tolist())
LIFELINES = (
    0.001207993711851111,
    0.05435971703329998,
    0.10988962889638064,
    0.17094462917160166,
    0.24222951626352632,
    0.3202081545760448,
    0.40590044283943794,
    0.4985141199410455,
    0.6009394856423075,
    0.7183889463670571,
    0.8510071174315914,
    1.0,
)


@pytest.mark.parametrize("step", [1, 0.5])
def test_agrees_with_lifelines_in_reversed_time(step: float) -> None:
    i = np.arange(500)
    fit = fit_nonparametric(i * 7919 % 331 * step, (i * 7919 % 331 + i * 104729 % 401) * step)
    np.testing.assert_allclose(fit(np.arange(0, 331, 30) * step), LIFELINES, atol=1e-8)


def test_a_lone_conversion_and_one_distinct_delay() -> None:
    one = fit_nonparametric([4], 7)
    assert (one.cdf[0], one.low[0], one.high[0]) == (1, pytest.approx(0.025), 1)
    same = fit_nonparametric([3, 3, 3], 5)
    assert same.low[0] == pytest.approx(0.025 ** (1 / 3))
    assert (same.band_low[0], same.band_high[0]) == (0, 1)
    below, above = same.interval([2])
    assert (below[0], above[0]) == (0, pytest.approx(1 - 0.025 ** (1 / 3)))
    low, high = same.quantile_intervals([0.01, 0.2, 0.3, 0.99])
    assert (low.tolist(), high.tolist()) == ([0, 0, 0, 3], [3, 3, math.inf, math.inf])


def test_what_is_identified_is_said() -> None:
    fit = fit_nonparametric([0, 1, 1, 2, 90], [3, 3, 2, 4, 99])
    assert (fit.conversions, fit.left_out, fit.shortest, fit.longest) == (4, 1, 0, 4)
    assert "given at most 4 ticks; 1 other delays left out" in fit.source
    assert isinstance(fit.delay_cdf(), DelayCDF)


def test_shorter_range_is_the_same_law_conditioned() -> None:
    delays, limits = continuous_log(np.random.default_rng(5), displays=3000, mean=40, span=200)
    full, short = fit_nonparametric(delays, limits), fit_nonparametric(delays, limits, longest=50)
    np.testing.assert_allclose(short.cdf, full(short.delays) / full(50), rtol=1e-12)
    assert fit_nonparametric(delays, longest=50).longest == 50


def test_bad_rows_are_named() -> None:
    delays = [3.5, -1, 5, math.nan]
    with pytest.raises(DataError, match="Delay 3 is nan"):
        fit_nonparametric(delays)
    with pytest.raises(DataError, match=r"Delay 1 is -1\.0, below 0"):
        fit_nonparametric(delays[:3])
    with pytest.raises(DataError, match=r"Delay 0 is 3\.5\. Hint: count delays in whole"):
        product_limit(delays[:1])
    with pytest.raises(ParameterError, match="confidence is 95"):
        fit_nonparametric([1], confidence=95)
    with pytest.raises(ParameterError, match="above longest=2"):
        fit_nonparametric([3, 4], longest=2)
    with pytest.raises(DataError, match="cdf"):
        fit_nonparametric([0.5, 1.5]).delay_cdf()


def test_limits_between_ticks_cut_whole_delays_as_the_ticks_before_them() -> None:
    rng = np.random.default_rng(12)
    limits = rng.integers(0, 40, 500)
    delays = rng.integers(0, 40, 500)
    seen = delays <= limits
    between = fit_nonparametric(delays[seen], limits[seen] + 0.5)
    np.testing.assert_array_equal(between.cdf, fit_nonparametric(delays[seen], limits[seen]).cdf)
    half = fit_nonparametric(delays[seen], limits[seen], longest=20.5)
    np.testing.assert_array_equal(half.cdf, fit_nonparametric(delays[seen], limits[seen], longest=20).cdf)
