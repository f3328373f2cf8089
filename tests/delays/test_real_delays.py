"""Real delays of ten products: bad rows are named, arms differ, one exponential is not enough."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.delays.study.fitting import compare_families
from evaluator.delays.study.goodness import delays_under_test, goodness_of_fit
from evaluator.delays.study.heterogeneity import grouped_delays, heterogeneity
from evaluator.delays.study.likelihood import sample_of
from evaluator.errors import DataError

FILE = Path(__file__).parents[3] / "shared" / "data" / "criteo_search_delays.csv"
# The log attributes conversions within 30 days, in seconds.
LIMIT = 30 * 86_400


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    if not FILE.exists():
        pytest.skip(f"{FILE.name} is not redistributable; it lies in ../shared/data where available")
    arms, delays = np.loadtxt(FILE, delimiter=",", skiprows=1, dtype=np.int64).T
    return arms, delays


def test_rows_without_a_delay_are_refused(rows: tuple[np.ndarray, np.ndarray]) -> None:
    _, delays = rows
    bad = np.flatnonzero(delays == -1)
    assert bad.size == 16
    with pytest.raises(DataError, match=rf"Delay {bad[0]} is -1, below 0 \(16 such in all\)"):
        fit_nonparametric(delays)


def test_arms_differ(rows: tuple[np.ndarray, np.ndarray]) -> None:
    arms, delays = rows
    kept = delays >= 0
    test = heterogeneity(grouped_delays(delays[kept], LIMIT, groups=arms[kept]))
    assert test.p == 1 / 1000
    assert len(test.groups) == 10
    assert len(test.pairs) == 45
    assert test.groups_differing == 10
    medians = {str(arm): np.median(delays[kept & (arms == arm)]) for arm in np.unique(arms)}
    slowest, quickest = max(medians, key=medians.__getitem__), min(medians, key=medians.__getitem__)
    assert medians[slowest] > 40 * medians[quickest]
    (extreme,) = (pair for pair in test.pairs if {pair.first, pair.second} == {slowest, quickest})
    assert extreme.adjusted_p <= test.level


def test_one_exponential_is_rejected_and_a_mixture_fits_best(rows: tuple[np.ndarray, np.ndarray]) -> None:
    _, delays = rows
    delays = delays[delays >= 0]
    comparison = compare_families(sample_of(delays, LIMIT))
    assert comparison.best.startswith("lognormal-mixture")
    exponential = next(fit for fit in comparison.fits if fit.family == "exponential")
    assert exponential.aic - comparison.best_fit.aic > 1000
    test = goodness_of_fit(delays_under_test(delays, LIMIT), family="exponential", bootstraps=99)
    assert test.anderson_darling_p == test.kolmogorov_smirnov_p == 0.01
