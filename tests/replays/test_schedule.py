"""Schedules: how they are written, when their pushes come, and what a replay of one must keep of a replay of none."""

from __future__ import annotations

import dataclasses
import re
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evaluator import load_policy, replay
from evaluator.api import plan
from evaluator.engine.pushes import rounds_until
from evaluator.errors import ParameterError
from evaluator.log import Log
from evaluator.options.deployment import PRESETS, Schedule, Span, parse_schedule
from evaluator.options.shared import ClockName
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute
from tests.logs import bernoulli_log, build_log, linear_log
from tests.scheduled import DAY, START, Traffic, World, draw_log

WORLD = World(traffic=Traffic(per_day=200, rhythm=0.9), means=(0.5, 0.4, 0.2), mean_delay=DAY / 2)
LOG = draw_log(WORLD, 3000, 0)
NIGHTLY: dict[str, Any] = {"learn_every": "1d@03:00", "learn_lag": "6h"}
ROUND = Span(1, None)


@pytest.mark.parametrize(
    ("every", "lag", "means"),
    [
        (None, None, None),
        ("event", None, None),
        ("event", "0", None),
        ("event", 0, None),
        ("event", "0h", None),
        ("event", "6h", Schedule("event", "6h", ROUND, Span(None, 21_600.0))),
        (None, 100, Schedule("event", "100", ROUND, Span(100, None))),
        (1, None, Schedule("1", "0", ROUND, Span(0, None))),
        (500, "100", Schedule("500", "100", Span(500, None), Span(100, None))),
        ("500", None, Schedule("500", "0", Span(500, None), Span(0, None))),
        (" 1h ", " 90min ", Schedule("1h", "90min", Span(None, 3600.0), Span(None, 5400.0))),
        ("1d", None, Schedule("1d", "0", Span(None, 86_400.0), Span(0, None))),
        ("1d@03:00", None, Schedule("1d@03:00", "0", Span(None, 86_400.0), Span(0, None), 10_800)),
        ("7d@3:05", "1d", Schedule("7d@3:05", "1d", Span(None, 604_800.0), Span(None, 86_400.0), 11_100)),
        ("1d@00:00", 0, Schedule("1d@00:00", "0", Span(None, 86_400.0), Span(0, None), 0)),
        ("1d@23:59", 0, Schedule("1d@23:59", "0", Span(None, 86_400.0), Span(0, None), 86_340)),
    ],
)
def test_a_schedule_is_what_its_words_say(every: str | int | None, lag: str | int | None, means: Schedule) -> None:
    assert parse_schedule(every, lag) == means


@pytest.mark.parametrize(
    "every", ["nightly", "0", 0, -5, "-5", "0h", "-1h", "5 0", "1.5", "1d@", "1d@3", "1d@24:00", "1d@03:60", "0d@03:00",
              "1h@03:00", "@03:00", "1d@03:00:00", "1.5d@03:00", "events", "1 fortnight"],
)  # fmt: skip
def test_what_is_no_schedule_is_refused_in_a_line_that_says_how_one_is_written(every: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        plan(LOG, "ucb1", learn_every=every)
    said = str(refused.value)
    assert "\n" not in said
    assert "learn_every" in said
    assert all(word in said for word in ("500", "1h", "1d@03:00"))


@pytest.mark.parametrize("lag", ["late", -1, "-6h", "1d@03:00", "event", "1.5"])
def test_what_is_no_lag_is_refused_likewise(lag: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        plan(LOG, "ucb1", learn_every=500, learn_lag=lag)
    said = str(refused.value)
    assert "\n" not in said
    assert "learn_lag" in said
    assert all(word in said for word in ("500", "6h"))


@pytest.mark.parametrize(
    "options", [{"learn_every": "1h"}, {"learn_every": "1d@03:00"}, {"learn_every": 50, "learn_lag": "6h"}]
)
def test_a_log_of_rounds_has_no_hours(options: dict[str, Any]) -> None:
    log = bernoulli_log(300, [0.5, 0.2], mean_delay=10.0, seed=0)
    with pytest.raises(ParameterError, match=r"counts rounds, not time. Hint: .*500"):
        plan(log, "ucb1", **options)
    assert plan(log, "ucb1", learn_every=50, learn_lag=10).pushes is not None


def test_stamps_must_tell_a_schedule_apart() -> None:
    days = build_log(
        time=(START // 86_400 + np.arange(3000) // 100) * 86_400,
        action=np.arange(3000) % 3,
        conversion_display=[1],
        conversion_time=[START // 86_400 * 86_400 + 86_400],
        n_actions=3,
        tick="s",
    )
    schedules: list[dict[str, Any]] = [{"learn_every": "1h"}, {"learn_every": "7d", "learn_lag": "1h"}]
    for options in schedules:
        with pytest.raises(ParameterError, match=r"time stamps .* multiples of 1 d\. Hint: take at least 1 d"):
            plan(days, "ucb1", **options)


def test_pushes_denser_than_rounds_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"makes more pushes than the .* rounds of the replay. Hint: .*event"):
        plan(LOG, "ucb1", learn_every="1s")


def pushes(log: Log, **options: Any) -> list[tuple[int, int]]:
    """Return after how many rounds, but the last one, each push comes, and up to which round it teaches."""
    times = plan(log, "ucb1", **options).pushes
    assert times is not None
    return [
        (after, cut) for after, cut in zip(times.after.tolist(), times.cut.tolist(), strict=True) if after < len(log)
    ]


def log_at(time: Any, **meta: Any) -> Log:
    time = np.asarray(time)
    action = np.arange(len(time)) % 2
    return build_log(
        time=time, action=action, conversion_display=[0], conversion_time=[time[0] + 1], n_actions=2, tick="s", **meta
    )


# At 0, 10, 20, 30, a pause, then a burst and a last one.
BY_HAND = log_at([0, 10, 20, 30, 80, 81, 82, 83, 84, 120], timezone=None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # At 25, 50, 75, 100: the two of the pause bring nothing that the one after round 4 had not.
        ({"learn_every": "25s"}, [(3, 3), (4, 4), (9, 9)]),
        # Of what was there at 15, 65, 90: the last one of the pause brings what the first did not.
        ({"learn_every": "25s", "learn_lag": "10s"}, [(3, 2), (4, 4), (9, 9)]),
        # A lag of 40 from 25 reaches before the log; 75 - 40 holds all four, 100 - 40 as well.
        ({"learn_every": "25s", "learn_lag": "40s"}, [(3, 0), (4, 4), (9, 4)]),
        # A display at the push belongs to it.
        ({"learn_every": "20s"}, [(3, 3), (4, 4), (5, 5), (9, 9)]),
        ({"learn_every": "25s", "learn_lag": 2}, [(3, 1), (4, 2), (9, 7)]),
        ({"learn_every": 4}, [(4, 4), (8, 8)]),
        ({"learn_every": 4, "learn_lag": 3}, [(4, 1), (8, 5)]),
        ({"learn_every": 4, "learn_lag": 5}, [(4, 0), (8, 3)]),
        # A push comes with the round that it follows, at 30 and at 83.
        ({"learn_every": 4, "learn_lag": "15s"}, [(4, 2), (8, 4)]),
        ({"learn_every": "event", "learn_lag": 2, "horizon": 4}, [(1, 0), (2, 0), (3, 1), (4, 2)]),
        ({"learn_every": "event", "learn_lag": "12s", "horizon": 5}, [(1, 0), (2, 0), (3, 1), (4, 2), (5, 4)]),
        # Round n is the display 2n of a policy that serves a half.
        ({"learn_every": "50s", "traffic_share": 0.5, "horizon": 5}, [(2, 2), (4, 4)]),
        ({"learn_every": "1h"}, []),
    ],
)
def test_pushes_come_after_the_displays_before_them(options: dict[str, Any], expected: list[tuple[int, int]]) -> None:
    assert pushes(BY_HAND, sampler="queue", **options) == expected


def hourly_log(first: datetime, hours: int, timezone: str | None) -> Log:
    return log_at(int(first.timestamp()) + 3600 * np.arange(hours), timezone=timezone)


@pytest.mark.parametrize(
    ("first", "zone", "clock", "hours"),
    [
        # Clocks go forward on 29 March 2026 at 02:00 and back on 25 October at 03:00.
        (datetime(2026, 3, 27, 12, 30), "Europe/Berlin", "03:00", [15, 24 + 14, 48 + 14, 72 + 14]),
        (datetime(2026, 10, 23, 12, 30), "Europe/Berlin", "03:00", [15, 24 + 16, 48 + 16, 72 + 16]),
        # 02:30 does not exist on the one day, where the hour's clock shows 03:30; on the other it comes twice.
        (datetime(2026, 3, 28, 12, 0), "Europe/Berlin", "02:30", [15, 24 + 14]),
        (datetime(2026, 10, 24, 12, 0), "Europe/Berlin", "02:30", [15, 24 + 16]),
        (datetime(2026, 3, 27, 12, 30), "UTC", "03:00", [15, 24 + 15, 48 + 15, 72 + 15]),
        (datetime(2026, 3, 27, 12, 30), None, "03:00", [15, 24 + 15, 48 + 15, 72 + 15]),
        (datetime(2026, 3, 27, 12, 30), "Asia/Kolkata", "03:00", [15, 24 + 15, 48 + 15, 72 + 15]),
    ],
)
def test_a_time_of_day_is_that_of_the_logs_zone(
    first: datetime, zone: str | None, clock: str, hours: list[int]
) -> None:
    begin = first.replace(tzinfo=ZoneInfo(zone or "UTC"))
    log = hourly_log(begin, 2 * hours[-1] + 10, zone)
    found = [after for after, _ in pushes(log, learn_every=f"1d@{clock}", sampler="queue", horizon=hours[-1])]
    assert found == hours


def test_the_last_push_before_the_end_is_there_where_a_day_is_short() -> None:
    # Begun a minute before a push; two days later, less the hour that is left out, comes the third.
    begin = datetime(2026, 3, 28, 2, 59, tzinfo=ZoneInfo("Europe/Berlin"))
    log = log_at(int(begin.timestamp()) + 60 * np.arange(2 * 2860), timezone="Europe/Berlin")
    found = pushes(log, learn_every="1d@03:00", sampler="queue", horizon=2860)
    assert [after for after, _ in found] == [2, 23 * 60 + 2, 47 * 60 + 2]


def played(result: ReplayResult) -> tuple[Any, ...]:
    """Return what a policy lived, and what became of its conversions."""
    lived = result.trajectory.select(["display_id", "action", "reward"])
    return lived, result.generated, result.delivered, result.pending, result.expired, result.value


# How a display is found does not depend on what the policy keeps: each has its loops, which take seconds to compile.
@pytest.mark.parametrize(
    ("policy", "sampler"),
    [("ucb1", "rejection"), ("qpm-d", "rejection"), ("thompson", "keep"), ("delayed-ucb", "queue"), ("qpm-d", "queue")],
)
def test_a_push_of_every_round_is_no_schedule(policy: str, sampler: str) -> None:
    options: dict[str, Any] = {"sampler": sampler, "window": 300}
    assert played(replay(LOG, policy, learn_every=1, **options)) == played(replay(LOG, policy, **options))


def test_a_push_after_the_horizon_teaches_nothing() -> None:
    # All actions are as new as at the beginning, and the lowest goes first.
    never: list[dict[str, Any]] = [{"learn_every": 601}, {"learn_every": "30d"}, {"learn_every": 1, "learn_lag": "30d"}]
    for options in never:
        result = replay(LOG, "ucb1:ties=lowest", horizon=600, **options)
        assert result.action_share[0] == 1.0
        assert (result.delivered, result.pending) == (0, result.generated)
    draws = replay(LOG, "thompson", learn_every=100_000)
    untold = dataclasses.replace(LOG, events=LOG.events.slice(0, 1)).with_meta(reward_max=1.0)
    without = replay(untold, "thompson", learn_every=100_000)
    assert draws.trajectory["action"].equals(without.trajectory["action"])
    # By chance a third each, 4 standard errors around it.
    assert np.allclose(draws.action_share, 1 / 3, atol=4 * np.sqrt(2 / 9 / draws.rounds))


def test_a_conversion_waits_for_the_push_that_it_comes_before() -> None:
    # Rounds at 0, 10, 20, ...; conversions of the first at 14 and 16, before and after a push at 15: one is told by it.
    log = build_log(
        time=np.arange(8) * 10, action=np.arange(8) % 2, conversion_display=[0, 0], conversion_time=[14, 16],
        n_actions=2, tick="s",
    )  # fmt: skip
    times = plan(log, "ucb1", learn_every="15s", sampler="queue").pushes
    assert times is not None
    assert times.clock is not None
    assert [rounds_until(times.clock, 1, delay) for delay in (0, 4, 6, 14, 16, 34)] == [0, 0, 1, 1, 2, 3]
    told: dict[str, Any] = {"learn_every": "15s", "sampler": "queue"}
    delivered = [replay(log, "ucb1:ties=lowest", horizon=rounds, **told).delivered for rounds in (1, 2, 3, 4)]
    assert delivered == [0, 1, 1, 2]


@pytest.mark.parametrize("policy", ["random", "fixed:action=1", "logging"])
def test_what_does_not_learn_is_not_moved_and_says_so(policy: str) -> None:
    with_schedule, without = (replay(LOG, policy, **options).to_dict() for options in (NIGHTLY, {}))
    for result in (with_schedule, without):
        for option in ("learn_every", "learn_lag"):
            result["plan"]["options"].pop(option)
        said = [one["what"] for one in result["findings"] if one["code"] == "schedule"]
        asked = result is with_schedule and policy != "logging"
        assert len(said) == asked
        assert all("does not learn, and is replayed as without `learn_every` and `learn_lag`" in one for one in said)
        for of in (result, result["plan"]):
            of["findings"] = [one for one in of["findings"] if one["code"] != "schedule"]
    assert with_schedule == without


def test_what_is_observed_by_the_horizon_excludes_a_schedule_be_it_asked_or_stated() -> None:
    stated = LOG.changed(meta=dataclasses.replace(LOG.meta, deployment=NIGHTLY))
    for log, asked, named in (
        (LOG, {"learn_every": 500}, "`learn_every=500`:"),
        (LOG, {"deployment": "statsig"}, "`learn_every='1h'`, as `deployment='statsig'` says:"),
        (stated, {}, "`learn_every='1d@03:00'` and `learn_lag='6h'`, as the log says of its deployment:"),
    ):
        with pytest.raises(ParameterError) as refused:
            replay(log, "ucb1", reward="observed", **asked)
        assert named in str(refused.value)
        assert "Hint: use `reward='eventual'`, or `learn_every='event'` without a lag." in str(refused.value)
    event = replay(stated, "ucb1", reward="observed", learn_every="event")
    assert event.value == replay(LOG, "ucb1", reward="observed").value
    assert replay(stated, "random", reward="observed").value == replay(LOG, "random", reward="observed").value


@pytest.mark.parametrize("policy", ["ucb1", "delayed-ucb:cdf=online,model=uncensored", "odaaf"])
@pytest.mark.parametrize("options", [NIGHTLY, {"learn_every": "1h"}, {"learn_every": 70, "learn_lag": 100}])
def test_batches_and_threads_change_nothing(policy: str, options: dict[str, Any]) -> None:
    planned = plan(LOG, policy, window=300, repeats=3, seed=4, **options)
    whole = execute(planned, batch_size=len(LOG))
    for batch_size in (1, 7, 1000):
        assert played(execute(planned, batch_size=batch_size)) == played(whole)
    threads = replay(LOG, policy, window=300, repeats=3, seed=4, jobs=2, **options)
    assert played(threads) == played(whole)


def test_a_bootstrap_resamples_it() -> None:
    told = replay(LOG, "ucb1", bootstrap=60, learn_every=1, seed=1)
    assert told.resampled == replay(LOG, "ucb1", bootstrap=60, seed=1).resampled
    nightly = replay(LOG, "ucb1", bootstrap=60, seed=1, **NIGHTLY)
    assert nightly.expected_value is not None
    assert nightly.expected_value.low < nightly.value.estimate < nightly.expected_value.high
    # Who learns at night earns less, on the same resampled logs.
    assert np.mean(nightly.resampled) < np.mean(told.resampled)
    assert nightly.resampled == replay(LOG, "ucb1", bootstrap=60, seed=1, jobs=2, **NIGHTLY).resampled


@pytest.mark.parametrize("window", [None, 50, "6h"])
@pytest.mark.parametrize("clock", ["traffic", "wall"])
@pytest.mark.parametrize("options", [NIGHTLY, {"learn_every": "1h"}, {"learn_every": 70, "learn_lag": 100}])
def test_every_conversion_is_delivered_pending_or_expired(
    window: str | int | None, clock: ClockName, options: dict[str, Any]
) -> None:
    result = replay(LOG, "delayed-ucb", window=window, clock=clock, **options)
    assert result.generated == result.delivered + result.pending + result.expired > 0
    assert result.delivered > 0
    assert (result.expired > 0) == (window is not None)
    # Every kept conversion waits where no push comes.
    never = replay(LOG, "delayed-ucb", window=window, clock=clock, learn_every=100_000)
    assert (never.delivered, never.pending + never.expired) == (0, never.generated)


@pytest.mark.parametrize("options", [NIGHTLY, {"learn_every": "1h"}, {"learn_every": "event", "learn_lag": "6h"}])
@pytest.mark.parametrize("policy", ["ucb1", "thompson", "qpm-d"])
def test_the_future_of_a_log_changes_nothing_before(policy: str, options: dict[str, Any]) -> None:
    def lived(log: Log) -> pa.Table:
        return replay(log, policy, horizon=900, sampler="rejection", seed=2, **options).trajectory

    before, rounds = lived(LOG), 500
    display = before["display_id"].to_numpy()[: rounds + 1]
    last = int(display[rounds])
    # Round n stands where the n-th display of the log does, and its conversion comes as long after as in the log.
    time = LOG.column("time")
    live, shown = np.full(len(LOG), np.iinfo(np.int64).max // 2), LOG.events["display_id"].to_numpy()
    live[display] = time[: rounds + 1]
    come = live[shown] + (LOG.events["time"].to_numpy() - time[shown])
    other = np.where(np.arange(len(LOG)) < last, 0, 1)
    action = pa.array((LOG.column("action") + other) % 3, pa.int32())
    changed = dataclasses.replace(
        LOG,
        displays=LOG.displays.set_column(2, "action", action),
        events=LOG.events.filter(pc.less_equal(pa.array(come), int(time[rounds]))),
    )
    assert LOG.events.num_rows > changed.events.num_rows > 50
    after = lived(changed)
    names = ["display_id", "action"]
    assert after.select(names).slice(0, rounds).equals(before.select(names).slice(0, rounds))
    assert not after.select(names).slice(rounds).equals(before.select(names).slice(rounds))


@pytest.mark.parametrize("sampler", ["rejection", "keep"])
@pytest.mark.parametrize("options", [{}, NIGHTLY, {"learn_every": 70}])
@pytest.mark.parametrize("explores", ["1d", "1d:uniform", "1d:logger"])
def test_what_a_deployment_explores_does_not_depend_on_how_a_log_is_read(
    sampler: str, options: dict[str, Any], explores: str
) -> None:
    asked = plan(LOG, "ucb1", sampler=sampler, explore_first=explores, horizon=900, **options)
    assert asked.explores is not None
    # As many rounds as the log has displays in its first day.
    assert asked.explores.rounds == np.searchsorted(LOG.column("time"), LOG.column("time")[0] + DAY, side="right")
    first = execute(asked)
    assert execute(asked, batch_size=37).trajectory.equals(first.trajectory)
    assert not first.trajectory.equals(replay(LOG, "ucb1", sampler=sampler, horizon=900, **options).trajectory)
    assert (
        replay(LOG, "random", sampler=sampler, explore_first=explores).value
        == replay(LOG, "random", sampler=sampler).value
    )
    said = "the logging policy chooses" if explores.endswith("logger") else "actions are shown uniformly at random"
    assert any(said in str(line) for line in asked.findings)


def test_a_linear_policy_explores_first_on_a_schedule() -> None:
    """Its loop ended the process once: code that a piece of it calls was left out."""
    log = linear_log(3000, n_actions=4, dimension=3, mean_delay=50.0, seed=1)
    asked = plan(log, "linucb", explore_first=100, learn_every=100)
    first = execute(asked)
    assert first.rounds > 600
    assert execute(asked, batch_size=37).trajectory.equals(first.trajectory)


def test_rounds_of_the_logger_are_displays_accepted_with_one_probability_and_repeats_and_bootstraps_read_them() -> None:
    log = bernoulli_log(8000, (0.5, 0.4, 0.2), mean_delay=20.0, seed=3, logger=(0.6, 0.3, 0.1))
    asked = plan(log, "ucb1", sampler="rejection", explore_first="400:logger", horizon=400)
    shown = execute(asked).trajectory
    # A tenth of the displays, in their order, whatever they show.
    assert abs(shown["display_id"][-1].as_py() - 4000) < 4 * np.sqrt(400 * 0.9) / 0.1
    share = np.bincount(shown["action"].to_numpy(), minlength=3) / 400
    assert (np.abs(share - (0.6, 0.3, 0.1)) < 4 * np.sqrt(0.25 / 400)).all()
    drawn = replay(log, "ucb1", explore_first="400:logger", horizon=500, repeats=2, bootstrap=20)
    assert len(drawn.resampled) == 20
    assert np.isfinite(drawn.resampled).all()


def test_a_preset_is_what_its_pages_say_and_options_beside_it_win() -> None:
    def lived(log: Log = LOG, **asked: Any) -> tuple[Any, ...]:
        found = replay(log, "ucb1", horizon=900, **asked)
        return found.value, found.schedule, plan(log, "ucb1", horizon=900, **asked).explores.__repr__()

    assert lived(deployment="growthbook") == lived(learn_every="1d", explore_first="1d")
    assert lived(deployment="growthbook", learn_every=50) == lived(learn_every=50, explore_first="1d")
    assert lived(deployment="growthbook", explore_first=0) == lived(learn_every="1d")
    stated = LOG.changed(meta=dataclasses.replace(LOG.meta, deployment={**NIGHTLY, "explore_first": "300"}))
    assert lived(stated, deployment="eppo") == lived(learn_every="1d")
    said = [str(line) for line in replay(LOG, "ucb1", deployment="statsig", horizon=900).findings]
    assert any("every 1h, as `deployment='statsig'` says" in line for line in said)
    for preset in PRESETS.values():
        assert parse_schedule(preset.options.get("learn_every"), preset.options.get("learn_lag")) is not None
        assert preset.sources
        assert preset.unsaid
    with pytest.raises(ParameterError, match=r"`deployment='growthbok'` is no preset. Hint: did you mean.*growthbook"):
        replay(LOG, "ucb1", deployment="growthbok")
    with pytest.raises(ParameterError, match="excludes"):
        replay(LOG, "ucb1", deployment="growthbook", sampler="queue")


def test_a_policy_file_says_by_which_schedule_it_learned_and_a_replay_by_another_says_so(tmp_path: Path) -> None:
    rest = draw_log(WORLD, 3000, 1)
    learned = replay(LOG, "ucb1", explore_first="100:logger", **NIGHTLY).learned
    assert learned is not None
    learned.save(tmp_path / "nightly.npz")
    again = load_policy(tmp_path / "nightly.npz")
    (source,) = again.learned_from
    assert (source.learns, source.explored) == ("every 1d@03:00, of what was known 6h before", "100:logger")
    other = [str(line) for line in replay(rest, again).findings]
    clause = "there it learned every 1d@03:00, of what was known 6h before, and here it learns at each event"
    assert sum(clause in line for line in other) == 1
    assert not any("there it learned" in str(line) for line in replay(rest, again, **NIGHTLY).findings)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"explore_first": "soon"},
            "`explore_first='soon'` is no number of rounds and no duration. Hint: write rounds",
        ),
        ({"explore_first": "2d:me"}, "`explore_first='2d:me'` does not say how to explore. Hint: write rounds"),
        (
            {"explore_first": "soon:logger"},
            "`explore_first='soon:logger'` is no number of rounds and no duration. Hint: write rounds",
        ),
    ],
)
def test_what_is_no_exploration_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError) as refused:
        replay(LOG, "ucb1", **options)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sampler": "queue"}, "from the queue of a choice. Hint: use `sampler='rejection'`, or `explore_first=0`"),
        ({"doubly_robust": True}, "chooses nothing at the first displays. Hint: leave it out, or do not explore"),
    ],
)
def test_what_excludes_exploring_is_refused_be_it_asked_or_stated(options: dict[str, Any], said: str) -> None:
    stated = LOG.changed(meta=dataclasses.replace(LOG.meta, deployment={"explore_first": "10"}))
    for log, asked, named in (
        (LOG, {"explore_first": 10}, "`explore_first=10`"),
        (stated, {}, "`explore_first='10'`, as the log says of its deployment"),
        (stated, {"deployment": "growthbook"}, "`explore_first='1d'`, as `deployment='growthbook'` says"),
    ):
        with pytest.raises(ParameterError) as refused:
            replay(log, "ucb1", **options, **asked)
        assert re.search(rf"`{next(iter(options))}.* excludes {re.escape(named)}: ", str(refused.value))
        assert said in str(refused.value)
        assert replay(log, "random", **options, **asked).rounds > 0  # learns nothing, and so explores nothing


def test_a_replay_in_which_the_policy_chose_nothing_warns() -> None:
    found = replay(LOG, "ucb1", explore_first=len(LOG)).findings
    [finding] = [one for one in found if one.code == "only-explored"]
    assert "ucb1 chose nothing" in str(finding)
    assert "only-explored" not in {one.code for one in replay(LOG, "ucb1", explore_first=10).findings}


def test_a_log_says_how_policies_are_deployed_on_it() -> None:
    stated = LOG.changed(meta=dataclasses.replace(LOG.meta, deployment={**NIGHTLY, "explore_first": "300"}))
    own, asked = replay(stated, "ucb1"), replay(LOG, "ucb1", explore_first=300, **NIGHTLY)
    assert (own.value, own.schedule) == (asked.value, asked.schedule)
    assert any("as the log says of its deployment" in finding for finding in map(str, own.findings))
    options = own.plan["options"]
    assert {name: options[name] for name in NIGHTLY} == NIGHTLY
    assert options["explore_first"] == "300"
    assert replay(stated, "ucb1", learn_every="event", explore_first=0).value == replay(LOG, "ucb1").value


def test_what_a_log_says_of_its_deployment_is_an_option() -> None:
    with pytest.raises(
        ParameterError, match=r"log says 'learn_evry' of its deployment. Hint: did you mean learn_every"
    ):
        replay(LOG.with_meta(deployment={"learn_evry": "1d"}), "ucb1")


@pytest.mark.parametrize("options", [{"learn_every": 300}, {"learn_every": "1d@03:00"}, {"explore_first": 500}])
@pytest.mark.parametrize("window", [1, 20])
def test_queues_of_observations_hold_what_is_shown_between_two_pushes(window: int, options: dict[str, Any]) -> None:
    for seed in range(5):
        asked = plan(LOG, "qpm-d", window=window, seed=seed, sampler="keep", **options)
        assert asked.setting.waits > 100
        assert execute(asked).rounds > 800
