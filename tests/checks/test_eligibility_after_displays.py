"""Stock that runs out, and actions withdrawn for how they sold, are found by the log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import evaluator
from evaluator.checks.eligibility import ELIGIBILITY_AFTER_DISPLAYS, what_follows
from evaluator.log import Log
from tests.logs import build_log

K, N = 6, 6_000


def stock_log(seed: int, *, away: int = 300, sells: float = 0.3, kept: bool = False, n: int = N) -> Log:
    """Return a log in which an action that sold is away for some displays, 5 later; or if `kept`, by the calendar."""
    rng = np.random.default_rng(seed)
    back = np.zeros(K, np.int64)
    sets, action, sold = np.ones((n, K), np.bool_), np.zeros(n, np.int64), rng.random(n) < sells
    for i in range(n):
        sets[i] = back <= i
        sets[i, 0] = True  # something is always there
        action[i] = rng.choice(np.flatnonzero(sets[i]))
        gone = rng.integers(0, K) if kept else action[i]
        if sold[i] and rng.random() < 0.1:
            back[gone] = i + away
    shown = np.flatnonzero(sold)
    return build_log(
        time=np.arange(n), action=action, propensity=1.0 / sets.sum(axis=1), eligible=sets, n_actions=K,
        conversion_display=shown, conversion_time=shown + 3, reward_max=1.0,
    )  # fmt: skip


def test_stock_that_runs_out_is_found_and_the_same_by_chance_is_not() -> None:
    found = evaluator.check(stock_log(1))[ELIGIBILITY_AFTER_DISPLAYS.name]
    assert found.verdict == "warn"
    assert "eligible less often after it was shown" in found.what
    assert "would have met other sets" in found.what
    quiet = evaluator.check(stock_log(1, kept=True))[ELIGIBILITY_AFTER_DISPLAYS.name]
    assert quiet.verdict == "pass"


def test_what_follows_is_the_difference_to_the_other_eligible_actions() -> None:
    # Action 1 is gone for good once shown, at display 0; action 0 stays.
    truths = np.array([[True, True], [True, False]])
    of = np.array([0] + [1] * 399)
    found = what_follows(np.arange(400), of, np.array([1] + [0] * 399), np.array([0.5] + [1.0] * 399), truths)
    assert [one.reach for one in found] == [10]
    # (0 - 1/2) / p, over the sum of 1 / p; displays with one action say nothing.
    assert found[0].effect == pytest.approx(-0.5 / 0.5 / (2 + 389))
    assert found[0].statistic == pytest.approx(-1.0)


def test_displays_of_one_time_are_not_later_than_each_other() -> None:
    rng = np.random.default_rng(2)
    n = 8_000
    sets = rng.random((n, 2)) < 0.4
    sets[:, 0] |= ~sets.any(axis=1)
    action = np.where(sets.all(axis=1), rng.integers(0, 2, n), sets[:, 1].astype(int))
    time = np.arange(n) // 40
    order = np.lexsort((action, time))
    of, truths = np.arange(n), sets[order]
    p = 1.0 / truths.sum(axis=1)
    right, wrong = (what_follows(when, of, action[order], p, truths)[0] for when in (time, np.arange(n)))
    assert abs(right.statistic) < 4
    assert abs(wrong.statistic) > 5  # within a time actions are in order, and so are their sets


def test_it_does_not_apply_without_sets_or_to_a_few_displays() -> None:
    log = stock_log(1, n=1_000)
    plain = replace(log, displays=log.displays.drop_columns("eligible"))
    assert evaluator.check(plain)[ELIGIBILITY_AFTER_DISPLAYS.name].verdict == "not applicable"
    assert "too few" in evaluator.check(stock_log(1, n=150))[ELIGIBILITY_AFTER_DISPLAYS.name].what
