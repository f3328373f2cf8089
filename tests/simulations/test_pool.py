"""Live runs on a pool tell policies what replays tell them."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.policies import resolve
from evaluator.policies.base import Setting
from evaluator.policies.user import UserPolicy
from evaluator.worlds.live_parts import COUNTS, LiveWorld, Regrets
from evaluator.worlds.live_rounds import play_live
from tests.policies.mine import Greedy

RATES = np.array([[0.2, 0.5, 0.4]])


class GreedyOnShares(Greedy):
    unit_rewards = True


def value(policy: object, factor: float, reward_max: float) -> float:
    world = LiveWorld(np.zeros((1, 1, 0)), RATES, factor * np.array([0.2, 0.7, 1.0]), np.array([[0.5, 1.0]]), reach=1)
    told = Setting(n_actions=3, horizon=400, reward_max=reward_max)
    own, luck = np.random.default_rng(1), np.random.default_rng(2)
    return float(play_live(policy, told, world, 400, weights=np.full((1, 1, 400), 1 / 400), own=own, luck=luck)[0])


@pytest.mark.parametrize("policy", [resolve("klucb"), UserPolicy(cls=GreedyOnShares)], ids=["klucb", "own class"])
def test_the_unit_of_money_does_not_matter(policy: object) -> None:
    assert value(policy, 64.0, 64.0) == value(policy, 1.0, 1.0)
    assert value(policy, 64.0, 1.0) != value(policy, 1.0, 1.0)


def test_a_class_that_asks_for_no_shares_is_told_money() -> None:
    plain = UserPolicy(cls=Greedy)
    assert value(plain, 64.0, 64.0) == value(plain, 64.0, 1.0) != value(plain, 1.0, 1.0)


def test_one_run_counts_the_regret_and_what_it_earns_alike() -> None:
    t, reach = 400, 3
    tau = np.array([[0.25, 0.5, 0.75, 1.0]])
    world = LiveWorld(
        np.zeros((1, 1, 0)), RATES, np.ones(1), tau, reach, law=np.zeros(3, np.int64), pooled=False
    )  # fmt: skip
    regrets = Regrets(
        ever=np.ones(3), within=np.ones(3), there=np.ones((1, 3), np.bool_), checkpoints=np.array([t]),
        gaps=np.zeros((1, reach + 1)), sums=np.zeros(3), noted=np.zeros(1, np.int64), regret=np.zeros(1),
        observed=np.zeros(1), counts=np.zeros(len(COUNTS), np.int64),
    )  # fmt: skip
    age = np.minimum(np.arange(t)[::-1], reach)
    weights = np.stack([np.ones((1, t)), tau[:, age]])
    earned = play_live(
        UserPolicy(cls=Greedy), Setting(n_actions=3, horizon=t), world, t,
        own=np.random.default_rng(1), luck=np.random.default_rng(2), weights=weights, regrets=regrets,
    )  # fmt: skip
    assert 0 < regrets.regret[0] < t * RATES.max()
    assert regrets.sums[2] == pytest.approx(earned[0], rel=1e-12)
    best = RATES.max() * weights.sum(axis=(1, 2))
    np.testing.assert_allclose(earned, best - [regrets.regret[0], regrets.observed[0]], rtol=1e-12)
    fate = dict(zip(COUNTS, regrets.counts.tolist(), strict=True))
    assert fate["generated"] == fate["delivered"] + fate["pending"]
    assert fate["expired"] == fate["lost"] == 0
