"""Gaps in conversions: outages are found, nights, weekends, growth and the ends of a log are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from evaluator import replay
from evaluator.comparisons.run import plan_comparison
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.replays.options import ReplayOptions
from evaluator.replays.rounds.survey import survey
from evaluator.replays.support import conversion_gaps, gap_warnings
from tests.logs import build_log

HOUR, DAY = 3600, 86_400


def world(
    seed: int,
    *,
    days: int = 10,
    rate: Callable[[np.ndarray], np.ndarray] | None = None,
    delay: float = HOUR,
    lost: Sequence[tuple[float, float]] = (),
    n: int = 20_000,
) -> Log:
    """A log of `days` in seconds, half of its displays converting; conversions in `lost` spans are not logged."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.random(n)) * days
    if rate is not None:
        at = at[rng.random(n) < rate(at)]
    time = (at * DAY).astype(np.int64)
    paid = np.flatnonzero(rng.random(len(time)) < 0.5)
    when = time[paid] + rng.exponential(delay, len(paid)).astype(np.int64)
    kept = np.ones(len(when), bool)
    for start, end in lost:
        kept &= (when < start * DAY) | (when >= end * DAY)
    return build_log(
        time=time, action=rng.integers(0, 2, len(time)), n_actions=2, tick="s", conversion_display=paid[kept],
        conversion_time=when[kept],
    )  # fmt: skip


def waking(at: np.ndarray) -> np.ndarray:
    """No one is awake from midnight to nine."""
    return (at % 1 >= 9 / 24).astype(float)


def working(at: np.ndarray) -> np.ndarray:
    return ((at % 7 < 5) & (at % 1 >= 9 / 24)).astype(float)


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [(4.25, 4.5, 6), (0.3, 0.6, 7), (9.4, 9.7, 7), (5.0, 7.5, 60)],
    ids=["half a morning", "on the first day", "on the last day", "some days"],
)
def test_outages_are_found(start: float, end: float, hours: int) -> None:
    (gap,) = conversion_gaps(survey(world(1, lost=[(start, end)])))
    assert gap.hours in (hours - 1, hours, hours + 1)
    assert abs(gap.start - start * DAY) <= HOUR
    assert abs(gap.end - end * DAY) <= HOUR
    usual, edges = 1000 * (end - start), 2000 * HOUR / DAY
    assert gap.usual < usual + edges + 4 * np.sqrt(usual)
    if end < 9:  # on the last day conversions trickle in without displays, so fewer are taken for usual
        assert gap.usual > usual - edges - 4 * np.sqrt(2 * usual)


@pytest.mark.parametrize(
    "log",
    [
        lambda seed: world(seed),
        lambda seed: world(seed, rate=waking),
        lambda seed: world(seed, rate=working, days=21),
        lambda seed: world(seed, rate=lambda at: np.where(at < 5, 0.002, 1.0)),
        lambda seed: world(seed, rate=lambda at: np.exp(-at)),
        lambda seed: world(seed, rate=waking, delay=3 * DAY),
        lambda seed: world(seed, days=1),
        lambda seed: world(seed, n=800, days=30),
    ],
    ids=["steady", "nights", "weekends", "launch", "decline", "long delays", "one day", "few conversions"],
)
def test_what_recurs_grows_or_ends_is_no_gap(log: Callable[[int], Log]) -> None:
    assert [conversion_gaps(survey(log(seed))) for seed in range(20)] == [[]] * 20


def test_a_lost_week_day_is_no_weekend() -> None:
    gaps = conversion_gaps(survey(world(1, rate=working, days=21, lost=[(9.0, 10.0)])))
    assert len(gaps) == 1
    assert gaps[0].weekly


def test_logs_of_rounds_and_of_days_have_no_hours() -> None:
    log = world(1, lost=[(4.25, 4.5)])
    assert conversion_gaps(survey(log.with_meta(tick="round"))) == []
    assert conversion_gaps(survey(log.with_meta(tick="d"))) == []
    assert conversion_gaps(survey(build_log(time=[1, 2], action=[0, 1], n_actions=2, tick="s"))) == []


def test_a_replay_warns_of_a_gap_and_of_nothing_without() -> None:
    said = [
        any("No conversion comes from day 5, 06:00 to day 5, 12:00" in warning for warning in result.warnings)
        for result in (replay(world(1, lost=lost), "fixed:action=0") for lost in ([(4.25, 4.5)], []))
    ]
    assert said == [True, False]
    assert "(and 1 more time)" in str(gap_warnings(survey(world(1, lost=[(4.25, 4.5), (6.2, 6.4)])))[0])


def test_a_basket_of_many_conversions_is_one() -> None:
    """A display that converts thirty times at one moment is no rhythm."""
    days = np.arange(10)
    log = build_log(
        time=days * DAY, action=np.zeros(10, int), n_actions=1, tick="s", conversion_display=np.repeat(days, 60),
        conversion_time=np.repeat(days * DAY, 60) + np.tile(np.repeat([0, HOUR * 7], 30), 10),
    )  # fmt: skip
    assert conversion_gaps(survey(log)) == []


def test_variants_of_a_study_look_for_gaps_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log, looked = world(1, lost=[(4.25, 4.5)]), []
    monkeypatch.setattr("evaluator.replays.support._find_gaps", lambda of: looked.append(of) or [])
    policies = [resolve(name) for name in ("random", "ucb1", "thompson")]
    plan_comparison(log, policies, [20, 50], ReplayOptions())
    assert len(looked) == 1
