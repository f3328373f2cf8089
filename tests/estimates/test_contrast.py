"""One sum along the log: by hand, where policies cease to differ, and what a normal interval would have done there."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.estimates.confidence import gamma_exponential_boundary
from evaluator.estimates.paired import Contrast, contrast, difference_of_sums, discordant

ALPHA = 0.05


def test_by_hand() -> None:
    shown_a, reward_a = np.array([0, 2, 5, 9]), np.array([0.0, 1.0, 2.0, 0.5])
    shown_b, reward_b = np.array([0, 3, 7, 9]), np.array([0.0, 1.0, 1.0, 0.5])
    found = contrast([shown_a], [reward_a], [shown_b], [reward_b], upper=2.0, shared=True)
    # A alone: 1/2, 1 of predicted 1/2, (1/2 + 1/2)/2; B alone: 1/2, 1/2 of 1/2, 1/2.
    assert found == Contrast(total=0.5, variation=pytest.approx(0.25), least=-2.0, most=2.0, n=4)


def test_a_display_that_both_showed_may_earn_differently() -> None:
    # Rewards seen by the last round: display 0 earned in both, 4 in A only, which showed it earlier.
    shown_a, reward_a = np.array([0, 4, 6]), np.array([1.0, 1.0, 0.0])
    shown_b, reward_b = np.array([0, 1, 4]), np.array([1.0, 0.0, 0.0])
    found = contrast([shown_a], [reward_a], [shown_b], [reward_b], upper=1.0, shared=False)
    # Display 6, A alone: 0; 1, B alone: 0; 4, both, A first: 1; display 0 in the same round of both: nothing.
    assert found == Contrast(total=1.0, variation=pytest.approx(3 * 0.25), least=-1.0, most=2.0, n=3)


def test_repeats_are_one_sum() -> None:
    rng = np.random.default_rng(0)
    reward = (rng.random(900) < 0.4).astype(float)
    shown = [np.sort(rng.permutation(900)[:300]) for _ in range(4)]
    one = contrast(shown[:1], [reward[shown[0]]], shown[1:2], [reward[shown[1]]], upper=1.0, shared=True)
    twice = contrast(
        shown[:1] * 2, [reward[shown[0]]] * 2, shown[1:2] * 2, [reward[shown[1]]] * 2,
        upper=1.0, shared=True,
    )  # fmt: skip
    # The same repeat twice says what it says once.
    assert twice._replace(n=one.n) == pytest.approx(one)
    other = contrast(
        shown[:2], [reward[s] for s in shown[:2]], shown[2:], [reward[s] for s in shown[2:]],
        upper=1.0, shared=True,
    )  # fmt: skip
    alone = [contrast([a], [reward[a]], [b], [reward[b]], upper=1.0, shared=True)
             for a, b in zip(shown[:2], shown[2:], strict=True)]  # fmt: skip
    assert other.total == pytest.approx(np.mean([of.total for of in alone]))
    # Repeats read the log in orders of their own: how little their mean varies is not known.
    assert other.variation == pytest.approx(np.mean([of.variation for of in alone]))


def test_the_p_value_is_the_error_at_which_the_interval_excludes_zero() -> None:
    for total in (40.0, 60.0):
        p = Contrast(total, 80.0, -400.0, 400.0, 800).p(tuned_at=ALPHA)
        # The same mixture: its rho at ALPHA, asked for at p.
        optimum, other = 2 * math.log(0.5 / (ALPHA / 2)), 2 * math.log(0.5 / (p / 2))
        tuned_for = 100.0 * (other + math.log1p(other)) / (optimum + math.log1p(optimum))
        at = float(gamma_exponential_boundary([80.0], alpha=p / 2, tuned_for=tuned_for)[0])
        assert at == pytest.approx(total, rel=1e-6)
    assert Contrast(3.0, 80.0, -400.0, 400.0, 800).p(tuned_at=ALPHA) == 1.0
    at = float(gamma_exponential_boundary([80.0], alpha=ALPHA / 2)[0])
    assert Contrast(at, 80.0, -400.0, 400.0, 800).p(tuned_at=ALPHA) == pytest.approx(ALPHA)
    assert Contrast(1e6, 80.0, -4e6, 4e6, 800).p(tuned_at=ALPHA) == 1e-300


def test_shorter_than_two_sums() -> None:
    rng = np.random.default_rng(1)
    reward = (rng.random(6000) < 0.3).astype(float)
    a, b = (np.sort(rng.permutation(6000)[:3000]) for _ in range(2))
    one = contrast([a], [reward[a]], [b], [reward[b]], upper=1.0, shared=True)
    two = difference_of_sums(*discordant(a, reward[a], b, reward[b], upper=1.0), rounds=3000, upper=1.0, alpha=ALPHA)
    radius = one.radius(alpha=ALPHA) / 3000
    assert one.total / 3000 == pytest.approx(two.estimate)
    # A right angle's long side instead of both others, and log(2/alpha) instead of log(4/alpha).
    assert 0.6 < 2 * radius / (two.high - two.low) < 0.7


def parting(rng: np.random.Generator, runs: int, displays: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return sum and variation of pairs that differ until A looks worse by two standard errors, then no more.

    A and B take turns on displays that only they show; all displays earn alike, so that the difference is 0.
    """
    total, variation = np.zeros(runs), np.zeros(runs)
    sums, counts, parted = np.zeros((2, runs)), np.zeros((2, runs)), np.ones(runs, bool)
    for i in range(displays):
        side, x = i % 2, (rng.random(runs) < rate).astype(float)
        predicted = (0.5 + sums[side]) / (counts[side] + 1)
        total += parted * (1 - 2 * side) * x
        variation += parted * (x - predicted) ** 2
        sums[side] += parted * x
        counts[side] += parted
        parted &= ~((i > 200) & (total < -2.0 * np.sqrt(variation)))
    return total, variation


def test_policies_that_stop_to_differ_are_covered_where_a_normal_interval_is_not() -> None:
    runs = 4000
    total, variation = parting(np.random.default_rng(2), runs, 4000, 0.1)
    bound = ALPHA + 4 * math.sqrt(ALPHA * (1 - ALPHA) / runs)
    normal = np.mean(np.abs(total) > 1.959964 * np.sqrt(variation))
    one = np.mean([Contrast(t, v, -4e3, 4e3, 4000).p(tuned_at=ALPHA) < ALPHA
                   for t, v in zip(total, variation, strict=True)])  # fmt: skip
    assert one <= bound
    # The tempting interval at "one fixed time" misses more often than it says, though the horizon was fixed.
    assert normal > bound
