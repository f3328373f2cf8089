"""Delays that change: windows and rates rest on the newest displays, and the report says what it cannot know."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluator.delays.study.result import DelayStudy
from evaluator.delays.study.run import study_rows
from evaluator.reports.delays import drift_verdict
from tests.delays.lengthening import CHANGES, MINUTES, OPTIONS, WEEK, World, joint_verdict

ASSUMPTION = "assumes that delays do not depend on when a display was shown"


def studied(world: World, seed: int = 1) -> DelayStudy:
    return study_rows(world.rows(np.random.default_rng(seed)), OPTIONS)


def test_no_change_rests_on_all_displays_and_says_what_could_be_shown() -> None:
    study = studied(World(displays=3000))
    assert study.newest is None
    assert any(ASSUMPTION in said for said in study.sight)
    assert not any("Delays change" in said for said in study.sight)
    said = str(drift_verdict(study))
    assert study.drift is not None
    half, quarter = (change.ratio for change in study.drift.shown)
    assert f"{half:.2f} times as long after 14, or {quarter:.2f} times after 22" in said.replace("day ", "")
    assert quarter is not None
    assert "found on 80% of such logs" in said
    # What the recommended window would keep of delays as long as that.
    kept = float(study.fit(study.advice.recommended / quarter))
    assert f"would keep {kept:.0%}" in said
    assert kept < study.advice.share


def test_delays_that_double_in_the_last_week() -> None:
    world = World("x 2 in the last week", displays=4000)
    study = studied(world)
    newest = study.newest
    assert newest is not None
    assert newest.since >= 22
    assert newest.low <= 2.0 <= newest.high
    # Nobody was followed for a week since: its share is unknown, and the window comes from the displays before.
    [window] = study.windows
    assert math.isnan(window.share.tau)
    assert not window.share.identified
    assert world.share(study.advice.recommended, float(study.fit.longest)) >= 0.9
    assert "not followed long enough" in study.advice.reason
    assert any("Delays change along the log" in said for said in study.sight)
    said = drift_verdict(study)
    assert said.alarming
    assert f"{newest.ratio:.2f} times as long" in str(said)
    assert study.to_dict()["newest"]["since"] == newest.since
    # Rates of the newest days allow for the longer delays: all displays convert.
    rates = [rate.corrected for rate in study.rates if newest.since <= rate.period and rate.corrected is not None]
    assert rates
    assert np.mean(rates) > 0.85


def test_delays_that_double_at_half_time() -> None:
    world = World("x 2 from half time", displays=8000)
    study = studied(world)
    newest = study.newest
    assert newest is not None
    assert 14 <= newest.since <= 17
    [window] = study.windows
    assert window.share.low <= world.share(WEEK, window.share.longest) <= window.share.high
    assert window.share.longest == newest.fit.longest < 16 * MINUTES
    assert world.share(study.advice.recommended, float(study.fit.longest)) >= 0.9
    assert study.advice.recommended < newest.fit.longest


def test_delays_that_become_shorter_shorten_the_window() -> None:
    study, before = (studied(World(change, displays=3000)) for change in ("x 0.5 from half time", "none"))
    assert study.newest is not None
    assert study.newest.high < 0.7
    assert study.advice.recommended < 0.8 * before.advice.recommended


@pytest.mark.parametrize("change", ["x 2 from half time", "x 2 in the last week"])
def test_the_joint_rate_holds_where_delays_double(change: str) -> None:
    assert change in CHANGES
    found = [joint_verdict(change, 6000, log) for log in range(3)]
    assert all(said for _, said, _ in found)
    # With one law for all displays it is 4 % too low.
    assert np.mean([ratio for _, _, ratio in found]) == pytest.approx(1.0, abs=0.02)
