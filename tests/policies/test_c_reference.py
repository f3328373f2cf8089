"""LinUCB written again in C, twice and sharing nothing with the package, accepts the very same displays."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.engine.log_replay import run
from evaluator.policies import resolve
from evaluator.replays.options import ReplayOptions
from evaluator.replays.planning import plan_replay
from tests.bench.c_loop import c_linucb
from tests.logged_rounds import in_memory
from tests.logs import linear_log


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("n_actions", "dimension", "window"), [(10, 5, 500), (3, 2, 20), (25, 8, 1)])
def test_compiled_replay_equals_c(n_actions: int, dimension: int, window: int, lazy: bool) -> None:
    reference = c_linucb(dimension if lazy else None)
    if reference is None:
        pytest.skip("no C compiler")
    log = linear_log(60_000, n_actions=n_actions, dimension=dimension, mean_delay=50, seed=n_actions)
    plan = plan_replay(log, resolve("linucb:ties=lowest"), ReplayOptions(window=window))
    rounds = in_memory(plan.rounds)
    ours = run(plan.policy, plan.setting, rounds, sampler=plan.sampler).displays
    assert len(ours) > 60_000 / n_actions / 2
    np.testing.assert_array_equal(ours, reference(rounds, window))
