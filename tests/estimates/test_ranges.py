"""Intervals on any range of rewards: moved with the rewards, and never beyond the range."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.errors import DataError, ParameterError
from evaluator.estimates.best_fixed import best_fixed_action
from evaluator.estimates.confidence import SparseRewards, mean_interval, mean_sequence
from evaluator.estimates.paired import contrast, difference_of_sums, discordant, repeated_intervals

RNG = np.random.default_rng(5)
# Mostly nothing, now and then a sale, more seldom a loss.
EARNED = np.where(RNG.random(2_000) < 0.1, RNG.uniform(-3.0, 7.0, 2_000), 0.0)
LOWER, UPPER = -3.0, 7.0


def ends(interval: object) -> tuple[float, float, float]:
    return (interval.estimate, interval.low, interval.high)  # type: ignore[attr-defined]


def test_an_interval_moves_with_its_rewards() -> None:
    moved = mean_interval(EARNED - LOWER, upper=UPPER - LOWER)
    found = mean_interval(EARNED, lower=LOWER, upper=UPPER)
    assert ends(found) == pytest.approx([x + LOWER for x in ends(moved)])
    assert ends(mean_interval(SparseRewards.of(EARNED), lower=LOWER, upper=UPPER)) == pytest.approx(ends(found))
    at = np.array([0, 1, 10, 2_000])
    lows, highs = mean_sequence(EARNED, lower=LOWER, upper=UPPER, at=at)
    assert (lows[0], highs[0]) == (LOWER, UPPER)
    assert np.all((lows >= LOWER) & (highs <= UPPER))
    assert (lows[-1], highs[-1]) == pytest.approx(ends(found)[1:])


def test_repeats_and_arms_move_with_their_rewards() -> None:
    several = [EARNED, RNG.permutation(EARNED)]
    moved = repeated_intervals([x - LOWER for x in several], upper=UPPER - LOWER, alphas=[0.1], displays=9)[0]
    found = repeated_intervals(several, lower=LOWER, upper=UPPER, alphas=[0.1], displays=9)[0]
    assert ends(found) == pytest.approx([x + LOWER for x in ends(moved)])
    arms = [EARNED[::2], EARNED[1::2] + 0.0]
    one, other = (
        best_fixed_action([SparseRewards.of(x + by) for x in arms], lower=LOWER + by, upper=UPPER + by, alpha=0.1)
        for by in (0.0, -LOWER)
    )
    assert ends(other.value) == pytest.approx([x - LOWER for x in ends(one.value)])
    assert one.action == other.action


def test_differences_do_not_move() -> None:
    shown = [np.sort(RNG.choice(2_000, 600, replace=False)) for _ in range(2)]

    def two(by: float) -> tuple[tuple[float, ...], ...]:
        x = EARNED + by
        bounds = {"lower": LOWER + by, "upper": UPPER + by}
        of = contrast([shown[0]], [x[shown[0]]], [shown[1]], [x[shown[1]]], shared=True, **bounds)
        a, b = discordant(shown[0], x[shown[0]], shown[1], x[shown[1]], **bounds)
        difference = difference_of_sums(a, b, rounds=600, lower=LOWER + by, upper=UPPER + by, alpha=0.1)
        return (of.total, of.variation, of.most - of.least), ends(difference)

    for one, other in zip(two(0.0), two(-LOWER), strict=True):
        assert one == pytest.approx(other)


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 1.0), (2.0, 1.0), (-np.inf, 1.0)])
def test_what_is_no_range_is_refused(lower: float, upper: float) -> None:
    with pytest.raises(ParameterError):
        mean_interval([1.0], lower=lower, upper=upper)


def test_what_is_out_of_range_is_named() -> None:
    with pytest.raises(DataError, match=r"Observation 1 is -4, outside \[-3, 7\]"):
        mean_interval([0.0, -4.0], lower=LOWER, upper=UPPER)
    with pytest.raises(DataError, match=r"is 0, outside \[1, 7\]"):  # those that are not stored are 0
        mean_interval(SparseRewards.of([0.0, 2.0]), lower=1.0, upper=UPPER)
