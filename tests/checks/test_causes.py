"""Findings that name their cause: time, availability, holes, young actions, gaps, strays; and advice that works."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from evaluator import Log, check, plan
from evaluator.checks.result import CheckResult, with_causes
from evaluator.checks.timeline import asked_of_timeline, follow_up, read_timeline
from evaluator.errors import DataError
from evaluator.log.schema import to_numpy
from evaluator.log.times import Periods
from evaluator.replays.rounds.clock import resolve_window, start_clock
from evaluator.replays.rounds.maturity import Maturity, judge_maturity
from evaluator.replays.rounds.survey import survey
from evaluator.units import parse_duration
from tests.checks.defects import DEFECTS
from tests.checks.shops import DAY, HOUR, shop, sleeping


def judged_by_replay(log: Log) -> Maturity:
    surveyed = survey(log)
    clock = start_clock(surveyed, "traffic", traffic_share=1.0, acceptance=1.0)
    return judge_maturity(surveyed, resolve_window(None, clock, surveyed), clock, "drop")


def made(defect: str, seed: int = 7) -> Log:
    return DEFECTS[defect][0](seed)


def test_a_launch_is_named_by_action_and_time_and_the_propensities_are_not_blamed() -> None:
    report = check(made("an action launched on day 3, right propensities"))
    assert "ction a3 has displays only from day 3, 00:0" in report["overlap"].what
    for name in ("calibration", "replay of the logger"):
        assert (report[name].follows_from, report[name].remedy) == ("overlap", "")
        assert report[name].what.startswith("follows from overlap, which says what to do: ")
    assert "`actions='a0,a1,a2,a4,a5'`" in report["overlap"].remedy
    report = check(made("an action retired on day 5, estimated propensities"))
    assert "a3 has displays only until day 4, 23:5" in report["overlap"].what
    assert report["drift of action shares"].follows_from == "overlap"


def test_dates_are_named_where_times_are_dates() -> None:
    log = made("an action launched on day 3, right propensities")
    at = 1_767_225_600  # 2026-01-01
    displays = log.displays.set_column(1, "time", [log.column("time") + at])
    when = to_numpy(log.conversions["time"]) + at
    later = Log(displays, log.conversions.set_column(1, "time", [when]), log.actions,
                log.with_meta(observed_until=log.meta.observed_until + at).meta)  # fmt: skip
    assert "a3 has displays only from 2026-01-03 00:0" in check(later)["overlap"].what
    timeline = read_timeline(later, np.zeros(0, np.int64))
    assert [timeline.name(d) for d in range(3)] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert read_timeline(log, np.zeros(0, np.int64)).name(2) == "day 3"


def test_days_of_delays_are_dates_where_times_are() -> None:
    one = np.ones(3, np.int64)
    dates = Periods("day", one, one, 86_400, 20_454)
    assert [dates.label(d, 1.0) for d in (0, 2)] == ["2026-01-01", "2026-01-03"]
    assert Periods("day", one, one, 86_400, 3).label(2, 1.0) == "2"
    assert Periods("tenth", one, one).label(2, None) == "2"


def test_a_hole_is_told_from_a_wrong_propensity() -> None:
    log = made("an action never shown in 31 % of the contexts, right propensities")
    found = check(log)["calibration"]
    assert found.what.startswith("A hole in the overlap rather than a wrong propensity: action a3")
    assert re.search(r"is shown never in context\[0\] >= 0\.8\d+,", found.what)
    share = float(re.search(r"(\d+)% of the traffic never shows it", found.what)[1]) / 100
    assert share == pytest.approx((log.column("context")[:, 0] > 0.5).mean(), abs=0.02)
    wrong = check(made("propensities of one action 1.4 times too large"))["calibration"]
    assert "hole" not in wrong.what
    assert "propensity column" in wrong.remedy


def test_a_young_action_is_named_and_leaving_it_out_is_enough() -> None:
    log = made("an action too young for a single judged display")
    found = check(log)["overlap"]
    assert found.verdict == "fail"
    assert "No display old enough to be judged: a3 (first shown day 6, 00:0" in found.what
    assert found.numbers["none_judged"] == 1
    assert "a0,a1,a2,a4,a5" in found.remedy


@pytest.mark.parametrize("logger", ["uniform", "context"])
def test_the_hour_is_named(logger: str) -> None:
    name = "uniform claimed" if logger == "uniform" else "contexts and, unsaid, the hour"
    log = made(next(d for d in DEFECTS if name in d and "hour" in d))
    report = check(log)
    if logger == "uniform":
        assert report["hours and weekdays"].numbers["where"] == "hour of the day"
        assert re.search(r"action a\d in \d\d:00 to \d\d:00, shown", report["hours and weekdays"].what)
    else:
        assert report["calibration"].numbers["where"] != "all displays"
        assert report["hours and weekdays"].verdict == "not applicable"


def test_a_gap_is_named_and_its_advice_works() -> None:
    log = made("ten hours of conversions lost")
    found = check(log)["gaps in conversions"]
    assert "from day 5, 05:00 to day 5, 14:00" in found.what or "from day 5, 04:00 to day 5, 15:00" in found.what
    kept = int(re.search(r"`limit=(\d+)`", found.remedy)[1])
    assert log.column("time")[kept - 1] <= found.numbers["from"] - 3 * DAY
    assert found.numbers["lost"] == pytest.approx(_lost(), rel=0.2)
    stood = check(made("ten hours of displays and conversions lost"))["gaps in conversions"]
    assert "No display is logged then either" in stood.what


def _lost() -> int:
    whole = shop(7)
    return int(((whole.when >= 4.2 * DAY) & (whole.when < 4.6 * DAY)).sum())


def test_a_stray_is_named_and_saying_when_the_log_ended_repairs_it() -> None:
    log = made("one stray conversion two days after all others")
    found = check(log)["immature displays"]
    assert found.numbers["strays"] == 1
    when, display = (to_numpy(log.conversions[name]) for name in ("time", "display_id"))
    assert f"(display {display[when.argmax()]})" in found.what
    until = int(re.search(r"observed_until = (\d+)", found.remedy)[1])
    assert until == np.sort(when)[-2]
    repaired = shop(7)
    repaired.meta["observed_until"] = until
    assert check(repaired.log())["immature displays"].verdict == "pass"


def test_a_window_longer_than_the_log_fails_as_in_replay() -> None:
    log = made("an attribution window longer than the log")
    found = check(log)["immature displays"]
    assert (found.verdict, found.effect) == ("fail", 1.0)
    with pytest.raises(DataError, match="No display"):
        judged_by_replay(log)
    shorter = int(parse_duration(re.search(r"`attribution_window='?([^`']+)", found.remedy)[1]))
    share = judged_by_replay(log.with_meta(attribution_window=shorter)).used / len(log)
    assert share == pytest.approx(0.8, abs=0.01)
    # With a window that fits, the same displays are immature for both.
    log = log.with_meta(attribution_window=3 * DAY)
    assert check(log)["immature displays"].numbers["immature"] == judged_by_replay(log).immature


def test_the_end_of_a_log_is_tested_at_its_level_although_nights_are_quiet() -> None:
    beyond = []
    for seed in range(60):
        log = sleeping(seed, until=5.2).log()
        surveyed = survey(log)
        found = follow_up(surveyed, read_timeline(log, asked_of_timeline(surveyed)),
                          to_numpy(log.conversions["time"]), level=0.004)  # fmt: skip
        beyond.append(found.stopped)
    assert sum(beyond) <= 60 * 0.004 + 4 * np.sqrt(60 * 0.004)
    # The same log is found out when it does stop, unsaid, the evening before.
    log = sleeping(1, until=5.2)
    log = log.without_conversions(log.when > 4.5 * DAY + 2 * HOUR).log()
    assert check(log)["immature displays"].verdict == "fail"


def test_a_warning_explains_no_failure() -> None:
    overlap = CheckResult(name="overlap", verdict="warn", number="", explains=("drift", "calibration"))
    drift = CheckResult(name="drift", verdict="fail", number="55 % by day")
    calibration = CheckResult(name="calibration", verdict="warn", number="off by 3 %")
    found = with_causes([overlap, drift, calibration])
    assert [(one.name, one.verdict) for one in found] == [
        ("overlap", "warn"), ("drift", "fail"), ("calibration", "not applicable"),
    ]  # fmt: skip


def test_rewards_that_come_at_once_leave_no_display_too_young() -> None:
    n = 2_000
    rng = np.random.default_rng(1)
    rows = pa.table({"t": np.arange(n) * 60, "ad": rng.integers(0, 2, n), "won": rng.random(n) < 0.2})
    log = Log.from_frames(rows, time="t", action="ad", indicator="won", immediate=True, unit="s")
    assert log.meta.observed_until is None
    assert check(log)["immature displays"].verdict == "pass"
    assert "unknown-follow-up" not in {found.code for found in plan(log, "random", propensity="uniform").findings}
