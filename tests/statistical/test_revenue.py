"""Told revenue, policies learn what they learn of the same values divided by the largest: as live, from a replay."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from evaluator.api import plan, replay
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from evaluator.worlds.live_parts import LiveWorld
from evaluator.worlds.live_rounds import play_live
from tests.logs import build_log
from tests.statistical.runs import off

# Five arms, the best worth twice the others; a sale brings 20 to 100, 200 displays later on average.
RATES = np.array([0.05, 0.05, 0.05, 0.05, 0.1])
LOWEST, HIGHEST, MEAN_DELAY, WINDOW = 20.0, 100.0, 200, 1000
T, LOGS, LIVE_RUNS = 6000, 24, 96
POLICIES = ("thompson", "klucb", "delayed-ucb", "delayed-klucb", "qpm-d:base=klucb")
OPTIONS = {"window": WINDOW, "delays": f"geometric:{MEAN_DELAY}", "horizon": T}


@cache
def shop(seed: int) -> Log:
    n = 36_000
    rng = np.random.default_rng(seed)
    action = rng.integers(0, 5, n)
    sold = np.flatnonzero(rng.random(n) < RATES[action])
    delay = rng.geometric(1.0 / (1.0 + MEAN_DELAY), len(sold)) - 1
    return build_log(
        time=np.arange(n),
        action=action,
        conversion_display=sold,
        conversion_time=sold + delay,
        conversion_value=rng.uniform(LOWEST, HIGHEST, len(sold)),
        n_actions=5,
        reward_max=None,
    )


def replayed(policy: str) -> np.ndarray:
    """Return the mean rate of what each replay of money showed, shape (LOGS,)."""
    results = [replay(shop(seed), policy, seed=seed, **OPTIONS) for seed in range(LOGS)]
    assert {result.rounds for result in results} == {T}
    return np.array([np.dot(result.action_share, RATES) for result in results])


@cache
def live(policy: str) -> np.ndarray:
    """Return the mean rate of live runs on the same values divided by 100, told that the largest is 1."""
    told: Setting = plan(shop(0), policy, **OPTIONS).setting
    told = Setting(n_actions=5, window=WINDOW, horizon=T, delay_cdf=told.delay_cdf)
    values = np.linspace(LOWEST, HIGHEST, 1001) / HIGHEST
    tau = 1.0 - (MEAN_DELAY / (1.0 + MEAN_DELAY)) ** np.arange(1, WINDOW + 2)
    world = LiveWorld(np.zeros((1, 1, 0)), RATES[None], values, tau[None], reach=WINDOW)
    runs = [
        play_live(
            resolve(policy), told, world, T, weights=np.full((1, 1, T), 1.0 / T),
            own=np.random.default_rng([run, 1]), luck=np.random.default_rng([run, 2]),
        )[0]
        for run in range(LIVE_RUNS)
    ]  # fmt: skip
    return np.array(runs)


def furthest_off(replays: np.ndarray, runs: np.ndarray) -> float:
    """Return how far the replays are from live runs, in standard errors, in mean or in spread about the live mean."""
    centre = runs.mean()
    return max(abs(off(replays, runs)), abs(off((replays - centre) ** 2, (runs - centre) ** 2)))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_replay_of_revenue_is_a_live_run_on_shares(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert furthest_off(replayed(policy), live(policy)) < 4.0
    # On the scale of money some explore for ever, and delayed-ucb stays for ever with whatever arm has sold first.
    monkeypatch.setattr(type(resolve(policy)), "unit_rewards", False)
    assert furthest_off(replayed(policy), live(policy)) > 4.0
