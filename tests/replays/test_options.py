"""Every bad option is named with its value, and every good one reaches the plan."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluator.api import plan
from evaluator.errors import ParameterError
from evaluator.replays.options import ReplayOptions
from tests.logs import bernoulli_log, build_log, linear_log

LOG = bernoulli_log(500, [0.5, 0.3], mean_delay=5.0, seed=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clock", "sundial"),
        ("reward", "none"),
        ("immature", "keep"),
        ("propensity", "guess"),
        ("horizon", 0),
        ("horizon", -1),
        ("horizon", 2.5),
        ("repeats", 0),
        ("repeats", True),
        ("jobs", 0),
        ("seed", -1),
        ("accept_quantile", 1.0),
        ("accept_quantile", -0.1),
        ("accept_quantile", float("nan")),
        ("level", 0.0),
        ("level", 1.0),
        ("level", float("nan")),
    ],
)
def test_a_bad_option_is_named(name: str, value: Any) -> None:
    with pytest.raises(ParameterError) as error:
        ReplayOptions(**{name: value})
    assert f"`{name}" in str(error.value)
    assert "Hint" in str(error.value)


@pytest.mark.parametrize(
    ("name", "value"), [("window", "abc"), ("window", 0), ("traffic_share", -0.5), ("sampler", "quue")]
)
def test_an_option_that_does_not_fit_the_log_is_named(name: str, value: Any) -> None:
    with pytest.raises(ParameterError) as error:
        plan(LOG, "ucb1", **{name: value})
    assert str(value) in str(error.value)


def test_the_correction_is_for_eventual_rewards() -> None:
    with pytest.raises(ParameterError, match="exclude each other"):
        ReplayOptions(reward="observed", immature="correct")


def test_options_come_back_as_a_dictionary() -> None:
    options = ReplayOptions(window="7d", seed=3)
    assert ReplayOptions(**options.to_dict()) == options


@pytest.mark.parametrize(
    ("log", "policy", "options"),
    [
        (LOG, "delayed-ucb", {"window": 100}),
        (LOG, "delayed-ucb", {"delays": "geometric:5"}),
        (LOG, "logging", {}),
        (linear_log(200, n_actions=3, dimension=5, mean_delay=5.0, seed=1), "otflinucb", {"clock": "wall"}),
    ],
)
def test_a_plan_is_json(log: Any, policy: str, options: dict[str, Any]) -> None:
    planned = plan(log, policy, **options).to_dict()
    assert json.loads(json.dumps(planned, allow_nan=False)) == planned
    assert planned["policy"] == policy
    for name, value in options.items():
        assert planned["options"][name] == value


def test_a_plan_says_where_the_policys_delays_come_from() -> None:
    assert "given" in plan(LOG, "delayed-ucb", delays="geometric:5").to_dict()["policy_delays"]
    fitted = plan(LOG, "delayed-ucb")
    assert any("hindsight" in a for a in fitted.assumptions)
    # A policy that needs no CDF does not claim one.
    assert plan(LOG, "ucb1").to_dict()["policy_delays"] is None


def test_the_share_within_the_window_is_that_of_the_log() -> None:
    log = build_log(
        time=range(10), action=[0, 1] * 5, conversion_display=[0, 1, 2, 3], conversion_time=[0, 2, 5, 9], n_actions=2
    )
    assert plan(log, "ucb1", window=1).tau_window == pytest.approx(0.5)
    assert plan(log, "ucb1").tau_window == 1.0
