"""A result warns when it should not be trusted, and only then."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

from evaluator.api import compare, replay
from evaluator.errors import DataError
from evaluator.log import Log
from tests.logs import bernoulli_log, build_log, linear_log
from tests.policies.mine import Greedy

EVEN = bernoulli_log(2000, [0.5, 0.3], mean_delay=5.0, seed=1)
UNEVEN = bernoulli_log(2000, [0.5, 0.3], mean_delay=5.0, seed=1, logger=[0.8, 0.2])

ROUGH = linear_log(1500, n_actions=3, dimension=2, mean_delay=5.0, seed=1, temperature=0.3)


def warned(log: Log, policy: str, **options: Any) -> str:
    return " ".join(replay(log, policy, **options).warnings)


def test_a_sound_replay_is_silent() -> None:
    assert warned(EVEN, "ucb1", window=100) == ""


@pytest.mark.parametrize("sampler", ["keep", "queue", "rejection"])
def test_a_comparison_keeps_a_replay_without_a_round_as_nan(sampler: str) -> None:
    log = build_log(time=range(10), action=[0] * 10, n_actions=2)
    found = compare(log, ["fixed:action=1", "fixed:action=0"], baseline="fixed:action=1", sampler=sampler)
    empty, sound = found.results
    assert math.isnan(empty.value.estimate)
    assert (empty.value.n, empty.rounds, len(empty.trajectory)) == (0, 0, 0)
    assert (empty.value.low, empty.value.high) == (0.0, 1.0)
    assert "it chose action a1, which was never shown" in empty.warnings[0]
    assert (sound.rounds, found.horizon.rounds) == (10, 10)
    assert any(
        said.startswith("fixed:action=a1 chose an action that cannot be replayed, or lived no round")
        for said in found.warnings
    )
    out = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert out["variants"][0]["value"]["estimate"] is None
    assert out["differences"][0]["why_not"] == "no rounds"


def test_no_mature_display_is_refused() -> None:
    with pytest.raises(DataError, match="followed for 5,000 rounds"):
        replay(EVEN.with_meta(observed_until=2_100, attribution_window=5000), "ucb1")


@pytest.mark.parametrize(
    ("log", "policy", "options", "words"),
    [
        (UNEVEN, "fixed:action=1", {"sampler": "queue", "horizon": 1000}, "queue of action a1 ran dry"),
        (UNEVEN, "fixed:action=1", {"sampler": "keep", "horizon": 1000}, "short of the horizon 1,000"),
        (EVEN, "ucb1", {"horizon": 19}, "hardly more than exploration"),
        (UNEVEN, "ucb1", {"propensity": "uniform"}, "standard errors off"),
        (EVEN, "ucb1", {"traffic_share": 0.1}, "below the acceptance rate"),
        (EVEN, "ucb1", {"window": 1}, "come within the window"),
        (EVEN.with_meta(observed_until=2_100), "ucb1", {}, "nothing says how long conversions take"),
        (EVEN.with_meta(reward_max=None), "ucb1", {}, "is taken as the largest possible"),
    ],
)
def test_a_doubtful_replay_warns(log: Log, policy: str, options: dict[str, Any], words: str) -> None:
    assert words in warned(log, policy, **options)
    assert words not in warned(EVEN, "ucb1", window=100)


def paid(log: Log, value: np.ndarray, reward_max: float | None = None) -> Log:
    """Return the log with these values of its conversions."""
    return dataclasses.replace(log, events=log.conversions.set_column(2, "value", [value])).with_meta(
        reward_max=reward_max
    )


SALES = EVEN.conversions.num_rows
# 200 times the others; 20 times.
HUGE, LARGE = (np.concatenate([[most], np.full(SALES - 1, 50.0)]) for most in (10_000.0, 1_000.0))


@pytest.mark.parametrize(
    ("value", "reward_max", "words"),
    [
        (HUGE, None, "The largest reward seen, 10000, is 1"),
        (np.full(SALES, 50.0), 10_000.0, "The reward_max, 10000, is 200 times"),
    ],
)
def test_a_reward_beyond_all_others_is_warned_of(value: np.ndarray, reward_max: float | None, words: str) -> None:
    assert words in warned(paid(EVEN, value, reward_max), "klucb")
    assert "hardly tell actions apart" not in warned(paid(EVEN, LARGE), "klucb")


def test_the_scale_that_a_policy_learns_on_is_said() -> None:
    def said(log: Log, policy: Any) -> tuple[str, str]:
        result = replay(log, policy)
        return " ".join(result.assumptions), " ".join(result.warnings)

    money = np.random.default_rng(0).uniform(20, 80, SALES)
    money[0] = 80.0
    assert (
        "as shares of 80, the largest that a display earns in this log (hindsight)"
        in said(paid(EVEN, money), "ucb1")[0]
    )
    assert "as shares of 100, the log's reward_max" in said(paid(EVEN, money, 100.0), "ucb1")[0]
    for policy in ("ucb1", Greedy):
        assumptions, warnings = said(EVEN.with_meta(reward_max=None), policy)
        assert "shares of" not in assumptions
        assert "own unit" not in warnings
    assumptions, warnings = said(paid(EVEN, money), Greedy)
    assert "shares of" not in assumptions
    assert "Greedy is told rewards in the log's own unit, up to 80 a display" in warnings


def test_the_least_seen_is_said_unless_the_log_names_it() -> None:
    value = np.ones(SALES)
    value[7] = -2.5
    assert "The least that a display earns by its conversions, -2.5, is the least seen" in warned(
        paid(EVEN, value), "random"
    )
    assert "the least seen" not in warned(paid(EVEN, value).with_meta(reward_min=-3.0), "random")


def test_left_out_displays_are_counted() -> None:
    # Conversions past the log's end would contradict it, so the log is one whose delays are 0.
    log = bernoulli_log(2000, [0.5, 0.3], mean_delay=0.0, seed=1)
    log = log.with_meta(observed_until=1_999, attribution_window=10)
    assert "10 displays were followed too briefly to be judged: left out" in warned(log, "ucb1")
    assert "10 displays were followed too briefly to be judged: corrected" in warned(log, "ucb1", immature="correct")
    assert replay(log, "ucb1").plan["displays_immature"] == 10


def test_a_dry_queue_without_a_horizon_cannot_happen() -> None:
    # The default horizon is the rarest action's displays: the stopping point then depends on no outcome.
    result = replay(UNEVEN, "fixed:action=1", sampler="queue")
    assert result.rounds == int((UNEVEN.column("action") == 1).sum())
    assert not any("ran dry" in w for w in result.warnings)


def test_clipping_is_no_matter_for_the_logger_itself() -> None:
    log = linear_log(2000, n_actions=3, dimension=5, mean_delay=5.0, seed=1, temperature=0.3)
    clipped = replay(log, "otflinucb", window=20, accept_quantile=0.2)
    assert clipped.clipped > 0.1
    assert any("below c" in w for w in clipped.warnings)
    logging = replay(log, "logging", accept_quantile=0.2)
    assert (logging.clipped, logging.effective_sample_size) == (0.0, len(log))


def test_what_a_result_rests_on_is_said() -> None:
    said = {
        kind: " ".join(replay(log, "ucb1", **options).assumptions)
        for kind, log, options in (
            ("keep", EVEN, {"sampler": "keep"}),
            ("queue", EVEN, {"sampler": "queue"}),
            ("wall", EVEN, {"clock": "wall"}),
            ("estimate", UNEVEN, {"propensity": "estimate"}),
            ("clipped", UNEVEN, {"sampler": "rejection", "accept_quantile": 0.3}),
            ("note", EVEN.with_meta(notes=("a note",)), {}),
        )
    }
    assert "independent and identically distributed" in said["keep"]
    assert "traffic clock" in said["keep"]
    assert "nothing drifts" in said["queue"]
    assert "nothing drifts" not in said["keep"]
    assert "50.0% of the traffic" in said["wall"]
    assert "estimated by frequencies" in said["estimate"]
    assert "clipped at the 0.3 quantile" in said["clipped"]
    assert "a note" in said["note"]


def test_every_displays_fate_is_counted() -> None:
    for sampler in ("keep", "queue", "rejection"):
        result = replay(EVEN, "ucb1", sampler=sampler, window=20)
        assert result.generated == result.delivered + result.expired + result.pending
        assert np.isclose(sum(result.action_share), 1.0)
        assert result.acceptance_rate == pytest.approx(result.rounds / len(EVEN))


@pytest.mark.parametrize("policy", ["random", "delayed-ucb", "delayed-klucb"])
def test_a_window_shorter_than_every_delay_is_a_warning_not_an_error(policy: str) -> None:
    log = build_log(
        time=range(400), action=[0, 1] * 200, conversion_display=range(0, 400, 4), conversion_time=range(30, 430, 4),
        n_actions=2,
    )  # fmt: skip
    result = replay(log, policy, window=5)
    assert (result.delivered, result.expired) == (0, result.generated)
    assert result.rounds > 0
    assert any("Only 0.0% of the conversions come within the window" in w for w in result.warnings)


def codes(log: Log, policy: str, **options: Any) -> set[str]:
    return {found.code for found in replay(log, policy, **options).findings}


def test_what_numbers_rest_on_is_said_only_where_they_do() -> None:
    assert "clipped-acceptance" not in codes(EVEN, "ucb1", accept_quantile=0.1, window=100)  # all are alike
    assert "clipped-acceptance" in codes(ROUGH, "ucb1", sampler="rejection", accept_quantile=0.5, window=100)
    assert "kept-choices" in codes(UNEVEN, "ucb1", sampler="keep", window=100)
    assert "kept-choices" not in codes(UNEVEN, "ucb1", sampler="keep", window=100, horizon=300)
    assert "propensities-as-given" not in codes(EVEN, "logging", propensity="estimate", final="last:20%", window=100)
    dear = EVEN.with_meta(reward_max=5.0)
    assert "reward-scale" in codes(dear, "ucb1", window=100)
    assert "reward-scale" not in codes(dear, "random")
