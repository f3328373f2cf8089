"""What moves with the log's calendar is found, and nothing where nothing moves; the warning stands where it matters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaluator import replay
from evaluator.findings.finding import Finding
from evaluator.log import Log
from evaluator.replays.findings import calendar
from evaluator.replays.rounds.survey import survey
from tests.logs import build_log
from tests.scheduled import DAY, START, Traffic

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def log_of(
    n: int,
    days: float,
    means: npt.ArrayLike,
    *,
    seed: int,
    moves: Callable[[Floats, Ints], Floats] | None = None,
    rhythm: float = 0.0,
    growth: float = 1.0,
    shares: float = 0.0,
    delay: float = 0.1,
    visits: int = 1,
    values: Callable[[np.random.Generator, int], Floats] | None = None,
    **meta: Any,
) -> Log:
    """Return a log of so many days; `moves` gives the factor of the rate of an action at a time in days.

    The shares of the actions go up and down with the time of day by about `shares`, each at hours of its own, and so
    many visits in a row share their luck.
    """
    rng, rates = np.random.default_rng(seed), np.asarray(means, np.float64)
    mean = 1.0 if growth == 1.0 else (growth - 1.0) / math.log(growth)
    time = Traffic(per_day=n / days / mean, rhythm=rhythm, growth=growth, over=days).arrivals(n, rng)
    chances = np.exp(shares * np.sin(2 * np.pi * (time[:, None] / DAY + np.arange(len(rates)) / len(rates))))
    chances /= chances.sum(axis=1, keepdims=True)
    action = (rng.random((n, 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
    rate = rates[action] * (1.0 if moves is None else moves(time / DAY, action))
    luck = np.repeat(rng.random(-(-n // visits)), visits)[:n]
    shown = np.flatnonzero(luck < rate)
    return build_log(
        time=START + time.astype(np.int64),
        action=action,
        conversion_display=shown,
        conversion_time=START + (time[shown] + rng.exponential(delay * DAY, len(shown))).astype(np.int64),
        conversion_value=None if values is None else values(rng, len(shown)),
        n_actions=len(rates),
        propensity=chances[np.arange(n), action],
        tick="s",
        **meta,
    )


def over_days(days: float) -> Callable[[Floats, Ints], Floats]:
    """Return a drift that takes half of the rate from some actions, and gives it to the others."""
    return lambda time, action: 1.0 + 0.5 * (2.0 * time / days - 1.0) * np.where(action % 2, 1.0, -1.0)


def by_hours(time: Floats, action: Ints) -> Floats:
    return 1.0 + 0.5 * np.sin(2 * np.pi * time)


STEADY: dict[str, dict[str, Any]] = {
    "even": {},
    "rhythm and growth": {"rhythm": 0.9, "growth": 5.0},
    "shares by hour": {"shares": 1.0, "rhythm": 0.5},
    "rare": {"means": np.full(10, 0.01)},
    "many actions": {"means": np.linspace(0.02, 0.2, 40)},
    "visitors": {"visits": 5},
    "heavy values": {"values": lambda rng, n: rng.pareto(1.0, n)},
    "each display": {"means": [1.0, 1.0, 1.0], "values": lambda rng, n: rng.random(n)},
    "two days": {"days": 2.0, "rhythm": 0.3},
    "long": {"days": 90.0},
    "follow-up ends": {"delay": 1.0, "cut": True},
}


def steady(name: str, seed: int, n: int = 6_000) -> Log:
    options = {"days": 7.0, "means": [0.3, 0.2, 0.15, 0.1], **STEADY[name]}
    cut, days = options.pop("cut", False), options.pop("days")
    log = log_of(n, days, options.pop("means"), seed=seed, **options)
    # Conversions after the last display are not in a log that was fetched then.
    return log.with_conversions(log.conversions.filter(log_times(log) <= START + days * DAY)) if cut else log


def log_times(log: Log) -> Any:
    return log.conversions["time"].to_numpy()


def test_where_nothing_moves_alarms_are_no_more_than_stated() -> None:
    level, n = 0.05, 40
    found = [
        calendar.find_movements(survey(steady(name, 100 + i)), level=level) for name in STEADY for i in range(n)
    ]  # fmt: skip
    alarms, logs = sum(map(bool, found)), len(found)
    assert alarms <= level * logs + 4.0 * (level * (1.0 - level) * logs) ** 0.5


@pytest.mark.parametrize("name", STEADY)
def test_nothing_is_found_at_the_level_that_replays_use(name: str) -> None:
    assert calendar.find_movements(survey(steady(name, 7, 20_000))) == []


@pytest.mark.parametrize("k", [1, 2, 9, 65, 70])
def test_what_moves_is_found_and_named(k: int) -> None:
    means, n = np.full(k, 0.3), 30_000
    days = calendar.find_movements(survey(log_of(n, 8.0, means, seed=k, moves=over_days(8.0))))
    hours = calendar.find_movements(survey(log_of(n, 8.0, means, seed=k, moves=by_hours)))
    short = calendar.find_movements(survey(log_of(n, 2.0, means, seed=k, moves=over_days(2.0))))
    assert [of.how for of in days] == [calendar.DAYS]
    assert [of.how for of in hours] == [calendar.HOURS]
    assert [of.how for of in short] == [calendar.TENTHS_OF_LOG]
    # Rates that rise or fall by .8 over the four fifths of the log that are followed, from 1/2 or 3/2 of their mean, or
    # go as a sine: root mean squares of .21 to .26, and of .35, of which parts keep most.
    assert 0.17 < days[0].change < 0.3
    assert 0.25 < hours[0].change < 0.42


def test_values_that_move_are_found_as_rates_are() -> None:
    """Prices that double at night move what an action earns, though not how often."""
    log = log_of(30_000, 8.0, [0.3, 0.2], seed=3, values=lambda rng, n: 1.0 + rng.random(n))
    when = (survey(log).shown_at - START) % DAY / DAY
    value = log.conversions["value"].to_numpy() * np.where(when < 0.5, 2.0, 1.0)
    priced = log.with_conversions(log.conversions.set_column(2, "value", [value]))
    assert log.conversions.column_names[2] == "value"
    assert [of.how for of in calendar.find_movements(survey(priced))] == [calendar.HOURS]
    assert calendar.find_movements(survey(log)) == []


def test_changes_too_small_to_matter_are_not_named() -> None:
    log = log_of(200_000, 8.0, [0.5, 0.5], seed=1, moves=lambda time, _: 1.0 + 0.08 * np.sin(2 * np.pi * time))
    found = survey(log)
    assert calendar.find_movements(found) == []
    sample = calendar._sample(found)
    assert sample is not None
    assert [of.how for of in calendar.movements(sample, int(DAY), level=0.001)] == [calendar.HOURS]


def test_the_test_reads_nothing_of_the_log_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = survey(log_of(10_000, 8.0, [0.3, 0.2], seed=2, moves=by_hours))

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the log is read again")

    for name in ("batches", "take", "after", "until"):
        monkeypatch.setattr(Log, name, refuse)
    assert calendar.find_movements(found)


def test_samples_have_the_actions_of_their_displays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.replays.rounds.survey._MARKS", 700)
    log = log_of(10_000, 8.0, [0.3, 0.2, 0.1], seed=4)
    found, action = survey(log), log.displays["action"].to_numpy()
    assert 350 <= len(found.mark) - 1 <= 700
    assert 350 <= len(found.sample) <= 700
    np.testing.assert_array_equal(found.marked_action, action[found.mark])
    np.testing.assert_array_equal(found.sample_action, action[found.display[found.sample]])


MOVING = log_of(40_000, 8.0, [0.3, 0.2, 0.1], seed=5, moves=over_days(8.0), growth=3.0)


def fast(**options: Any) -> Finding | None:
    found = replay(MOVING, "ucb1", **options).findings
    return next((of for of in found if of.code == "fast-calendar"), None)


def test_the_warning_stands_first_and_names_the_share() -> None:
    result = replay(MOVING, "ucb1", learn_every="1d@03:00", sampler="rejection")
    first = result.findings[0]
    assert first.code == "fast-calendar"
    assert first.what.startswith("What actions earn changes (over the log's days by ")
    assert f"a share of {result.schedule.calendar_pace**-1:.3g} of the traffic" in first.remedy


@pytest.mark.parametrize(
    "options", [{}, {"learn_every": 200}, {"learn_every": "1d", "clock": "wall"}, {"learn_every": "event"}], ids=str
)
def test_no_warning_where_no_schedule_in_time_is_used_or_the_wall_clock_is_right(options: dict[str, Any]) -> None:
    assert fast(**options) is None


def test_a_schedule_of_rounds_says_that_delays_count_displays_where_the_traffic_is_uneven() -> None:
    def said(log: Log, **options: Any) -> bool:
        found = replay(log, "ucb1", sampler="rejection", **options).findings
        return any("delays count displays" in of.what for of in found if of.code == "pushes")

    even = log_of(12_000, 8.0, [0.3, 0.2, 0.1], seed=5)
    rhythm = log_of(12_000, 8.0, [0.3, 0.2, 0.1], seed=5, rhythm=0.9)
    assert [said(log, learn_every=200) for log in (even, MOVING, rhythm)] == [False, True, True]
    assert not said(MOVING, learn_every="1d")
    assert not said(MOVING, learn_every=200, clock="wall")
