"""coba's rejection sampler, independent code, on the same logs under a logger that reads the context.

obp has none to compare with: its replay method takes uniformly logged data only, and it asks for Python below 3.11.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from evaluator import replay
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from tests.logs import linear_log
from tests.statistical.runs import off

evaluators = pytest.importorskip("coba.evaluators", reason="coba is not installed: pip install '.[bench]'")
BOUND = 4  # standard errors


def make_log(n: int, seed: int) -> Log:
    # Every conversion comes at the end of the next round: coba's learners are told rewards at once.
    return linear_log(n, n_actions=4, dimension=3, mean_delay=1.0, seed=seed, temperature=0.3)


def accepted_by_coba(log: Log, learner: Any, seed: int) -> list[float]:
    """Return the rewards that coba's RejectionCB accepts with the smallest propensity for c, its unbiased setting."""
    from coba.primitives import Environment, LoggedInteraction

    reward = np.zeros(len(log))
    reward[to_numpy(log.conversions["display_id"])] = 1.0
    columns = (log.column("action_set"), log.column("action"), reward, log.column("propensity"))
    interactions = []
    for vectors, shown, earned, p in zip(*(column.tolist() for column in columns), strict=True):
        actions = [tuple(vector) for vector in vectors]
        interactions.append(LoggedInteraction(None, actions[shown], earned, p, actions=actions))

    class Logged(Environment):
        def read(self) -> Iterator[Any]:
            return iter(interactions)

    c = float(log.column("propensity").min())
    sampler = evaluators.RejectionCB(cpct=0, cinit=c, cmax=c, seed=seed)
    return [row["reward"] for row in sampler.evaluate(Logged(), learner)]


class Largest:
    """Shows the action with the largest first feature: one rule for both."""

    contextual = True

    def __init__(self, setting: Any) -> None:
        pass

    def choose(self, vectors: Any, rng: Any) -> int:
        return int(np.argmax(vectors[:, 0]))

    def displayed(self, vectors: Any, action: int) -> None:
        pass

    def converted(self, vector: Any, action: int, delay: int, value: float) -> None:
        pass


class LargestInCoba:
    """The same as a learner of coba."""

    params: ClassVar[dict[str, Any]] = {}

    def score(self, context: Any, actions: list[Any], action: Any) -> float:
        return float(action == max(actions))

    def predict(self, context: Any, actions: list[Any]) -> tuple[Any, float]:
        return max(actions), 1.0

    def learn(self, *args: Any, **kwargs: Any) -> None:
        pass


def test_both_accept_as_many_displays_of_a_fixed_rule_and_find_the_same_value() -> None:
    log = make_log(20_000, seed=1)
    theirs, ours = np.array(accepted_by_coba(log, LargestInCoba(), 2)), replay(log, Largest, seed=3)
    p = log.column("propensity")
    follows = log.column("action_set")[:, :, 0].argmax(axis=1) == log.column("action")
    # Both thin the displays that follow the rule, with draws of their own.
    kept = p.min() / p[follows]
    assert abs(len(theirs) - ours.rounds) < BOUND * (2 * (kept * (1 - kept)).sum()) ** 0.5
    assert abs(len(theirs) - kept.sum()) < BOUND * (kept * (1 - kept)).sum() ** 0.5
    assert abs(off(theirs, to_numpy(ours.trajectory["reward"]))) < BOUND


def test_both_find_the_same_value_of_linucb() -> None:
    from coba.learners import LinUCBLearner

    horizon, theirs, ours = 100, [], []
    for seed in range(20):
        # No propensity is below 1/(1 + 3 exp((1 - .577)/.3)) = .075, so that 2,000 displays give 150 rounds, +- 12.
        log = make_log(2000, seed)
        rewards = accepted_by_coba(log, LinUCBLearner(alpha=1.0, features=["a"]), seed)
        result = replay(log, "linucb:alpha=1", seed=seed, horizon=horizon)
        assert len(rewards) >= horizon == result.rounds
        theirs.append(np.mean(rewards[:horizon]))
        ours.append(result.value.estimate)
    assert abs(off(np.array(theirs), np.array(ours))) < BOUND
