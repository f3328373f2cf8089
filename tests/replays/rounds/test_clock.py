"""Delays in displays, their share, and the window, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import LogError, ParameterError
from evaluator.log import Log
from evaluator.replays.rounds.clock import ReplayClock, on_clock, resolve_window, start_clock
from evaluator.replays.rounds.survey import displays_until, survey
from tests.logs import build_log

# Six displays, two of them tied.
TIMES = [0, 10, 10, 20, 40, 50]


def log_at(times: list[int], tick: str = "s", conversions: list[tuple[int, int]] = ()) -> Log:  # type: ignore[assignment]
    of, when = ([c[i] for c in conversions] for i in (0, 1))
    return build_log(
        time=times, action=[0, 1] * (len(times) // 2), conversion_display=of, conversion_time=when, n_actions=2,
        tick=tick,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("display", "when", "between"),
    [
        (0, 0, 0),  # at once
        (0, 9, 0),  # before the next display
        (0, 10, 2),  # at the time of two displays: both came no later
        (1, 10, 1),  # the tied display after it
        (2, 10, 0),  # the last of the tie
        (0, 50, 5),  # at the last display
        (3, 45, 1),
        (5, 60, 1),  # past the end: 5 displays in 50 s are one in 10 s
        (0, 69, 6),  # five in the log and one whole one after it
        (0, 70, 7),
    ],
)
def test_delay_is_the_displays_that_followed(display: int, when: int, between: int) -> None:
    assert survey(log_at(TIMES, conversions=[(display, when)])).delay.tolist() == [between]


def test_a_log_of_one_time_cannot_extrapolate() -> None:
    assert survey(log_at([5, 5], conversions=[(0, 5)])).delay.tolist() == [1]
    with pytest.raises(LogError, match="all displays share one time"):
        survey(log_at([5, 5], conversions=[(0, 6)]))


@given(st.lists(st.integers(0, 30), min_size=2, max_size=40), st.lists(st.integers(-5, 40)), st.integers(1, 50))
def test_displays_are_counted_whatever_the_batches(times: list[int], when: list[int], size: int) -> None:
    log = log_at(sorted(times[: len(times) // 2 * 2]))
    time, asked = log.column("time"), np.array(when, np.int64)
    original = Log.batches
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Log, "batches", lambda self, columns: original(self, columns, size))
        (found,) = displays_until(log, asked)
    np.testing.assert_array_equal(found, (time[None, :] <= asked[:, None]).sum(axis=1))


def test_a_share_scales_delays_to_the_nearest_round() -> None:
    clock = ReplayClock("traffic", 0.1, 1.0, None)
    assert on_clock(np.array([0, 4, 6, 10, 96]), clock).tolist() == [0, 0, 1, 1, 10]
    assert on_clock(np.array([0, 4]), ReplayClock("traffic", 1.0, 1.0, None)).tolist() == [0, 4]


def test_the_wall_clock_is_the_traffic_clock_at_the_acceptance_rate() -> None:
    log = log_at(TIMES)
    wall = start_clock(survey(log), "wall", traffic_share=1.0, acceptance=0.25)
    traffic = start_clock(survey(log), "traffic", traffic_share=0.25, acceptance=0.5)
    assert (wall.share, wall.rate) == (traffic.share, traffic.rate) == (0.25, 0.1)
    # A window in rounds is one of logged displays on the wall clock, of the policy's own rounds on the other.
    assert resolve_window("2000", wall, survey(log)).rounds == 500
    assert resolve_window("2000", traffic, survey(log)).rounds == 2000


def test_the_share_excludes_the_wall_clock() -> None:
    with pytest.raises(ParameterError, match="exclude each other"):
        start_clock(survey(log_at(TIMES)), "wall", traffic_share=0.5, acceptance=0.25)


@pytest.mark.parametrize("share", [0.0, -0.1, float("inf"), float("nan")])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(ParameterError, match="`traffic_share"):
        start_clock(survey(log_at(TIMES)), "traffic", traffic_share=share, acceptance=0.25)


@pytest.mark.parametrize(("share", "days"), [(1.0, 1.0), (0.1, 10.0)])
def test_live_days(share: float, days: float) -> None:
    # One display in 10 s: 8,640 rounds a day at full share.
    clock = start_clock(survey(log_at(TIMES)), "traffic", traffic_share=share, acceptance=0.5)
    assert clock.days(8640) == pytest.approx(days)


def test_a_log_of_rounds_has_no_days() -> None:
    assert start_clock(survey(log_at(TIMES, "round")), "traffic", traffic_share=1.0, acceptance=0.5).days(100) is None
