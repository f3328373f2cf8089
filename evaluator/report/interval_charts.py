"""Charts of intervals on one axis: differences to a baseline, groups, guardrails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import numpy as np

from evaluator.comparisons.lines import window_text
from evaluator.comparisons.result import Comparison
from evaluator.estimates.confidence import Interval
from evaluator.replays.result import ReplayResult
from evaluator.report.delay_charts import CORRECTED, GREY, NAIVE, Spec, drawable, finished

_ROW = 26
# More rows are a table, not a picture.
_MOST = 40
Row = dict[str, Any]


def difference_chart(comparison: Comparison) -> Spec | None:
    """Return the difference of every variant to the baseline, realised and, where it was estimated, expected."""
    rows: list[Row] = []
    for difference in comparison.differences:
        name = _variant(comparison, difference.variant)
        for kind, found in (("realised", difference.realised), ("expected", difference.expected)):
            rows += _row(found, name, kind)
    base = _variant(comparison, comparison.baseline)
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


def group_difference_charts(comparison: Comparison) -> dict[str, Spec]:
    """Return the differences to the baseline in the groups of each column that was asked for, by name."""
    found = {}
    base = _variant(comparison, comparison.baseline)
    for column in dict.fromkeys(of.column for of in comparison.segments):
        own = [of for of in comparison.segments if of.column == column]
        labels = dict.fromkeys(group.label for of in own for group in of.groups)
        rows = [
            row
            for label in labels
            for of in own
            for group in of.groups
            if group.label == label
            for row in _row(group.realised, f"{drawable(label)}: {_variant(comparison, of.variant)}", "realised")
        ]
        about = [f"baseline: {base}", "up to the common horizon; all these intervals hold at once"]
        if chart := _intervals(rows, f"Difference to the baseline by {drawable(column)}", about):
            found[f"groups by {column}"] = chart
    return found


def guardrail_charts(results: Sequence[ReplayResult]) -> dict[str, Spec]:
    """Return the interval by which each guardrail was answered, beside its limit, a row a replay, by name."""
    found = {}
    for answers in zip(*(result.guardrails for result in results), strict=True):
        rows = []
        for i, (result, answer) in enumerate(zip(results, answers, strict=True)):
            name = f"{drawable(result.plan['policy'])}, window {window_text(result)}"
            for row in _row(answer.interval, f"{i + 1} {name}" if len(results) > 1 else name, "realised"):
                rows.append({**row, "said": f"{answer.answer}: {row['said']}"})
        first = answers[0]
        about = f"{first.quantity} of {drawable(first.outcome)}; dashed: the limit"
        title = f"Guardrail {drawable(first.guardrail)}"
        if chart := _intervals(rows, title, about, limit=first.limit):
            found[f"guardrail {first.guardrail}"] = chart
    return found


def _variant(comparison: Comparison, i: int) -> str:
    result = comparison.results[i]
    return f"{i + 1} {drawable(result.plan['policy'])}, window {window_text(result)}"


def _row(found: Interval | None, name: str, kind: str) -> list[Row]:
    if found is None or not np.isfinite([found.estimate, found.low, found.high]).all():
        return []
    said = f"{found.estimate:+.3g} [{found.low:+.3g}, {found.high:+.3g}]"
    told = f"{name}, {kind}: {said}"
    ends = {"estimate": found.estimate, "low": found.low, "high": found.high}
    return [{"of": name, **ends, "said": said, "told": told, "kind": kind}]


def _intervals(
    rows: Sequence[Row], title: str, subtitle: str | Iterable[str], *, limit: float | None = None
) -> Spec | None:
    """Return intervals, one below the other, beside a limit, or 0; None without any, or with too many to be seen."""
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
    mark = alt.Chart(alt.InlineData([{"limit": limit or 0.0}]))
    chart = alt.layer(
        mark.mark_rule(color=GREY if limit is None else NAIVE, strokeDash=[4, 3]).encode(x="limit:Q"),
        base.mark_rule(color=CORRECTED, strokeWidth=2.5).encode(x=alt.X("low:Q", title=None), x2="high:Q", **place),
        base.mark_point(color=CORRECTED, size=70, opacity=1, strokeWidth=2)
        .encode(x=x, fill=alt.Fill("kind:N", legend=None, scale=alt.Scale(
            domain=["realised", "expected"], range=[CORRECTED, "transparent"])), description="told:N", **place),
        base.mark_text(align="left", dx=8, fontSize=11).encode(x=alt.X("high:Q"), text="said:N", **place),
    )  # fmt: skip
    return finished(
        chart, title, [subtitle] if isinstance(subtitle, str) else list(subtitle), height=_ROW * len(rows) + 10
    )
