"""A world draws the logs that commands read, plays what they play, and knows what policies that do not learn earn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import World, audit, load, replay, simulate
from evaluator.arguments import as_description
from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import fit
from evaluator.datasets import make
from evaluator.delays.laws import fixed
from evaluator.errors import ParameterError, SpecError, UsageError
from evaluator.log.fingerprint import content_hash
from evaluator.policies.static import LoggingPolicy
from evaluator.reading.resolve import spec_path
from evaluator.simulations import BernoulliProblem
from evaluator.worlds.true_rewards import known_truth, of_criteo_twin
from evaluator.worlds.twin_log import draw_twin
from evaluator.worlds.world import GeneratedFiles
from tests.cli.runs import evaluate

SCENARIOS = ["synthetic", "campaigns", "promotions", "manegueu2020-figure2"]
SOFTMAX = """
name = "softmax"
title = "A logger that follows vectors"
licence = "Apache-2.0"

[scenario]
kind = "linear"
actions = 4
dimensions = 3
logger = "softmax"
temperature = 0.05
delay = { family = "fixed", mean = 3 }
flights = [{ action = 2, from = 4000 }]
"""


@pytest.mark.parametrize("name", SCENARIOS)
def test_logs_of_a_scenario_are_those_that_load_reads(name: str) -> None:
    world = World.from_toml(name)
    assert content_hash(world.log(700, seed=3)) == content_hash(load(name, limit=700, seed=3))
    assert world.log(700).meta == load(name, limit=700).meta


def test_a_log_is_the_dataset_that_the_command_converts(tmp_path: Path) -> None:
    evaluate("datasets", "convert", "campaigns", str(tmp_path / "log"), "--limit", "900")
    assert content_hash(load(tmp_path / "log")) == content_hash(World.from_toml("campaigns").log(900))


@pytest.mark.parametrize("name", ["campaigns", "vernade2017-low"])
def test_to_play_is_to_simulate(name: str) -> None:
    world = World.from_toml(name)
    played = world.play("ucb1", 400, seed=5, runs=3)
    assert np.mean(played.regret) == pytest.approx(
        simulate(name, "ucb1", runs=3, horizon=400, seed=5).curves[0].regret[-1], rel=1e-12
    )
    alone = world.play("ucb1", 400, seed=5)
    assert (
        alone.regret[0] == simulate(world, "ucb1", runs=1, horizon=400, seed=5).curves[0].regret[-1] == played.regret[0]
    )


def test_rewards_and_regret_of_a_run_add_up_to_what_the_best_action_earns() -> None:
    played = World.from_toml("vernade2017-low").play("delayed-klucb", 1_000, seed=2, runs=4)
    np.testing.assert_allclose(played.rewards + played.regret / 1_000, 0.1)


def test_a_problem_of_ones_own_is_a_world() -> None:
    problem = BernoulliProblem(name="mine", means=(0.2, 0.6), laws=(fixed(3),), logger=(0.9, 0.1), displays=5_000)
    world = World(problem)
    log = world.log()
    assert (len(log), log.meta.name, log.meta.propensity) == (5_000, "mine", "logged")
    assert set(log.column("propensity").tolist()) == {0.9, 0.1}
    assert world.truth("logging").value == pytest.approx(0.9 * 0.2 + 0.1 * 0.6)
    assert world.truth("logging").shown.tolist() == pytest.approx([0.9, 0.1])
    with pytest.raises(ParameterError, match="propensities"):
        BernoulliProblem(name="mine", means=(0.2, 0.6), laws=(fixed(3),), logger=(0.9, 0.2))


def test_a_fitted_world_draws_the_first_twin_of_an_audit() -> None:
    log, options = load("synthetic", limit=2_000), AuditOptions(window=100, seed=7)
    truth = fit(log, [as_description("linucb"), as_description("random")], options).truth
    world = World.fit(log, window=100)
    assert content_hash(world.log(seed=7)) == content_hash(draw_twin(truth, seed=7, twin=0))
    assert world.model.said == truth.said == audit(log, "random", window=100, twins=10, seed=7).truth


def within_errors(found: float, known: float, error: float) -> None:
    assert abs(found - known) <= 4.0 * error + 1e-12, (found, known, error)


@pytest.mark.parametrize("policy", ["random", "fixed:action=2", "logging"])
@pytest.mark.parametrize("name", ["synthetic", "campaigns", "vernade2017-low", "softmax"])
def test_the_truth_of_a_scenario_is_what_long_runs_and_logs_show(name: str, policy: str, tmp_path: Path) -> None:
    if name == "softmax":
        (tmp_path / "spec.toml").write_text(SOFTMAX)
    world = World.from_toml(tmp_path / "spec.toml" if name == "softmax" else name)
    rounds = 10_000
    known = world.truth(policy, rounds)
    assert known.shown.sum() == pytest.approx(1.0)
    assert np.nansum(known.by_action * known.shown) == pytest.approx(known.value)
    if policy != "logging":
        played = world.play(policy, rounds, seed=1, runs=10)
        within_errors(played.reward, known.value, played.standard_error)
        return
    log = world.log(rounds, seed=1)
    expected = log.column("expected_reward")[np.arange(rounds), log.column("action")]
    spread = np.hypot(expected.std(ddof=1) / rounds**0.5, known.standard_error)
    within_errors(float(expected.mean()), known.value, float(spread))
    rewards = np.bincount(log.conversions["display_id"].to_numpy(), minlength=rounds)
    within_errors(float(rewards.mean()), known.value, float(rewards.std(ddof=1) / rounds**0.5))


def test_the_truth_of_promotions_is_what_the_facts_of_the_dataset_say() -> None:
    facts = json.loads(evaluate("datasets", "show", "promotions", "--json").out)["truth"]
    world = World.from_toml("promotions")
    said = {row["policy"]: row for row in facts if row["policy"] is not None}
    for policy, row in said.items():
        known = world.truth(policy)
        assert (known.value, known.cost) == pytest.approx((row["profit"], row["cost"]))
    assert world.truth("logging").value == pytest.approx(facts[0]["profit"])


TIMED = """
name = "timed"
title = "Displays in time, delays by action"
licence = "Apache-2.0"

[scenario]
kind = "bernoulli"
means = [0.1, 0.3]
delays = [{ family = "exponential", mean = 60 }, { family = "packet-loss", lost = 0.5 }]
displays = 4000
arrivals = { displays_per_day = 500, delay_unit = "min" }
"""


@pytest.mark.parametrize("name", ["promotions", "timed"])
def test_the_truth_of_a_scenario_in_time_is_what_long_runs_show(name: str, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(TIMED)
    world = World.from_toml("promotions" if name == "promotions" else tmp_path / "spec.toml")
    for policy in ("random", "fixed:action=1", "logging"):
        known, played = world.truth(policy), world.play(policy, 4_000, seed=2, runs=10)
        within_errors(played.reward, known.value, played.standard_error)
    if name == "timed":
        assert world.truth("fixed:action=1").value == pytest.approx(0.15)
        late, at_once = known_truth(world.model).laws.cdfs
        assert (float(late(3_600_000)), float(at_once(60_000))) == pytest.approx((1 - np.exp(-1), 1.0))


LOGS = {
    "contexts": lambda: load("synthetic", limit=3_000),
    "calendar": lambda: load("campaigns", limit=3_000),
    "money": lambda: load("promotions", limit=3_000),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_truth_of_a_fitted_world_is_what_long_runs_show(name: str) -> None:
    world = World.fit(LOGS[name]())
    for policy in ("random", "fixed:action=1", "logging"):
        known, played = world.truth(policy), world.play(policy, 3_000, seed=1, runs=20)
        within_errors(played.reward, known.value, played.standard_error)
        assert known.by_context.shape == (3_000,)


def test_what_learns_has_no_truth_and_what_is_in_time_is_not_simulated() -> None:
    world = World.from_toml("promotions")
    with pytest.raises(ParameterError, match="ucb1 learns"):
        world.truth("ucb1")
    with pytest.raises(UsageError, match="in time"):
        simulate(world, "random")
    with pytest.raises(UsageError, match="fitted to a log"):
        simulate(World.fit(load("vernade2017-low", limit=2_000)), "random")


def test_numbers_out_of_range_are_refused() -> None:
    fitted = World.fit(load("campaigns", limit=3_000))
    for wrong in ({"displays": 0}, {"displays": 3_001}, {"seed": -1}):
        with pytest.raises(ParameterError, match="displays"):
            fitted.log(**wrong)
    with pytest.raises(ParameterError, match="calendar"):
        fitted.play("random", 3_001)
    with pytest.raises(ParameterError, match="runs"):
        fitted.play("random", 10, runs=0)
    with pytest.raises(ParameterError, match="the world has 5 actions"):
        fitted.truth("fixed:action=5")


@pytest.mark.parametrize("rounds", [0, -5, 2.5, "x", 10**12])
def test_rounds_of_a_truth_are_a_number_that_fits(rounds: Any) -> None:
    with pytest.raises(ParameterError, match="rounds is 1 to 10,000,000"):
        World.from_toml("campaigns").truth("random", rounds=rounds)


def test_a_truth_in_time_is_that_of_all_of_its_time() -> None:
    with pytest.raises(ParameterError, match="come in time"):
        World.from_toml("promotions").truth("random", rounds=20_000)


def test_what_is_no_world_is_told_in_a_line() -> None:
    with pytest.raises(ParameterError, match="A str is no model of a world"):
        World("campaigns")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="A int is no scenario"):
        World.from_toml(5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="displays=0"):
        World.fit(World.from_toml("campaigns").log(500), displays=0)
    with pytest.raises(ParameterError, match=r"World\.truth"):
        World.from_toml("campaigns").play("logging", 100)


def test_the_shop_is_a_world_with_a_log_and_a_truth(tmp_path: Path) -> None:
    world, made = World.from_toml("shop"), make("shop", tmp_path / "shop")
    assert content_hash(world.log()) == content_hash(load(made.path / "spec.toml"))
    values = json.loads(made.truth.read_text())["value_per_display"]
    logging, *always, _ = values.items()
    for policy, value in (("logging", logging[1]), *((f"fixed:action={name[7:]}", of) for name, of in always)):
        assert world.truth(policy).value == pytest.approx(value, abs=1e-6)
    with pytest.raises(UsageError, match="The shop is always the same"):
        world.log(500)


def test_the_criteo_twin_is_a_world_with_logs_and_a_truth(tmp_path: Path) -> None:
    world, made = World.from_toml("criteo_twin"), make("criteo_twin", tmp_path / "twin.gz", rows=2_000, seed=3)
    assert content_hash(world.log(2_000, seed=3)) == content_hash(load("criteo_twin", path=made.path))
    assert isinstance(world.model, GeneratedFiles)
    assert world.model.twin is not None
    truth, known = of_criteo_twin(world.model.twin, 2_000), json.loads(made.truth.read_text())
    rates = {str(one["campaign"]): one["reward_rate"] for one in known["campaigns"]}
    np.testing.assert_allclose(truth.of(LoggingPolicy()).by_action, [rates[label] for label in truth.labels])
    best = np.array([one["best_reward_rate"] for one in known["contexts"]])
    np.testing.assert_allclose(truth.rewards.max(axis=1), best)
    assert world.truth("logging").value == pytest.approx(truth.of(LoggingPolicy()).value, rel=0.1)


def test_a_folder_of_the_shops_name_is_taken_where_it_is_a_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make("shop", "shop")  # a log in files: the world is the one that it was drawn from
    assert isinstance(World.from_toml("shop").model, GeneratedFiles)
    scenario = spec_path("vernade2017-low").read_text().replace('name = "vernade2017-low"', 'name = "mine"')
    (tmp_path / "shop" / "spec.toml").write_text(scenario)
    assert World.from_toml("shop").name == "mine"


def test_a_scenario_says_how_its_policies_are_deployed(tmp_path: Path) -> None:
    text = spec_path("vernade2017-low").read_text()
    spec = tmp_path / "spec.toml"
    spec.write_text(text + '\n[deployment]\nlearn_every = 50\nlearn_lag = 10\nexplore_first = "40:logger"\n')
    asked = {"learn_every": 50, "learn_lag": 10, "explore_first": "40:logger"}
    world, plain = World.from_toml(spec), World.from_toml("vernade2017-low")
    lived = world.play("ucb1", 200, runs=3)
    assert (lived.rewards == plain.play("ucb1", 200, runs=3, **asked).rewards).all()
    assert not (lived.rewards == plain.play("ucb1", 200, runs=3).rewards).all()
    assert (world.play("ucb1", 200, runs=3, learn_every="event", explore_first=0).rewards == plain.play(
        "ucb1", 200, runs=3).rewards).all()  # fmt: skip
    said, other = simulate(spec, "ucb1", runs=2, horizon=200), simulate("vernade2017-low", "ucb1", runs=2, horizon=200)
    words = "every 50 rounds, of what was known 10 rounds before"
    assert (said.learns, said.explores, said.explores_as_logger) == (words, 40, True)
    assert (other.learns, other.explores, other.explores_as_logger) == ("", 0, False)
    for log in (load(spec, limit=3000), world.log(3000)):
        assert log.meta.deployment == {name: str(value) for name, value in asked.items()}
        assert replay(log, "ucb1").trajectory.equals(replay(plain.log(3000), "ucb1", **asked).trajectory)
    assert plain.log(3000).meta.deployment == {}
    for line, why in (
        ('learn_from = "click"', "policies of a scenario learn from its rewards"),
        ('keep_for = "user"', "nobody comes back"),
        ('preset = "growthbok"', "is no preset"),
    ):
        spec.write_text(f"{text}\n[deployment]\n{line}\n")
        with pytest.raises(SpecError, match=why):
            World.from_toml(spec)
    spec.write_text(f'{text}\n[deployment]\npreset = "statsig"\n')
    assert load(spec, limit=500).meta.deployment == {"learn_every": "1h"}
    with pytest.raises(ParameterError, match="as the scenario says of its deployment: a scenario counts rounds"):
        simulate(spec, "ucb1", runs=2)


@pytest.mark.parametrize("name", ["shop", "criteo_twin"])
def test_no_policy_lives_in_files(name: str) -> None:
    with pytest.raises(UsageError, match=f"'{name}' is generated as files: it has logs and a truth, and no policy"):
        World.from_toml(name).play("ucb1", 100)
    with pytest.raises(UsageError, match=f"'{name}' is generated as files: no policy lives in it"):
        simulate(name, "ucb1", runs=2)
