"""Bursts of traffic move what a learner earns in a replay, and are said; rhythms do not; the wall clock is right."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt
import pytest

from evaluator import check, replay
from evaluator.log import Log
from tests.logs import build_log

Floats = npt.NDArray[np.float64]

MEANS, DISPLAYS, LOGS = np.array([0.1, 0.3, 0.5]), 9_000, 30
MEAN_DELAY, FOLLOWED = 3_600.0, 54_000.0
DAY, MINUTE = 86_400.0, 60.0


def intensity(kind: str, at: Floats) -> Floats:
    """Return displays a minute: 3,000 a day on average, or about so."""
    if kind == "bursts":
        return np.where(at % (DAY / 4) < 10 * MINUTE, 104.0, 1.04)
    return (1.0 + 0.95 * np.sin(2 * np.pi * at / DAY)) * 3_000 / 1_440


def arrivals(kind: str, rng: np.random.Generator) -> Floats:
    """Return times in seconds, from a random time of the first day on."""
    grid = np.arange(0.0, 12 * DAY, MINUTE)
    total = np.concatenate([[0.0], np.cumsum(intensity(kind, grid))])
    at = np.interp(np.cumsum(rng.exponential(1.0, 3 * DISPLAYS)), total, np.append(grid, 12 * DAY))
    return at[np.searchsorted(at, rng.random() * DAY) :][:DISPLAYS]


def live(time: Floats, rounds: int, rng: np.random.Generator) -> float:
    """Return the mean reward of UCB1 on all this traffic."""
    pulls, sums = np.zeros((2, len(MEANS)))
    coming: list[tuple[float, int]] = []
    total = 0
    for t in range(rounds):
        while coming and coming[0][0] < time[t]:
            sums[heapq.heappop(coming)[1]] += 1
        with np.errstate(divide="ignore", invalid="ignore"):
            index = sums / pulls + np.sqrt(2 * np.log(t + 1) / pulls)
        arm = t if t < len(MEANS) else int(np.argmax(index + 1e-9 * rng.random(len(MEANS))))
        converts = rng.random() < MEANS[arm]
        pulls[arm] += 1
        total += converts
        if converts:
            heapq.heappush(coming, (time[t] + rng.exponential(MEAN_DELAY), arm))
    return total / rounds


def log_at(time: Floats, rng: np.random.Generator) -> Log:
    action = rng.integers(0, len(MEANS), len(time))
    of = np.flatnonzero(rng.random(len(time)) < MEANS[action])
    ms = (time * 1_000).astype(np.int64)
    delay = np.minimum(rng.exponential(MEAN_DELAY, len(of)), FOLLOWED - 1) * 1_000
    return build_log(
        time=ms, action=action, conversion_display=of, conversion_time=ms[of] + delay.astype(np.int64), tick="ms",
        n_actions=len(MEANS), attribution_window=int(FOLLOWED * 1_000), observed_until=int(ms[-1] + FOLLOWED * 1_000),
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "clock", "right"), [("bursts", "traffic", False), ("bursts", "wall", True),
                                                      ("rhythm", "traffic", True)])  # fmt: skip
def test_a_replay_is_live_play_or_says_that_bursts_make_it_another(kind: str, clock: str, right: bool) -> None:
    off, warned = [], 0
    for seed in range(LOGS):
        rng = np.random.default_rng(seed)
        time = arrivals(kind, rng)
        found = replay(log_at(time, rng), "ucb1", clock=clock, seed=seed)
        served = time if clock == "traffic" else time[rng.random(len(time)) < 1 / len(MEANS)]
        off.append(found.value.estimate - live(served, min(found.rounds, len(served)), rng))
        warned += any("Traffic comes in bursts" in said for said in found.warnings)
    error = np.std(off, ddof=1) / np.sqrt(LOGS)
    assert warned == (0 if right else LOGS)
    assert (abs(np.mean(off)) < 4 * error) == right


def test_check_sees_bursts_and_lets_rhythms_pass() -> None:
    rng = np.random.default_rng(99)
    assert check(log_at(arrivals("bursts", rng), rng))["traffic"].verdict == "warn"
    assert check(log_at(arrivals("rhythm", rng), rng))["traffic"].verdict == "pass"
