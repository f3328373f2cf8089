"""Intervals of differences and multiples, by hand."""

from __future__ import annotations

import pytest

from evaluator.estimates.confidence import Interval
from evaluator.estimates.paired import difference, scaled

A = Interval(estimate=0.5, low=0.4, high=0.7, n=100, level=0.95, kind="k")
B = Interval(estimate=0.3, low=0.1, high=0.35, n=40, level=0.9, kind="k")


def close(a: Interval, b: Interval) -> bool:
    numbers = [(x.estimate, x.low, x.high, x.level) for x in (a, b)]
    return numbers[0] == pytest.approx(numbers[1]) and (a.n, a.kind) == (b.n, b.kind)


def test_difference_takes_the_far_ends_and_both_errors() -> None:
    assert close(difference(A, B), Interval(0.2, 0.05, 0.6, 40, 0.85, "k"))


def test_a_difference_with_itself_is_not_zero_wide() -> None:
    # No independence and no pairing is used: the ends are what the two intervals alone promise.
    assert close(difference(A, A), Interval(0.0, -0.3, 0.3, 100, 0.9, "k"))


def test_scaling_moves_all_but_the_level() -> None:
    assert close(scaled(A, 10), Interval(5.0, 4.0, 7.0, 100, 0.95, "k"))
