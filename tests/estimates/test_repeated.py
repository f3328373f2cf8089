"""The interval of the mean over repeats: that of one repeat where all are the same, and it holds where they are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.estimates.confidence import interval_ends, mean_interval
from evaluator.estimates.paired import REPEATED, SumsOfFirst, mean_sums, repeated_intervals, sums_of


def test_one_repeat_is_as_it_was() -> None:
    x = (np.random.default_rng(1).random(500) < 0.3).astype(float)
    assert repeated_intervals([x], upper=1.0, alphas=[0.1], displays=3)[0] == mean_interval(x, upper=1.0, alpha=0.1)
    of = sums_of(x, upper=1.0)
    assert mean_sums([of]) is of


@pytest.mark.parametrize("n", [0, 1, 65_535, 65_536, 65_537, 131_072, 150_000])
def test_the_sums_of_first_rounds_are_those_of_these_alone(n: int) -> None:
    rng = np.random.default_rng(4)
    x = np.where(rng.random(150_000) < 0.1, rng.random(150_000) - 0.2, 0.0)
    found = SumsOfFirst(x, lower=-0.2, upper=0.8).of(n)
    assert found == sums_of(x[:n].copy(), lower=-0.2, upper=0.8)


def test_the_same_repeat_many_times_says_no_more_and_no_less() -> None:
    x = (np.random.default_rng(2).random(800) < 0.2) * 3.0
    one, ten = (repeated_intervals([x] * r, upper=5.0, alphas=[0.05], displays=len(x))[0] for r in (1, 10))
    assert (ten.estimate, ten.low, ten.high) == pytest.approx((one.estimate, one.low, one.high), rel=1e-12)
    assert (ten.n, ten.level, ten.kind) == (800, 0.95, REPEATED)


def test_by_hand() -> None:
    a, b = np.array([1.0, 0.0, 1.0]), np.array([0.0])
    found = repeated_intervals([a, b], upper=1.0, alphas=[0.05], displays=4)[0]
    # Four rounds in all earn 2; on average two rounds a repeat, and the mean of the two variations.
    variation = (sums_of(a, upper=1.0).variation + sums_of(b, upper=1.0).variation) / 2
    assert found.estimate == 0.5
    assert (found.low, found.high) == tuple(map(float, interval_ends(1.0, variation, 2.0, upper=1.0, alpha=0.05)))


def test_without_rounds_nothing_is_known() -> None:
    found = repeated_intervals([np.ones(5), np.zeros(0)], upper=2.0, alphas=[0.05], displays=5)[0]
    assert math.isnan(found.estimate)
    assert (found.low, found.high, found.n) == (0.0, 2.0, 0)


def test_it_is_no_wider_than_that_of_one_and_holds_whatever_the_repeats_have_in_common() -> None:
    # 400 displays, each repeat 300 of them in an order of its own; after an early stop where luck was good.
    rng, runs, repeats, rate, level = np.random.default_rng(3), 400, 20, 0.4, 0.8
    held, naive, widths = [], [], []
    for _ in range(runs):
        log = (rng.random(400) < rate).astype(float)
        each = [rng.permutation(log)[:300] for _ in range(repeats)]
        each = [x[:150] if x[:150].mean() > rate else x for x in each]
        found = repeated_intervals(each, upper=1.0, alphas=[1 - level], displays=400)[0]
        held.append(found.low <= rate <= found.high)
        alone = mean_interval(each[0], upper=1.0, alpha=1 - level)
        widths.append((found.high - found.low) / (alone.high - alone.low))
        # The tempting way: all rounds of all repeats as if they were different displays.
        pooled = mean_interval(np.concatenate(each), upper=1.0, alpha=1 - level)
        naive.append(pooled.low <= rate <= pooled.high)
    bound = level - 4 * (level * (1 - level) / runs) ** 0.5
    assert np.mean(held) >= bound
    assert np.mean(naive) < bound
    assert np.mean(widths) == pytest.approx(1.0, abs=0.1)
