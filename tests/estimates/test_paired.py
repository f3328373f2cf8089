"""Paired differences: by hand, as intervals that hold, and their p-values as the errors at which they exclude 0."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.estimates import paired
from evaluator.estimates.confidence import gamma_exponential_boundary, mean_interval
from evaluator.estimates.paired import (
    RewardSums,
    difference_of_sums,
    discordant,
    mean_sums,
    p_values,
    rounds_of,
    sums_of,
)

ALPHA = 0.05


def test_by_hand() -> None:
    shown_a, reward_a = np.array([5, 0, 2, 9]), np.array([2.0, 0.0, 1.0, 0.5])
    shown_b, reward_b = np.array([0, 3, 9, 7]), np.array([0.0, 1.0, 0.5, 1.0])
    a, b = discordant(shown_a, reward_a, shown_b, reward_b, upper=2.0)
    assert (a.n, a.total) == (2, 1.5)  # displays 5 and 2
    assert (b.n, b.total) == (2, 1.0)  # displays 3 and 7
    # Predicted 1/2, then (1/2 + 1) / 2; and 1/2, then (1/2 + 1/2) / 2.
    assert a.variation == pytest.approx((1 - 0.5) ** 2 + (0.5 - 0.75) ** 2)
    assert b.variation == pytest.approx(0.0)
    found = difference_of_sums(a, b, rounds=4, upper=2.0, alpha=ALPHA)
    assert found.estimate == pytest.approx(reward_a.mean() - reward_b.mean()) == pytest.approx(0.25)
    # With two displays each, the boundaries reach past the range of the rewards.
    assert (found.low, found.high, found.n, found.level) == (-1.0, 1.0, 4, 0.95)


def test_the_ends_are_those_of_two_mean_intervals() -> None:
    rng = np.random.default_rng(0)
    shown_a, shown_b = rng.permutation(6000)[:3000], rng.permutation(6000)[:3000]
    reward = (rng.random(6000) < 0.3) * rng.random(6000) * 5
    a, b = discordant(shown_a, reward[shown_a], shown_b, reward[shown_b], upper=5.0)
    found = difference_of_sums(a, b, rounds=3000, upper=5.0, alpha=ALPHA)
    only_a = [reward[i] for i in shown_a if i not in set(shown_b)]
    only_b = [reward[i] for i in shown_b if i not in set(shown_a)]
    of_a, of_b = (mean_interval(x, upper=5.0, alpha=ALPHA / 2) for x in (only_a, only_b))
    share_a, share_b = len(only_a) / 3000, len(only_b) / 3000
    assert found.low == pytest.approx(share_a * of_a.low - share_b * of_b.high, rel=1e-10)
    assert found.high == pytest.approx(share_a * of_a.high - share_b * of_b.low, rel=1e-10)
    assert found.n == len(only_a) + len(only_b)


def test_a_replay_and_itself_do_not_differ_at_all() -> None:
    shown, reward = np.arange(50), np.ones(50)
    a, b = discordant(shown, reward, shown[::-1], reward, upper=1.0)
    found = difference_of_sums(a, b, rounds=50, upper=1.0, alpha=ALPHA)
    assert (found.estimate, found.low, found.high, found.n) == (0.0, 0.0, 0.0, 0)
    assert p_values(*(RewardSums(*(np.array([x]) for x in s)) for s in (a, b)), alpha=ALPHA) == [1.0]


def bernoulli_sums(rng: np.random.Generator, n: int, rates: np.ndarray, repeats: int = 1) -> RewardSums:
    each = [
        mean_sums([sums_of((rng.random(n) < rate).astype(float), upper=1.0) for _ in range(repeats)]) for rate in rates
    ]
    return RewardSums(*(np.array([getattr(s, name) for s in each]) for name in RewardSums._fields))


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_interval_excludes_zero_just_where_the_p_value_says(repeats: int) -> None:
    rng = np.random.default_rng(1)
    rates = np.linspace(0.15, 0.65, 60)
    a, b = bernoulli_sums(rng, 800, rates, repeats), bernoulli_sums(rng, 800, np.full(60, 0.4), repeats)
    p = p_values(a, b, alpha=ALPHA)
    for i in range(60):
        interval = difference_of_sums(
            *(RewardSums(*(x[i] for x in s)) for s in (a, b)), rounds=900, upper=1.0, alpha=ALPHA
        )
        assert (interval.low > 0 or interval.high < 0) == (p[i] < ALPHA)
    assert p.min() < ALPHA < p.max()


def test_p_value_where_it_has_a_closed_form() -> None:
    # B showed nothing that A did not, so that only A's side is uncertain: sum = boundary(V, p / 4).
    nothing = RewardSums(*(np.zeros(1) for _ in RewardSums._fields))
    a = RewardSums(np.array([400]), np.array([60.0]), np.array([51.0]))
    (p,) = p_values(a, nothing, alpha=ALPHA)
    one_sided = ALPHA / 4
    optimum = 2 * math.log(0.5 / one_sided)
    other = 2 * math.log(0.5 / (p / 4))
    # The same mixture: its rho at ALPHA, asked for at p.
    tuned_for = 100.0 * (other + math.log1p(other)) / (optimum + math.log1p(optimum))
    assert gamma_exponential_boundary([51.0], alpha=p / 4, tuned_for=tuned_for) == pytest.approx(60.0, rel=1e-6)


def test_p_values_of_equal_policies_keep_their_promise() -> None:
    rng = np.random.default_rng(2)
    runs, rates = 2000, np.full(2000, 0.2)
    equal = p_values(bernoulli_sums(rng, 300, rates), bernoulli_sums(rng, 300, rates), alpha=ALPHA)
    for x in (0.05, 0.2, 0.5):
        assert (equal <= x).mean() <= x + 4 * math.sqrt(x * (1 - x) / runs)


@given(st.permutations(range(30)), st.permutations(range(30)), st.integers(0, 30), st.integers(0, 30), st.booleans())
def test_rounds_are_found_in_any_order(asked: list[int], shown: list[int], n: int, t: int, in_order: bool) -> None:
    displays, of = np.array(asked[:n], np.int64), np.array(shown[:t], np.int64)
    of = np.sort(of) if in_order else of
    expected = [list(of).index(display) if display in of else -1 for display in displays]
    assert rounds_of(displays, of).tolist() == expected


@pytest.mark.parametrize("n", [0, 1, 16, 50])
def test_rounds_summed_in_blocks_give_the_same_to_the_bit(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rewards = np.random.default_rng(n).uniform(-0.5, 1.5, n)
    whole = sums_of(rewards, lower=-0.5, upper=1.5)
    monkeypatch.setattr(paired, "_BLOCK", 8)
    assert sums_of(rewards, lower=-0.5, upper=1.5) == whole
