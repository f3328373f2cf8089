"""Live runs on a pool tell policies what replays tell them."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.audits.live import ContextPool, play_in_pool
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from evaluator.policies.user import UserPolicy
from tests.policies.mine import Greedy

RATES = np.array([[0.2, 0.5, 0.4]])


class GreedyOnShares(Greedy):
    unit_rewards = True


def value(policy: object, factor: float, reward_max: float) -> float:
    pool = ContextPool(np.zeros((1, 1, 0)), RATES, factor * np.array([0.2, 0.7, 1.0]), np.array([[0.5, 1.0]]), reach=1)
    told = Setting(n_actions=3, horizon=400, reward_max=reward_max)
    own, luck = np.random.default_rng(1), np.random.default_rng(2)
    return float(play_in_pool(policy, told, pool, np.full((1, 1, 400), 1 / 400), own=own, luck=luck)[0])


@pytest.mark.parametrize("policy", [resolve("klucb"), UserPolicy(cls=GreedyOnShares)], ids=["klucb", "own class"])
def test_the_unit_of_money_does_not_matter(policy: object) -> None:
    assert value(policy, 64.0, 64.0) == value(policy, 1.0, 1.0)
    assert value(policy, 64.0, 1.0) != value(policy, 1.0, 1.0)


def test_a_class_that_asks_for_no_shares_is_told_money() -> None:
    plain = UserPolicy(cls=Greedy)
    assert value(plain, 64.0, 64.0) == value(plain, 64.0, 1.0) != value(plain, 1.0, 1.0)
