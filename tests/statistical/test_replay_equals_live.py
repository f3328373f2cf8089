"""Replay on logs drawn from a scenario is the live simulation of that scenario: every policy, traffic clock."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from evaluator.delays.laws import geometric
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.simulations import BernoulliProblem, LinearProblem, Problem, simulate
from evaluator.simulations.options import SimulateOptions
from tests.logs import bernoulli_log, linear_log
from tests.policies.variants import PLAYED
from tests.statistical.runs import replayed_regrets, standard_error


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A problem, and how often it is played.

    Half the time, a difference of 3 sqrt(s²/live + s²/replayed) is found: 1 to 13 % of the regret, depending on the
    policy. The wall clock is off by more than that for 28 of 35.
    """

    problem: Problem
    horizon: int
    window: int
    mean_delay: float
    live: int
    replayed: int

    def log(self, seed: int) -> Log:
        # Matching keeps about n/K of n displays, with standard deviation below sqrt(n/K): the slack is 6 of them.
        n = self.problem.n_actions * (self.horizon + int(6 * self.horizon**0.5))
        if isinstance(self.problem, BernoulliProblem):
            return bernoulli_log(n, self.problem.means, mean_delay=self.mean_delay, seed=seed)
        k, d = self.problem.n_actions, self.problem.dimension
        return linear_log(n, n_actions=k, dimension=d, mean_delay=self.mean_delay, seed=seed)


SCENARIOS = {
    "arms": Scenario(
        problem=BernoulliProblem(name="arms", means=(0.2, 0.6, 0.4), laws=(geometric(50),)),
        horizon=400,
        window=100,
        mean_delay=50.0,
        live=1000,
        replayed=200,
    ),
    # What the window leaves of the gap, .58 (1 - (5/6)^11) = .502, is about the first phase's tolerance 1/2: whether
    # an arm is eliminated after hundreds of rounds or after a thousand is a toss-up that each late conversion tilts.
    "sums": Scenario(
        problem=BernoulliProblem(name="sums", means=(0.2, 0.78), laws=(geometric(5),)),
        horizon=3000,
        window=10,
        mean_delay=5.0,
        live=1000,
        replayed=200,
    ),
    "linear": Scenario(
        problem=LinearProblem(name="linear", n_actions=4, dimension=3, laws=(geometric(50, start=1),)),
        horizon=300,
        window=100,
        mean_delay=50.0,
        live=1000,
        replayed=300,
    ),
}


def scenario_of(spec: str) -> str:
    if resolve(spec).contextual:
        return "linear"
    return "sums" if spec.startswith("odaaf") else "arms"


def compared(name: str) -> dict[str, tuple[float, float, float, float]]:
    """Return live mean, its standard error, replayed mean, its standard error of each policy of the scenario."""
    scenario = SCENARIOS[name]
    specs = [spec for spec in PLAYED if scenario_of(spec) == name]
    options = SimulateOptions(runs=scenario.live, horizon=scenario.horizon, window=scenario.window, seed=1, jobs=2)
    live = simulate(scenario.problem, [resolve(spec) for spec in specs], options).curves
    replayed = replayed_regrets(
        scenario.log, specs, runs=scenario.replayed, horizon=scenario.horizon, window=scenario.window,
        delays=f"geometric:{scenario.mean_delay:g}",
    )  # fmt: skip
    return {
        spec: (curve.regret[-1], curve.regret_se[-1], float(np.mean(regret)), standard_error(regret))
        for spec, curve, regret in zip(specs, live, replayed, strict=True)
    }


@pytest.mark.parametrize("name", SCENARIOS)
def test_replay_equals_live(name: str) -> None:
    found = compared(name)
    assert found.keys() == {spec for spec in PLAYED if scenario_of(spec) == name}
    off = {
        spec: (replayed - live) / math.hypot(live_se, replayed_se)
        for spec, (live, live_se, replayed, replayed_se) in found.items()
    }
    assert max(map(abs, off.values())) < 3, off
