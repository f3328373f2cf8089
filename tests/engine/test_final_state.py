"""A replay hands on what its policy knows in the end."""

from __future__ import annotations

import pytest

from evaluator.api import plan
from evaluator.engine.log_replay import run
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from tests.logs import bernoulli_log

LOG = bernoulli_log(599, [0.5, 0.3], mean_delay=5.0, seed=1)


@pytest.mark.parametrize("sampler", ["keep", "queue", "logged"])
@pytest.mark.parametrize("horizon", [50, 600])
def test_the_final_state_has_seen_every_round_and_tells_whether_another_has_begun(sampler: str, horizon: int) -> None:
    rounds = plan(LOG, "ucb1", window=100).rounds
    setting = Setting(n_actions=2, window=100, horizon=horizon)
    found = run(resolve("ucb1"), setting, rounds, sampler=sampler)
    assert found.state.pulls.sum() == len(found.displays)
    assert found.prepared == (sampler != "logged" and len(found.displays) < horizon)
