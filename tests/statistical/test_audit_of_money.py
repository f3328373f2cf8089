"""Audits of logs with refunds and costs: their truth is the log's, and replays of twins are live runs on it.

What is left out is seen: whoever drops refunds or costs, in the truth or live, is off by more than five standard
errors.
"""

from __future__ import annotations

from functools import cache
from unittest.mock import patch

import numpy as np
import pytest

import evaluator
from evaluator.audits.result import Audit
from evaluator.datasets import load
from evaluator.worlds import live_policy
from evaluator.worlds.live_policy import MoneyClaim
from tests.audits.test_truth import truth_of
from tests.shops import World, make_shop

# name: log, policies, options. Refunds come 400 displays after sales on average.
AUDITS = {
    "tidy": (lambda: make_shop(5_000, seed=2).log, ["ucb1:exploration=0.1", "thompson", "logging"], {"window": 500}),
    "of revenue": (
        lambda: make_shop(5_000, seed=3).log,
        ["ucb1:exploration=0.1", "logging"],
        {"window": 500, "objective": "revenue"},
    ),
    "learning from revenue": (
        lambda: make_shop(5_000, seed=4).log,
        ["ucb1:exploration=0.1", "random"],
        {"window": 500, "learn_from": "revenue"},
    ),
    "observed by the horizon": (
        lambda: make_shop(5_000, seed=5).log,
        ["ucb1:exploration=0.1", "logging"],
        {"window": 500, "reward": "observed"},
    ),
    "bursts, cut off, a window in time": (
        lambda: make_shop(5_000, seed=6, world=World(untidy=True, observed=True)).log,
        ["ucb1:exploration=0.1", "logging"],
        {"window": "10min"},
    ),
    "bursts, observed by the horizon": (
        lambda: make_shop(5_000, seed=7, world=World(untidy=True)).log,
        ["ucb1:exploration=0.1", "logging"],
        {"window": "10min", "reward": "observed"},
    ),
    "a short attribution window, half the traffic": (
        lambda: make_shop(5_000, seed=8, world=World(observed=True, window=400)).log,
        ["ucb1:exploration=0.1", "logging"],
        {"traffic_share": 0.5},
    ),
    "within the window only": (
        lambda: make_shop(5_000, seed=11, world=World(observed=True)).log.with_meta(attribution_window=None),
        ["ucb1:exploration=0.1", "logging"],
        {"window": 500},
    ),
    "bursts, within the window only, in time": (
        lambda: make_shop(5_000, seed=12, world=World(untidy=True, observed=True)).log.with_meta(
            attribution_window=None
        ),
        ["ucb1:exploration=0.1", "logging"],
        {"window": "10min"},
    ),
    # Sales come within 150 rounds, refunds 120 rounds after them on average: whoever hears of none later learns less.
    "a third of the traffic": (
        lambda: make_shop(5_000, seed=21).log,
        ["ucb1:exploration=0.1", "random"],
        {"window": 500, "traffic_share": 0.3},
    ),
    "young displays corrected": (
        lambda: make_shop(5_000, seed=9, world=World(observed=True)).log,
        ["ucb1:exploration=0.1", "logging"],
        {"window": 500, "immature": "correct"},
    ),
    "promotions": (
        lambda: load("promotions"),
        ["thompson", "linucb", "random", "logging"],
        {"window": "14d", "displays": 12_000},
    ),
    "promotions, observed by the horizon": (
        lambda: load("promotions"),
        ["ucb1:exploration=0.1", "logging"],
        {"window": "2d", "reward": "observed", "displays": 12_000},
    ),
}
TWINS = 100
SEEDS = range(8)


@pytest.fixture(scope="module", params=list(AUDITS))
def audit(request: pytest.FixtureRequest) -> Audit:
    """Return an audit for the tests of it, which follow one another: another process would audit once more."""
    make, policies, options = AUDITS[request.param]
    return evaluator.audit(make(), policies, twins=TWINS, seed=3, **options)


def test_replays_of_twins_equal_live_runs(audit: Audit) -> None:
    for policy in audit.policies:
        assert abs(policy.z) < 4, policy


def test_intervals_hold(audit: Audit) -> None:
    # P(Binomial(100, .95) < 86) is 2e-4; anytime-valid intervals hold oftener still.
    for policy in audit.policies:
        for coverage in (policy.value_coverage, policy.regret_coverage, policy.uplift_coverage):
            assert coverage.held >= 86
    for pair in audit.pairs:
        assert pair.coverage.held >= 86
    assert not audit.warnings


@pytest.mark.parametrize("name", ["tidy", "bursts, observed by the horizon", "promotions"])
@pytest.mark.parametrize("left_out", ["owed", "cost"])
def test_live_runs_without_refunds_or_costs_are_off(name: str, left_out: str) -> None:
    whole = live_policy._of_money

    def without(*of: object) -> MoneyClaim:
        claim = whole(*of)  # type: ignore[arg-type]
        kept = {field: getattr(claim, field) for field in ("sold", "owed", "cost", "refunds")}
        return MoneyClaim(**{**kept, left_out: np.zeros_like(claim.cost)})

    make, policies, options = AUDITS[name]
    with patch.object(live_policy, "_of_money", without):
        wrong = evaluator.audit(make(), [policies[-1]], twins=TWINS, seed=3, **options)
    assert wrong.policies[0].z < -5
    assert wrong.policies[0].biased


@cache
def promoted() -> dict[str, np.ndarray]:
    """Return the fitted profit of each action less the true one, and what it is without refunds, without costs."""
    found: dict[str, list[np.ndarray]] = {}
    for seed in SEEDS:
        log = load("promotions", seed=seed)
        truth = truth_of(log)
        money = truth.money
        assert money is not None
        assert money.costs is not None
        action, cost = log.column("action"), log.column("cost")
        true_cost = np.array([cost[action == k].mean() for k in range(log.n_actions)])
        true = log.column("expected_reward").mean(axis=0) - true_cost
        rate = truth.rates.mean(axis=0)
        profit = (
            np.bincount(log.conversions["display_id"].to_numpy(), log.conversions["value"].to_numpy(), len(log)) - cost
        )
        parts = {
            "fitted": rate * (money.worth - money.owed) - money.costs.means - true,
            "without refunds": rate * money.worth - money.costs.means - true,
            "without costs": rate * (money.worth - money.owed) - true,
            "variance": np.array([profit[action == k].var() / (action == k).sum() for k in range(log.n_actions)]),
        }
        for name, part in parts.items():
            found.setdefault(name, []).append(part)
    error = np.sqrt(np.sum(found.pop("variance"), axis=0)) / len(SEEDS)
    return {name: np.mean(parts, axis=0) / error for name, parts in found.items()}


def test_the_fitted_truth_has_the_profit_of_each_promotion() -> None:
    off = promoted()["fitted"]
    assert (np.abs(off) < 4).all(), off


@pytest.mark.parametrize("wrong", ["without refunds", "without costs"])
def test_a_truth_without_refunds_or_costs_has_not(wrong: str) -> None:
    assert promoted()[wrong].max() > 5
