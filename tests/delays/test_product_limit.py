"""The product limit: against slow twins, against the likelihood it maximises, against known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.product_limit import product_limit
from evaluator.errors import DataError, ParameterError

Pairs = list[tuple[int, int]]

# (delay, limit): a delay and the slack left after it.
logs = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 8)), min_size=1, max_size=40).map(
    lambda drawn: [(d, d + slack) for d, slack in drawn]
)


def blocks_of(pairs: Pairs) -> list[Pairs]:
    """Join conversions whose watched ranges [D, L] overlap, in order of delay."""
    blocks: list[Pairs] = []
    reach = -1
    for delay, limit in sorted(pairs):
        if delay > reach:
            blocks.append([])
        blocks[-1].append((delay, limit))
        reach = max(reach, limit)
    return blocks


def slow_product_limit(pairs: Pairs) -> dict[int, float]:
    block = max(blocks_of(pairs), key=len)
    cdf, tau = {}, 1.0
    for d in sorted({delay for delay, _ in block}, reverse=True):
        cdf[d] = tau
        n = sum(delay == d for delay, _ in block)
        r = sum(delay <= d <= limit for delay, limit in block)
        tau *= 1 - n / r
    return cdf


def truncated_log(
    rng: np.random.Generator, *, displays: int, mean: float, span: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the delays seen, and their limits, of displays spread evenly over a log of `span` rounds."""
    limits = rng.integers(0, span, displays)
    delays = rng.geometric(1 / (1 + mean), displays) - 1
    seen = delays <= limits
    return delays[seen], limits[seen]


@settings(deadline=None)
@given(logs)
def test_equals_the_slow_loop(pairs: Pairs) -> None:
    delays, limits = np.array(pairs).T
    expected = slow_product_limit(pairs)
    fit = product_limit(delays, limits)
    assert fit.delays.tolist() == sorted(expected)
    np.testing.assert_allclose(fit.cdf, [expected[d] for d in sorted(expected)], rtol=1e-12)
    assert fit.cdf[-1] == 1


@settings(deadline=None)
@given(logs)
def test_solves_the_score_equations_of_its_likelihood(pairs: Pairs) -> None:
    # sum_i log f(D_i) - log F(L_i) is concave in log f; where flat, f(d) sum_{L_i >= d} 1/F(L_i) = n(d).
    fit = product_limit(*np.array(pairs).T)
    block = np.array(max(blocks_of(pairs), key=len))
    f = np.diff(fit.cdf, prepend=0)
    for d, mass in zip(fit.delays, f, strict=True):
        expected = mass * (1 / fit(block[block[:, 1] >= d, 1])).sum()
        assert expected == pytest.approx((block[:, 0] == d).sum(), rel=1e-8)


def test_equals_the_fixed_point_of_em() -> None:
    delays, limits = truncated_log(np.random.default_rng(3), displays=150, mean=6, span=15)
    assert len(blocks_of(list(zip(delays, limits, strict=True)))) == 1
    support, counts = np.unique(delays, return_counts=True)
    hidden = support[None, :] > limits[:, None]
    f = np.full(support.size, 1 / support.size)
    for _ in range(20_000):
        # E step: each seen conversion stands for the unseen ones of displays watched as long as its own.
        seen = np.where(hidden, 0, f).sum(axis=1)
        completed = counts + (hidden * f / seen[:, None]).sum(axis=0)
        change = np.abs(completed / completed.sum() - f).max()
        f = completed / completed.sum()
        if change < 1e-15:
            break
    np.testing.assert_allclose(product_limit(delays, limits)(support), np.cumsum(f), atol=1e-8)


def test_unbiased_where_the_naive_cdf_is_not() -> None:
    rng = np.random.default_rng(11)
    span, mean, logs_drawn = 2000, 300.0, 300
    truth = DelayCDF.geometric(mean)
    deciles = truth.quantiles(np.arange(1, 10) / 10)
    fits, naive = np.empty((2, logs_drawn, 9))
    for i in range(logs_drawn):
        delays, limits = truncated_log(rng, displays=2000, mean=mean, span=span)
        fits[i] = product_limit(delays, limits)(deciles)
        naive[i] = product_limit(delays)(deciles)
    # What is identified: the CDF given a delay of at most the longest limit.
    target = truth(deciles) / truth(span - 1)
    assert (np.abs(fits.mean(axis=0) - target) <= 3 * fits.std(axis=0, ddof=1) / math.sqrt(logs_drawn)).all()
    assert (naive.mean(axis=0) - target > 10 * naive.std(axis=0, ddof=1) / math.sqrt(logs_drawn)).all()


@settings(deadline=None)
@given(logs)
def test_without_truncation_it_is_the_empirical_cdf(pairs: Pairs) -> None:
    delays = np.array(pairs)[:, 0]
    support, counts = np.unique(delays, return_counts=True)
    for limits in (None, np.full(delays.size, delays.max()), np.arange(delays.size) + delays.max()):
        fit = product_limit(delays, limits)
        np.testing.assert_array_equal(fit.delays, support)
        np.testing.assert_array_equal(fit.cdf, np.cumsum(counts) / delays.size)


def test_shorter_range_is_the_same_law_conditioned() -> None:
    delays, limits = truncated_log(np.random.default_rng(5), displays=3000, mean=40, span=200)
    full, short = product_limit(delays, limits), product_limit(delays, limits, longest=50)
    np.testing.assert_allclose(short.cdf, full(short.delays) / full(50), rtol=1e-12)
    assert short.delays[-1] == 50
    assert "given at most 50 rounds" in short.source
    naive = product_limit(delays, longest=50)
    assert naive(20) == (delays <= 20).sum() / (delays <= 50).sum()


def test_lone_conversion_at_the_top_does_not_take_all_the_weight() -> None:
    fit = product_limit([0, 1, 1, 2, 90], [3, 3, 2, 4, 99])
    assert fit.delays.tolist() == [0, 1, 2]
    assert "of 4 delays, given at most 4 rounds" in fit.source
    assert "1 other delays left out" in fit.source


def test_lone_conversion_at_the_bottom_is_left_out() -> None:
    fit = product_limit([0, 5, 6, 7], [0, 9, 9, 8])
    assert fit.delays.tolist() == [5, 6, 7]
    assert fit(4) == 0
    assert "given from 5 to 9 rounds" in fit.source


def test_single_conversion() -> None:
    assert product_limit([4], [7]).cdf.tolist() == [1.0]


def test_weights_below_the_smallest_float_are_dropped() -> None:
    # Two at risk at every delay, one of them converting: F halves 1,200 times.
    delays = np.arange(1200)
    fit = product_limit(delays, delays + 1)
    assert fit.cdf[-2:].tolist() == [0.5, 1.0]
    assert 0 < fit.cdf[0] < 1e-300


def test_order_of_the_log_does_not_matter() -> None:
    rng = np.random.default_rng(8)
    delays, limits = truncated_log(rng, displays=500, mean=20, span=90)
    order = rng.permutation(delays.size)
    assert product_limit(delays[order], limits[order]) == product_limit(delays, limits)


def test_bad_logs_are_refused_by_row() -> None:
    with pytest.raises(DataError, match=r"Delay 1 is 5, above its limit 3 \(2 such"):
        product_limit([0, 5, 9], [4, 3, 8])
    with pytest.raises(DataError, match="Delay 2 is -1, below 0"):
        product_limit([0, 5, -1])
    with pytest.raises(DataError, match=r"Delay 1 is 0\.5\."):
        product_limit([0, 0.5])
    with pytest.raises(DataError, match="Limit 0 is nan"):
        product_limit([0], [math.nan])
    with pytest.raises(DataError, match="2 delays but 1 limits"):
        product_limit([0, 1], [4])
    with pytest.raises(DataError, match="shape"):
        product_limit([[0, 1]])
    with pytest.raises(DataError, match="no delays"):
        product_limit([])
    with pytest.raises(ParameterError, match="above longest=2"):
        product_limit([3, 4], longest=2)
