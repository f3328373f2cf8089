"""Rewards stored where they are not zero give what the whole array gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import DataError
from evaluator.estimates.confidence import SparseRewards, mean_interval


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.25, 1.0, 2.0]), max_size=300))
def test_the_interval_is_that_of_the_whole_array(rewards: list[float]) -> None:
    dense = mean_interval(rewards, upper=2.0, alpha=0.1)
    sparse = mean_interval(SparseRewards.of(rewards), upper=2.0, alpha=0.1)
    assert (sparse.n, sparse.level, sparse.kind) == (dense.n, dense.level, dense.kind)
    np.testing.assert_allclose(
        (sparse.estimate, sparse.low, sparse.high), (dense.estimate, dense.low, dense.high), atol=1e-12
    )


@pytest.mark.parametrize("rate", [0.5, 0.01, 0.0001])
def test_long_logs_lose_no_digits(rate: float) -> None:
    rewards = (np.random.default_rng(1).random(2_000_000) < rate).astype(float)
    dense, sparse = (mean_interval(x, upper=1.0) for x in (rewards, SparseRewards.of(rewards)))
    np.testing.assert_allclose((sparse.low, sparse.high), (dense.low, dense.high), rtol=1e-9)


def test_rounds_are_looked_up_in_any_order() -> None:
    rewards = np.array([0.0, 2.0, 0.0, 0.5, 0.0])
    sparse = SparseRewards.of(rewards)
    rounds = np.array([4, 3, 0, 1, 1])
    np.testing.assert_array_equal(sparse.taken(rounds), rewards[rounds])
    np.testing.assert_array_equal(SparseRewards.of(np.zeros(3)).taken(np.arange(3)), np.zeros(3))
    assert sparse.total == 2.5


def test_few_rounds_and_many_find_the_same_rewards() -> None:
    rng = np.random.default_rng(3)
    dense = np.where(rng.random(5_000) < 0.4, rng.random(5_000), 0.0)
    sparse = SparseRewards.of(dense)
    for rounds in (rng.permutation(5_000), rng.integers(0, 5_000, 9_000), np.array([4_999, 0, 64, 63]), sparse.at):
        np.testing.assert_array_equal(sparse.taken(rounds), dense[rounds])
    assert sparse.taken(np.zeros(0, np.int64)).shape == (0,)


def test_no_rounds_and_rewards_out_of_range() -> None:
    assert math.isnan(mean_interval(SparseRewards.of([]), upper=1.0).estimate)
    with pytest.raises(DataError, match="outside"):
        mean_interval(SparseRewards.of([0.0, 3.0]), upper=1.0)


def test_the_sums_of_gaps_are_scipys() -> None:
    from scipy.special import polygamma

    from evaluator.estimates.confidence import _trigamma

    x = np.concatenate([np.arange(1.0, 5000.0), 10.0 ** np.arange(4, 10)])
    np.testing.assert_allclose(_trigamma(x), polygamma(1, x), rtol=1e-14)


@pytest.mark.parametrize("rounds", [np.arange(12), np.arange(3, 9), np.array([0, 4, 5, 9, 10, 11])])
def test_rounds_in_order_are_looked_up_from_the_rewards(rounds: np.ndarray) -> None:
    dense = np.array([0.0, 0, 0, 2, 5, 0, 0, 0, 0, 1, 0, 3])
    np.testing.assert_array_equal(SparseRewards.of(dense).taken(rounds), dense[rounds])
