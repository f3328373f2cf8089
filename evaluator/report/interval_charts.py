"""Charts of intervals on one axis: differences to a baseline, groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import numpy as np

from evaluator.comparisons.lines import window_text
from evaluator.comparisons.result import Comparison
from evaluator.estimates.confidence import Interval
from evaluator.replays.result import ReplayResult
from evaluator.report.delay_charts import CORRECTED, GREY, Spec, drawable, finished
from evaluator.report.numbers import interval_text

# Beside the axis there is room for names and numbers.
_WIDTH, _ROW = 460, 26
# More rows are a table, not a picture.
_MOST = 40
Row = dict[str, Any]


def difference_chart(comparison: Comparison) -> Spec | None:
    """Return the difference of every variant to the baseline, realised and, where it was estimated, expected."""
    rows: list[Row] = []
    for difference in comparison.differences:
        name = line_name(comparison.results[difference.variant], difference.variant)
        for kind, found in (("realised", difference.realised), ("expected", difference.expected)):
            rows += _row(found, name, kind)
    base = line_name(comparison.results[comparison.baseline], comparison.baseline)
    kinds = "filled: of these runs; open: expected" if any(row["kind"] == "expected" for row in rows) else ""
    return _intervals(rows, "Difference per round to the baseline", [f"baseline: {base}", *filter(None, [kinds])])


def group_charts(result: ReplayResult) -> dict[str, Spec]:
    """Return the uplift in the groups of each column that was asked for, by name."""
    found = {}
    for split in result.segments:
        rows = [row for group in split.groups for row in _row(group.uplift, drawable(group.label), "realised")]
        column = drawable(split.column)
        about = "the intervals of all groups hold at once"
        if chart := _intervals(rows, f"Uplift over the logging policy by {column}", about):
            found[f"groups by {column}"] = chart
    return found


def segment_charts(comparison: Comparison) -> dict[str, Spec]:
    """Return the differences to the baseline in the groups of each column that was asked for, by name."""
    found = {}
    for column in dict.fromkeys(of.column for of in comparison.segments):
        compared = [of for of in comparison.segments if of.column == column and not of.why_not]
        several = len(comparison.results) > 2
        rows = [
            row
            for groups in zip(*(of.groups for of in compared), strict=True)
            for of, group in zip(compared, groups, strict=True)
            for row in _row(group.realised, _group_name(group.label, of.variant if several else None), "realised")
        ]
        base = f"baseline: {line_name(comparison.results[comparison.baseline], comparison.baseline)}"
        about = [base, "all these intervals hold at once"]
        if chart := _intervals(rows, f"Difference per round by {drawable(column)}", about):
            found[f"differences by {drawable(column)}"] = chart
    return found


def _group_name(label: str, variant: int | None) -> str:
    return drawable(label) + ("" if variant is None else f", line {variant + 1}")


def line_name(result: ReplayResult, i: int) -> str:
    """Return the name of a variant, numbered from 0, on pictures."""
    return f"{i + 1} {drawable(result.plan['policy'])}, window {window_text(result)}"


def _row(found: Interval | None, name: str, kind: str) -> list[Row]:
    if found is None or not np.isfinite([found.estimate, found.low, found.high]).all():
        return []
    # An interval of width 0 would look like a measurement.
    same = not found.n and not found.estimate
    said = "0: the same displays" if same else interval_text(found.estimate, found.low, found.high)
    told = f"{name}, {kind}: {said}"
    ends = {"estimate": found.estimate, "low": found.low, "high": found.high}
    return [{"of": name, **ends, "said": said, "told": told, "kind": kind}]


def _intervals(rows: Sequence[Row], title: str, subtitle: str | Iterable[str]) -> Spec | None:
    """Return intervals, one below the other, beside 0; None without any, or with too many to be seen."""
    if not 0 < len(rows) <= _MOST:
        return None
    names = list(dict.fromkeys(row["of"] for row in rows))
    two = len({row["kind"] for row in rows}) > 1
    x = alt.X("estimate:Q", axis=alt.Axis(title=None), scale=alt.Scale(zero=True))
    y = alt.Y("of:N", sort=names, axis=alt.Axis(title=None, labelLimit=0))
    place: dict[str, Any] = (
        {"y": y, "yOffset": alt.YOffset("kind:N", sort=["realised", "expected"])} if two else {"y": y}
    )
    base = alt.Chart(alt.InlineData(list(rows)))
    chart = alt.layer(
        alt.Chart(alt.InlineData([{"zero": 0}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="zero:Q"),
        base.mark_rule(color=CORRECTED, strokeWidth=2.5).encode(x=alt.X("low:Q", title=None), x2="high:Q", **place),
        base.mark_point(color=CORRECTED, size=70, opacity=1, strokeWidth=2)
        .encode(x=x, fill=alt.Fill("kind:N", legend=None, scale=alt.Scale(
            domain=["realised", "expected"], range=[CORRECTED, "transparent"])), description="told:N", **place),
        base.mark_text(align="left", fontSize=11).encode(x=alt.value(_WIDTH + 8), text="said:N", **place),
    )  # fmt: skip
    about = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    return finished(chart, title, about, height=_ROW * len(rows) + 10, width=_WIDTH)
