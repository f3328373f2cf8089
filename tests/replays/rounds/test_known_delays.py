"""What a replay may know of the delays before its first round."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator import compare, replay
from evaluator.api import plan
from evaluator.delays.product_limit import product_limit
from evaluator.errors import DataError, ParameterError
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.replays.options import known_share
from evaluator.replays.rounds.clock import known_delays
from evaluator.replays.rounds.survey import survey
from tests.logs import bernoulli_log, build_log

# Conversions at 1 (delay 1), 5 (delay 4), 3 (delay 1), 3 (delay 0), 9 (delay 1).
BY_HAND = build_log(
    time=range(10),
    action=[0, 1] * 5,
    conversion_display=[0, 1, 2, 3, 8],
    conversion_time=[1, 5, 3, 3, 9],
    n_actions=2,
    observed_until=9,
    attribution_window=4,
)


def test_by_hand() -> None:
    known = known_delays(survey(BY_HAND), 0.4)
    # Displays 0 to 3 are over at time 3; display 1 converts later. Limits: 3 - display, 4 at most.
    assert known.displays == 4
    assert known.delay.tolist() == [1, 1, 0]
    assert known.limit.tolist() == [3, 1, 0]


def test_nothing_later_matters() -> None:
    log = bernoulli_log(4000, [0.5, 0.3], mean_delay=50, seed=0)
    other = bernoulli_log(4000, [0.5, 0.3], mean_delay=50, seed=0)
    time = other.conversions["time"].to_numpy().copy()
    later = time > 999
    time[later] += 300
    changed = build_log(
        time=np.arange(4000), action=other.column("action"), n_actions=2, conversion_time=time,
        conversion_display=other.conversions["display_id"].to_numpy(),
    )  # fmt: skip
    one, two = (plan(x, "delayed-klucb", delays_from="first:25%").setting.delay_cdf for x in (log, changed))
    assert one == two
    assert plan(log, "delayed-klucb").setting.delay_cdf != plan(changed, "delayed-klucb").setting.delay_cdf


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_policy_gets_that_fit_on_the_replays_clock(share: float) -> None:
    log = bernoulli_log(2000, [0.5, 0.3], mean_delay=100, seed=1)
    made = plan(log, "delayed-klucb", delays_from="first:50%", traffic_share=share)
    known = known_delays(survey(log), 0.5)
    delay, limit = (np.rint(x * share).astype(np.int64) for x in (known.delay, known.limit))
    expected = product_limit(delay, np.maximum(limit, delay))
    found = made.setting.delay_cdf
    assert found is not None
    ages = np.arange(0, 500, 20)
    # Coarsened to 256 steps.
    assert (expected(ages) - found(ages) < 1 / 256 + 1e-9).all()
    assert (found(ages) <= expected(ages)).all()


def test_the_first_displays_are_left_out_and_numbers_stay_those_of_the_log(tmp_path: Path) -> None:
    log = bernoulli_log(3000, [0.5, 0.3], mean_delay=20, seed=2)
    result = replay(log, "logging", delays_from="first:20%")
    assert result.trajectory["display_id"].to_pylist() == list(range(600, 3000))
    assert result.trajectory["time"].to_pylist() == list(range(600, 3000))
    assert result.plan["displays_before"] == 600
    assert result.plan["displays"] == 2400
    assert any("first 600 displays are left out" in line for line in result.assumptions)
    write_canonical(log, tmp_path)
    stored = replay(open_canonical(tmp_path), "delayed-ucb", delays_from="first:20%", window=50)
    assert stored.trajectory.equals(replay(log, "delayed-ucb", delays_from="first:20%", window=50).trajectory)
    assert not any("hindsight)" in line for line in stored.assumptions)


def test_policies_are_compared_on_the_same_displays() -> None:
    log = bernoulli_log(3000, [0.5, 0.3], mean_delay=20, seed=3)
    found = compare(log, ["ucb1", "delayed-ucb"], baseline="ucb1", delays_from="first:10%")
    alone = replay(log, "delayed-ucb", delays_from="first:10%")
    assert [r.plan["displays"] for r in found.results] == [2700, 2700]
    assert found.results[1].trajectory.equals(alone.trajectory)


@pytest.mark.parametrize("text", ["20%", "first:20", "first:0%", "first:100%", "last:20%", "first:%"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="no part of the log"):
        known_share(text)


def test_what_does_not_go_together() -> None:
    with pytest.raises(ParameterError, match="exclude each other"):
        plan(BY_HAND, "ucb1", delays="geometric:5", delays_from="first:20%")
    late = build_log(time=range(10), action=[0, 1] * 5, conversion_display=[0], conversion_time=[9], n_actions=2)
    with pytest.raises(DataError, match="no conversion had come when the first 5"):
        plan(late, "ucb1", delays_from="first:50%")


def test_a_conversion_after_the_last_known_display_is_not_known() -> None:
    # Displays at 0, 10, ..., 90 s; known are those until 40 s. The conversion at 45 s follows as many displays as one
    # at 40 s would, but has not come.
    log = build_log(
        time=np.arange(10) * 10, action=[0, 1] * 5, conversion_display=[0, 2, 3], conversion_time=[5, 45, 35],
        n_actions=2, tick="s",
    )  # fmt: skip
    known = known_delays(survey(log), 0.5)
    assert known.delay.tolist() == [0, 0]
    assert (known.delay_ticks.tolist(), known.limit_ticks.tolist()) == ([5, 5], [40, 10])
