"""Groups: admissible permutations are uniform, the test keeps its level under truncation and finds what differs."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from evaluator.delays.product_limit import Observed
from evaluator.delays.study.heterogeneity import POOLED, fit_groups, grouped_delays, heterogeneity, permutable, permuted
from evaluator.errors import DataError, ParameterError


def test_permutations_are_uniform_over_the_admissible_ones() -> None:
    delays, limits = np.array([0, 1, 2, 3]), np.array([1, 3, 2, 4])
    # Delay 3 may sit on the rows with limits 3 and 4, and so on.
    admissible = [p for p in itertools.permutations(range(4)) if all(delays[i] <= limits[p[i]] for i in range(4))]
    ready = permutable(Observed(delays, limits))
    rng = np.random.default_rng(0)
    pool, taken = np.empty(4, np.int64), np.empty(4, np.int64)
    seen: Counter[tuple[int, ...]] = Counter()
    drawn = 8000
    for _ in range(drawn):
        permuted(ready.rows, ready.eligible, rng.random(4), pool, taken)
        row_of = np.empty(4, int)
        row_of[ready.owners] = taken
        seen[tuple(row_of.tolist())] += 1
    assert set(seen) == set(admissible)
    p = 1 / len(admissible)
    for count in seen.values():
        assert abs(count / drawn - p) <= 4 * math.sqrt(p * (1 - p) / drawn)


def truncated_arms(
    rng: np.random.Generator, means: list[float], spans: list[int], displays: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    arms = np.repeat(np.arange(len(means)), displays)
    limits = (rng.random(arms.size) * np.array(spans)[arms]).astype(int)
    delays = rng.exponential(np.array(means)[arms]).astype(int)
    seen = delays <= limits
    return delays[seen], limits[seen], arms[seen]


def test_the_arms_that_differ_are_named() -> None:
    rng = np.random.default_rng(2)
    delays, limits, arms = truncated_arms(rng, [100, 100, 300, 100], [600, 300, 600, 600], 500)
    test = heterogeneity(grouped_delays(delays, limits, groups=arms), level=0.01)
    assert test.p == 1 / 1000
    named = {frozenset((pair.first, pair.second)) for pair in test.pairs if pair.adjusted_p <= 0.01}
    assert named == {frozenset(("2", other)) for other in "013"}
    assert (test.differing, test.groups_differing) == (3, 4)
    adjusted = [pair.adjusted_p for pair in test.pairs]
    assert adjusted == sorted(adjusted)
    assert test.pairs[0].adjusted_p == pytest.approx(6 * test.pairs[0].p)
    again = heterogeneity(grouped_delays(delays, limits, groups=arms), level=0.01)
    assert again == test
    fewer = heterogeneity(grouped_delays(delays, limits, groups=arms, rows=400), compared=3)
    assert (fewer.rows, fewer.compared, len(fewer.pairs)) == (400, 3, 3)
    assert len(fewer.groups) == 4


def test_groups_are_fitted_and_small_ones_pooled() -> None:
    rng = np.random.default_rng(3)
    delays = rng.geometric(0.05, 330)
    groups = np.repeat(["large", "medium", "tiny", "mini"], [200, 100, 20, 10])
    fits = fit_groups(delays, 500, groups=groups)
    assert [(g.label, g.conversions) for g in fits] == [("large", 200), ("medium", 100), (POOLED, 30)]
    assert fits[2].members == ("tiny", "mini")
    assert fits[0].fit.cdf[-1] == 1
    test = heterogeneity(grouped_delays(delays, 500, groups=groups))
    assert test.groups == {"large": 200, "medium": 100, POOLED: 30}
    assert test.pooled == ("tiny", "mini")


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(DataError, match="one label a delay"):
        grouped_delays([1, 2], None, groups=["a"])
    with pytest.raises(DataError, match="Of 2 groups, 1 is left"):
        grouped_delays([1, 2], None, groups=["a", "b"])
    with pytest.raises(ParameterError, match="permutations is 3"):
        heterogeneity(grouped_delays([1, 2], None, groups=["a", "b"], smallest=1), permutations=3)
