"""Charts hold the numbers of their results."""

from __future__ import annotations

import json
from typing import Any

import altair as alt
import jsonschema
import numpy as np
import pytest

import evaluator
from evaluator import Log
from evaluator.errors import UnknownNameError
from evaluator.reports.chart_parts import GREY, LINES, action_colours, colours_of
from evaluator.reports.curve_charts import action_chart, log_chart, observed_chart, simulation_chart
from evaluator.reports.documents import charts_of
from evaluator.reports.html import svg_pictures
from evaluator.reports.interval_charts import detectable_chart, segment_charts
from tests.logs import build_log
from tests.reports.conftest import FIRST, N


def rows(chart: dict[str, Any] | None, field: str) -> list[dict[str, Any]]:
    """Return the rows of the data of a chart that have a field."""
    assert chart is not None
    return next(of for of in chart["datasets"].values() if field in of[0])


def colours(chart: dict[str, Any] | None) -> dict[str, str]:
    """Return the colour of each name of a chart."""
    assert chart is not None
    scale = chart["encoding"]["color"]["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def log_of(tick: str, start: int, step: int, *, n_actions: int = 3) -> Log:
    action = np.random.default_rng(0).integers(0, n_actions, N)
    return build_log(time=start + step * np.arange(N), action=action, n_actions=n_actions, tick=tick, name="shop")


@pytest.mark.parametrize(
    ("tick", "start", "step", "ends"),
    [
        ("s", FIRST, 600, (FIRST * 1000.0, (FIRST + 600 * (N - 1)) * 1000.0)),
        ("h", 0, 2, (0.0, 2 * (N - 1) / 24)),
        ("round", 0, 1, (0.0, N - 1.0)),
    ],
)
def test_a_log_draws_each_display_once(tick: str, start: int, step: int, ends: tuple[float, float]) -> None:
    log = log_of(tick, start, step)
    chart = log_chart(log)
    found = rows(chart, "low")
    assert (min(row["from"] for row in found), max(row["to"] for row in found)) == pytest.approx(ends)
    shown = np.bincount(log.column("action"))
    for label, count in zip(log.labels, shown, strict=True):
        assert sum(row["high"] - row["low"] for row in found if row["of"] == label) == count
    dates = chart is not None and chart["encoding"]["x"]["type"] == "temporal"
    assert dates == (start == FIRST)


def test_a_log_of_many_actions_draws_the_rest_together() -> None:
    chart = log_chart(log_of("s", FIRST, 600, n_actions=12))
    assert list(colours(chart).values()) == [*LINES[:6], GREY]
    assert sum(row["high"] - row["low"] for row in rows(chart, "low")) == N


def test_the_colour_of_an_action_never_contradicts_its_label() -> None:
    named = action_colours(["offer", "Blue banner", "RED", "green_new", "discount"])
    assert named[1:4] == ["#2f6fd0", "#c0392b", "#2e9e5b"]
    # Actions without a colour in their label get none that looks like another action's label.
    assert not {named[0], named[4]} & {*named[1:4], "#0072B2", "#D55E00", "#009E73"}
    assert named[0] != named[4]
    assert action_colours(["a", "b"]) == list(LINES[:2])


def test_logs_without_time_have_no_chart() -> None:
    with pytest.raises(UnknownNameError, match="This Log has no chart"):
        build_log(time=[7, 7], action=[0, 1], n_actions=2).chart()
    assert log_chart(build_log(time=[], action=[], n_actions=2)) is None


def test_an_action_has_one_colour_in_every_chart() -> None:
    log = log_of("s", FIRST, 600)
    own = [colours(action_chart(evaluator.replay(log, policy, window=50))) for policy in ("random", "ucb1")]
    assert own[0] == own[1] == colours(log_chart(log)) == dict(zip(log.labels, LINES, strict=False))
    assert colours_of([11, 3], list("abcdefghijkl"), others=True) == [LINES[0], LINES[1], GREY]


def test_plans_say_that_their_tables_are_all(results: dict[str, Any]) -> None:
    plan = evaluator.plan(results["log"], "ucb1", window=50)
    with pytest.raises(UnknownNameError, match=r"has no chart.*tables say all that it holds"):
        plan.chart()


def test_differences_stand_in_their_groups(results: dict[str, Any]) -> None:
    comparison = results["compare"]
    charts = segment_charts(comparison)
    for column in ("shop", "device"):
        known = [g.realised for of in comparison.segments if of.column == column for g in of.groups if g.realised.n]
        drawn = [row["estimate"] for row in rows(charts[f"differences by {column}"], "estimate")]
        assert {of.estimate for of in known} <= set(drawn)


def test_what_an_audit_detects_stands_beside_what_differs(results: dict[str, Any]) -> None:
    [pair] = results["audit"].pairs
    [row] = rows(detectable_chart(results["audit"]), "detects")
    assert (row["live"], row["detects"]) == (abs(pair.live_difference), pair.alone.high)
    assert row["pair"].startswith(pair.first if pair.live_difference >= 0 else pair.second)


def test_a_simulation_draws_both_regrets(results: dict[str, Any]) -> None:
    found = results["simulate"]
    for chart, of, bound in (
        (simulation_chart(found), "regret", "lower_bound"), (observed_chart(found), "observed", "observed_lower_bound")
    ):  # fmt: skip
        drawn = rows(chart, "low")
        [line] = [of for of in chart["datasets"].values() if set(of[0]) == {"round", "regret"}]
        at = [found.rounds.tolist().index(row["round"]) for row in line]
        assert (len(at), at[0], at[-1]) == (60, 0, len(found.rounds) - 1)
        assert [row["regret"] for row in drawn] == [getattr(curve, of)[i] for curve in found.curves for i in at]
        assert [row["regret"] for row in line] == [getattr(found, bound)[i] for i in at]


def test_charts_keep_to_the_schema_of_charts(results: dict[str, Any]) -> None:
    for result in results.values():
        for spec in charts_of(result).values():
            alt.Root.validate(spec)
    with pytest.raises(jsonschema.ValidationError):
        alt.Root.validate({**next(iter(charts_of(results["replay"]).values())), "layer": 1})


def test_charts_can_be_joined(results: dict[str, Any]) -> None:
    import altair as alt

    one, other = results["replay"].chart(), results["compare"].chart("differences")
    joined = alt.hconcat(one.properties(width=200, title="left"), other).to_dict()
    assert [part["title"] for part in joined["hconcat"]] == ["left", other.to_dict()["title"]]
    drawn = svg_pictures({"joined": joined, "alone": one.to_dict()})
    for picture in drawn.values():
        assert 'aria-roledescription="line mark"' in picture
        assert "NaN" not in picture
    assert drawn["joined"].count(">left<") == 1
    assert len(drawn) == 2
    # What pages are pointed at stays there.
    assert '"opacity": 0,' in json.dumps(charts_of(results["replay"])["replay"])
    assert '"opacity": 0,' not in json.dumps(one.to_dict())
