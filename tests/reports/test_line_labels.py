"""Names of lines at their ends: apart from each other, inside the picture, and of their own lines."""

from __future__ import annotations

import re

import numpy as np
import pytest

from evaluator import compare, simulate
from evaluator.reports.chart_parts import Frame, LineEnd, apart, frame, label_layers
from evaluator.reports.curve_charts import Spec, comparison_chart, simulation_chart
from evaluator.reports.html import figures
from tests.logs import build_log


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_apart_in_their_order_and_within(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wanted = sorted(rng.random(12) ** 3)
    found = apart(wanted, 0.08, (0.0, 1.0))
    assert np.diff(found).min() > 0.08 - 1e-12
    assert found[0] >= -1e-12
    assert found[-1] <= 1.0
    far = apart([0.1, 0.5, 0.9], 0.08, (0.0, 1.0))
    assert far == [0.1, 0.5, 0.9]


def test_a_frame_holds_all_labels_and_values() -> None:
    names = ["a long name of a policy"] * 20
    of = frame((1.0, 1.0), [3.0, np.nan, 5.0], names, width=640, height=220)
    assert of.y[0] < 3.0 < 5.0 < of.y[1]
    assert of.x[1] > of.x[0]
    assert of.height >= 20 * 13
    assert of.width < 640


def test_a_line_without_an_end_has_no_label() -> None:
    of = Frame((0.0, 1.0), (0.0, 1.0), 100, 100)
    strokes, _ = label_layers([LineEnd("a", 1.0, 0.5, "#000000"), LineEnd("b", 1.0, float("nan"), "#000000")], of)
    assert [row["of"] for row in strokes.data.values] == ["a"]


def labels(chart: Spec | None) -> dict[str, float]:
    """Return how high in the picture each name stands that is written in it."""
    assert chart is not None
    (picture,) = figures({"it": chart}).values()
    assert "legend" not in picture
    found = re.findall(
        r'aria-roledescription="text mark"[^>]* transform="translate\([^,]+,([^)]+)\)"[^>]*>([^<]*)<', picture
    )
    return {name: float(y) for y, name in found}


def test_every_line_of_a_comparison_is_named_at_its_end() -> None:
    rng = np.random.default_rng(0)
    n = 2_000
    action = rng.integers(0, 2, n)
    of = np.flatnonzero(rng.random(n) < np.where(action == 1, 0.6, 0.2))
    log = build_log(time=np.arange(n), action=action, conversion_display=of, conversion_time=of, n_actions=2)
    found = compare(log, ["fixed:action=0", "fixed:action=1", "random"], baseline="fixed:action=0")
    written = labels(comparison_chart(found))
    names = ["fixed:action=a0", "fixed:action=a1", "random"]
    # Higher regret stands higher: its y is less.
    assert written[names[0]] < written[names[2]] < written[names[1]]


def test_the_lower_bound_is_named_too() -> None:
    found = simulate("vernade2017-high", ["ucb1", "random"], runs=3, horizon=300)
    assert {"ucb1", "random", "lower bound"} <= set(labels(simulation_chart(found)))
