"""Replay of a deployment that explores first is that deployment played live, at each event and on a schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from evaluator.delays.laws import geometric
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.simulations import BernoulliProblem, LinearProblem, simulate
from evaluator.simulations.options import SimulateOptions
from tests.logs import bernoulli_log, linear_log
from tests.statistical.runs import regrets, replays, standard_error

ARMS = BernoulliProblem(name="arms", means=(0.2, 0.6, 0.4), laws=(geometric(50),))
LINEAR = LinearProblem(name="linear", n_actions=4, dimension=3, laws=(geometric(50, start=1),))
HORIZON, EXPLORED = 400, 120
LIVE, REPLAYED = 1000, 200


def arms_log(seed: int) -> Log:
    return bernoulli_log(3 * (HORIZON + 120), ARMS.means, mean_delay=50.0, seed=seed)


def action_sets_log(seed: int) -> Log:
    return linear_log(4 * (HORIZON + 120), n_actions=4, dimension=3, mean_delay=50.0, seed=seed)


@pytest.mark.parametrize("learns", [{}, {"learn_every": 60, "learn_lag": 10}], ids=["event", "pushes"])
@pytest.mark.parametrize(
    ("policy", "sampler"),
    [("ucb1", "rejection"), ("ucb1", "keep"), ("thompson", "rejection"), ("delayed-klucb", "keep"), ("linucb", None)],
)
def test_a_replay_that_explores_first_is_the_live_one(policy: str, sampler: str | None, learns: dict[str, Any]) -> None:
    linear = resolve(policy).contextual
    asked = {"window": 100, "horizon": HORIZON, "explore_first": EXPLORED, **learns}
    live = simulate(LINEAR if linear else ARMS, [resolve(policy)], SimulateOptions(runs=LIVE, seed=1, **asked)).curves[
        0
    ]
    told = {} if linear else {"delays": "geometric:50"}
    [replayed] = replays(
        action_sets_log if linear else arms_log, [policy], runs=REPLAYED, sampler=sampler, **asked, **told
    )
    found = regrets(replayed, HORIZON)
    z = (found.mean() - live.regret[-1]) / np.hypot(live.regret_se[-1], standard_error(found))
    assert abs(z) < 4, z


@pytest.mark.parametrize("sampler", ["rejection", "keep"])
def test_every_action_is_shown_alike_at_first_whatever_the_logger(sampler: str) -> None:
    log = bernoulli_log(60_000, ARMS.means, mean_delay=50.0, seed=3, logger=(0.6, 0.3, 0.1))
    [[result]] = replays(lambda seed: log, ["ucb1"], runs=1, sampler=sampler, explore_first=3000, horizon=3100)
    shown = np.bincount(result.trajectory["action"].to_numpy()[:3000], minlength=3)
    assert chisquare(shown).pvalue > 1e-4, shown
