"""Refunds and costs on known truth: intervals hold, nothing is biased, and whoever leaves one out is far off."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from evaluator import compare, replay
from evaluator.log.schema import to_numpy
from tests.shops import COSTS, LOGGER, REFUND_DELAY, World, make_shop, revenues
from tests.statistical.runs import off

LOGS, N, LEVEL = 120, 6_000, 0.8
WORLDS = {"tidy": World(), "untidy": World(untidy=True)}


class Told:
    """What one replay said of each number, (estimate, low, high), and what is true."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, float]] = []

    def add(self, interval: object, true: float) -> None:
        self.rows.append((interval.estimate, interval.low, interval.high, true))  # type: ignore[attr-defined]

    @property
    def errors(self) -> np.ndarray:
        return np.array([estimate - true for estimate, _, _, true in self.rows])

    @property
    def missed(self) -> float:
        return float(np.mean([not low <= true <= high for _, low, high, true in self.rows]))


@cache
def found(world: str, policy: str, immature: str = "drop") -> dict[str, Told]:
    """Return what replays of many logs say, and what is true of the displays they showed."""
    told: dict[str, Told] = {}
    for seed in range(LOGS):
        shop = make_shop(N, seed=seed, world=WORLDS[world])
        result = replay(shop.log, policy, window=500, seed=seed, level=LEVEL)
        shown = to_numpy(result.trajectory["display_id"])
        revenue, cost = shop.revenue[shown].mean(), shop.cost[shown].mean()
        of = {
            "value": (result.value, revenue - cost),
            "revenue": (result.money.revenue, revenue),
            "cost": (result.money.cost, cost),
            "profit": (result.money.profit, revenue - cost),
            "profit_per_cost": (result.money.profit_per_cost, revenue / cost - 1.0),
            "logging_value": (result.logging_value, (shop.revenue - shop.cost).mean()),
        }
        if world == "tidy":
            of["best"] = (result.best_fixed_action.value, float((revenues() - COSTS).max()))
            of["uplift"] = (result.uplift, revenue - cost - float((revenues() - COSTS) @ LOGGER))
        for name, (interval, true) in of.items():
            told.setdefault(name, Told()).add(interval, float(true))
    return told


@pytest.mark.parametrize("policy", ["ucb1", "thompson"])
@pytest.mark.parametrize("world", WORLDS)
def test_intervals_of_money_hold(world: str, policy: str) -> None:
    most = 1.0 - LEVEL + 4.0 * np.sqrt(LEVEL * (1.0 - LEVEL) / LOGS)
    for name, told in found(world, policy).items():
        assert told.missed <= most, name


@pytest.mark.parametrize("world", WORLDS)
def test_money_is_not_biased(world: str) -> None:
    told = found(world, "ucb1")
    for name in ("value", "revenue", "cost", "logging_value"):
        assert abs(off(told[name].errors, 0.0)) < 4.0, name
    # Left out, each is seen: of refunds the revenue's, of costs the value's.
    true = np.array([row[3] for row in told["value"].rows])
    revenue = np.array([row[0] for row in told["revenue"].rows])
    assert off(revenue - true, 0.0) > 5.0


def test_young_displays_are_corrected_for_refunds_by_delays_of_their_own() -> None:
    true = float((revenues() - COSTS) @ LOGGER)
    logs = [make_shop(N, seed=seed, world=World(observed=True)).log for seed in range(LOGS)]
    results = [replay(log, "random", immature="correct", seed=seed) for seed, log in enumerate(logs)]
    assert all(len(result.trajectory) for result in results)
    assert abs(off(np.array([result.logging_value.estimate for result in results]), true)) < 4.0
    # What was seen, with the young ones not corrected: of refunds less than of sales, so too good.
    seen = [float(to_numpy(log.conversions["value"]).sum()) / N - float(COSTS @ LOGGER) for log in logs]
    assert abs(off(np.array(seen), true)) > 5.0


def test_differences_of_profits_hold() -> None:
    missed = []
    for seed in range(60):
        shop = make_shop(N, seed=seed)
        result = compare(
            shop.log, ["thompson", "random"], baseline="thompson", windows=[500], seed=seed, level=LEVEL, bootstrap=0
        )
        profit = shop.revenue - shop.cost
        rounds = min(r.rounds for r in result.results)
        true = [profit[to_numpy(r.trajectory["display_id"])[:rounds]].mean() for r in result.results]
        for difference in result.differences:
            pair = true[difference.variant] - true[difference.reference]
            missed.append(not difference.realised.low <= pair <= difference.realised.high)
    assert np.mean(missed) <= 1.0 - LEVEL + 4.0 * np.sqrt(LEVEL * (1.0 - LEVEL) / len(missed))


def test_a_policy_that_learns_from_profit_earns_more_of_it() -> None:
    gained = []
    for seed in range(40):
        log = make_shop(20_000, seed=seed).log
        by = {of: replay(log, "ucb1:exploration=0.05", learn_from=of, window=5_000) for of in ("objective", "revenue")}
        gained.append(by["objective"].value.estimate - by["revenue"].value.estimate)
    assert REFUND_DELAY < 5_000
    assert off(np.array(gained), 0.0) > 4.0
