"""Results on a log small enough to work out by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evaluator.api import plan, replay
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.rewards import reward_bounds
from tests.logs import build_log

# Six displays of two actions; conversions of displays 0 (delay 0), 1 (delay 2 and 4), 3 (delay 2), 5 (delay 1).
LOG = build_log(
    time=range(6),
    action=[0, 1, 0, 1, 0, 1],
    conversion_display=[0, 1, 1, 3, 5],
    conversion_time=[0, 3, 5, 5, 6],
    conversion_value=[1.0, 0.25, 0.5, 0.5, 0.75],
    n_actions=2,
)


def rewards(result: ReplayResult, column: str) -> list[float]:
    return result.trajectory[column].to_pylist()


def test_eventual_rewards_count_every_conversion() -> None:
    result = replay(LOG, "logging", window=3)
    assert rewards(result, "reward") == [1, 0.75, 0, 0.5, 0, 0.75]
    assert result.value.estimate == pytest.approx(3.0 / 6)
    assert (result.generated, result.delivered, result.expired, result.pending) == (5, 3, 1, 1)


def test_observed_rewards_count_what_the_horizon_and_the_window_reveal() -> None:
    # Round s reveals delays of at most min(m, 6 - s): display 1's second conversion needs 4; display 5's is late.
    assert rewards(replay(LOG, "logging", window=3, reward="observed"), "reward") == [1, 0.25, 0, 0.5, 0, 0]
    assert rewards(replay(LOG, "logging", reward="observed"), "reward") == [1, 0.75, 0, 0.5, 0, 0]
    result = replay(LOG, "logging", window=1, reward="observed")
    assert rewards(result, "reward") == [1, 0, 0, 0, 0, 0]
    assert result.value.estimate == pytest.approx(1 / 6)


def test_an_earlier_horizon_reveals_less() -> None:
    # Three displays, each seen until the end of round 3: display 1's conversions need 2 and 4 rounds, 1 is left.
    result = replay(LOG, "logging", reward="observed", horizon=3)
    assert rewards(result, "reward") == [1, 0, 0]
    assert rewards(replay(LOG, "logging", horizon=3), "reward") == [1, 0.75, 0]


def test_the_observed_reference_is_revealed_like_the_policys_rounds() -> None:
    # Over T = 6 rounds a delay of D is seen from (6 - D)/6 of them. Action 0: delay 0. Action 1: delays 2, 4, 2, 1.
    expected = {0: 1 / 3, 1: (0.25 * 4 + 0.5 * 2 + 0.5 * 4 + 0.75 * 5) / 6 / 3}
    result = replay(LOG, "logging", reward="observed")
    best = max(expected, key=expected.get)
    assert result.best_fixed_action.action == best
    # Half its three displays chose, the others value it: two of them on one side, one on the other.
    assert 0 < result.best_fixed_action.value.estimate < 3.75 / 6
    assert result.logging_value.estimate == pytest.approx((expected[0] + expected[1]) / 2)


def test_regret_uplift_and_shares() -> None:
    result = replay(LOG, "fixed:action=0", sampler="keep")
    assert rewards(result, "display_id") == [0, 2, 4]
    assert rewards(result, "round") == [1, 2, 3]
    assert result.value.estimate == pytest.approx(1 / 3)
    assert (result.best_fixed_action.action, result.best_fixed_action.label) == (1, "a1")
    # Of action 0 only display 0 earns, 1; of action 1 displays 1, 3 and 5 earn 3/4, 1/2 and 3/4. The half with display
    # 0 chooses action 0 unless its other display is in it too, and finds 0 on the other half; that chooses action 1.
    half = result.best_fixed_action.value.estimate
    assert half in (pytest.approx(0.25), pytest.approx(0.3125), pytest.approx(0.375), pytest.approx(0.625),
                    pytest.approx(0.6875))  # fmt: skip
    assert set(result.best_fixed_action.by_halves) <= {"a0", "a1"}
    assert result.regret.estimate == pytest.approx(3 * (half - 1 / 3))
    assert result.uplift.estimate == pytest.approx(1 / 3 - 1 / 2)
    assert result.action_share == (1.0, 0.0)
    assert result.acceptance_rate == pytest.approx(0.5)
    assert result.effective_sample_size == 3
    assert np.isnan(result.true_regret)


def test_levels_are_split_over_differences_and_not_over_repeats() -> None:
    result = replay(LOG, "random", sampler="keep", repeats=4, level=0.9)
    assert [result.value.level, result.regret.level, result.uplift.level] == pytest.approx([0.9] * 3)
    one = replay(LOG, "random", sampler="keep", level=0.9)
    assert [one.value.level, one.regret.level] == pytest.approx([0.9] * 2)
    # The reference's own interval is at half the error, since the regret needs it together with the value's.
    assert one.best_fixed_action.value.level == pytest.approx(0.95)
    assert set(result.trajectory["repeat"].to_pylist()) == {0, 1, 2, 3}


def test_repeats_are_averaged_over_all_their_rounds() -> None:
    result = replay(LOG, "random", sampler="keep", repeats=4, seed=2)
    repeat, reward, display = (result.trajectory[column].to_numpy() for column in ("repeat", "reward", "display_id"))
    assert result.value.estimate == pytest.approx(reward.mean())
    assert result.rounds == min(np.bincount(repeat))
    # Six displays are all there are, however often they are shown.
    assert result.value.n == result.uplift.n == len(np.unique(display)) <= 6 < len(reward)


def test_the_reference_of_repeats_is_one() -> None:
    one, four = (replay(LOG, "random", sampler="keep", repeats=repeats, seed=2) for repeats in (1, 4))
    assert one.best_fixed_action == four.best_fixed_action
    assert one.logging_value == four.logging_value


def test_live_days_and_conversions_within() -> None:
    hours = build_log(
        time=np.arange(48),
        action=[0, 1] * 24,
        conversion_display=[0, 1],
        conversion_time=[3, 45],
        n_actions=2,
        tick="h",
    )
    full = replay(hours, "fixed:action=0", sampler="keep")
    assert full.rounds == 24
    assert full.live_days == pytest.approx(1.0)
    assert full.conversions_within == 0.5  # delays of 3 and 44 rounds, of which 24 were played
    assert replay(hours, "fixed:action=0", sampler="keep", traffic_share=0.5).live_days == pytest.approx(2.0)
    assert np.isnan(replay(LOG, "fixed:action=0").live_days)


def test_the_largest_reward_is_the_logs_own_or_the_largest_seen() -> None:
    assert reward_bounds(plan(LOG, "random")) == (0.0, 1.0)
    assert reward_bounds(plan(LOG.with_meta(reward_max=None), "random")) == (0.0, 1.0)
    assert reward_bounds(plan(LOG.with_meta(reward_max=5.0), "random")) == (0.0, 5.0)
    assert any("largest reward seen, 1" in w for w in replay(LOG.with_meta(reward_max=None), "random").warnings)


def test_true_regret_is_that_of_the_displays_played() -> None:
    log = build_log(time=range(4), action=[0, 1, 0, 1], n_actions=2,
                    expected_reward=np.array([[0.1, 0.4], [0.2, 0.3], [0.5, 0.1], [0.0, 0.9]]))  # fmt: skip
    assert replay(log, "fixed:action=0", sampler="keep").true_regret == pytest.approx(0.3)
    assert replay(log, "logging").true_regret == pytest.approx(0.3)


def test_a_result_is_json_without_its_trajectory() -> None:
    out = replay(LOG, "ucb1", sampler="queue", window=3).to_dict()
    assert json.loads(json.dumps(out, allow_nan=False)) == out
    assert out["schema"] == "evaluate.replay/2"
    assert out["true_regret"] is None
    assert set(out["action_share"]) == {"a0", "a1"}
    assert "trajectory" not in out
