"""How many displays were followed long enough, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator.api import replay
from evaluator.errors import DataError
from evaluator.log import Log
from evaluator.policies.base import NO_WINDOW
from evaluator.replays.rounds.clock import ReplayWindow, start_clock
from evaluator.replays.rounds.maturity import Maturity
from evaluator.replays.rounds.maturity import judge_maturity as judge_survey
from evaluator.replays.rounds.survey import survey
from tests.logs import build_log

NONE = ReplayWindow(NO_WINDOW, None, "none")


def ten_displays(conversions: list[tuple[int, int]] = (), **meta: Any) -> Log:  # type: ignore[assignment]
    of, delay = ([c[i] for c in conversions] for i in (0, 1))
    return build_log(
        time=np.arange(10) * 10,
        action=[0, 1] * 5,
        conversion_display=of,
        conversion_time=np.array(of, np.int64) * 10 + np.array(delay, np.int64),
        n_actions=2,
        tick="s",
        **meta,
    )


def judge_maturity(log: Log, window: ReplayWindow, rule: str, *, share: float = 1.0) -> Maturity:
    seen = survey(log)
    return judge_survey(seen, window, start_clock(seen, "traffic", traffic_share=share, acceptance=0.5), rule)


def test_a_log_followed_to_the_end_is_mature() -> None:
    found = judge_maturity(ten_displays(), NONE, "drop")
    assert (found.used, found.immature, found.correction, found.known) == (10, 0, None, True)


@pytest.mark.parametrize(("attribution", "used"), [(0, 10), (10, 9), (11, 8), (89, 1), (90, 1)])
def test_displays_followed_for_the_attribution_window_are_used(attribution: int, used: int) -> None:
    # Display i is followed for 90 - 10 i seconds.
    found = judge_maturity(ten_displays(observed_until=90, attribution_window=attribution), NONE, "drop")
    assert (found.used, found.immature) == (used, 10 - used)


def test_the_attribution_window_comes_before_the_policys() -> None:
    log = ten_displays(observed_until=90, attribution_window=20)
    assert judge_maturity(log, ReplayWindow(5, None, "5"), "drop").used == 8
    without = log.with_meta(attribution_window=None)
    assert judge_maturity(without, ReplayWindow(5, None, "5"), "drop").used == 5
    assert judge_maturity(without, ReplayWindow(5, 50, "50s"), "drop").used == 5


def test_a_window_in_rounds_is_followed_in_displays_one_in_time_in_time() -> None:
    # At 0, 1, ..., 8 and 90 s, followed to 90 s: display i was followed for 9 - i displays, and 90 - i seconds.
    log = build_log(time=[*range(9), 90], action=[0, 1] * 5, n_actions=2, tick="s", observed_until=90)
    assert judge_maturity(log, ReplayWindow(3, None, "3"), "drop").used == 7
    assert judge_maturity(log, ReplayWindow(9, 30, "30s"), "drop").used == 9
    # At a share of 0.3 a display comes 0.3 rounds later: 3 rounds are up to 11 displays, more than there are.
    assert judge_maturity(log, ReplayWindow(2, None, "2"), "drop", share=0.3).used == 2
    # Followed past the last display at the mean rate of a display in 10 s.
    assert judge_maturity(log.with_meta(observed_until=110), ReplayWindow(3, None, "3"), "drop").used == 9


def test_correcting_for_a_window_in_rounds_weighs_by_displays() -> None:
    # Delays of 0 and 2 displays: tau(1) = 1/2, tau(2) = 1; the last two displays were followed for 1 and for 0.
    log = build_log(
        time=[*range(9), 90], action=[0, 1] * 5, conversion_display=[0, 1, 8, 9], conversion_time=[0, 3, 8, 90],
        n_actions=2, tick="s", observed_until=90,
    )  # fmt: skip
    found = judge_maturity(log, ReplayWindow(2, None, "2"), "correct")
    assert (found.used, found.immature) == (10, 2)
    assert found.correction is not None
    young = 1.0 / found.correction.kinds[0][1](0, [0, 1])
    np.testing.assert_allclose(found.correction.weights(survey(log), np.array([0, 1, 8, 9])), [1, 1, *young])


def test_without_any_window_nothing_is_known() -> None:
    found = judge_maturity(ten_displays(observed_until=90), NONE, "drop")
    assert (found.used, found.known) == (10, False)


def test_correcting_weighs_by_the_chance_to_have_shown() -> None:
    # Delays 0 and 20 once each, of displays followed long enough to see both: tau(10) = 1/2, tau(20) = 1.
    log = ten_displays([(0, 0), (2, 20), (8, 0)], observed_until=90, attribution_window=20)
    found = judge_maturity(log, NONE, "correct")
    assert (found.used, found.immature, found.heaviest) == (10, 2, 2.0)
    assert found.correction is not None
    np.testing.assert_allclose(found.correction.weights(survey(log), np.array([0, 2, 8])), [1, 1, 2])


def test_displays_with_hardly_a_chance_to_show_are_left_out() -> None:
    # Of six delays one is 0: tau(10) = tau(0) = 1/6, below a fifth.
    log = ten_displays([(i, 0 if i == 0 else 20) for i in range(6)], observed_until=90, attribution_window=20)
    found = judge_maturity(log, NONE, "correct")
    assert (found.used, found.immature, found.heaviest) == (8, 2, 1.0)


@pytest.mark.parametrize("rule", ["drop", "correct"])
def test_a_log_too_short_for_its_window_is_refused(rule: str) -> None:
    with pytest.raises(DataError, match=r"followed for 1.52 min.*shorter attribution_window"):
        judge_maturity(ten_displays(observed_until=90, attribution_window=91), NONE, rule)


def test_correcting_without_conversions_is_refused() -> None:
    with pytest.raises(DataError, match="no conversions to fit"):
        judge_maturity(ten_displays(observed_until=90, attribution_window=20), NONE, "correct")


def test_stamps_of_days_follow_a_display_for_a_day_less_than_they_say() -> None:
    # A display of the last minute of day 8, and a log that ends in the first of day 9: days say one day of follow-up.
    rng = np.random.default_rng(0)
    n, days = 20_000, 9.1
    minute = np.sort(rng.random(n)) * days * 1440
    bought = np.flatnonzero(rng.random(n) < 0.4)
    sold = minute[bought] + rng.random(len(bought)) * 1200
    seen = sold <= minute[-1]
    log = build_log(
        time=(minute // 1440).astype(np.int64), action=np.arange(n) % 2, n_actions=2,
        conversion_display=bought[seen], conversion_time=(sold[seen] // 1440).astype(np.int64),
        tick="d", observed_until=9, attribution_window=1,
    )  # fmt: skip
    result = replay(log, "logging")
    assert result.value.low <= 0.4 <= result.value.high
    # By what the stamps say, the last whole day counts too, whose late displays have lost their conversions.
    last = (minute // 1440).astype(int) == 8
    converted = np.isin(np.flatnonzero(last), bought[seen])
    assert 0.4 - converted.mean() > 4 * (0.24 / last.sum()) ** 0.5
    assert result.plan["displays_used"] == int((minute < 8 * 1440).sum())
