"""The simulator agrees with the small independent loop in tests/live.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evaluator.delays.laws import geometric
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from evaluator.simulations import BernoulliProblem, LinearProblem, Problem, simulate
from evaluator.simulations.options import SimulateOptions
from tests.live import Bernoulli, Linear, live_regrets

SIGMAS = 3
RUNS, HORIZON, WINDOW = 400, 1500, 200


def agree(spec: str, problem: Problem, scenario: Any, **setting: int) -> None:
    policy = resolve(spec)
    told = Setting(
        n_actions=problem.n_actions, window=WINDOW, horizon=HORIZON, delay_cdf=problem.laws[0].closed, **setting
    )
    live = live_regrets(policy, told, scenario, runs=RUNS, seed=1)
    found = simulate(problem, [policy], SimulateOptions(runs=RUNS, horizon=HORIZON, window=WINDOW, seed=2)).curves[0]
    error = math.hypot(live.std(ddof=1) / np.sqrt(RUNS), found.regret_se[-1])
    assert abs(live.mean() - found.regret[-1]) < SIGMAS * error


@pytest.mark.parametrize("spec", ["random", "ucb1", "delayed-ucb", "delayed-klucb"])
def test_bernoulli(spec: str) -> None:
    means = (0.1, 0.2, 0.15)
    problem = BernoulliProblem(name="live", means=means, laws=(geometric(150),))
    agree(spec, problem, Bernoulli(means=means, mean_delay=150))


@pytest.mark.parametrize("spec", ["otflinucb", "otflints", "linucb"])
def test_linear(spec: str) -> None:
    problem = LinearProblem(name="live", n_actions=10, dimension=5, laws=(geometric(150, start=1),))
    agree(spec, problem, Linear(n_actions=10, dimension=5, mean_delay=150), dimension=5, rows=10)
