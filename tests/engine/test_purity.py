"""A replay changes nothing, and depends on the log, the policy and the seed alone."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from evaluator.api import plan, replay
from evaluator.engine.log_replay import run, sampler_stream
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute
from tests.engine.recorder import Recorder
from tests.logged_rounds import in_memory
from tests.logs import bernoulli_log, linear_log

ARMS = bernoulli_log(1500, [0.5, 0.3, 0.2], mean_delay=40.0, seed=1, logger=[0.5, 0.3, 0.2])
ACTIONS = linear_log(1500, n_actions=3, dimension=5, mean_delay=40.0, seed=1, temperature=0.5)
CASES = [
    (ARMS, "thompson", {"sampler": "keep"}),
    (ARMS, "delayed-klucb", {"sampler": "queue"}),
    (ARMS, "delayed-ucb", {"sampler": "rejection"}),
    (ARMS, "logging", {}),
    (ACTIONS, "otflints", {}),
    (ACTIONS, "otflinucb:bonus=exact", {}),
    (ACTIONS, "waitlinucb", {}),
]


def same(a: ReplayResult, b: ReplayResult) -> bool:
    first, second = a.to_dict(), b.to_dict()
    for result in (first, second):
        result["plan"]["options"].pop("jobs")
    return first == second and a.trajectory.equals(b.trajectory)


@pytest.mark.parametrize(("log", "policy", "options"), CASES)
def test_the_result_does_not_depend_on_the_batch_size(log: Log, policy: str, options: dict[str, Any]) -> None:
    planned = plan(log, policy, window=60, seed=3, **options)
    whole = execute(planned, batch_size=len(log))
    for batch_size in (1, 7, 1000):
        assert same(execute(planned, batch_size=batch_size), whole)


@pytest.mark.parametrize(("log", "policy", "options"), [*CASES, (ACTIONS, Recorder, {})])
def test_neither_does_that_of_repeats_in_orders_of_their_own(log: Log, policy: Any, options: dict[str, Any]) -> None:
    planned = plan(log, policy, window=60, seed=3, repeats=3, **options)
    whole = execute(planned, batch_size=len(log))
    assert same(execute(planned, batch_size=7), whole)
    assert whole.generated == whole.delivered + whole.pending + whole.expired
    # The first repeat is the replay alone, to the bit, in the log's own order.
    alone = replay(log, policy, window=60, seed=3, **options)
    repeat = whole.trajectory["repeat"].to_numpy()
    assert alone.trajectory.equals(whole.trajectory.filter(repeat == 0))


@pytest.mark.parametrize(("log", "policy", "options"), CASES)
def test_the_result_does_not_depend_on_the_number_of_jobs(log: Log, policy: str, options: dict[str, Any]) -> None:
    one, two = (replay(log, policy, window=60, seed=3, repeats=4, jobs=jobs, **options) for jobs in (1, 2))
    assert same(one, two)


@pytest.mark.parametrize(("log", "policy", "options"), CASES)
def test_replaying_twice_gives_the_same_and_changes_nothing(log: Log, policy: str, options: dict[str, Any]) -> None:
    description = resolve(policy)
    before, displays, conversions = repr(description), log.displays, log.conversions
    first, second = (replay(log, description, window=60, seed=3, **options) for _ in range(2))
    assert same(first, second)
    assert repr(description) == before
    assert log.displays.equals(displays)
    assert log.conversions.equals(conversions)


def test_a_users_instance_is_copied() -> None:
    instance = Recorder(plan(ACTIONS, "otflinucb").setting)
    before = copy.deepcopy(vars(instance))
    first, second = (replay(ACTIONS, instance, window=60, seed=3) for _ in range(2))
    assert same(first, second)
    assert vars(instance) == before
    assert first.rounds > 0


def test_repeats_have_their_own_streams_whatever_their_number() -> None:
    two, four = (replay(ARMS, "thompson", sampler="keep", seed=3, repeats=repeats).trajectory for repeats in (2, 4))
    repeat = four["repeat"].to_numpy()
    assert two.equals(four.filter(repeat < 2))
    paths = [four.filter(repeat == r)["display_id"].to_pylist() for r in range(4)]
    assert len({tuple(path[:100]) for path in paths}) == 4


def test_seeds_change_the_replay_and_streams_never_meet() -> None:
    assert not replay(ARMS, "thompson", seed=1).trajectory.equals(replay(ARMS, "thompson", seed=2).trajectory)
    seed, size = 7, 100
    policy_stream = np.random.SeedSequence(seed, spawn_key=(2, 0))
    streams = [np.random.default_rng(seed), sampler_stream(seed, 0), sampler_stream(seed, 1)]
    draws = [s.random(size) for s in [*streams, np.random.default_rng(policy_stream)]]
    assert len(np.unique(draws)) == len(draws) * size


def test_a_log_and_a_replay_of_one_seed_are_independent() -> None:
    # A policy that drew from the log's stream would know its actions: random play matches one display in K, no more.
    n, k = 30_000, 3
    log = bernoulli_log(n, [0.5] * k, mean_delay=1.0, seed=5)
    accepted = replay(log, "random", sampler="keep", seed=5).rounds
    assert abs(accepted / n - 1 / k) < 4 * (1 / k * (1 - 1 / k) / n) ** 0.5


def test_the_policys_stream_is_not_the_samplers() -> None:
    # Another thinning of the same displays leaves the policy's own draws as they were: both random policies
    # choose the same sequence of actions, matched at other displays.
    planned = plan(ARMS, "random", sampler="keep", seed=3, horizon=200)
    kept = np.random.default_rng(0).random(len(ARMS)) < 0.8
    whole = in_memory(planned.rounds)
    shown = [
        whole.action[run(planned.policy, planned.setting, rounds, sampler="keep", seed=3).displays]
        for rounds in (whole, whole.thinned(kept))
    ]
    np.testing.assert_array_equal(*shown)
