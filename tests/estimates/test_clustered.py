"""Cluster-robust standard errors, against sums by hand; intervals of new users are in tests/statistical."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.estimates.standard_errors import clustered_error, effective, few_clusters, spread_interval, too_few
from evaluator.estimates.weighted import NORMAL, doubly_robust, ips, mean_value, snips

LEVEL = 0.95


def test_the_error_is_that_of_the_sums() -> None:
    z, code = np.array([1.0, 2.0, 6.0, 3.0, 0.0, 0.0]), np.array([0, 2, 2, 0, 5, 5])
    sums = [4.0 - 4.0, 8.0 - 4.0, 0.0 - 4.0]  # three clusters of two, the mean being 2
    by_hand = math.sqrt(3 / 2 * sum(s * s for s in sums)) / 6
    assert clustered_error(z, code) == pytest.approx(by_hand, rel=1e-12)
    assert effective(code) == 3.0


def test_one_cluster_tells_nothing() -> None:
    assert math.isnan(clustered_error(np.arange(5.0), np.zeros(5, np.int64)))


def test_clusters_of_one_display_are_independent_displays() -> None:
    rng = np.random.default_rng(3)
    n = 500
    y, target, p, model = rng.random(n), rng.random(n), np.full(n, 0.5), rng.random(n)
    alone = np.arange(n)
    for name, of in (("ips", ips), ("snips", snips)):
        plain, clustered = of(y, target, p), of(y, target, p, clusters=alone)
        assert clustered.standard_error == pytest.approx(plain.standard_error, rel=1e-9), name
        assert clustered.skewness == pytest.approx(plain.skewness, rel=1e-9), name
        assert clustered.value.estimate == plain.value.estimate
        assert plain.value.kind == NORMAL != clustered.value.kind
    plain, clustered = (doubly_robust(y, target, p, model, model, clusters=c) for c in (None, alone))
    assert clustered.standard_error == pytest.approx(plain.standard_error, rel=1e-9)


def test_too_few_clusters_give_no_interval_and_say_why() -> None:
    y = np.random.default_rng(1).random(900)
    found = mean_value(y, clusters=np.arange(900) // 100)
    assert math.isnan(found.value.low)
    assert found.value.estimate == pytest.approx(y.mean())
    assert too_few(9.0)
    assert not too_few(None)
    assert "fewer than 10" in few_clusters("the value", 9.0, "user")
    # Ten by count, hardly more than one by size.
    assert math.isnan(mean_value(y, clusters=np.maximum(np.arange(900) - 890, 0)).value.low)
    spread = spread_interval(0.4, [0.3, 0.5] * 20, n=9, level=LEVEL, target="x", clusters=4.0)
    assert math.isnan(spread.low)
    assert "4.0 clusters" in spread.kind


def test_resampled_values_of_few_clusters_give_longer_intervals() -> None:
    values = np.random.default_rng(2).normal(size=200)
    widths = [
        i.high - i.low
        for i in (spread_interval(0.0, values, n=9, level=LEVEL, target="x", clusters=c) for c in (None, 1e6, 12.0))
    ]
    assert widths[1] == pytest.approx(widths[0], rel=1e-3)
    # t with 1 / (1 / 199 + 1 / 11) degrees of freedom for t with 199, and sqrt(12 / 11).
    assert widths[2] / widths[0] == pytest.approx(2.2128 / 1.9720 * math.sqrt(12 / 11), rel=2e-3)
