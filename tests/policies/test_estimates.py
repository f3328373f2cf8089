"""What a policy says it has learned: every registered one says it, and it is what its slow twin sums up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator.engine.frozen import FrozenPolicy
from evaluator.engine.log_replay import SamplerName, run
from evaluator.errors import PolicyError
from evaluator.policies import dispatch, names, resolve
from evaluator.policies.base import Setting
from evaluator.policies.indices import NO_ESTIMATE
from evaluator.policies.user import UserPolicy
from tests.policies.checks import layouts
from tests.policies.rounds import random_rounds, setting_for
from tests.policies.variants import ALL, ANONYMOUS, CDFS
from tests.twins import twin_of

# Probabilities of the log, and whatever was logged: neither has learned anything.
WITHOUT = {"columns", "target"}


@pytest.mark.parametrize("name", names())
def test_every_policy_that_learns_says_what_it_has_learned(name: str) -> None:
    policy = resolve(name)
    setting = Setting(n_actions=3, dimension=2, rows=1, window=9, horizon=50, delay_cdf=CDFS["steps"])
    assert dispatch.has_estimates(policy.start(setting)) is (name not in WITHOUT), (
        f"{name} does not say what it has learned: give implement(..., estimates=...) in its file"
    )


# Few rounds: some arms are not known yet. Many: phases end, windows close.
@pytest.mark.parametrize("n", [20, 60, 700])
@pytest.mark.parametrize("spec", [spec for spec in ALL if spec not in WITHOUT])
def test_it_is_what_the_twin_sums_up(spec: str, n: int) -> None:
    policy = resolve(spec)
    n *= 9 if spec in (*ANONYMOUS, "improved-ucb") else 1
    for layout in layouts(policy):
        rounds = random_rounds(layout, n, mean_delay=5.0, seed=21)
        twin = UserPolicy(cls=twin_of(policy.name), parameters=policy.parameters)
        told = setting_for(rounds, window=15, delay_cdf=CDFS["geometric from 0"])
        sampler: SamplerName = "rejection" if policy.contextual else "queue"
        fast, slow = (run(p, told, rounds, sampler=sampler, seed=5) for p in (policy, twin))
        np.testing.assert_array_equal(fast.displays, slow.displays)
        if not fast.prepared:
            dispatch.begin(fast.state, np.random.default_rng(6))
        by_hand = slow.state.policy
        if not by_hand.begun:
            by_hand.begin(np.random.default_rng(6))
        for vectors in rounds.vectors[:5]:
            found = np.empty(4)
            dispatch.estimate(fast.state, vectors, found)
            np.testing.assert_allclose(found, by_hand.estimates(vectors), rtol=1e-9, atol=1e-12)


class Told:
    """Says what it is made to say."""

    contextual = False
    said: Any = (0.2, 0.5, 0.5)

    def __init__(self, setting: Any) -> None:
        self.k = setting.n_actions

    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        return 0

    def displayed(self, vectors: np.ndarray, action: int) -> None:
        pass

    def converted(self, vector: np.ndarray, action: int, delay: int, value: float) -> None:
        pass

    def estimates(self, vectors: np.ndarray) -> Any:
        return self.said


def greedy(said: Any) -> np.ndarray:
    policy = UserPolicy(cls=type("Told", (Told,), {"said": said}))
    frozen = FrozenPolicy(policy, policy.start(Setting(n_actions=3)), n_actions=3, displays=5)
    assert (frozen.kind, frozen.draws) == ("greedy", 0)
    return frozen.probabilities(np.zeros((1, 1, 0)), 5)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ((0.2, 0.5, 0.4), (0, 1, 0)),
        ((0.2, 0.5, 0.5), (0, 1 / 2, 1 / 2)),
        ((-2.0, NO_ESTIMATE, -3.0), (1, 0, 0)),
        ((NO_ESTIMATE, NO_ESTIMATE, NO_ESTIMATE), (1 / 3, 1 / 3, 1 / 3)),
    ],
)
def test_the_largest_is_shown_equals_alike_and_the_unknown_last(said: Any, shown: Any) -> None:
    np.testing.assert_array_equal(greedy(said), [shown] * 5)


@pytest.mark.parametrize("said", [(0.1, 0.2), (0.1, 0.2, np.nan), None, 0.5, "abc"])
def test_what_is_no_estimate_is_refused(said: Any) -> None:
    with pytest.raises(PolicyError, match=r"^Told\S* returned .* from estimates\. Hint: return 3 numbers"):
        greedy(said)


def test_a_class_without_estimates_explores() -> None:
    without = UserPolicy(cls=type("Without", (Told,), {"estimates": None}))
    frozen = FrozenPolicy(without, without.start(Setting(n_actions=3)), n_actions=3, displays=5)
    assert frozen.kind == "exploring"
    np.testing.assert_array_equal(frozen.probabilities(np.zeros((1, 1, 0)), 5), [(1, 0, 0)] * 5)
