"""A contextual Python policy that counts its calls has another value than live; the check finds it."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.engine.log_replay import run
from evaluator.errors import PolicyError
from evaluator.policies import user
from evaluator.policies.base import Setting
from evaluator.policies.user import UserPolicy
from evaluator.worlds.live_parts import LiveWorld
from evaluator.worlds.live_rounds import play_live
from tests.logged_rounds import LoggedRounds
from tests.policies.test_asking import CountsCalls, CountsDisplays, Epsilon, TakesRound
from tests.statistical.runs import off

RATES = np.array([0.2, 0.2, 0.2, 0.2, 0.2, 0.6])
K, T, RUNS = 6, 200, 100
SETTING = Setting(n_actions=K, dimension=1, rows=1, horizon=T)


def log(seed: int) -> LoggedRounds:
    n = 2 * K * T
    rng = np.random.default_rng(seed)
    action = rng.integers(0, K, n).astype(np.int32)
    sold = rng.random(n) < RATES[action]
    bounds = np.concatenate([[0], np.cumsum(sold)])
    zero, one = np.zeros(int(sold.sum()), np.int64), np.ones(int(sold.sum()))
    return LoggedRounds(action, np.ones((n, 1, 1)), bounds, zero, one, K)


def replayed(cls: type[Epsilon]) -> np.ndarray:
    values = []
    for seed in range(RUNS):
        rounds = log(seed)
        shown = run(UserPolicy(cls=cls), SETTING, rounds, sampler="rejection", seed=seed).displays
        assert len(shown) == T
        values.append(RATES[rounds.action[shown]].mean())
    return np.array(values)


def live(cls: type[Epsilon]) -> np.ndarray:
    world = LiveWorld(np.ones((1, 1, 1)), RATES[None], np.ones(1), np.ones((1, 1)), reach=0)
    streams = [(np.random.default_rng([run, 1]), np.random.default_rng([run, 2])) for run in range(RUNS)]
    weights = np.full((1, 1, T), 1.0 / T)
    policy = UserPolicy(cls=cls)
    return np.array(
        [play_live(policy, SETTING, world, T, weights=weights, own=own, luck=luck)[0] for own, luck in streams]
    )


def test_time_is_counted_in_rounds_or_the_value_is_not_the_live_one(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = live(CountsCalls)  # asked once a round, it counts rounds
    for cls in (TakesRound, CountsDisplays):
        assert abs(off(replayed(cls), truth)) < 4.0
    with pytest.raises(PolicyError, match=r"CountsCalls\S*: choose changes t "):
        replayed(CountsCalls)
    monkeypatch.setattr(user, "_refuse_traces", lambda state, vectors, told: None)
    assert abs(off(replayed(CountsCalls), truth)) > 4.0
