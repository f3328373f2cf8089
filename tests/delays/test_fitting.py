"""Parametric fits: laws against SciPy, likelihood against its definition, parameters against known truth and peers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from evaluator.delays.families import FAMILIES, family_named
from evaluator.delays.study import fitting
from evaluator.delays.study.fitting import compare_families, fit_family
from evaluator.delays.study.likelihood import mixture_score, sample_of
from evaluator.errors import DataError, ParameterError, UnknownNameError
from tests.delays.laws import TRUTHS, truncated_draws

SCIPY = {
    "exponential": lambda p: stats.expon(scale=p[0]),
    "weibull": lambda p: stats.weibull_min(p[0], scale=p[1]),
    "gamma": lambda p: stats.gamma(p[0], scale=p[1]),
    "lognormal": lambda p: stats.lognorm(p[1], scale=math.exp(p[0])),
    "pareto": lambda p: stats.pareto(p[0], scale=p[1]),
    "lomax": lambda p: stats.lomax(p[0], scale=p[1]),
    "loglogistic": lambda p: stats.fisk(p[0], scale=p[1]),
}
PLAIN = ["exponential", "weibull", "gamma", "lognormal", "lomax", "loglogistic"]


@pytest.mark.parametrize("name", SCIPY)
def test_laws_are_those_of_scipy(name: str) -> None:
    family, parameters = FAMILIES[name], TRUTHS[name]
    reference = SCIPY[name](parameters)
    x = np.array([3.0, 3.5, 17, 250, 4_000, 90_000])
    np.testing.assert_allclose(family.log_density(x, np.log(x), parameters), reference.logpdf(x), rtol=1e-10)
    np.testing.assert_allclose(family.cdf(x, parameters), reference.cdf(x), rtol=1e-10)
    np.testing.assert_allclose(family.survival(x, parameters), reference.sf(x), rtol=1e-10)
    u = np.array([1e-9, 0.1, 0.5, 0.999])
    np.testing.assert_allclose(family.quantile(u, parameters), reference.ppf(u), rtol=1e-10)
    mean = reference.mean()
    assert family.mean(parameters) == (pytest.approx(mean, rel=1e-10) if np.isfinite(mean) else math.inf)


@pytest.mark.parametrize("name", TRUTHS)
def test_laws_agree_with_themselves(name: str) -> None:
    family, parameters = FAMILIES[name], TRUTHS[name]
    assert len(parameters) == len(family.parameters) == len(family.positive)
    u = np.linspace(0.02, 0.98, 49)
    x = family.quantile(u, parameters)
    np.testing.assert_allclose(family.cdf(x, parameters), u, rtol=1e-9)
    np.testing.assert_allclose(family.survival(x, parameters), 1 - u, rtol=1e-9)
    for low, high in itertools.pairwise(x):
        mass, _ = integrate.quad(lambda v: math.exp(family.log_density(v, np.log(v), parameters)), low, high)
        assert mass == pytest.approx(family.cdf(high, parameters) - family.cdf(low, parameters), rel=1e-6)


def test_geometric_law_is_geometric() -> None:
    d = np.arange(0, 40)
    for mean, start in ((7.0, 0.0), (7.0, 1.0)):
        family = FAMILIES["geometric"]
        mass = family.cdf(d + 1.0, (mean, start)) - family.cdf(d.astype(float), (mean, start))
        p = 1 / (mean + 1 - start)
        np.testing.assert_allclose(mass, stats.geom(p, loc=start - 1).pmf(d), rtol=1e-9, atol=1e-16)


@pytest.mark.parametrize("name", [*SCIPY, "lognormal-mixture-3"])
def test_likelihood_is_that_of_cells_and_of_densities(name: str) -> None:
    rng = np.random.default_rng(2)
    family, parameters = FAMILIES[name], TRUTHS[name]
    for rounding in ("floor", "none"):
        delays, limits = truncated_draws(rng, name, displays=500, rounding=rounding)
        width = 1 if rounding == "floor" else 0
        if name in SCIPY:
            law = SCIPY[name](parameters)
            # Differences of whichever of F and 1 - F is small.
            low, high = delays, delays + 1
            cells = np.where(law.cdf(low) < 0.5, law.cdf(high) - law.cdf(low), law.sf(low) - law.sf(high))
            terms = np.log(cells) if width else law.logpdf(delays)
            slow = (terms - law.logcdf(limits + width)).sum()
        else:
            low, high = delays.astype(float), delays + 1.0
            cells = family.cdf(high, parameters) - family.cdf(low, parameters)
            terms = np.log(cells) if width else family.log_density(low, np.log(low), parameters)
            slow = (terms - np.log(family.cdf(limits + float(width), parameters))).sum()
        fast = sample_of(delays, limits, rounding=rounding).log_likelihood(family, parameters)
        assert fast == pytest.approx(slow, rel=1e-8)


@pytest.mark.parametrize("rounding", ["floor", "none"])
def test_score_of_mixtures_is_the_slope_of_their_likelihood(rounding: str) -> None:
    name = "lognormal-mixture-3"
    theta = np.array(TRUTHS[name])
    sample = sample_of(*truncated_draws(np.random.default_rng(4), name, displays=2000, rounding=rounding))
    score = mixture_score(sample, theta.reshape(3, 3)).ravel()
    for i, unit in enumerate(np.eye(9) * 1e-4):
        ends = [sample.log_likelihood(FAMILIES[name], tuple(theta + k * unit)) for k in (-2, -1, 1, 2)]
        slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / 12e-4
        assert score[i] == pytest.approx(slope, rel=1e-6, abs=1e-4)


@pytest.mark.parametrize("rounding", ["floor", "none"])
@pytest.mark.parametrize("name", TRUTHS)
def test_parameters_are_recovered(name: str, rounding: str) -> None:
    if name == "geometric" and rounding == "none":
        pytest.skip("a geometric delay is a whole number")
    delays, limits = truncated_draws(np.random.default_rng(11), name, displays=12_000, rounding=rounding)
    fit = fit_family(delays, limits, family=name, rounding=rounding)
    assert fit.converged
    for (parameter, value), truth in zip(fit.parameters.items(), TRUTHS[name], strict=True):
        if parameter in ("start", "minimum"):
            assert value == pytest.approx(truth, rel=1e-3)
        else:
            assert abs(value - truth) <= 4 * fit.standard_errors[parameter], parameter


def test_closed_forms_without_truncation() -> None:
    x = np.random.default_rng(0).lognormal(3, 1.2, 5000)
    fit = fit_family(x, family="lognormal")
    y = np.log(x)
    assert fit.parameters == pytest.approx({"mu": y.mean(), "sigma": y.std()}, rel=1e-8)
    assert fit.standard_errors == pytest.approx(
        {"mu": y.std() / math.sqrt(5000), "sigma": y.std() / math.sqrt(10_000)}, rel=1e-6
    )
    mean = fit_family(x, family="exponential").parameters["scale"]
    assert mean == pytest.approx(x.mean(), rel=1e-8)
    whole = np.floor(x).astype(int)
    assert fit_family(whole, family="geometric").parameters["mean"] == pytest.approx(whole.mean(), rel=1e-8)
    # On whole ticks the exponential law is the geometric one.
    a, b = fit_family(whole, family="exponential"), fit_family(whole, family="geometric")
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-12)
    pareto = fit_family(x + 1, family="pareto").parameters
    assert pareto["alpha"] == pytest.approx(1 / np.log((x + 1) / (x + 1).min()).mean(), rel=1e-8)


@pytest.mark.parametrize("name", ["weibull", "gamma", "lomax", "loglogistic"])
def test_without_truncation_scipy_finds_no_better(name: str) -> None:
    x = FAMILIES[name].quantile(np.random.default_rng(1).random(3000), TRUTHS[name])
    fit = fit_family(x, family=name)
    shape, _, scale = {"weibull": stats.weibull_min, "gamma": stats.gamma, "lomax": stats.lomax,
                       "loglogistic": stats.fisk}[name].fit(x, floc=0)  # fmt: skip
    theirs = SCIPY[name]((shape, scale)).logpdf(x).sum()
    assert fit.log_likelihood >= theirs - 1e-8
    assert fit.log_likelihood == pytest.approx(theirs, rel=1e-8)


# Made by lifelines 0.30.3 (not needed to test: pandas and matplotlib come with it):
#   i = np.arange(500)
#   x = (1 + i * 7919 % 997) ** 2 / 400
#   for peer in ("Exponential", "Weibull", "LogNormal", "LogLogistic"):
#       print(getattr(lifelines, peer + "Fitter")().fit(x).log_likelihood_)
LIFELINES = {
    "exponential": -3875.5572344261295,
    "weibull": -3865.316602865696,
    "lognormal": -3973.872319373193,
    "loglogistic": -3944.284912982312,
}


@pytest.mark.parametrize("name", LIFELINES)
def test_agrees_with_lifelines_without_truncation(name: str) -> None:
    fit = fit_family((1 + np.arange(500) * 7919 % 997) ** 2 / 400, family=name)
    assert fit.log_likelihood == pytest.approx(LIFELINES[name], rel=1e-8)
    assert fit.aic == pytest.approx(2 * fit.free_parameters - 2 * LIFELINES[name], rel=1e-8)


@pytest.mark.parametrize("name", ["lognormal", "lognormal-mixture-3"])
def test_fitting_in_bins_first_finds_the_maximum_of_all_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_fitting_in_bins(name, monkeypatch)


def check_fitting_in_bins(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    limits = np.floor(rng.uniform(3600, 2_592_000, 60_000))
    law = (0.3, 0.3, 0.4, 4.7, 11.3, 14.0, 1.0, 1.0, 0.6)
    drawn = np.floor(FAMILIES["lognormal-mixture-3"].quantile(rng.random(limits.size), law))
    sample = sample_of(drawn[drawn <= limits], limits[drawn <= limits])
    assert sample.size > 4 * 8192
    monkeypatch.setattr(fitting, "_BINS", ())
    plain = fitting.fit_sample(sample, name)
    monkeypatch.setattr(fitting, "_BINS", (1024, 8192))
    binned = fitting.fit_sample(sample, name)
    # Newton's method stops closer to the top than a sum of so many terms can tell.
    assert binned.log_likelihood >= plain.log_likelihood - 1e-12 * abs(plain.log_likelihood)
    assert plain.converged
    assert binned.converged


def test_bins_keep_rows_short_delays_and_means() -> None:
    rng = np.random.default_rng(12)
    delays = rng.lognormal(6, 3, 20_000).astype(int)
    sample = sample_of(delays, delays + rng.integers(0, 10**6, delays.size))
    binned = sample.binned(512)
    np.testing.assert_array_equal(binned.short_counts, sample.short_counts)
    for fine, coarse in (
        ((sample.log_nodes[:, 1], sample.node_counts), (binned.log_nodes[:, 1], binned.node_counts)),
        ((np.log(sample.limits), sample.limit_counts), (np.log(binned.limits), binned.limit_counts)),
    ):
        assert coarse[0].size <= 512
        assert coarse[1].sum() == fine[1].sum()
        assert coarse[1] @ coarse[0] == pytest.approx(fine[1] @ fine[0], rel=1e-12)
    assert sample.binned(10**6).limits is sample.limits


def test_truncation_is_not_ignored() -> None:
    delays, limits = truncated_draws(np.random.default_rng(3), "exponential", displays=20_000, span=700)
    naive = fit_family(delays, family="exponential")
    fit = fit_family(delays, limits, family="exponential")
    assert naive.parameters["scale"] < 300 - 10 * naive.standard_errors["scale"]
    assert abs(fit.parameters["scale"] - 300) <= 4 * fit.standard_errors["scale"]
    assert any("extrapolated" in note for note in fit.notes)
    constant = fit_family(delays[delays <= 500], 500, family="exponential")
    assert constant.longest == 500


def test_fitted_law_answers_on_whole_ticks() -> None:
    fit = fit_family([0, 2, 1, 7, 3], [9, 9, 5, 9, 30], family="geometric")
    a = np.arange(40)
    ratio = fit.parameters["mean"] / (1 + fit.parameters["mean"])
    np.testing.assert_allclose(fit.cdf(a), 1 - ratio ** (a + 1), rtol=1e-12)
    np.testing.assert_allclose(fit.cdf(a, given=20), np.minimum(fit.cdf(a) / fit.cdf(20), 1), rtol=1e-12)
    assert fit.cdf(3.7) == fit.cdf(3)
    assert fit.cdf(-1) == 0
    for level in (0.1, 0.5, 0.9):
        q = fit.quantiles(level)
        assert fit.cdf(q - 1) < level <= fit.cdf(q)
    assert fit.mean == fit.parameters["mean"]
    rng = np.random.default_rng(0)
    drawn = fit.draw(rng, np.full(20_000, 6), 20_000)
    assert drawn.max() == 6
    for d in range(6):
        p = fit.cdf(d, given=6)
        assert abs((drawn <= d).mean() - p) <= 4 * math.sqrt(p * (1 - p) / 20_000)


@pytest.mark.parametrize("name", [*PLAIN, "lognormal-mixture-2"])
def test_draws_follow_the_fitted_law(name: str) -> None:
    rng = np.random.default_rng(8)
    fit = fit_family(*truncated_draws(rng, name, displays=3000), family=name)
    drawn = fit.draw(rng, None, 4000)
    for level in (0.25, 0.5, 0.9):
        p = fit.cdf(fit.quantiles(level))
        assert abs((drawn <= fit.quantiles(level)).mean() - p) <= 4 * math.sqrt(p * (1 - p) / 4000)


@pytest.mark.parametrize("delays", [[0], [5], [3, 3, 3, 3], [0, 0, 0, 1], [0, 1_000_000_000]])
@pytest.mark.parametrize("name", FAMILIES)
def test_odd_samples_end_in_a_fit_or_a_refusal(name: str, delays: list[int]) -> None:
    for limits in (None, 2_000_000_000):
        if name == "pareto" and 0 in delays:
            with pytest.raises(ParameterError, match="never 0"):
                fit_family(delays, limits, family=name)
            continue
        fit = fit_family(delays, limits, family=name)
        assert np.isfinite(fit.log_likelihood)
        assert fit.log_likelihood <= 1e-9
        assert fit.converged or any("not identified" in note for note in fit.notes)


def test_ties_do_not_blow_up_the_likelihood_of_a_mixture() -> None:
    delays = np.concatenate((np.full(300, 60.5), np.random.default_rng(0).lognormal(5, 1, 300)))
    fit = fit_family(delays, family="lognormal-mixture-2")
    assert min(fit.parameters["sigma_1"], fit.parameters["sigma_2"]) == pytest.approx(0.02, abs=1e-3)


def test_same_seed_same_mixture() -> None:
    delays, limits = truncated_draws(np.random.default_rng(9), "lognormal-mixture-3", displays=4000)
    first, again = (fit_family(delays, limits, family="lognormal-mixture-3", seed=3) for _ in range(2))
    assert first == again
    assert sum(first.parameters[f"weight_{j}"] for j in (1, 2, 3)) == pytest.approx(1)
    mus = [first.parameters[f"mu_{j}"] for j in (1, 2, 3)]
    assert mus == sorted(mus)


def test_comparison_says_what_it_left_out() -> None:
    delays, limits = truncated_draws(np.random.default_rng(1), "exponential", displays=2000)
    comparison = compare_families(sample_of(delays, limits))
    assert set(comparison.skipped) == {"pareto", "geometric"}
    aics = [fit.aic for fit in comparison.fits]
    assert aics == sorted(aics)
    assert comparison.margin == aics[1] - aics[0]
    assert comparison.best == comparison.best_fit.family
    exact = compare_families(sample_of(delays + 0.5, limits + 0.5), families=["exponential", "geometric", "pareto"])
    assert set(exact.skipped) == {"geometric"}
    assert compare_families(sample_of(delays, limits), families=["lomax"]).margin == math.inf


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean lognormal"):
        family_named("lognorml")
    with pytest.raises(DataError, match=r"Delay 1 is 0.* no density allows"):
        fit_family([1.5, 0, 2], family="gamma", rounding="none")
    with pytest.raises(ParameterError, match="rounding is 'up'"):
        fit_family([1], family="gamma", rounding="up")
    with pytest.raises(ParameterError, match="whole number"):
        fit_family([1.5], family="geometric")
    with pytest.raises(ParameterError, match="No family is left"):
        compare_families(sample_of([0, 1]), families=["pareto"])


def test_laws_that_flee_beyond_the_log_are_said_to_have_no_maximum() -> None:
    """Seen delays pile up at the limit as no law's do: scales rise for ever, and the likelihood with them."""
    rng = np.random.default_rng(13)
    limits = rng.integers(1000, 100_000, 5000)
    power = np.where(rng.random(5000) < 0.8, 1 / 0.3, 1.0)
    delays = np.floor((limits + 1) * rng.random(5000) ** power).astype(int)
    for name in ("weibull", "gamma", "loglogistic", "lomax"):
        fit = fit_family(delays, limits, family=name)
        assert not fit.converged
        assert "beyond what the log can see" in fit.notes[0]
        assert np.isnan(list(fit.standard_errors.values())).all()
    ordinary = fit_family(*truncated_draws(rng, "weibull", displays=20_000, span=700), family="weibull")
    assert ordinary.converged
