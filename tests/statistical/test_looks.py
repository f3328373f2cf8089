"""Planned looks at a growing log, by whole comparisons: all of a plan ship what earns no more as seldom as one may."""

from __future__ import annotations

import math
from typing import Any

import pytest

from evaluator import compare
from tests.comparisons.test_verdict import shown

LOOKS = 5
LEARNING: dict[str, Any] = {"bootstrap": 40}


def shipped(policies: list[str], rates: tuple[float, ...], *, n: int, seed: int, **more: Any) -> list[bool]:
    """Return at which looks the difference alone would ship the second policy, of a log that grows by equal parts."""
    log, found = shown(rates, n=n, seed=seed, attribution_window=1), []
    for k in range(1, LOOKS + 1):
        asked = {"baseline": policies[0], "look": f"{k} of {LOOKS}", "seed": seed, **more}
        verdict = compare(log.until(n * k // LOOKS), policies, **asked).verdict
        assert verdict is not None
        found.append(next(one.met for one in verdict.conditions if one.name == "difference") is True)
    return found


@pytest.mark.parametrize(
    ("policies", "logs", "more"),
    [(["fixed:action=0", "fixed:action=1"], 40, {}), (["fixed:action=0", "ucb1"], 16, LEARNING)],
)
def test_any_look_of_a_plan_ships_an_equal_as_seldom_as_one_may(
    policies: list[str], logs: int, more: dict[str, Any]
) -> None:
    rates = (0.3, 0.3, 0.3)
    wrong = sum(any(shipped(policies, rates, n=2_000, seed=seed, **more)) for seed in range(logs))
    assert wrong / logs <= 0.025 + 4 * math.sqrt(0.025 * 0.975 / logs)


def test_a_clear_winner_ships_before_the_last_look() -> None:
    found = [shipped(["fixed:action=0", "fixed:action=1"], (0.3, 0.5, 0.3), n=2_000, seed=s) for s in range(10)]
    assert all(any(of[:-1]) and of[-1] for of in found)
