"""The best fixed action, by hand."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.estimates.arms import BestFixedAction, best_fixed_action
from evaluator.estimates.confidence import mean_interval
from evaluator.estimates.sparse import SparseRewards


def best_of(
    action: npt.NDArray[np.int32], reward: npt.NDArray[np.float64], k: int, **options: float
) -> BestFixedAction:
    return best_fixed_action([SparseRewards.of(reward[action == a]) for a in range(k)], **options)


def test_every_actions_interval_holds_at_once() -> None:
    rng = np.random.default_rng(1)
    action = rng.integers(-1, 3, 6000).astype(np.int32)
    reward = (rng.random(6000) < np.array([0.2, 0.5, 0.4, 0.9])[action]).astype(float)
    best = best_of(action, reward, 3, upper=1.0, alpha=0.06)
    each = [mean_interval(SparseRewards.of(reward[action == k]), upper=1.0, alpha=0.02) for k in range(3)]
    # Displays left out (-1) have the highest rewards, and do not count.
    assert best.action == 1
    np.testing.assert_allclose(best.values, [i.estimate for i in each])
    assert best.value.estimate == each[1].estimate == reward[action == 1].mean()
    assert best.value.n == each[1].n == (action == 1).sum()
    assert best.value.low == max(i.low for i in each)
    assert best.value.high == max(i.high for i in each)
    assert best.value.level == pytest.approx(0.94)


def test_an_action_without_displays_decides_nothing() -> None:
    best = best_of(np.zeros(500, np.int32), np.full(500, 0.5), 2, upper=2.0, alpha=0.05)
    assert best.action == 0
    assert math.isnan(best.values[1])
    # Of the action never shown nothing is known: the reference is the best of the others, and its level all theirs.
    alone = best_of(np.zeros(500, np.int32), np.full(500, 0.5), 1, upper=2.0, alpha=0.05)
    assert best.value == alone.value


def test_no_displays_at_all() -> None:
    best = best_of(np.full(3, -1, np.int32), np.ones(3), 2, upper=1.5, alpha=0.05)
    assert (best.action, best.value.n) == (-1, 0)
    assert math.isnan(best.value.estimate)
    assert (best.value.low, best.value.high) == (0.0, 1.5)


def test_the_interval_covers_the_largest_value_although_it_was_picked() -> None:
    runs, alpha, mean = 400, 0.2, 0.5
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(runs):
        action = rng.integers(0, 10, 1000).astype(np.int32)
        value = best_of(action, (rng.random(1000) < mean).astype(float), 10, upper=1.0, alpha=alpha).value
        held += value.low <= mean <= value.high
    assert held / runs >= 1 - alpha - 4 * (alpha * (1 - alpha) / runs) ** 0.5
