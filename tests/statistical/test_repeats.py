"""Repeats in other orders of a log: the same expectation, less spread, and intervals that hold for the mean of all.

The numbers, on more logs: ``python -m tests.bench.repeats``.
"""

from __future__ import annotations

import numpy as np
import pytest

import evaluator.replays.rounds.stream
import evaluator.replays.run
from evaluator import replay
from tests.statistical.repeated import CASES, Floats, crossing, found_of, live_values, realised_of, ten_arms

LOGS, LEVEL = 20, 0.8


def standard_error(x: Floats) -> float:
    return float(x.std(ddof=1) / len(x) ** 0.5)


def realised(repeats: int, logs: int = LOGS) -> Floats:
    found = []
    for seed in range(logs):
        known = crossing(seed)
        found.append(realised_of(known, replay(known.log, "ucb1", repeats=repeats, horizon=2400, seed=seed)))
    return np.array(found)


def test_time_stays_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    # The best action becomes the worst: a learner must unlearn, which it need not where the whole log is shuffled.
    first = realised(1)
    off = realised(4) - first
    assert abs(off.mean()) < 4 * standard_error(off)
    for module in (evaluator.replays.rounds.stream, evaluator.replays.run):
        monkeypatch.setattr(module, "BLOCK", 8192)
    whole = realised(4) - first
    assert abs(whole.mean()) > 4 * max(standard_error(whole), standard_error(off))


@pytest.mark.parametrize("name", ["tidy", "rhythm", "ties"])
def test_repeats_earn_what_the_first_earns_and_what_is_earned_live(name: str) -> None:
    case = CASES[name]
    logs = [case.draw(seed) for seed in range(LOGS)]
    one, three = (
        [found_of(log, case, repeats=repeats, seed=seed, level=LEVEL) for seed, log in enumerate(logs)]
        for repeats in (1, 3)
    )
    off = np.array([b.realised - a.realised for a, b in zip(one, three, strict=True)])
    assert abs(off.mean()) < 4 * standard_error(off)
    live = live_values(case, 40)
    if len(live):
        mean = np.array([f.realised for f in three])
        assert abs(mean.mean() - live.mean()) < 4 * np.hypot(standard_error(mean), standard_error(live))
    held = np.mean([f.held for f in three], axis=0)
    assert (held >= LEVEL - 4 * (LEVEL * (1 - LEVEL) / LOGS) ** 0.5).all()
    # Not wider than that of one, on average.
    assert np.mean([b.width / a.width for a, b in zip(one, three, strict=True)]) < 1.02


def test_the_mean_of_repeats_varies_less() -> None:
    logs = 60
    values = np.array(
        [
            [
                replay(ten_arms(seed).log, "ucb1", repeats=repeats, horizon=480, seed=seed).value.estimate
                for repeats in (1, 6)
            ]
            for seed in range(logs)
        ]
    )
    # The logarithm of a variance of n numbers has a variance of 2 / (n - 1); the two are independent at worst.
    assert np.log(values[:, 1].var(ddof=1) / values[:, 0].var(ddof=1)) < -4 * np.sqrt(2 * 2 / (logs - 1))
