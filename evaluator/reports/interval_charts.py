"""Charts with a row a line: differences, groups, guardrails, displays accepted, and what an audit shows of policies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from evaluator.estimates.confidence import Interval
from evaluator.replays.options import parse_guardrail
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.kind_values import GuardrailAnswer
from evaluator.reports.chart_parts import CORRECTED, GREY, NAIVE, drawable, drawn_names, finished, titled
from evaluator.reports.document import Spec
from evaluator.reports.numbers import interval_text

if TYPE_CHECKING:
    from evaluator.audits.result import Audit
    from evaluator.comparisons.result import Comparison

# Width that leaves room for names and numbers beside the axis.
_WIDTH, _ROW = 460, 26
# Largest number of rows of a chart; more rows cannot be told apart.
_MOST = 40
Row = dict[str, Any]
# Shape, word and colour of the kinds; each of the three suffices to tell the kinds apart.
_MARKS = {
    "holds": ("circle", "#009E73"), "broken": ("cross", "#D55E00"), "cannot tell": ("triangle-up", "#808080")
}  # fmt: skip
_GUARDRAIL_WIDTH, _GUARDRAIL_ROW, _MOST_GUARDRAILS = 400, 26, 40
_ROOM = 0.08
_KINDS = ["realised", "weighted", "expected"]
_ACCEPTANCE_ROW, _MOST_ACCEPTANCES = 24, 24
_MOST_PAIRS = 20


def difference_chart(comparison: Comparison) -> Spec | None:
    """Return a chart of every variant's difference to the baseline: of values and, if it was estimated, expected."""
    rows: list[Row] = []
    names = drawn_names(comparison.results)
    for difference in comparison.differences:
        name = names[difference.variant]
        kind_of_values = "realised" if difference.weighted is None else "weighted"
        for kind, interval in ((kind_of_values, difference.of_values), ("expected", difference.expected)):
            rows += _row(interval, name, kind)
    base = names[comparison.baseline]
    filled = "filled: of these runs" + (", or weighted" if any(row["kind"] == "weighted" for row in rows) else "")
    kinds = f"{filled}; open: expected" if any(row["kind"] == "expected" for row in rows) else ""
    return _intervals(rows, "Difference per round to the baseline", [f"baseline: {base}", *filter(None, [kinds])])


def group_charts(result: ReplayResult) -> dict[str, Spec]:
    """Return charts of the uplift in groups, one for each column of groups, by name."""
    charts = {}
    for split in result.segments:
        rows = [row for group in split.groups for row in _row(group.uplift, drawable(group.label), "realised")]
        column = drawable(split.column)
        about = "the intervals of all groups hold at once"
        if chart := _intervals(rows, f"Uplift over the logging policy by {column}", about):
            charts[f"groups by {column}"] = chart
    return charts


def segment_charts(comparison: Comparison) -> dict[str, Spec]:
    """Return charts of the differences to the baseline in groups, one for each column of groups, by name."""
    charts, names = {}, drawn_names(comparison.results)
    for column in dict.fromkeys(segment.column for segment in comparison.segments):
        compared = [segment for segment in comparison.segments if segment.column == column and not segment.why_not]
        several = len(comparison.results) > 2
        rows = [
            row
            for groups in zip(*(segment.groups for segment in compared), strict=True)
            for segment, group in zip(compared, groups, strict=True)
            for row in _row(
                group.of_values,
                drawable(group.label) + (f", {names[segment.variant]}" if several else ""),
                "realised" if group.weighted is None else "weighted",
            )
        ]
        about = [f"baseline: {names[comparison.baseline]}", "all these intervals hold at once"]
        if chart := _intervals(rows, f"Difference per round by {drawable(column)}", about):
            charts[f"differences by {drawable(column)}"] = chart
    return charts


def _row(interval: Interval | None, name: str, kind: str) -> list[Row]:
    if interval is None or not np.isfinite([interval.estimate, interval.low, interval.high]).all():
        return []
    # An interval of width 0 would look like a measurement.
    same = not interval.n and not interval.estimate
    label = "0: the same displays" if same else interval_text(interval.estimate, interval.low, interval.high)
    told = f"{name}, {kind}: {label}"
    ends = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
    return [{"of": name, **ends, "said": label, "told": told, "kind": kind}]


def _intervals(rows: Sequence[Row], title: str, subtitle: str | Iterable[str]) -> Spec | None:
    """Return a chart of intervals below one another, with a line at 0; None for no intervals, or for too many."""
    if not 0 < len(rows) <= _MOST:
        return None
    names = list(dict.fromkeys(row["of"] for row in rows))
    two = any(row["kind"] == "expected" for row in rows)
    x = alt.X("estimate:Q", axis=alt.Axis(title=None), scale=alt.Scale(zero=True))
    y = alt.Y("of:N", sort=names, axis=alt.Axis(title=None, labelLimit=0))
    place: dict[str, Any] = {"y": y, "yOffset": alt.YOffset("kind:N", sort=_KINDS)} if two else {"y": y}
    base = alt.Chart(alt.InlineData(list(rows)))
    chart = alt.layer(
        alt.Chart(alt.InlineData([{"zero": 0}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="zero:Q"),
        base.mark_rule(color=CORRECTED, strokeWidth=2.5).encode(x=alt.X("low:Q", title=None), x2="high:Q", **place),
        base.mark_point(color=CORRECTED, size=70, opacity=1, strokeWidth=2)
        .encode(x=x, fill=alt.Fill("kind:N", legend=None, scale=alt.Scale(
            domain=_KINDS, range=[CORRECTED, CORRECTED, "transparent"])), description="told:N", **place),
        base.mark_text(align="left", fontSize=11).encode(x=alt.value(_WIDTH + 8), text="said:N", **place),
    )  # fmt: skip
    about = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    return finished(chart, title, about, height=_ROW * len(rows) + 10, width=_WIDTH)


def guardrail_chart(results: Sequence[ReplayResult]) -> Spec | None:
    """Return a chart of each guardrail's intervals with its limit; None without guardrails, or for too many intervals.

    Each guardrail has its own axis, because their quantities differ.
    """
    number = len(results[0].guardrails)
    if not 0 < number * len(results) <= _MOST_GUARDRAILS:
        return None
    names = drawn_names(results)
    parts = [
        part
        for j in range(number)
        if (part := _part([(name, result.guardrails[j]) for name, result in zip(names, results, strict=True)]))
    ]
    if not parts:
        return None
    subtitle = [
        "dashed: the limit, beyond which, shaded, a guardrail is broken",
        f"all these intervals hold at once with a probability of {results[0].value.level:.0%}",
    ]
    return titled(alt.vconcat(*parts), "Guardrails", subtitle)


def _part(answers: Sequence[tuple[str, GuardrailAnswer]]) -> Any:
    """Return the chart of one guardrail, with a row for each line; None if no interval is known."""
    first = answers[0][1]
    percent = first.quantity == "relative uplift"
    finite = [(name, one) for name, one in answers if math.isfinite(one.interval.estimate + one.interval.low)]
    if not finite:
        return None
    numbers_seen = [end for _, one in finite for end in (one.interval.estimate, one.interval.low, one.interval.high)]
    known = [first.limit, *(end for end in numbers_seen if math.isfinite(end))]
    room = _ROOM * (max(known) - min(known)) or abs(first.limit) or 1.0
    low, high = min(known) - room, max(known) + room
    rows: list[Row] = []
    for name, one in finite:
        ends = one.interval
        numbers = interval_text(ends.estimate, ends.low, ends.high, percent=percent, sign=first.quantity != "value")
        rows.append({
            "of": name, "estimate": ends.estimate, "low": ends.low, "high": min(ends.high, high), "answer": one.answer,
            "said": f"{one.answer}: {numbers}", "told": f"{name}: {drawable(first.guardrail)} {one.answer}, {numbers}",
        })  # fmt: skip
    below = parse_guardrail(first.guardrail).below
    wrong = {"low": first.limit if below else low, "high": high if below else first.limit}
    scale = alt.Scale(domain=[low, high], nice=False)
    x = alt.X("low:Q", scale=scale, axis=alt.Axis(title=None, format="%" if percent else "", tickCount=5))
    y = alt.Y("of:N", sort=[name for name, _ in finite], axis=alt.Axis(title=None, labelLimit=0))
    colour = alt.Color("answer:N", legend=None, scale=_scale(1))
    shape = alt.Shape("answer:N", legend=None, scale=_scale(0))
    base = alt.Chart(alt.InlineData(rows)).encode(y=y)
    limit = alt.Chart(alt.InlineData([{"limit": first.limit}]))
    bound = alt.Chart(alt.InlineData([wrong]))
    chart = alt.layer(
        bound.mark_rect(color=_MARKS["broken"][1], opacity=0.12).encode(x=x, x2="high:Q"),
        limit.mark_rule(color="black", strokeDash=[4, 3]).encode(x="limit:Q"),
        base.mark_rule(strokeWidth=2.5).encode(x=x, x2="high:Q", color=colour),
        base.mark_point(filled=True, size=90, opacity=1)
        .encode(x="estimate:Q", color=colour, shape=shape, description="told:N"),
        base.mark_text(align="left", fontSize=11).encode(x=alt.value(_GUARDRAIL_WIDTH + 8), text="said:N"),
    )  # fmt: skip
    title = alt.TitleParams(drawable(first.guardrail), anchor="start", fontSize=12, fontWeight="normal")
    return chart.properties(width=_GUARDRAIL_WIDTH, height=_GUARDRAIL_ROW * len(finite), title=title)


def _scale(part: int) -> alt.Scale:
    return alt.Scale(domain=list(_MARKS), range=[mark[part] for mark in _MARKS.values()])


def acceptance_chart(results: Sequence[ReplayResult]) -> Spec | None:
    """Return displays read and accepted, and effective sample size, of each line; None for no or too many lines.

    For a single replay, the chart also shows the displays that value its final policy, and their effective sample size.
    """
    rows = [
        _acceptance_row(name if len(results) > 1 else "rounds", result)
        for name, result in zip(drawn_names(results), results, strict=True)
        if result.rounds
    ]
    if not 0 < len(rows) <= _MOST_ACCEPTANCES:
        return None
    final = results[0].final
    if len(results) == 1 and final is not None:
        worth, n = final.weights.effective_sample_size, final.weights.n
        label = f"{n:,} weighed, worth {worth:,.0f}"
        told = (
            f"final policy: valued on {n:,} displays, which its weights leave an effective sample size of {worth:,.0f}"
        )
        rows.append({"of": "final policy", "read": n, "accepted": 0, "worth": worth, "said": label, "told": told})
    x = alt.X("read:Q", axis=alt.Axis(title="displays", format=",d", tickCount=5), scale=alt.Scale(zero=True))
    y = alt.Y("of:N", sort=[row["of"] for row in rows], axis=alt.Axis(title=None, labelLimit=0))
    base = alt.Chart(alt.InlineData(rows)).encode(y=y)
    chart = alt.layer(
        base.mark_bar(color=GREY, opacity=0.45, height=14).encode(x=x, description="told:N"),
        base.mark_bar(color=CORRECTED, height=14).encode(x="accepted:Q"),
        base.mark_point(color=NAIVE, shape="diamond", filled=True, size=90, opacity=1).encode(x="worth:Q"),
        base.mark_text(align="left", fontSize=11).encode(x=alt.value(_WIDTH + 8), text="said:N"),
    )
    subtitle = "grey: displays read; blue: accepted, a round each; diamond: effective sample size"
    return finished(chart, "What the numbers rest on", subtitle, height=_ACCEPTANCE_ROW * len(rows), width=_WIDTH)


def _acceptance_row(name: str, result: ReplayResult) -> Row:
    """Return the displays of a line, as the mean over its repeats."""
    accepted = result.trajectory.num_rows / int(result.plan["options"]["repeats"])
    read = accepted / result.acceptance_rate
    worth = result.effective_sample_size
    label = f"{accepted:,.0f} of {read:,.0f} ({result.acceptance_rate:.1%}), worth {worth:,.0f}"
    expected = (
        "" if math.isnan(result.acceptance_expected) else f"; {result.acceptance_expected:.1%} were to be expected"
    )
    told = (
        f"{name}: {accepted:,.0f} of {read:,.0f} displays read were accepted ({result.acceptance_rate:.1%}){expected}"
    )
    return {"of": name, "read": read, "accepted": accepted, "worth": worth, "said": label, "told": told}


def audit_chart(audit: Audit) -> Spec:
    """Return the replayed values of all twins beside the live value, policy by policy."""
    twins = audit.twins
    policies, replayed = twins["policy"].to_pylist(), twins["value"].to_numpy()
    values = [{"policy": drawable(p), "value": float(v)} for p, v in zip(policies, replayed, strict=True)]
    live = [{"policy": drawable(p.policy), "value": p.live_value} for p in audit.policies]
    x = alt.X("value:Q", axis=alt.Axis(title="value per round"), scale=alt.Scale(zero=False))
    y = alt.Y("policy:N", sort=[drawable(p.policy) for p in audit.policies], axis=alt.Axis(title=None, labelLimit=0))
    chart = alt.layer(
        alt.Chart(alt.InlineData(values))
        .mark_tick(color=CORRECTED, opacity=0.6, thickness=2, size=24)
        .encode(x=x, y=y),
        alt.Chart(alt.InlineData(live))
        .mark_point(color=NAIVE, shape="diamond", filled=True, size=110, opacity=1)
        .encode(x=x, y=y),
    )
    subtitle = "blue: replayed, a line a twin; orange: live, expected"
    return finished(chart, "Replayed and live value", subtitle, height=60 + 40 * len(audit.policies))


def detectable_chart(audit: Audit) -> Spec | None:
    """Return each pair's live difference beside the smallest that such a log shows; None where neither is known."""
    rows: list[Row] = []
    for pair in audit.pairs:
        high, live = pair.alone.high, pair.live_difference
        if not np.isfinite([high, live]).all():
            continue
        better, worse = (pair.first, pair.second) if live >= 0 else (pair.second, pair.first)
        error = 2.0 * pair.live_standard_error
        name = f"{drawable(better)} over {drawable(worse)}"
        label = f"{abs(live):.3g}, detects {high:.3g}"
        rows.append(
            {"pair": name, "detects": high, "live": abs(live), "low": abs(live) - error, "high": abs(live) + error,
             "most": max(high, abs(live) + error), "said": label, "told": f"{name}: live difference {label}"}
        )  # fmt: skip
    if not 0 < len(rows) <= _MOST_PAIRS:
        return None
    y = alt.Y("pair:N", sort=[str(row["pair"]) for row in rows], axis=alt.Axis(title=None, labelLimit=0))
    base = alt.Chart(alt.InlineData(rows)).encode(y=y)
    x = alt.X("live:Q", axis=alt.Axis(title="difference per round"), scale=alt.Scale(zero=True))
    chart = alt.layer(
        base.mark_bar(color=GREY, opacity=0.35, height=16).encode(x=alt.X("detects:Q", title="difference per round")),
        base.mark_rule(color=NAIVE, strokeWidth=2.5).encode(x="low:Q", x2="high:Q"),
        base.mark_point(color=NAIVE, shape="diamond", filled=True, size=90, opacity=1).encode(
            x=x, description="told:N"
        ),
        base.mark_text(align="left", dx=8, fontSize=11).encode(x="most:Q", text="said:N"),
    )
    about = "orange: live difference; what reaches beyond grey is told from 0 on 80 % of such logs, as the only pair"
    return finished(chart, "Which differences such a log shows", about, height=30 + 30 * len(rows))
