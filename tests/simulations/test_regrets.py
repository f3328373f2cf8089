"""Both regrets by hand, and the worlds in which they are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator.delays.laws import fixed, geometric, packet_loss, pareto
from evaluator.policies import resolve
from evaluator.simulations import Problem, RegretCurve, simulate
from evaluator.simulations.options import SimulateOptions
from tests.simulations.problems import bernoulli

T = np.arange(1, 13)


def curve(problem: Problem, spec: str = "fixed:action=1", **options: Any) -> RegretCurve:
    return simulate(problem, [resolve(spec)], SimulateOptions(runs=2, horizon=12, **options)).curves[0]


def test_each_round_costs_its_gap_and_is_seen_when_its_delay_is_over() -> None:
    found = curve(bernoulli(fixed(2), means=(1.0, 0.25)), window=3)
    np.testing.assert_allclose(found.regret, 0.75 * T)
    # Round s has come by round t iff t - s >= 2.
    np.testing.assert_allclose(found.observed, 0.75 * np.maximum(T - 2, 0))
    np.testing.assert_array_equal(found.regret_se, 0)


def test_nothing_is_observed_of_what_the_window_cuts_off() -> None:
    found = curve(bernoulli(fixed(2), means=(1.0, 0.25)), window=1)
    np.testing.assert_allclose(found.regret, 0.75 * T)
    np.testing.assert_array_equal(found.observed, 0)


def test_a_gap_weighs_the_share_seen_at_its_age() -> None:
    found = curve(bernoulli(geometric(3), means=(1.0, 0.5)), window=4)
    seen = [1 - 0.75 ** (min(4, age) + 1) for age in range(12)]
    np.testing.assert_allclose(found.observed, 0.5 * np.cumsum(seen))


def test_with_a_delay_an_arm_each_arm_is_seen_at_its_own_pace() -> None:
    # Observed, the late best arm is behind the early worse one until it has caught up: a negative regret.
    found = curve(bernoulli(fixed(6), fixed(0), means=(1.0, 0.25)), window=10)
    np.testing.assert_allclose(found.regret, 0.75 * T)
    np.testing.assert_allclose(found.observed, np.maximum(T - 6, 0) - 0.25 * T)


def test_conversions_that_never_come_are_no_reward() -> None:
    # Eventually 1 x 0.2 against 0.5 x 1: the second arm is the better one.
    problem = bernoulli(packet_loss(0.8), fixed(1), means=(1.0, 0.5))
    np.testing.assert_allclose(curve(problem).regret, 0, atol=1e-12)
    np.testing.assert_allclose(curve(problem, "fixed:action=0").regret, 0.3 * T)


@pytest.mark.parametrize("spec", ["random", "ucb1", "delayed-klucb"])
def test_equal_arms_cost_nothing(spec: str) -> None:
    found = curve(bernoulli(pareto(0.5), means=(0.3, 0.3, 0.3)), spec)
    np.testing.assert_array_equal(found.regret, 0)
    np.testing.assert_array_equal(found.observed, 0)


@pytest.mark.parametrize("spec", ["random", "ucb1", "thompson"])
def test_without_delay_both_regrets_are_one(spec: str) -> None:
    found = curve(bernoulli(fixed(0)), spec)
    np.testing.assert_allclose(found.observed, found.regret, atol=1e-12)
    assert found.conversions["delivered"] == found.conversions["generated"] > 0


def test_observed_regret_of_one_law_lies_between_nothing_and_all() -> None:
    found = simulate(bernoulli(geometric(12), window=20), [resolve("random")], SimulateOptions(runs=3)).curves[0]
    assert (found.observed >= 0).all()
    assert (found.observed <= found.regret).all()
    # Vernade et al. 2017, eq. 2, without a window: the difference is at most the mean delay times the sum of gaps.
    free = simulate(bernoulli(geometric(12)), [resolve("random")], SimulateOptions(runs=3)).curves[0]
    assert (free.regret - free.observed <= 12 * (0.2 + 0.4) + 1e-9).all()
