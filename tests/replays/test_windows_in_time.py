"""Durations are cut in time and rounds in rounds, by every part that has windows, on logs whose traffic varies."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaluator import replay, study_delays
from evaluator.api import plan
from evaluator.log import Log
from tests.logs import build_log

DAY, RATE = 86_400, 0.1


def log_at(time: npt.NDArray[np.float64], *, latest: float, seed: int) -> Log:
    """Four actions alike, a conversion of one display in ten, later by up to `latest` seconds, all of them logged."""
    rng = np.random.default_rng((1, seed))
    time = np.sort(time).astype(np.int64)
    n = len(time)
    of = np.flatnonzero(rng.random(n) < RATE)
    when = time[of] + rng.uniform(0, latest, len(of)).astype(np.int64)
    return build_log(
        time=time, action=rng.integers(0, 4, n), conversion_display=of, conversion_time=when, n_actions=4, tick="s",
        observed_until=int(when.max()),
    )  # fmt: skip


def with_rhythm(n: int = 60_000, days: int = 10, *, seed: int = 0) -> Log:
    """Traffic of 1 + sin / 2 by the hour of the day; every conversion within 55 minutes."""
    rng = np.random.default_rng(seed)
    at = rng.uniform(0, days * DAY, 2 * n)
    kept = at[rng.uniform(0, 1.5, 2 * n) < 1 + 0.5 * np.sin(2 * np.pi * at / DAY)]
    return log_at(kept[:n], latest=55 * 60, seed=seed)


def with_growth(n: int = 60_000, days: int = 10, *, seed: int = 0) -> Log:
    """Five times the traffic from half of the time on; every conversion within 20 hours."""
    rng = np.random.default_rng(seed)
    early = rng.uniform(0, days / 2 * DAY, n // 6)
    return log_at(np.append(early, rng.uniform(days / 2 * DAY, days * DAY, n - n // 6)), latest=20 * 3600, seed=seed)


@pytest.mark.parametrize(("log", "window"), [(with_rhythm(150_000), "1h"), (with_growth(), "1d")])
def test_a_duration_that_holds_every_conversion_loses_none(log: Log, window: str) -> None:
    found = replay(log, "random", window=window)
    assert found.plan["tau_window"] == 1.0
    assert found.expired == 0
    # The rewards end with the window here, for the log names no attribution window.
    error = np.sqrt(RATE * (1 - RATE) / found.rounds)
    assert abs(found.value.estimate - RATE) < 4 * error
    # As many rounds as the mean rate has in it lose conversions, of the busy hours, by far more than chance.
    asked = plan(log, "random", window=window)
    assert asked.window.ticks is not None
    mean = round(asked.clock.rate * asked.window.ticks)
    counted = replay(log, "random", window=mean)
    error = np.sqrt(RATE * (1 - RATE) / counted.rounds)
    assert RATE - counted.value.estimate > 4 * error
    assert counted.expired > 0.1 * counted.generated
    assert asked.window.rounds > 1.3 * mean


@pytest.mark.parametrize(
    ("log", "window"),
    [(with_rhythm(), "30min"), (with_rhythm(), "150"), (with_growth(), "8h"), (with_growth(), "2000")],
)
def test_replay_and_study_agree_on_a_window(log: Log, window: str) -> None:
    # At a level at which chance shows no change of the delays, after which a study would rest on the newest displays.
    asked: dict[str, Any] = {"families": ["exponential"], "bootstraps": 19, "by": None, "level": 0.999}
    [judged] = study_delays(log, windows=[window], **asked).windows
    replayed = plan(log, "delayed-ucb", window=window)
    assert replayed.tau_window == pytest.approx(judged.share.tau, rel=1e-12)
    assert 0.05 < judged.share.tau < 0.95
    # What the policy is told of the delays ends at the share that is revealed.
    told = replayed.setting.delay_cdf
    assert told is not None
    assert float(told(replayed.window.rounds)) == pytest.approx(judged.share.tau, rel=0.02)


def test_what_a_replay_reveals_is_what_the_window_lets_through() -> None:
    log = with_rhythm(20_000)
    found = replay(log, "random", window="30min")
    late = found.expired / found.generated
    # Uniform delays of up to 55 minutes in whole seconds: 30 minutes hold 1,801 of 3,300.
    share = 1 - 1801 / 3300
    assert abs(late - share) < 4 * np.sqrt(share * (1 - share) / found.generated)
    assert found.generated == found.delivered + found.pending + found.expired


def test_delays_known_early_are_cut_in_time_too() -> None:
    asked = plan(with_rhythm(), "delayed-ucb", window="30min", delays_from="first:20%")
    told = asked.setting.delay_cdf
    assert told is not None
    assert abs(float(told(asked.window.rounds)) - 1801 / 3300) < 4 * np.sqrt(0.25 / 1_200)


def test_coarse_stamps_are_said() -> None:
    log = with_rhythm(20_000)
    hours = np.asarray(log.column("time")) // 3600 * 3600
    of = np.asarray(log.conversions["display_id"])
    when = np.asarray(log.conversions["time"]) // 3600 * 3600
    coarse = build_log(
        time=hours, action=log.column("action"), conversion_display=of, conversion_time=when, n_actions=4, tick="s",
        observed_until=int(when.max()),
    )  # fmt: skip
    assert any("multiples of 1 h" in said for said in replay(coarse, "random", window="2h").warnings)
    assert any(" rounds share one" in said for said in replay(coarse, "random", window="50").warnings)
    assert not any("within the window is known" in said for said in replay(coarse, "random", window="1d").warnings)
    assert not any("multiples" in said for said in replay(log, "random", window="2h").warnings)
    # Without a window, too, for policies that learn: delays are shorter than the stamps.
    assert any("within a stamp they are drawn" in said for said in replay(coarse, "ucb1").assumptions)
    for found in (replay(coarse, "random"), replay(log, "ucb1")):
        assert not any("multiples" in said for said in (*found.warnings, *found.assumptions))


def test_rewards_that_end_with_the_window_are_said_before_the_numbers() -> None:
    log = with_rhythm(20_000)
    said = replay(log, "random", window="30min").warnings
    assert any("Rewards are the conversions within the window" in w for w in said)
    whole = log.with_meta(observed_until=None)
    for found in (replay(log, "random", window="1h"), replay(whole, "random", window="30min")):
        assert not any("Rewards are the conversions" in w for w in found.warnings)
