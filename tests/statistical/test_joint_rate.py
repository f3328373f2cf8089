"""The conversion rate corrected on context holds where it is given, and is given where it was shown to hold."""

from __future__ import annotations

import math

import pytest

from tests.delays.joint_logs import WORLDS, outcome

DRAWN = 60
LEAST = 0.95 - 4 * math.sqrt(0.95 * 0.05 / DRAWN)
SHORT = "2 contexts, log of 1 mean delay"


@pytest.mark.parametrize("conversions", [160, 600])
@pytest.mark.parametrize("name", [name for name in WORLDS if name != SHORT])
def test_the_interval_holds(name: str, conversions: int) -> None:
    found = outcome(name, conversions, DRAWN, seed=1)
    assert found.given >= 0.9
    assert found.held >= LEAST
    # Bonferroni's test refutes the model where it holds on 5 % of the logs at most.
    assert "gamma" in name or found.refuted <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / DRAWN)


def test_the_share_that_has_converted_so_far_does_not_hold() -> None:
    assert outcome("12 hashed contexts", 600, DRAWN, seed=1).naive_held < LEAST


@pytest.mark.parametrize(("name", "conversions"), [(SHORT, 600), ("12 hashed contexts", 60)])
def test_no_rate_is_given_of_short_logs_and_few_conversions(name: str, conversions: int) -> None:
    assert outcome(name, conversions, DRAWN, seed=1).given <= 0.05
