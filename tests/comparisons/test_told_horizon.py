"""A policy that needs the horizon is told the number of rounds that it will live, not the displays of the log."""

from __future__ import annotations

import math

import pytest

from evaluator.api import compare, plan, replay
from tests.logs import bernoulli_log, linear_log

LOG = bernoulli_log(4000, [0.5, 0.3, 0.2, 0.4], mean_delay=5.0, seed=1)
RAREST = min(int((LOG.column("action") == k).sum()) for k in range(4))
# Three standard deviations of the accepted displays below what the rarest action's share accepts.
SURE = math.floor(RAREST - 3 * math.sqrt(RAREST * (1 - RAREST / 4000)))


@pytest.mark.parametrize("policy", ["odaaf", "improved-ucb", "patient-bandits"])
def test_it_is_told_the_rounds_that_it_gets_all_but_surely(policy: str) -> None:
    assert plan(LOG, policy, window=50).setting.horizon == SURE
    for seed in range(20):
        assert replay(LOG, policy, window=50, seed=seed).rounds == SURE


def test_a_horizon_asked_for_is_told() -> None:
    assert plan(LOG, "odaaf", window=50, horizon=500).setting.horizon == 500


@pytest.mark.parametrize("policy", ["ucb1", "delayed-klucb"])
def test_other_policies_play_to_the_end_of_the_log(policy: str) -> None:
    assert plan(LOG, policy, window=50).setting.horizon == 4000


def test_a_queue_is_told_where_it_stops() -> None:
    found = replay(LOG, "odaaf", window=50, sampler="queue")
    assert found.learned is not None
    assert found.rounds == RAREST


def test_a_logger_that_is_not_uniform_accepts_with_the_smallest_propensity() -> None:
    log = linear_log(4000, n_actions=4, dimension=5, mean_delay=5.0, seed=1, temperature=0.5)
    told = plan(log, "patient-bandits", window=50, sampler="rejection").setting.horizon
    assert told < 4000 * log.column("propensity").min()


def test_what_is_sure_counts_the_displays_that_are_used() -> None:
    # Half of the log is too young to be judged, and teaches nobody anything.
    young = LOG.with_meta(observed_until=int(LOG.conversions["time"].to_numpy().max()), attribution_window=2000)
    planned = plan(young, "odaaf", window=50)
    used = len(planned.rounds)
    assert 1800 < used < 2300
    rarest = min(int((LOG.column("action")[:used] == k).sum()) for k in range(4))
    sure = math.floor(rarest - 3 * math.sqrt(rarest * (1 - rarest / used)))
    assert planned.setting.horizon == sure
    assert replay(young, "odaaf", window=50).rounds == sure
    compared = compare(young, ["ucb1", "random"], baseline="ucb1", windows=[50])
    assert compared.horizon.fixed
    assert sure * 0.9 < compared.horizon.rounds <= sure
