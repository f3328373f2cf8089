"""The bundled log of a shop's promotions: all that a production log may hold, as its spec says, and its truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import replay
from evaluator.datasets import convert, load, show
from evaluator.errors import SpecError, UsageError
from evaluator.log import Log
from evaluator.log.eligible import unpack
from evaluator.log.schema import to_numpy
from evaluator.reading.locate import bundled_folder
from evaluator.reading.resolve import dataset_spec
from evaluator.reading.spec import ScenarioSpec, parse_spec
from evaluator.worlds.scenarios.scenario import PromotionsScenario
from evaluator.worlds.world import load_problem

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def log() -> Log:
    return load("promotions")


@pytest.fixture(scope="module")
def scenario() -> PromotionsScenario:
    spec = dataset_spec("promotions")
    assert isinstance(spec, ScenarioSpec)
    assert isinstance(spec.scenario, PromotionsScenario)
    return spec.scenario


def near(found: float, expected: float, error: float) -> None:
    assert abs(found - expected) <= 4 * error, (found, expected, error)


def test_the_same_seed_gives_the_same_log_and_a_shorter_one_is_its_beginning(log: Log) -> None:
    short = load("promotions", limit=500)
    for name in short.displays.column_names:
        np.testing.assert_array_equal(short.column(name), log.column(name)[:500])
    first = to_numpy(log.conversions["display_id"]) < 500
    assert short.conversions.equals(log.conversions.filter(first))
    assert (load("promotions", limit=500, seed=1).column("action") != short.column("action")).any()


def test_actions_are_eligible_in_their_flights_and_shown_by_their_weights(
    log: Log, scenario: PromotionsScenario
) -> None:
    day, action = log.column("time") / DAY_MS, log.column("action")
    sets = unpack(log.displays["eligible"], log.n_actions)
    weight = np.array([promotion.weight for promotion in scenario.promotions])
    for k, promotion in enumerate(scenario.promotions):
        flies = [(day >= f.start) & (day < (f.until or np.inf)) for f in promotion.flights]
        # Times of the log are whole milliseconds, those of the flights are not.
        assert (sets[:, k] != (np.any(flies, axis=0) if flies else True)).sum() <= 2 * len(flies)
    chance = weight * sets / (weight * sets).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(log.column("propensity"), chance[np.arange(len(log)), action], rtol=1e-12)
    for k in range(log.n_actions):
        near((action == k).sum(), chance[:, k].sum(), float((chance[:, k] * (1 - chance[:, k])).sum()) ** 0.5)


def test_events_are_what_the_spec_says(log: Log, scenario: PromotionsScenario) -> None:
    action, revenue = log.column("action"), to_numpy(log.displays["expected_reward"])
    of, when, value = (to_numpy(log.conversions[name]) for name in ("display_id", "time", "value"))
    left = np.bincount(to_numpy(log.outcomes["display_id"]), minlength=len(log))
    sold, back = value > 0, value < 0
    price = np.array([promotion.price for promotion in scenario.promotions])
    assert (np.abs(value) == price[action[of]]).all()
    assert set(of[back]) <= set(of[sold])
    rewards = np.bincount(of, value, len(log))
    expected = revenue[np.arange(len(log)), action]
    for k, promotion in enumerate(scenario.promotions):
        shown = action == k
        near(rewards[shown].mean(), expected[shown].mean(), rewards[shown].std() / shown.sum() ** 0.5)
        sales = (action[of] == k) & sold
        share = ((action[of] == k) & back).sum() / sales.sum()
        near(share, promotion.refunded, (share * (1 - share) / sales.sum()) ** 0.5)
        near(left[shown].mean(), promotion.unsubscribes, left[shown].std() / shown.sum() ** 0.5)
        assert (log.column("cost")[shown] == promotion.cost).all()
    hours = (when - log.column("time")[of]) / 3_600_000
    near(hours[sold].mean(), 8, 8 / sold.sum() ** 0.5)
    waited = hours[back] - hours[np.flatnonzero(back) - 1]
    assert 24 <= waited.min() < waited.max() <= 120


def test_customers_and_ages_are_columns_to_group_by_and_what_contexts_say(
    log: Log, scenario: PromotionsScenario
) -> None:
    context, customer, age = (log.column(name) for name in ("context", "customer", "age"))
    for k, kind in enumerate(scenario.customers):
        assert ((customer == kind) == (context[:, k] > 0)).all()
    assert (age.min(), age.max()) == scenario.ages
    np.testing.assert_allclose(context[:, -1] * 2**0.5, 2 * (age - 18) / 59 - 1, atol=1e-12)
    assert np.linalg.norm(context, axis=1).max() <= 1 + 1e-12


def test_the_card_says_the_truth_that_is_shown() -> None:
    card = (bundled_folder() / "promotions" / "README.md").read_text()
    truth = show("promotions")["truth"]
    assert table(truth) in card
    assert truth[1]["policy"] == "random"


def table(truth: list[dict[str, Any]]) -> str:
    lines = ["| chooses | `--policy` | revenue | cost | profit | unsubscribes |", "|---|---|---|---|---|---|"]
    for row in truth:
        numbers = " | ".join(f"{row[name]:.4f}" for name in ("revenue", "cost", "profit", "unsubscribe"))
        lines.append(f"| {row['chooses']} | {'' if row['policy'] is None else '`' + row['policy'] + '`'} | {numbers} |")
    return "\n".join(lines)


def test_it_can_be_converted_and_not_be_simulated(tmp_path: Path) -> None:
    short = load("promotions", limit=300)
    converted = convert("promotions", tmp_path / "log", limit=300).log
    for name in short.displays.column_names:
        np.testing.assert_array_equal(converted.column(name), short.column(name))
    assert "truth" not in show(tmp_path / "log")
    with pytest.raises(UsageError, match="a simulation counts rounds"):
        load_problem("promotions")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"flights": [{"from": 3, "until": 3}]}, "each ends after it begins"),
        ({"flights": [{"until": 9}, {"from": 4}]}, "flights come in order"),
        ({"sells": {"new": 0.2}}, "must name the customers: returning, new, loyal"),
        ({"sells": {"new": 0.8, "returning": 0.1, "loyal": 0.1}, "age": 0.3}, "exceeds 1"),
        ({"label": "voucher"}, "same label"),
        ({"price": -1.0}, "price"),
    ],
)
def test_what_is_no_scenario_of_promotions(change: dict[str, Any], words: str, scenario: PromotionsScenario) -> None:
    said = json.loads(scenario.model_dump_json(by_alias=True, exclude_none=True))
    said["promotions"][0] |= change
    with pytest.raises(SpecError) as refused:
        parse_spec({"name": "s", "title": "S", "licence": "none", "scenario": said})
    assert words in str(refused.value)


def test_one_promotion_is_always_eligible(scenario: PromotionsScenario) -> None:
    said = json.loads(scenario.model_dump_json(by_alias=True, exclude_none=True))
    for promotion in said["promotions"]:
        promotion["flights"] = [{"until": 5}]
    with pytest.raises(SpecError, match="always eligible"):
        parse_spec({"name": "s", "title": "S", "licence": "none", "scenario": said})


def test_true_regret_is_against_the_best_eligible_action(log: Log) -> None:
    result = replay(log, "fixed:action=3", objective="revenue")
    shown, action = (to_numpy(result.trajectory[name]) for name in ("display_id", "action"))
    revenue = to_numpy(log.displays["expected_reward"])[shown]
    best = np.where(unpack(log.displays["eligible"], log.n_actions)[shown], revenue, 0).max(axis=1)
    assert result.true_regret == pytest.approx((best - revenue[np.arange(len(shown)), action]).sum())
