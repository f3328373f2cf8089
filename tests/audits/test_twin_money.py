"""Twins of a log with refunds and costs have its refunds and costs, by action; others have none."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from evaluator import audit
from evaluator.arguments import as_description
from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import claims, replay_twin
from evaluator.errors import ParameterError
from evaluator.log.schema import to_numpy
from evaluator.policies.base import Setting
from evaluator.replays.options import ReplayOptions
from evaluator.replays.planning import plan_replay
from evaluator.worlds.event_laws import own_or_all, pools_of
from evaluator.worlds.live_parts import LiveWorld
from evaluator.worlds.live_policy import claimed_weights, claims_of, live_money, live_world, money_weights
from evaluator.worlds.live_rounds import play_live
from evaluator.worlds.truth import LogTruth
from evaluator.worlds.twin_log import draw_twin
from tests.audits.test_truth import truth_of
from tests.logs import bernoulli_log
from tests.shops import COMES_BACK, COSTS, HANDLING, HIGHEST, LOWEST, REFUND_DELAY, SELLS, World, make_shop, revenues

N = 20_000
PRICE = (LOWEST + HIGHEST) / 2.0
WORLDS = {
    "tidy": World(),
    "untidy": World(untidy=True),
    "cut off": World(observed=True),
    "untidy, cut off": World(untidy=True, observed=True),
}


@cache
def fitted(world: str) -> LogTruth:
    return truth_of(make_shop(N, seed=5, world=WORLDS[world]).log)


@pytest.mark.parametrize("world", WORLDS)
def test_refunds_and_costs_are_those_of_each_action(world: str) -> None:
    log, truth = make_shop(N, seed=5, world=WORLDS[world]).log, fitted(world)
    money = truth.money
    assert money is not None
    assert money.refunds is not None
    assert money.costs is not None
    shown = np.bincount(log.column("action"), minlength=3)
    sold = shown * SELLS
    # Refunds of sales of the end are not seen yet: those of the last 3,000 displays or so say less.
    seen = sold * (0.8 if WORLDS[world].observed else 1.0)
    rate = money.refunds.rate
    assert (np.abs(rate - COMES_BACK) < 4 * np.sqrt(COMES_BACK * (1 - COMES_BACK) / seen)).all()
    spread = (HIGHEST - LOWEST) / 12**0.5
    assert (np.abs(money.worth - PRICE) < 4 * spread / np.sqrt(sold)).all()
    taken = money.owed / (rate * money.refunds.recorded)
    assert (np.abs(taken - PRICE - HANDLING) < 4 * spread / np.sqrt(seen * COMES_BACK)).all()
    own = log.column("cost")
    mean = np.array([own[log.column("action") == k].mean() for k in range(3)])
    np.testing.assert_allclose(money.costs.means, mean)
    profit = truth.rates[0] * (money.worth - money.owed) - money.costs.means
    error = np.sqrt(SELLS * (1 + COMES_BACK) * (PRICE**2 + spread**2) / shown * (N / (0.8 * N)))
    assert (np.abs(profit - (revenues() - COSTS)) < 4 * error).all()


def test_refunds_that_are_still_to_come_are_counted() -> None:
    fitted, seen, errors = [], [], []
    for seed in range(20):
        log = make_shop(4_000, seed=seed, world=World(observed=True)).log
        money = truth_of(log).money
        assert money is not None
        assert money.refunds is not None
        value, of = to_numpy(log.conversions["value"]), to_numpy(log.conversions["display_id"])
        last = log.column("action")[of] == 2
        sold, back = (int((last & which).sum()) for which in (value >= 0, value < 0))
        fitted.append(money.refunds.rate[2] - COMES_BACK[2])
        seen.append(back / sold - COMES_BACK[2])
        errors.append(COMES_BACK[2] * (1 - COMES_BACK[2]) / sold)
    error = np.sqrt(np.sum(errors)) / 20
    # One refund in a thousand comes later than any was watched for.
    assert abs(np.mean(fitted)) < 4 * error
    assert np.mean(seen) < -5 * error


@pytest.mark.parametrize("world", WORLDS)
def test_a_twin_earns_what_the_truth_says(world: str) -> None:
    truth, log = fitted(world), make_shop(N, seed=5, world=WORLDS[world]).log
    twin = draw_twin(truth, seed=2, twin=0).validated()
    of, when, value = (to_numpy(twin.conversions[name]) for name in ("display_id", "time", "value"))
    sales, back = of[value >= 0], of[value < 0]
    assert len(np.unique(sales)) == len(sales)
    assert np.isin(back, sales).all()
    assert len(np.unique(back)) == len(back)
    sold_at = np.zeros(N)
    sold_at[sales] = when[value >= 0]
    assert (when[value < 0] > sold_at[back]).all()
    action, cost = twin.column("action"), twin.column("cost")
    own, by = log.column("cost"), log.column("action")
    assert all(np.isin(cost[action == k], own[by == k]).all() for k in range(3))
    if WORLDS[world].observed:
        return
    profit = np.bincount(of, value, N) - cost
    money = truth.money
    assert money is not None
    true = truth.rates[0] * (money.worth - money.owed) - money.costs.means  # type: ignore[union-attr]
    for k in range(3):
        mine = profit[action == k]
        assert abs(mine.mean() - true[k]) < 4 * mine.std() / len(mine) ** 0.5


def test_refunds_past_the_attribution_window_are_in_no_twin() -> None:
    log = make_shop(N, seed=6, world=World(observed=True, window=400)).log
    truth = truth_of(log)
    twin = draw_twin(truth, seed=2, twin=0).validated()
    of, when, value = (to_numpy(twin.conversions[name]) for name in ("display_id", "time", "value"))
    assert (when - twin.column("time")[of]).max() <= 400
    assert truth.money is not None
    assert truth.money.refunds is not None
    assert (truth.money.refunds.recorded < 1.0).all()
    a, b = (value < 0).sum(), (to_numpy(log.conversions["value"]) < 0).sum()
    assert abs(int(a) - int(b)) < 4 * np.sqrt(a + b)


def test_actions_with_few_refunds_or_sales_have_those_of_all() -> None:
    log = make_shop(2_000, seed=9).log
    of, value = to_numpy(log.conversions["display_id"]), to_numpy(log.conversions["value"])
    action = log.column("action")[of]
    # Of action 0 no sale came back, action 1 never sold.
    log = log.with_conversions(log.conversions.filter((action != 1) & ((action != 0) | (value >= 0))))
    money = truth_of(log).money
    assert money is not None
    assert money.refunds is not None
    left = to_numpy(log.conversions["value"])
    back = money.refunds.worth
    assert back is not None
    first = back.first
    assert set(back.flat[: first[1]]) == set(value[(action == 0) & (value >= 0)])
    share = -left[left < 0].sum() / back.flat[first[2] :].sum()
    np.testing.assert_allclose(-money.refunds.values.flat[: first[2]], share * back.flat[: first[2]])
    sold = left[left >= 0]
    spread = sold.std() / np.sqrt((left >= 0).sum() - (left < 0).sum())
    assert abs(money.worth[1] - sold.mean()) < 4 * spread
    assert 0.0 < money.owed[1] < money.worth[1] * share


def test_a_log_without_refunds_and_costs_has_none() -> None:
    log = bernoulli_log(2_000, [0.3, 0.5], mean_delay=10.0, seed=1)
    truth = truth_of(log)
    assert truth.money is None
    assert set(draw_twin(truth, seed=0, twin=0).schema.names) < set(log.schema.names)


def test_the_objective_of_an_audit_is_that_of_a_replay() -> None:
    log = make_shop(3_000, seed=3).log
    options = {"window": 500, "twins": 10, "displays": 2_000}
    default, profit, revenue = (
        audit(log, ["ucb1", "logging"], **options, **more)
        for more in ({}, {"objective": "profit"}, {"objective": "revenue"})
    )
    assert default.twins.equals(profit.twins)
    assert any("values are of profit" in line for line in default.assumptions)
    assert any("values are of revenue" in line for line in revenue.assumptions)
    cost = float(np.bincount(log.column("action"), log.column("cost")).sum() / len(log))
    gap = revenue.policies[1].live_value - default.policies[1].live_value
    assert gap == pytest.approx(cost, rel=0.05)
    learned = audit(log, ["ucb1"], learn_from="revenue", **options)
    assert not np.array_equal(learned.live["value"].to_numpy(), default.live["value"].to_numpy()[: 2 * 10])
    with pytest.raises(ParameterError, match="needs what displays cost"):
        audit(bernoulli_log(2_000, [0.3, 0.5], mean_delay=10.0, seed=1), "random", objective="profit")


class Listener:
    """Shows one action, and keeps what it is told."""

    def __init__(self, setting: Setting) -> None:
        self.told: list[tuple[int, float]] = []
        HEARD.append(self.told)

    def choose(self, vectors: object, rng: object, round: int) -> int:
        return 2

    def displayed(self, vectors: object, action: int) -> None: ...

    def converted(self, vector: object, action: int, delay: int, value: float) -> None:
        self.told.append((delay, value))


HEARD: list[list[tuple[int, float]]] = []


@pytest.mark.parametrize("world", ["tidy", "untidy"])
def test_a_live_policy_is_told_of_refunds_and_costs(world: str) -> None:
    truth, rounds = fitted(world), 12_000
    options = ReplayOptions()
    plan = plan_replay(draw_twin(truth, seed=0, twin=0), as_description("random"), options)
    claim = claims_of(truth, plan)
    assert truth.money is not None
    assert claim.money is not None
    money = live_money(truth, claim, told_costs=True)
    assert money is not None
    rng = np.random.default_rng(4)
    money = money._replace(luck=rng.random((rounds, 3)))
    in_time = truth.traffic is not None
    lived = LiveWorld(
        np.zeros((1, 1, 0)), truth.rates, truth.values, truth.laws.tau if in_time else claim.tables(rounds),
        reach=rounds - 1, law=truth.laws.of_action,
    )  # fmt: skip
    if truth.traffic is not None:
        times = truth.traffic.times.mapped()
        lived = lived._replace(delays=truth.laws.grid, times=times, last=len(times), rate=truth.traffic.rate)
    weights = claimed_weights(claim, [rounds], rounds)
    found = play_live(
        as_description(Listener), plan.setting, lived, rounds, own=rng, luck=np.random.default_rng(3), money=money,
        weights=weights, of_money=money_weights(claim, [rounds], rounds),
    )  # fmt: skip
    per_sale = truth.money.worth - truth.money.owed
    assert truth.money.costs is not None
    expected = truth.rates[0, 2] * per_sale[2] - truth.money.costs.means[2]
    np.testing.assert_allclose(found * truth.mean_value, expected)
    told = HEARD.pop()
    costs = [value for delay, value in told if delay == 0 and value < 0]
    # A display a round costs something; refunds come after sales, on average REFUND_DELAY later, some past the end.
    assert len(costs) == rounds
    per_round = np.array([value for _, value in told]).sum() / rounds
    spread = np.sqrt(SELLS[2] * 2 * HIGHEST**2 / rounds)
    assert abs(per_round - expected) < 4 * spread + 0.05 * truth.rates[0, 2] * truth.money.owed[2]


def test_an_action_with_too_few_numbers_draws_from_all() -> None:
    values, action = own_or_all(np.arange(10_000.0), np.repeat([0, 2], [9_999, 1]), 3, fewest=2)
    pools = pools_of(values, action, 3)
    assert pools.size.tolist() == [9_999, 1_000, 1_000]
    np.testing.assert_allclose(pools.means, 5_000, rtol=1e-3)


def test_pools_draw_each_actions_own() -> None:
    pools = pools_of(np.array([1.0, 2.0, 5.0]), np.array([0, 0, 2]), 3)
    assert pools.means.tolist() == [1.5, 0.0, 5.0]
    assert pools.drawn(np.array([0, 0, 1, 2]), np.array([0.0, 0.99, 0.5, 0.5])).tolist() == [1.0, 2.0, 0.0, 5.0]


def test_live_runs_hear_of_refunds_that_come_later_than_any_sale() -> None:
    truth = fitted("tidy")
    options = AuditOptions(window=3_000, traffic_share=0.3)
    policies = [as_description("ucb1")]
    claimed = claims(truth, policies, options)
    told = replay_twin(truth, policies, options, claimed, 0, horizon=None).told
    rounds = min(told[0].rounds)
    reach = min(told[0].setting.window, rounds - 1)
    world = live_world(truth, policies[0], claimed[0], rounds, reach=reach, arrivals=told[0].arrivals)
    # One refund in twenty waits longer than three times the mean.
    assert world.tau.shape[1] < 0.3 * 3 * REFUND_DELAY
    assert world.reach == min(3_000, rounds - 1)
