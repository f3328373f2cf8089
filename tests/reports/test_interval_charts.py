"""Intervals on one axis: guardrails beside their limits, and differences in groups, are the numbers of the result."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from evaluator import Comparison, compare
from evaluator.log import Log
from evaluator.reports.chart_schema import check_charts
from evaluator.reports.html import figures
from evaluator.reports.interval_charts import difference_chart, guardrail_chart, segment_charts
from evaluator.reports.numbers import interval_text
from tests.logs import bernoulli_log, build_log, with_outcome

GUARDRAILS = ["click < 0.9", "click < 0.1", "click > -1000%", "click < +0.001"]


@pytest.fixture(scope="module")
def compared() -> Comparison:
    """Two policies on a log on whose every third display somebody clicks."""
    n = 4_000
    rng = np.random.default_rng(3)
    time = np.arange(n)
    of = np.flatnonzero(rng.random(n) < 0.3)
    made = build_log(time=time, action=rng.integers(0, 2, n), conversion_display=of, conversion_time=time[of] + 1,
                     n_actions=2, tick="s")  # fmt: skip
    shops = made.displays.append_column("shop", [[("north", "south")[i] for i in rng.integers(0, 2, n)]])
    log = Log(shops, made.conversions, made.actions, made.meta)
    clicks = np.flatnonzero(rng.random(n) < 0.5)
    return compare(
        with_outcome(log, "click", clicks, time[clicks]),
        ["random", "ucb1"],
        baseline="random",
        by="shop",
        guardrails=GUARDRAILS,
    )


def rows(chart: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    """Return the rows that a layer with such a mark draws, of one picture."""
    return [row for layer in chart["layer"] if layer["mark"]["type"] == mark for row in layer["data"]["values"]]


def flat(chart: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a chart with their data beside them."""
    data = chart["datasets"]
    parts = chart.get("vconcat", [chart])
    for part in parts:
        for layer in part["layer"]:
            if "name" in layer["data"]:
                layer["data"] = {"values": data[layer["data"]["name"]]}
    return parts


def test_a_guardrail_is_drawn_as_it_was_answered(compared: Comparison) -> None:
    chart = guardrail_chart(compared.results)
    assert chart is not None
    json.dumps(chart, allow_nan=False)
    parts = flat(chart)
    assert [part["title"]["text"] for part in parts] == GUARDRAILS
    for j, part in enumerate(parts):
        answers = [result.guardrails[j] for result in compared.results]
        drawn = rows(part, "point")
        assert [row["answer"] for row in drawn] == [one.answer for one in answers]
        assert [row["low"] for row in drawn] == [one.interval.low for one in answers]
        (wrong,) = rows(part, "rect")
        assert answers[0].limit == wrong["low" if "<" in GUARDRAILS[j] else "high"]
        for row, one in zip(drawn, answers, strict=True):
            # Where it holds, nothing of the interval lies on the shaded side; where it is broken, all does.
            inside = row["high"] > wrong["low"] and row["low"] < wrong["high"]
            assert (one.answer != "holds") == inside
    assert {"holds", "broken", "cannot tell"} == {one.answer for of in compared.results for one in of.guardrails}
    (drawn_as,) = figures({"guardrails": chart}).values()
    for word in ("holds: ", "broken: ", "cannot tell: "):
        assert word in drawn_as


def test_realised_and_expected_differences_of_a_line_are_drawn_and_read_back() -> None:
    log = bernoulli_log(3_000, [0.2, 0.4], mean_delay=5, seed=1)
    chart = difference_chart(compare(log, ["random", "ucb1"], baseline="random", bootstrap=20, horizon=200))
    assert chart is not None
    assert {row["kind"] for part in flat(json.loads(json.dumps(chart))) for row in rows(part, "point")} == {
        "realised", "expected",
    }  # fmt: skip
    check_charts({"differences": chart})


def test_groups_of_a_comparison_stand_on_one_axis(compared: Comparison) -> None:
    (name,) = segment_charts(compared)
    assert name == "differences by shop"
    (part,) = flat(segment_charts(compared)[name])
    (of,) = compared.segments
    assert [(row["of"], row["estimate"]) for row in rows(part, "point")] == [
        (group.label, group.realised.estimate) for group in of.groups
    ]


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((0.0, 0.0, 0.0), "0 [0, 0]"),
        ((3e-9, 1e-9, 5e-9), "+3e-09 [+1e-09, +5e-09]"),
        ((0.123456, 0.122, 0.125), "+0.1235 [+0.1220, +0.1250]"),
        ((-12.34, -99.0, 74.0), "-12 [-99, +74]"),
    ],
)
def test_numbers_have_the_digits_that_their_errors_carry(numbers: tuple[float, float, float], said: str) -> None:
    assert interval_text(*numbers) == said
