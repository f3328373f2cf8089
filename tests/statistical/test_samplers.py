"""Every sampler is unbiased where it is offered, and the shortcuts that are not offered are biased."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.api import plan, replay
from evaluator.engine.log_replay import policy_stream, run, sampler_stream
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from evaluator.policies.user import UserPolicy
from tests.live import Bernoulli, Linear, live_regrets
from tests.logged_rounds import LoggedRounds, in_memory
from tests.logs import bernoulli_log, build_log, linear_log
from tests.statistical.runs import Floats, off, replayed_regrets

ARMS = Bernoulli(means=(0.2, 0.5, 0.4, 0.1), mean_delay=50.0)
ARMS_WINDOW, ARMS_HORIZON = 100, 500
# The best arm is shown least, so that a tilt towards what was logged often shows.
LOGGERS = {"uniform": None, "uneven": (0.5, 0.1, 0.15, 0.25)}
LINEAR = Linear(n_actions=4, dimension=3, mean_delay=50.0)
LINEAR_WINDOW, LINEAR_HORIZON, TEMPERATURE = 100, 300, 0.2
Bools = npt.NDArray[np.bool_]
LIVE_RUNS, REPLAY_RUNS = 2000, 400


@cache
def live_arms(policy: str) -> Floats:
    setting = Setting(n_actions=4, window=ARMS_WINDOW, horizon=ARMS_HORIZON)
    return live_regrets(resolve(policy), setting, ARMS, runs=LIVE_RUNS, seed=11)


@cache
def live_linear(policy: str) -> Floats:
    setting = Setting(n_actions=4, dimension=3, rows=4, window=LINEAR_WINDOW, horizon=LINEAR_HORIZON)
    return live_regrets(resolve(policy), setting, LINEAR, runs=LIVE_RUNS, seed=12)


def arms_log(seed: int, logger: Any) -> Any:
    # A round waits for 1/min p displays on average at the worst, with the standard deviation of a geometric law, its
    # mean at most: T rounds need no more than (T + 6 sqrt(T)) / min p.
    n = int((ARMS_HORIZON + 6 * ARMS_HORIZON**0.5) / (0.25 if logger is None else min(logger)))
    return bernoulli_log(n, ARMS.means, mean_delay=ARMS.mean_delay, seed=seed, logger=logger)


def softmax_log(seed: int) -> Any:
    # Rewards lie in [1/sqrt(3), 1]: at temperature 0.2 no propensity is below 1/(1 + 3 exp((1 - .577)/.2)) = 1/26.
    n = 26 * (LINEAR_HORIZON + int(6 * LINEAR_HORIZON**0.5))
    return linear_log(n, n_actions=4, dimension=3, mean_delay=LINEAR.mean_delay, seed=seed, temperature=TEMPERATURE)


@pytest.mark.parametrize("logger", LOGGERS)
@pytest.mark.parametrize(
    ("policy", "sampler"),
    [("ucb1", "keep"), ("ucb1", "queue"), ("thompson", "keep"), ("thompson", "queue"), ("thompson", "rejection")],
)
def test_choices_without_context_are_replayed_without_bias(policy: str, sampler: str, logger: str) -> None:
    make_log = partial(arms_log, logger=LOGGERS[logger])
    # The queue of an arm shown one time in ten must hold all the rounds, lest runs that like the arm be left out.
    options = {"window": ARMS_WINDOW, "horizon": ARMS_HORIZON, "sampler": sampler}
    (replayed,) = replayed_regrets(make_log, [policy], runs=REPLAY_RUNS, **options)
    assert abs(off(replayed, live_arms(policy))) < 3


@pytest.mark.parametrize("policy", ["otflinucb", "otflints"])
def test_rejection_is_unbiased_under_a_logger_that_reads_the_context(policy: str) -> None:
    options = {"window": LINEAR_WINDOW, "horizon": LINEAR_HORIZON}
    (replayed,) = replayed_regrets(softmax_log, [policy], runs=REPLAY_RUNS, **options)
    assert abs(off(replayed, live_linear(policy))) < 3


def standard_errors_off(kept: Callable[[Log, int], Bools | None]) -> float:
    """Return how far the regret of OTFLinUCB on the displays that a thinning keeps (None: all) is off the live one."""

    def regret(seed: int) -> float:
        log = softmax_log(seed)
        planned = plan(log, "otflinucb", window=LINEAR_WINDOW, horizon=LINEAR_HORIZON)
        rounds, left = in_memory(planned.rounds), kept(log, seed)
        rounds = rounds if left is None else rounds.thinned(left)
        displays = run(planned.policy, planned.setting, rounds, sampler="rejection", seed=seed).displays
        assert len(displays) == LINEAR_HORIZON
        expected, shown = log.column("expected_reward")[displays], log.column("action")[displays]
        return float((expected.max(axis=1) - expected[np.arange(LINEAR_HORIZON), shown]).sum())

    return off(np.array([regret(seed) for seed in range(REPLAY_RUNS)]), live_linear("otflinucb"))


def of_the_whole_log(log: Log, seed: int) -> Bools:
    """Right: draws of the sampler's own, one c for the whole log."""
    p = log.column("propensity")
    return sampler_stream(seed, 0).random(len(log)) * p < p.min()


def of_each_context(log: Log, seed: int) -> Bools:
    """Wrong: the largest c that each context allows."""
    p = np.exp(log.column("expected_reward") / TEMPERATURE)
    least = (p / p.sum(axis=1, keepdims=True)).min(axis=1)
    return sampler_stream(seed, 0).random(len(log)) * log.column("propensity") < least


def test_thinning_with_one_c_is_unbiased() -> None:
    assert abs(standard_errors_off(of_the_whole_log)) < 3


def test_plain_matching_under_a_logger_that_reads_the_context_is_biased() -> None:
    # Without thinning the accepted contexts are those in which the policy and the logger agree.
    assert abs(standard_errors_off(lambda log, seed: None)) > 5


def test_a_c_for_each_context_is_biased() -> None:
    # Contexts in which the logger nearly plays at random are accepted more often than others.
    assert abs(standard_errors_off(of_each_context)) > 5


class Coin:
    """Shows an action at random; held until it is matched when not contextual, redrawn at every display otherwise."""

    contextual = False

    def __init__(self, setting: Setting) -> None:
        self.n_actions = setting.n_actions

    def choose(self, vectors: Any, rng: np.random.Generator) -> int:
        return int(rng.integers(self.n_actions))

    def displayed(self, vectors: Any, action: int) -> None:
        pass

    def converted(self, vector: Any, action: int, delay: int, value: float) -> None:
        pass


class RedrawnCoin(Coin):
    contextual = True


def share_of_the_first_action(cls: type) -> tuple[float, int]:
    n = 20_000
    action = np.random.default_rng(13).choice(2, n, p=[0.8, 0.2]).astype(np.int32)
    nothing = np.zeros(0, np.int64)
    rounds = LoggedRounds(action, np.zeros((1, 1, 0)), np.zeros(n + 1, np.int64), nothing, nothing.astype(float), 2)
    shown = action[run(UserPolicy(cls=cls), Setting(n_actions=2), rounds, sampler="keep").displays]
    return float(np.mean(shown == 0)), len(shown)


def test_a_redrawn_choice_is_biased_and_a_held_one_is_not() -> None:
    held, n_held = share_of_the_first_action(Coin)
    assert abs(held - 0.5) < 3 * (0.25 / n_held) ** 0.5
    redrawn, n_redrawn = share_of_the_first_action(RedrawnCoin)
    assert redrawn - 0.5 > 5 * (0.25 / n_redrawn) ** 0.5
    # The choice is then matched as often as it is logged: the logger's share, not the policy's.
    assert abs(redrawn - 0.8) < 3 * (0.16 / n_redrawn) ** 0.5


class Tilted(Coin):
    """Shows the first action with probability .3, drawn anew at every display."""

    contextual = True

    def choose(self, vectors: Any, rng: np.random.Generator) -> int:
        return int(rng.random() >= 0.3)


def logged_by(stream: np.random.Generator) -> Log:
    """Return a log of two actions, each shown when a draw of the stream is in its half."""
    n, means = 1000, np.array([0.2, 0.8])
    action = (stream.random(n) >= 0.5).astype(int)
    shown = np.flatnonzero(np.random.default_rng([14, int(action @ np.arange(n))]).random(n) < means[action])
    context = np.zeros((n, 1))
    return build_log(
        time=np.arange(n), action=action, n_actions=2, conversion_display=shown, conversion_time=shown, context=context
    )


def test_one_stream_for_logger_and_policy_is_biased_and_two_are_not() -> None:
    # With one draw for both, all of the second action's displays are accepted, but of the policy's choices only those
    # that fall into the logger's halves: the first action has .3 of .8 of the rounds.
    truth = 0.3 * 0.2 + 0.7 * 0.8
    for stream, biased in ((policy_stream, True), (lambda seed, repeat: np.random.default_rng(seed), False)):
        values = np.array([replay(logged_by(stream(s, 0)), Tilted, seed=s).value.estimate for s in range(30)])
        assert (off(values, truth) < -5) if biased else (abs(off(values, truth)) < 3)
