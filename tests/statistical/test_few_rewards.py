"""A weighted interval that is given holds its target; one of too few rewards does not, and is not given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from evaluator.estimates.standard_errors import NEEDED
from tests.statistical.few_rewards import Found, World, frozen_of, learning_of

RUNS = 200
# A mean of 25 events of equal weight, shifted for skewness, has a true level of .94: of these at most .06 may miss.
LEVEL = 0.94
BOUND = (1 - LEVEL) + 4 * math.sqrt(LEVEL * (1 - LEVEL) / RUNS)

FEW = {
    "clicks, 30 actions": (World(30, 0.004, "uniform", 2000), "thompson"),
    "rare, uneven": (World(3, 0.002, "uneven", 5000), "klucb"),
}
ENOUGH = {
    "uneven": (World(3, 0.2, "uneven", 3000), "klucb"),
    "rare": (World(3, 0.01, "uniform", 9000), "thompson"),
    "contexts, revenue and rhythm": (World(3, 0.2, "uneven", 5000, revenue=True, rhythm=True), "linucb:alpha=0.3"),
}


def missed(found: Sequence[Found]) -> tuple[float, float]:
    """Return the share of the intervals that are given, and of those that are given and miss."""
    given = np.array([f.value.rewards >= NEEDED for f in found])
    holds = np.array([f.holds for f in found])
    return float(given.mean()), float((given & ~holds).mean())


@cache
def frozen(world: World) -> list[dict[str, Found]]:
    return [frozen_of(world, seed) for seed in range(RUNS)]


@pytest.mark.parametrize("name", FEW)
def test_too_few_rewards_would_miss_and_are_not_given(name: str) -> None:
    found = [learning_of(*FEW[name], seed) for seed in range(RUNS)]
    assert missed(found) == (0.0, 0.0)
    assert np.mean([not f.holds for f in found]) > BOUND  # as it was given before


@pytest.mark.parametrize("name", ENOUGH)
def test_what_is_given_holds_the_value_over_the_displays_read(name: str) -> None:
    found = [learning_of(*ENOUGH[name], seed) for seed in range(RUNS)]
    given, wrong = missed(found)
    assert given > 0.5
    assert wrong < BOUND


def test_it_is_no_interval_of_the_rounds() -> None:
    # Why it is named by its target: with many actions and an uneven logger few of the displays read become rounds.
    found = [learning_of(World(10, 0.2, "uneven", 4000), "linucb:alpha=0.3", seed) for seed in range(RUNS)]
    assert np.mean([not f.holds_rounds for f in found]) > np.mean([not f.holds for f in found])


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
@pytest.mark.parametrize(
    "world",
    [World(3, 0.2, "uniform", 500), World(10, 0.05, "uniform", 6000), World(3, 0.1, "uneven", 9000, True, True)],
    ids=["common", "rare", "uneven, revenue and rhythm"],
)
def test_what_is_given_holds_the_value_of_a_fixed_policy(world: World, estimator: str) -> None:
    found = [of[estimator] for of in frozen(world)]
    given, wrong = missed(found)
    assert given > 0.1
    assert wrong < BOUND


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
def test_a_fixed_policy_of_few_rewards_would_miss_too(estimator: str) -> None:
    found = [of[estimator] for of in frozen(World(30, 0.002, "uneven", 3000))]
    assert missed(found) == (0.0, 0.0)
    assert np.mean([not f.holds for f in found]) > BOUND
