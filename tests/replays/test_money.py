"""Costs and refunds in a replay: what is valued, what the policy is told, what is said."""

from __future__ import annotations

import json
import math
from dataclasses import replace as changed
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import check, compare, replay, study_delays
from evaluator.delays.cdf import DelayCDF
from evaluator.errors import ParameterError, UnknownNameError
from evaluator.log import Log
from evaluator.log.reward_kinds import cost_events, with_rewards
from evaluator.log.schema import to_numpy
from evaluator.policies import dispatch, resolve
from evaluator.policies.base import Setting
from evaluator.policies.delayed_ucb import DelayedUCB
from evaluator.policies.indices import delayed_index
from tests.cli.runs import validate
from tests.shops import World, make_shop

SHOP = make_shop(3_000, seed=4)
LOG = SHOP.log
FREE = Log(LOG.displays.drop_columns(["cost"]), LOG.conversions, LOG.actions, LOG.meta)
SOLD = FREE.with_conversions(FREE.conversions.filter(pa.array(to_numpy(FREE.conversions["value"]) > 0))).with_meta(
    reward_min=None
)


def shown(result: Any) -> list[int]:
    found: list[int] = result.trajectory["display_id"].to_pylist()
    return found


def test_profit_is_revenue_less_cost_of_the_displays_shown() -> None:
    result = replay(LOG, "thompson", window=400)
    of = np.array(shown(result))
    cost = to_numpy(LOG.displays["cost"])[of]
    value = np.bincount(
        to_numpy(LOG.conversions["display_id"]), to_numpy(LOG.conversions["value"]), minlength=len(LOG)
    )[of]
    money = result.money
    assert money is not None
    assert money.profit == result.value
    assert result.value.estimate == pytest.approx((value - cost).mean())
    assert money.revenue.estimate == pytest.approx(value.mean())
    assert money.cost.estimate == pytest.approx(cost.mean())
    assert money.profit_per_cost.estimate == pytest.approx((value - cost).mean() / cost.mean())
    assert money.profit_per_cost.low < money.profit_per_cost.estimate < money.profit_per_cost.high
    # What the policy was told counts conversions, of which costs are none.
    assert result.generated == np.isin(to_numpy(LOG.conversions["display_id"]), of).sum()
    assert result.generated == result.delivered + result.pending + result.expired


@pytest.mark.parametrize("log", [LOG, FREE, SOLD])
def test_guardrails_limit_each_kind_of_money_by_its_own_events(log: Log) -> None:
    has_costs, has_refunds = "cost" in log.schema.names, bool((to_numpy(log.conversions["value"]) < 0.0).any())
    names = ["sales", "revenue", *["refunds"] * has_refunds, *["cost"] * has_costs]
    result = replay(log, "thompson", window=400, guardrails=[f"{name} > +0" for name in names])
    of, display = np.array(shown(result)), to_numpy(log.conversions["display_id"])
    value = to_numpy(log.conversions["value"])
    by_hand = {
        "sales": np.bincount(display, np.maximum(value, 0.0), len(log)),
        "refunds": np.bincount(display, np.minimum(value, 0.0), len(log)),
        "revenue": np.bincount(display, value, len(log)),
        "cost": to_numpy(log.displays["cost"]) if has_costs else np.zeros(len(log)),
    }
    found = {one.outcome: one for one in result.outcomes}
    assert set(found) == set(names)
    for name, answer in zip(names, result.guardrails, strict=True):
        assert found[name].value.estimate == pytest.approx(by_hand[name][of].mean())
        assert found[name].logging_value.estimate == pytest.approx(by_hand[name].mean())
        assert answer.interval.estimate == pytest.approx(by_hand[name][of].mean() - by_hand[name].mean())
    if result.money is not None:
        assert found["revenue"].value.low == pytest.approx(result.money.revenue.low)
        assert found["cost"].value.estimate == pytest.approx(result.money.cost.estimate)
    plainly = replay(log, "thompson", window=400)
    assert (plainly.value, plainly.money, plainly.outcomes) == (result.value, result.money, ())
    for name in {"refunds", "cost"} - set(names):
        with pytest.raises(UnknownNameError, match=f"has no {name}"):
            replay(log, "thompson", window=400, guardrails=[f"{name} > +0"])
    if has_refunds:
        for name in ("refunds", "revenue"):
            with pytest.raises(ParameterError, match="may be below 0"):
                replay(log, "thompson", window=400, guardrails=[f"{name} > -5%"])
        for limit in ("+0.001", "+5%", "0.02"):  # which would hold however many refunds there are
            with pytest.raises(ParameterError, match=r"Hint: limit them from below: 'refunds > -0\.001'"):
                replay(log, "thompson", window=400, guardrails=[f"refunds < {limit}"])


def test_the_objective_follows_the_log_and_is_said() -> None:
    by_default, revenue = replay(LOG, "random"), replay(LOG, "random", objective="revenue")
    assert by_default.plan["objective"] == "profit"
    assert by_default.value == replay(LOG, "random", objective="profit").value
    assert any("the log says what displays cost" in line for line in by_default.assumptions)
    assert revenue.money is None
    assert revenue.plan["objective"] == "revenue"
    assert any("values are of revenue" in line for line in revenue.assumptions)
    assert revenue.value == replay(FREE, "random").value
    with pytest.raises(ParameterError, match=r"`objective='profit'` needs what displays cost, and log 'test' does not"):
        replay(FREE, "random", objective="profit")


@pytest.mark.parametrize("policy", ["ucb1", "thompson", "delayed-klucb"])
@pytest.mark.parametrize("repeats", [1, 2])
def test_a_policy_that_learns_from_revenue_chooses_as_if_nothing_cost_anything(policy: str, repeats: int) -> None:
    told = replay(LOG, policy, window=400, learn_from="revenue", repeats=repeats)
    free = replay(FREE, policy, window=400, repeats=repeats)
    assert shown(told) == shown(free)
    assert (told.generated, told.delivered, told.expired) == (free.generated, free.delivered, free.expired)
    assert told.money is not None
    assert told.money.revenue.estimate == pytest.approx(free.value.estimate)
    assert any("learns from revenue alone" in line for line in told.assumptions)


def test_costs_are_told_at_once_whatever_shares_their_time() -> None:
    tied = make_shop(2_000, seed=1, world=World(untidy=True)).log
    for learn_from, same in (("objective", False), ("revenue", True)):
        dear = tied.displays.set_column(
            tied.displays.schema.get_field_index("cost"), "cost",
            pa.array(np.where(to_numpy(tied.displays["action"]) == 1, 9.0, 0.0)),
        )  # fmt: skip
        other = Log(dear, tied.conversions, tied.actions, tied.meta)
        runs = [replay(log, "ucb1:exploration=0.01", learn_from=learn_from) for log in (tied, other)]
        assert (shown(runs[0]) == shown(runs[1])) == same
    assert replay(other, "ucb1:exploration=0.01").action_share[1] < 0.05


@pytest.mark.parametrize("sampler", ["rejection", "keep", "queue"])
@pytest.mark.parametrize("learns", [{}, {"learn_every": 70}, {"learn_every": 70, "learn_lag": 100}])
def test_costs_that_wait_for_a_push_are_no_conversions(sampler: str, learns: dict[str, Any]) -> None:
    result = replay(LOG, "ucb1", sampler=sampler, learn_from="objective", **learns)
    own = LOG.conversions.filter(pa.array(np.isin(to_numpy(LOG.conversions["display_id"]), shown(result))))
    assert result.generated == own.num_rows
    assert min(result.delivered, result.pending, result.expired) >= 0
    assert result.generated == result.delivered + result.pending + result.expired


def test_one_cost_for_all_has_no_spread_and_none_at_all_no_ratio() -> None:
    def at(cost: float) -> Any:
        same = pa.array(np.full(len(LOG), cost))
        displays = LOG.displays.set_column(LOG.displays.schema.get_field_index("cost"), "cost", same)
        return replay(Log(displays, LOG.conversions, LOG.actions, LOG.meta), "random").money

    assert (at(0.5).cost.low, at(0.5).cost.high) == (0.5, 0.5)
    assert math.isnan(at(0.0).profit_per_cost.estimate)
    assert at(0.0).revenue == at(0.0).profit


def test_policies_without_a_place_for_costs_or_refunds_name_those_that_have_one() -> None:
    with pytest.raises(ParameterError, match=r"qpm-d has no place for the cost .*`learn_from='revenue'`, or .*ucb1, "):
        replay(LOG, "qpm-d", window=100)
    assert replay(LOG, "qpm-d", window=100, learn_from="revenue").rounds
    with pytest.raises(ParameterError, match=r"adapt-patient-bandits has no place for refunds: .* or take one of ucb1"):
        replay(FREE, "adapt-patient-bandits", horizon=100)
    assert replay(SOLD, "adapt-patient-bandits", horizon=100).rounds


def test_scale_and_clipping_are_said() -> None:
    assert any("from -1 to 10, as shares of 11" in line for line in replay(FREE, "ucb1").assumptions)
    assert any("counts as 0 for thompson" in line for line in replay(FREE, "thompson").assumptions)
    assert any("as shares of 10, the log's reward_max" in line for line in replay(SOLD, "ucb1").assumptions)
    assert any("divides all that it was told" in line for line in replay(LOG, "delayed-ucb", window=200).warnings)
    assert not any("divides" in w for w in replay(LOG, "delayed-ucb", window=200, learn_from="revenue").warnings)


def test_a_window_that_refunds_come_too_late_for_flatters() -> None:
    (said,) = [line for line in replay(FREE, "ucb1", window=150).warnings if "flatters" in line]
    assert "of the refunds come within it" in said
    assert "takes actions with many refunds for better" in said
    assert not any("flatters" in line for line in replay(FREE, "ucb1", window=2_999).warnings)
    # Nothing says how long conversions take but the window: it ends rewards, too.
    cut = FREE.with_meta(observed_until=30_000)
    assert any("too good by them" in line for line in replay(cut, "ucb1", window=150).warnings)


def test_delays_that_policies_are_told_are_those_of_sales() -> None:
    told = [replay(log, "delayed-ucb", window=500).learned for log in (LOG, FREE, SOLD)]
    cdfs = [one.setting.delay_cdf for one in told if one is not None]
    for cdf in cdfs[:2]:
        assert np.array_equal(cdf.delays, cdfs[2].delays)
        assert np.array_equal(cdf.cdf, cdfs[2].cdf)


def test_delays_of_sales_and_refunds_are_studied_apart() -> None:
    both, sold = (study_delays(log, windows=[500], families=["geometric"], bootstraps=19) for log in (FREE, SOLD))
    assert sold.refunds is None
    assert both.refunds is not None
    assert both.conversions == sold.conversions
    assert both.conversions + both.refunds.conversions == FREE.conversions.num_rows
    validate(json.loads(json.dumps(both.to_dict())))


def test_results_with_money_fit_their_schemas() -> None:
    validate(json.loads(json.dumps(replay(LOG, "ucb1", window=100).to_dict())))
    validate(json.loads(json.dumps(compare(LOG, ["ucb1", "random"], baseline="ucb1", windows=[100]).to_dict())))


def test_checks_take_refunds_off_at_once() -> None:
    report = check(FREE)
    assert report["delays of each action"].verdict != "fail"
    assert report["replay of the logger"].verdict == "pass"


def test_a_bootstrap_and_a_final_policy_are_of_profit() -> None:
    result = replay(LOG, "ucb1", window=200, bootstrap=20, final="last:30%")
    assert result.expected_value is not None
    assert result.expected_value.low < result.value.estimate < result.expected_value.high
    assert result.final is not None
    rest = np.arange(2_100, 3_000)
    value = np.bincount(to_numpy(LOG.conversions["display_id"]), to_numpy(LOG.conversions["value"]), minlength=3_000)
    profit = (value - to_numpy(LOG.displays["cost"]))[rest]
    assert result.final.logging.value.estimate == pytest.approx(profit.mean())


def test_a_cap_leaves_costs_alone() -> None:
    capped = replay(LOG, "random", cap=4.0)
    assert capped.money is not None
    assert capped.money.cost.estimate == pytest.approx(replay(LOG, "random").money.cost.estimate)
    assert any("a refund takes back first what is above the cap" in line for line in capped.assumptions)


def test_costs_become_events_once() -> None:
    once = with_rewards(LOG, costs=True)
    assert with_rewards(once, costs=True) is once
    of, value = to_numpy(once.conversions["display_id"]), to_numpy(once.conversions["value"])
    assert np.array_equal(of, np.sort(of))
    assert -value[cost_events(once.conversions)].sum() == pytest.approx(to_numpy(LOG.displays["cost"]).sum())


def test_an_arm_in_the_red_rises_as_its_pulls_come_of_age() -> None:
    """Its index is computed anew each round: a bound from earlier rounds would be too low."""
    rng = np.random.default_rng(0)
    policy = resolve("delayed-ucb:ties=lowest")
    assert isinstance(policy, DelayedUCB)
    setting = Setting(n_actions=3, window=50, horizon=400, delay_cdf=DelayCDF.geometric(20.0))
    state = policy.start(changed(setting))
    for t in range(300):
        dispatch.begin(state, rng)
        best = [
            np.inf
            if state.exposure.pulls[k] == 0
            else delayed_index(
                state.conversions[k], state.exposure.effective[k],
                state.exposure.pulls[k] / max(state.exposure.effective[k], 1e-300),
                math.log(state.exposure.rounds[0] + 1.0), False,
            )
            for k in range(3)
        ]  # fmt: skip
        chosen = int(state.choice[0])
        assert best[chosen] == pytest.approx(max(best)), t
        dispatch.shown(state, np.zeros((1, 0)), chosen)
        dispatch.told(state, np.zeros(0), chosen, 0, -0.2 * chosen - 0.1)
