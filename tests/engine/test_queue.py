"""The queue serves each round a display of the chosen action never served before, from the whole log in its order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.engine.log_replay import Replay, run
from evaluator.errors import PolicyError
from evaluator.policies.base import Setting
from evaluator.policies.static import FixedAction, RandomPolicy
from evaluator.policies.user import UserPolicy
from tests.logged_rounds import LoggedRounds


def arms(action: list[int], n_actions: int) -> LoggedRounds:
    nothing = np.zeros(0, np.int64)
    first = np.zeros(len(action) + 1, np.int64)
    return LoggedRounds(
        np.array(action, np.int32), np.zeros((1, 1, 0)), first, nothing, nothing.astype(float), n_actions
    )


def serve(rounds: LoggedRounds, policy: object, horizon: int = 1000) -> Replay:
    return run(policy, Setting(n_actions=rounds.n_actions, horizon=horizon), rounds, sampler="queue", seed=1)


@given(st.lists(st.integers(-1, 2), min_size=1, max_size=60), st.integers(1, 60))
def test_each_round_is_served_the_first_display_from_its_place_in_the_log_on(action: list[int], horizon: int) -> None:
    rounds = arms(action, 3)
    replay = serve(rounds, RandomPolicy(), horizon)
    assert len(np.unique(replay.displays)) == len(replay.displays) <= horizon
    shown = rounds.action[replay.displays]
    assert (shown >= 0).all()
    left, total = set(range(len(rounds))), min(horizon, len(rounds))
    for t, (k, display) in enumerate(zip(shown, replay.displays, strict=True)):
        queue = sorted(i for i in left if rounds.action[i] == k)
        assert display == next((i for i in queue if i >= t * len(rounds) // total), queue[0])
        left.remove(display)
    if replay.dry >= 0:
        assert (shown == replay.dry).sum() == (rounds.action == replay.dry).sum()
        assert len(replay.displays) < horizon
    else:
        assert len(replay.displays) == min(horizon, len(rounds))


def test_a_short_horizon_goes_through_the_whole_log() -> None:
    served = serve(arms([0, 1] * 500, 2), RandomPolicy(), horizon=100).displays
    # One display in ten, each within two of its place.
    assert (np.abs(served - 10 * np.arange(100)) <= 1).all()


def test_a_dry_queue_is_named() -> None:
    replay = serve(arms([0, 1, 0, 1, 1], 2), FixedAction(action=1))
    assert (replay.dry, replay.displays.tolist()) == (1, [1, 3, 4])


def test_a_horizon_reached_in_time_is_not_dry() -> None:
    assert serve(arms([0, 1, 0, 1, 1], 2), FixedAction(action=1), horizon=3).dry == -1


def test_random_play_draws_its_actions_evenly_whatever_was_logged() -> None:
    # Plain matching of redrawn choices would show the log's 9:1.
    rounds = arms([0] * 9000 + [1] * 1000, 2)
    shown = rounds.action[serve(rounds, RandomPolicy(), horizon=1800).displays]
    assert abs(shown.mean() - 0.5) < 4 * (0.25 / 1800) ** 0.5


class Impossible:
    contextual = False

    def __init__(self, setting: Setting) -> None:
        self.n_actions = setting.n_actions

    def choose(self, vectors: object, rng: object) -> int:
        return self.n_actions

    def displayed(self, vectors: object, action: int) -> None:
        raise AssertionError("never reached")

    def converted(self, vector: object, action: int, delay: int, value: float) -> None:
        raise AssertionError("never reached")


@pytest.mark.parametrize("sampler", ["queue", "keep"])
def test_an_impossible_action_is_named(sampler: str) -> None:
    rounds = arms([0, 1], 2)
    with pytest.raises(PolicyError, match="returned 2"):
        run(UserPolicy(cls=Impossible), Setting(n_actions=2), rounds, sampler=sampler)
