"""The window marked on the delays: where it lies, and what it is said to cut off, is what the replay knows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from evaluator import compare, replay, study_delays
from evaluator.log import Log
from evaluator.reports.curve_charts import Spec, window_chart
from evaluator.reports.delay_charts import cdf_chart
from tests.logs import build_log

HOUR = 3_600


@pytest.fixture(scope="module")
def late() -> Log:
    """A log whose every other display converts, after 1, 2, 3... 4 hours in turn, none cut off."""
    n = 8_000
    time = np.arange(n) * 60
    of = np.arange(0, n, 2)
    return build_log(
        time=time, action=np.arange(n) // 3 % 2, conversion_display=of,
        conversion_time=time[of] + HOUR * (1 + np.arange(len(of)) % 4), n_actions=2, tick="s",
    )  # fmt: skip


def texts(chart: Spec | None) -> list[dict[str, Any]]:
    """Return the rows of the layers that write words."""
    assert chart is not None
    json.dumps(chart, allow_nan=False)
    return [
        row
        for layer in chart["layer"]
        if layer["mark"]["type"] == "text"
        for row in chart["datasets"][layer["data"]["name"]]
    ]


def test_a_replay_says_what_its_window_cuts_off(late: Log) -> None:
    found = replay(late, "random", window="3h")
    assert found.plan["delay_steps"] == [[h * HOUR, h / 4] for h in (1, 2, 3, 4)]
    (label,) = texts(window_chart([found]))
    assert label["said"] == f"window 3 h: cuts off {1 - found.plan['tau_window']:.0%}" == "window 3 h: cuts off 25%"
    assert label["at"] == 3 * HOUR


def test_windows_of_a_comparison_stand_on_one_axis(late: Log) -> None:
    found = compare(late, ["random"], baseline="random", windows=["2h", "1h", "4h", "10d"])
    chart = window_chart(found.results)
    assert sorted((row["at"] // HOUR, row["said"].partition(": ")[2]) for row in texts(chart)) == [
        (1, "cuts off 75%"), (2, "cuts off 50%"), (4, "cuts off nothing seen")
    ]  # fmt: skip
    assert "window 10 d lies beyond the longest delay" in chart["title"]["subtitle"]


def test_windows_in_rounds_are_cut_in_rounds(late: Log) -> None:
    found = replay(late, "random", window=100)
    (label,) = texts(window_chart([found]))
    assert label["at"] == 100
    assert label["said"].startswith("window 100 rounds: cuts off ")


def test_there_is_no_chart_without_a_window_or_delays(late: Log) -> None:
    assert window_chart([replay(late, "random")]) is None
    none = build_log(time=np.arange(50), action=np.arange(50) % 2, n_actions=2, tick="s")
    assert window_chart([replay(none, "random", window="5s")]) is None


def test_a_study_marks_the_windows_that_were_asked_for(late: Log) -> None:
    study = study_delays(late, windows=["2h", "90min", 50], families=["exponential"], bootstraps=19)
    assert sorted(row["said"] for row in texts(cdf_chart(study))) == ["1.5 h: cuts off 75%", "2 h: cuts off 50%"]
