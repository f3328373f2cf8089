"""The best order of actions: against a loop over displays, whatever the batches, and without displays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.estimates.best_fixed import BestOrder, OrderSample, best_order, shows_first
from evaluator.estimates.confidence import SparseRewards
from tests.worlds_with_sets import Displays, World, make_displays, packed


def best_of(drawn: Displays, *, batch: int = 1 << 20, seed: int = 0, alpha: float = 0.05) -> BestOrder:
    rewards = SparseRewards.of(drawn.rewarded)
    sample = OrderSample(drawn.eligible.shape[1], rewards.at, seed=seed)
    bits = packed(drawn.eligible)
    for first in range(0, len(bits), batch):
        part = slice(first, first + batch)
        sample.read(first, drawn.action[part], drawn.propensity[part], bits[part])
    return best_order(sample, rewards, upper=1.0, alpha=alpha)


@pytest.mark.parametrize("k", [3, 8, 12, 17])
def test_the_first_eligible_action_of_an_order_is_that_of_a_loop(k: int) -> None:
    rng = np.random.default_rng(k)
    eligible = rng.random((300, k)) < 0.4
    action = rng.integers(-1, k, 300)
    order = rng.permutation(k)[: k - 1]
    eligible[np.arange(300), action] |= action >= 0
    firsts = [next((a for a in order if row[a]), None) for row in eligible]
    expected = [a == first for a, first in zip(action, firsts, strict=True)]
    assert shows_first(order, action, packed(eligible)).tolist() == expected
    assert any(expected)


def test_the_value_is_that_of_a_loop_over_the_displays() -> None:
    drawn = make_displays(World("calendar", "popularity"), 3000, 1)
    found = best_of(drawn)
    sample = OrderSample(12, np.arange(3000))
    sample.read(0, drawn.action, drawn.propensity, packed(drawn.eligible))
    assert (sample.half == 0).sum() == 1500
    values = []
    for side, order in ((1, found.orders[0]), (0, found.orders[1])):
        terms = [
            drawn.rewarded[i] / drawn.propensity[i]
            if next(a for a in order if drawn.eligible[i, a]) == drawn.action[i]
            else 0.0
            for i in np.flatnonzero(sample.half == side)
        ]
        values.append(np.mean(terms))
    assert found.value.estimate == pytest.approx(np.mean(values), rel=1e-12)
    weight = 1.0 / drawn.propensity
    means = [(weight * drawn.rewarded)[drawn.action == k].sum() / weight[drawn.action == k].sum() for k in range(12)]
    np.testing.assert_allclose(found.values, means)
    assert found.value.low < found.value.estimate < found.value.high <= 1.0


def test_batches_change_nothing() -> None:
    drawn = make_displays(World("random", "softmax"), 2000, 2)
    whole, parts = best_of(drawn), best_of(drawn, batch=77)
    assert whole.value.estimate == pytest.approx(parts.value.estimate, rel=1e-12)
    assert whole.standard_error == pytest.approx(parts.standard_error, rel=1e-12)
    assert [a.tolist() for a in whole.orders] == [a.tolist() for a in parts.orders]


def test_actions_never_logged_are_in_no_order() -> None:
    drawn = make_displays(World("random", "uniform"), 2000, 3)
    left = drawn._replace(action=np.where(np.isin(drawn.action, (4, 7)), -1, drawn.action))
    found = best_of(left)
    for order in found.orders:
        assert sorted(order.tolist()) == [k for k in range(12) if k not in (4, 7)]
    assert np.isnan(found.values[[4, 7]]).all()
    assert not np.isnan(np.delete(found.values, [4, 7])).any()
    assert found.value.n == (left.action >= 0).sum()


def test_no_displays_have_no_order() -> None:
    drawn = make_displays(World(), 10, 4)
    found = best_of(drawn._replace(action=np.full(10, -1)))
    assert (found.action, found.value.n, found.by_halves) == (-1, 0, (-1, -1))
    assert math.isnan(found.value.estimate)
    assert math.isnan(found.standard_error)
    assert (found.value.low, found.value.high) == (0.0, 1.0)
