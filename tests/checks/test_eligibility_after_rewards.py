"""What the check of eligibility after rewards says; its level and power are in `tests/statistical`."""

from __future__ import annotations

import numpy as np
import pytest

import evaluator
from evaluator.checks.eligibility import ELIGIBILITY_AFTER_REWARDS
from evaluator.log import Log
from tests.logs import build_log

N, K, SPAN = 24_000, 6, 600


def log_of(decides: str) -> Log:
    """Return a log in which one action pauses for each span: the worst of the last one, the best, or any."""
    rng = np.random.default_rng(0)
    eligible, action, reward = np.ones((N, K), np.bool_), np.zeros(N, np.int64), np.zeros(N, np.bool_)
    for start in range(0, N, SPAN):
        own = slice(start, start + SPAN)
        if start:
            before = slice(start - SPAN, start)
            sold = np.bincount(action[before], reward[before], K) / np.bincount(action[before], minlength=K).clip(1)
            ranked = np.argsort(np.where(eligible[start - 1], sold, np.nan))  # the one that paused comes last
            eligible[own, {"worst": ranked[0], "best": ranked[-2], "chance": rng.integers(K)}[decides]] = False
        action[own] = np.where(eligible[own], rng.random((SPAN, K)), -1.0).argmax(axis=1)
        reward[own] = rng.random(SPAN) < 0.2
    return build_log(
        time=np.arange(N), action=action, propensity=1.0 / eligible.sum(axis=1), eligible=eligible, n_actions=K,
        conversion_display=np.flatnonzero(reward), conversion_time=np.flatnonzero(reward) + 3,
    ).with_meta(propensity="uniform")  # fmt: skip


@pytest.mark.parametrize(
    ("decides", "said"), [("worst", "withdrawn for doing badly"), ("best", "run out once they have sold")]
)
def test_eligibility_after_displays_outcomes_are_warned_of(decides: str, said: str) -> None:
    found = evaluator.check(log_of(decides))[ELIGIBILITY_AFTER_REWARDS.name]
    assert found.verdict == "warn"
    assert said in found.what
    assert "spans between decisions" in found.remedy


def test_sets_by_chance_pass_and_constant_ones_do_not_apply() -> None:
    assert evaluator.check(log_of("chance"))[ELIGIBILITY_AFTER_REWARDS.name].verdict == "pass"
    never = np.tile(np.arange(K) < 3, (100, 1))
    constant = build_log(time=np.arange(100), action=np.arange(100) % 3, eligible=never, n_actions=K)
    found = evaluator.check(constant)[ELIGIBILITY_AFTER_REWARDS.name]
    assert (found.verdict, found.p_value) == ("not applicable", None)
    without = build_log(time=np.arange(100), action=np.arange(100) % 3, n_actions=3)
    assert "always eligible" in evaluator.check(without)[ELIGIBILITY_AFTER_REWARDS.name].what
