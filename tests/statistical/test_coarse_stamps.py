"""One log in stamps of hours and days is worth what it is in seconds, and what live play earns."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from evaluator import replay
from evaluator.policies import resolve
from evaluator.replays.options import ReplayOptions
from evaluator.replays.planning import plan_replay
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute
from tests.stamped_world import DAY, HOUR, drawn

LOGS = 60
FIRST = "Time stamps decide this value"
DELAYS = [("exponential", 2 * HOUR), ("exponential", DAY), ("lognormal", 2 * HOUR), ("mixture", 5 * HOUR)]


@cache
def replays(law: str, mean: float, stamp: int, rhythm: float = 0.0) -> list[ReplayResult]:
    logs = (drawn(seed, law=law, mean_delay=mean, rhythm=rhythm).log(stamp) for seed in range(LOGS))
    return [replay(log, "ucb1", seed=seed) for seed, log in enumerate(logs)]


def values(of: list[ReplayResult]) -> np.ndarray:
    return np.array([one.value.estimate for one in of])


def in_errors(off: np.ndarray) -> float:
    return float(off.mean() / (off.std(ddof=1) / np.sqrt(len(off))))


@pytest.mark.parametrize(("law", "mean"), DELAYS)
@pytest.mark.parametrize("stamp", [60, HOUR, DAY])
def test_a_coarse_log_is_worth_what_the_fine_one_is(law: str, mean: float, stamp: int) -> None:
    assert abs(in_errors(values(replays(law, mean, stamp)) - values(replays(law, mean, 1)))) < 4


@pytest.mark.parametrize(("law", "mean"), DELAYS)
def test_a_coarse_log_is_worth_what_live_play_earns(law: str, mean: float) -> None:
    found = replays(law, mean, DAY)
    off = []
    for seed, one in enumerate(found):
        of, rng = drawn(10_000 + seed, law=law, mean_delay=mean), np.random.default_rng([seed, 1])
        off.append(one.value.estimate - of.live(one.rounds, rng, law, mean))
    assert abs(in_errors(np.array(off))) < 4


@pytest.mark.parametrize(("law", "mean"), DELAYS)
def test_conversions_told_at_the_end_of_their_day_would_come_too_late(law: str, mean: float) -> None:
    """The difference that the draws make: tests of it would see it."""
    off = []
    for seed in range(LOGS // 2):
        log = drawn(seed, law=law, mean_delay=mean).log(DAY)
        end = plan_replay(log, resolve("ucb1"), ReplayOptions(seed=seed)).told_at_ends()[1]
        off.append(execute(end).value.estimate)
    assert in_errors(np.array(off) - values(replays(law, mean, 1))[: len(off)]) < -4


@pytest.mark.parametrize(("law", "mean"), DELAYS)
def test_days_are_said_first_and_seconds_are_not(law: str, mean: float) -> None:
    """Both ends are known up to chance: on most logs, not on each."""
    said = [bool(one.warnings) and one.warnings[0].startswith(FIRST) for one in replays(law, mean, DAY)]
    assert np.mean(said) > 0.5 + 2 * np.sqrt(0.25 / LOGS)
    for one in replays(law, mean, 1):
        assert not any("stamp" in told or "multiples" in told for told in (*one.warnings, *one.assumptions))


def test_a_daily_rhythm_that_days_hide_moves_the_value_by_less_than_the_warning() -> None:
    """Displays are not spread evenly over their day: the draws are a little off, and the value says that it may be."""
    found, fine = replays("exponential", 2 * HOUR, DAY, 0.9), replays("exponential", 2 * HOUR, 1, 0.9)
    half = np.mean([(one.value.high - one.value.low) / 2 for one in found])
    off = values(found) - values(fine)
    assert abs(off.mean()) + 4 * off.std(ddof=1) / np.sqrt(LOGS) < half / 2
    assert np.mean([one.warnings[0].startswith(FIRST) if one.warnings else False for one in found]) > 0.5
