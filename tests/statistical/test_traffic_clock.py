"""Replay on the wall clock is not the live problem, except for a rollout on a share of the traffic."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from evaluator.delays.cdf import DelayCDF
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from tests.live import Bernoulli, Linear, live_regrets
from tests.logs import bernoulli_log, linear_log
from tests.statistical.runs import Floats, off, replayed_regrets

# Vernade et al. 2017 scaled to ten arms: most conversions of the first thousand rounds are still on their way.
ARMS = Bernoulli(means=(0.5, *[0.3] * 9), mean_delay=500.0)
ARMS_HORIZON, ARMS_WINDOW = 3000, 500
LINEAR = Linear(n_actions=10, dimension=5, mean_delay=500.0)
LINEAR_HORIZON, LINEAR_WINDOW = 1000, 500
# A difference of 3 sqrt(s_live²/n_live + s_replay²/n_replay) is found with probability 1/2, one of 4 such with .84.
# s is about a tenth of the mean regret of arms: 3 roots are 2.2 % of it.
LIVE_RUNS, REPLAY_RUNS, WALL_RUNS = 2000, 200, 50


def displays_for(horizon: int) -> int:
    # Matching keeps about n/K of n displays, with standard deviation below sqrt(n/K): the slack is 6 of them.
    return 10 * (horizon + int(6 * horizon**0.5))


def arms_log(seed: int) -> Log:
    return bernoulli_log(displays_for(ARMS_HORIZON), ARMS.means, mean_delay=ARMS.mean_delay, seed=seed)


def action_sets_log(seed: int) -> Log:
    n, mean = displays_for(LINEAR_HORIZON), LINEAR.mean_delay
    return linear_log(n, n_actions=LINEAR.n_actions, dimension=LINEAR.dimension, mean_delay=mean, seed=seed)


@cache
def live_arms(policy: str, traffic_share: float = 1.0) -> Floats:
    cdf = DelayCDF.geometric(ARMS.mean_delay * traffic_share)
    window = int(ARMS_WINDOW * traffic_share)
    setting = Setting(n_actions=10, window=window, horizon=ARMS_HORIZON, delay_cdf=cdf)
    return live_regrets(resolve(policy), setting, ARMS, runs=LIVE_RUNS, seed=1, traffic_share=traffic_share)


def live_linear(policy: str) -> Floats:
    setting = Setting(n_actions=10, dimension=5, rows=10, window=LINEAR_WINDOW, horizon=LINEAR_HORIZON)
    return live_regrets(resolve(policy), setting, LINEAR, runs=LIVE_RUNS, seed=2)


def replayed_arms(policy: str, runs: int = REPLAY_RUNS, **options: Any) -> Floats:
    defaults = {"window": ARMS_WINDOW, "horizon": ARMS_HORIZON, "delays": "geometric:500"}
    (replayed,) = replayed_regrets(arms_log, [policy], runs=runs, **{**defaults, **options})
    return replayed


@pytest.mark.parametrize("policy", ["delayed-ucb", "delayed-klucb"])
def test_wall_clock_understates_the_regret_of_arms(policy: str) -> None:
    assert off(replayed_arms(policy, WALL_RUNS, clock="wall"), live_arms(policy)) < -5


# WaitLinUCB learns nothing before a window is over: on the wall clock that is after 50 rounds instead of 500.
@pytest.mark.parametrize("policy", ["otflinucb", "waitlinucb"])
def test_wall_clock_understates_the_regret_of_action_sets(policy: str) -> None:
    options = {"window": LINEAR_WINDOW, "horizon": LINEAR_HORIZON, "clock": "wall"}
    (replayed,) = replayed_regrets(action_sets_log, [policy], runs=WALL_RUNS, **options)
    assert off(replayed, live_linear(policy)) < -5


def test_wall_clock_is_right_for_a_rollout_on_a_share_equal_to_the_acceptance_rate() -> None:
    assert abs(off(replayed_arms("delayed-ucb", clock="wall"), live_arms("delayed-ucb", 0.1))) < 3


def test_traffic_share_is_that_of_the_rollout() -> None:
    replayed = replayed_arms("delayed-ucb", sampler="queue", traffic_share=0.1, window=50, delays="geometric:50")
    assert abs(off(replayed, live_arms("delayed-ucb", 0.1))) < 3
