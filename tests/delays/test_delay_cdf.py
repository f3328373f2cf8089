"""The delay CDF: conventions of the papers, closed form against steps, coarsening in its bound, errors."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.laws import parse_law
from evaluator.delays.product_limit import product_limit
from evaluator.errors import DataError, ParameterError


@st.composite
def step_cdfs(draw: st.DrawFn) -> DelayCDF:
    delays = sorted(draw(st.sets(st.integers(0, 60), min_size=1, max_size=25)))
    counts = draw(st.lists(st.integers(0, 9), min_size=len(delays), max_size=len(delays)))
    total = 1 + sum(counts) + draw(st.integers(0, 3))
    cdf = (1 + np.cumsum(counts)) / total
    return DelayCDF(delays=np.array(delays), cdf=cdf, source="drawn")


def steps_of(text: str) -> DelayCDF:
    return DelayCDF(delays=np.array([0, 3, 4, 9]), cdf=np.array([0.1, 0.4, 0.4, 0.9]), source=text)


@settings(deadline=None)
@given(step_cdfs())
def test_steps_are_looked_up_as_by_hand(tau: DelayCDF) -> None:
    ages = np.arange(-2, 64)
    by_hand = [max([0.0] + [c for d, c in zip(tau.delays, tau.cdf, strict=True) if d <= a]) for a in ages]
    assert tau(ages).tolist() == by_hand
    assert [tau(int(a)) for a in ages] == by_hand


def test_geometric_follows_the_papers() -> None:
    a = np.arange(-1, 2000)
    lam = 500 / 501
    np.testing.assert_array_equal(DelayCDF.geometric(500)(a), 1 - lam ** (a + 1.0))
    p = 1 / 100
    np.testing.assert_allclose(DelayCDF.geometric(100, start=1)(a[1:]), 1 - (1 - p) ** a[1:], atol=1e-14)
    # Printed in Vernade et al. 2020: tau_100 = .634, and 1/tau_100 = 5.5 for mean 500.
    assert DelayCDF.geometric(100, start=1)(100) == pytest.approx(0.634, abs=5e-4)
    assert 1 / DelayCDF.geometric(500, start=1)(100) == pytest.approx(5.5, abs=0.05)


@pytest.mark.parametrize(("mean", "start"), [(500, 0), (0.3, 0), (500, 1), (1.2, 1)])
def test_geometric_is_recognised_and_has_its_mean(mean: float, start: int) -> None:
    tau = DelayCDF.geometric(mean, start=start)
    assert tau.geometric_ratio is not None
    assert (1 - tau(start + 6)) / (1 - tau(start + 5)) == pytest.approx(tau.geometric_ratio, rel=1e-9)
    assert tau.mean == pytest.approx(mean, rel=1e-12)
    steps = tau.steps()
    # Each of J weights is a difference of two roundings of at most 2^-53.
    assert steps.delays @ steps.weights == pytest.approx(mean, abs=steps.delays.sum() * 2.0**-52)
    assert steps.tau == 1
    assert steps.delays[0] == start


@pytest.mark.parametrize("tau", [DelayCDF.geometric(7), DelayCDF.geometric(7, start=1), steps_of("a")])
@pytest.mark.parametrize("limit", [0, 1, 3, 8, 30, 10_000])
def test_steps_rebuild_the_cdf_up_to_the_limit(tau: DelayCDF, limit: int) -> None:
    steps = tau.steps(limit)
    assert steps.tau == tau(limit)
    assert (steps.weights > 0).all()
    assert (steps.delays <= limit).all()
    for age in range(min(limit, 200) + 1):
        assert steps.weights[steps.delays <= age].sum() == pytest.approx(tau(age), abs=1e-12)


def test_flat_steps_carry_no_weight() -> None:
    assert steps_of("a").steps().delays.tolist() == [0, 3, 9]


def test_incomplete_cdf_has_no_mean() -> None:
    assert steps_of("a").mean is None
    complete = DelayCDF(delays=np.array([1, 5]), cdf=np.array([0.25, 1.0]), source="a")
    assert complete.mean == 4.0


@settings(deadline=None)
@given(step_cdfs(), st.floats(1e-6, 1))
def test_quantile_is_the_smallest_delay_that_reaches_its_level(tau: DelayCDF, level: float) -> None:
    (quantile,) = tau.quantiles(level)
    if level <= tau.cdf[-1]:
        assert tau(int(quantile) - 1) < level <= tau(int(quantile))
    else:
        assert quantile == tau.delays[-1]


@settings(deadline=None)
@given(st.floats(1e-3, 1e6), st.sampled_from([0, 1]), st.floats(1e-9, 1))
def test_geometric_quantile_is_the_smallest_delay_that_reaches_its_level(
    excess: float, start: int, level: float
) -> None:
    tau = DelayCDF.geometric(start + excess, start=start)
    (quantile,) = tau.quantiles(level)
    assert tau(int(quantile) - 1) < level <= tau(int(quantile))


def test_geometric_quantile_of_a_step_is_that_step() -> None:
    # Up to 35 means, where tau changes only every few rounds in floating point.
    tau = DelayCDF.geometric(500)
    ages = np.arange(17_500)
    levels = tau(ages)
    quantiles = tau.quantiles(levels)
    np.testing.assert_array_equal(tau(quantiles), levels)
    assert (tau(quantiles - 1) < levels).all()
    assert (quantiles <= ages).all()


def test_geometric_quantile_at_one_is_where_the_float_is_one() -> None:
    for mean in (0.01, 1, 500, 1e9):
        tau = DelayCDF.geometric(mean)
        assert tau(int(tau.quantiles(1)[0])) == 1


@settings(deadline=None)
@given(step_cdfs(), st.integers(1, 30), st.one_of(st.none(), st.integers(0, 70)))
def test_coarsened_steps_keep_the_promised_distance(tau: DelayCDF, max_steps: int, limit: int | None) -> None:
    end = 70 if limit is None else limit
    if tau(end) == 0:
        with pytest.raises(ParameterError, match="as short as"):
            tau.coarsened(max_steps, limit=limit)
        return
    coarse = tau.coarsened(max_steps, limit=limit)
    assert coarse.delays.size <= max_steps
    assert np.isin(coarse.delays, tau.delays).all()
    np.testing.assert_array_equal(coarse.cdf, tau(coarse.delays))
    ages = np.arange(end + 1)
    lost = tau(ages) - coarse(ages)
    assert (lost >= 0).all()
    assert (lost < tau(end) / max_steps + 1e-12).all()
    assert coarse(10**6) == tau(end)
    if tau.steps(limit).delays.size <= max_steps:
        assert (lost == 0).all()


@pytest.mark.parametrize("limit", [None, 5, 1000, 17_500, 10**7])
@pytest.mark.parametrize("start", [0, 1])
def test_coarsened_geometric_keeps_the_promised_distance(limit: int | None, start: int) -> None:
    tau = DelayCDF.geometric(500, start=start)
    coarse = tau.coarsened(64, limit=limit)
    ages = np.arange(min(40_000, math.inf if limit is None else limit + 1))
    end = tau(ages[-1])
    lost = tau(ages) - coarse(ages)
    assert coarse.geometric_ratio is None
    assert coarse.delays.size <= 64
    assert (lost >= 0).all()
    assert (lost <= end / 64 + 1e-12).all()
    assert lost[-1] == 0


def test_words_of_the_command_line() -> None:
    assert parse_law(" geometric:500 ").closed == DelayCDF.geometric(500)
    assert parse_law("geometric:500:1").closed == DelayCDF.geometric(500, start=1)
    assert parse_law("fixed:3").closed == DelayCDF.fixed(3)
    assert parse_law("geometric:0").closed == DelayCDF.fixed(0)
    assert parse_law("geometric:1:1").closed == DelayCDF.fixed(1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "geometric",
        "geometric:",
        "geometric:x",
        "geometric:5:1:2",
        "geometric:5:a",
        "fixed:2.5",
        "fixed",
        "gamma:3",
    ],
)
def test_other_words_are_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(ParameterError, match=r"Expected a delay distribution.*Hint: write geometric:MEAN"):
        parse_law(text)


@pytest.mark.parametrize(
    "text", ["geometric:-1", "geometric:nan", "geometric:inf", "geometric:.5:1", "geometric:5:2", "fixed:-1"]
)
def test_numbers_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="Hint: "):
        parse_law(text)


@pytest.mark.parametrize(
    ("delays", "cdf", "step"),
    [
        ([0, 0], [0.5, 1], 1),
        ([3, 1], [0.5, 1], 1),
        ([-1, 1], [0.5, 1], 0),
        ([0, 1.5], [0.5, 1], 1),
        ([0, math.nan], [0.5, 1], 1),
        ([0, 1], [0.5, 0.4], 1),
        ([0, 1], [0, 1], 0),
        ([0, 1], [0.5, 1.1], 1),
        ([0, 1], [0.5, math.nan], 1),
    ],
)
def test_arrays_that_are_no_cdf_are_refused(delays: list[float], cdf: list[float], step: int) -> None:
    with pytest.raises(DataError, match=f"Step {step} "):
        DelayCDF(delays=np.array(delays), cdf=np.array(cdf), source="bad")


@pytest.mark.parametrize(("delays", "cdf"), [([], []), ([1], [0.5, 1]), ([[1]], [[1]])])
def test_arrays_of_other_shapes_are_refused(delays: list[int], cdf: list[float]) -> None:
    with pytest.raises(DataError, match="shape"):
        DelayCDF(delays=np.array(delays), cdf=np.array(cdf), source="bad")


def test_law_out_of_range_is_refused() -> None:
    delays, cdf = np.empty(0, np.int64), np.empty(0)
    for ratio, start in [(1.0, 0), (0.0, 0), (0.5, 2)]:
        with pytest.raises(ParameterError, match="ratio"):
            DelayCDF(delays=delays, cdf=cdf, source="bad", geometric_ratio=ratio, start=start)
    with pytest.raises(ParameterError, match="max_steps"):
        DelayCDF.geometric(5).coarsened(0)
    with pytest.raises(ParameterError, match="levels"):
        DelayCDF.geometric(5).quantiles([0.5, 0])


def test_it_is_a_value() -> None:
    given_delays = np.array([0, 3])
    tau = DelayCDF(delays=given_delays, cdf=np.array([0.5, 1]), source="a")
    given_delays[0] = 2
    assert tau.delays.tolist() == [0, 3]
    with pytest.raises(ValueError, match="read-only"):
        tau.cdf[0] = 0.7
    same = pickle.loads(pickle.dumps(tau))
    assert same == tau
    assert hash(same) == hash(tau)
    assert tau != DelayCDF.fixed(3)
    assert tau != 3


@given(
    delays=st.lists(st.integers(0, 300), min_size=1, max_size=40),
    share=st.floats(0.01, 1.0),
)
def test_scaling_the_cdf_is_scaling_the_delays(delays: list[int], share: float) -> None:
    scaled = product_limit(np.array(delays)).scaled(share)
    direct = product_limit(np.rint(np.array(delays) * share).astype(np.int64))
    np.testing.assert_array_equal(scaled.delays, direct.delays)
    np.testing.assert_allclose(scaled.cdf, direct.cdf, rtol=1e-12)


@pytest.mark.parametrize(("mean", "start", "share"), [(500, 0, 0.1), (500, 1, 0.1), (5, 1, 0.1), (30, 0, 1.0)])
def test_scaling_a_geometric_law_scales_its_mean(mean: float, start: int, share: float) -> None:
    scaled = DelayCDF.geometric(mean, start=start).scaled(share)
    assert scaled.mean == pytest.approx(mean * share, rel=1e-9)
    assert scaled.geometric_ratio is not None
