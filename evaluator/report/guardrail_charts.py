"""Guardrails as intervals beside their limits: which hold, which are broken, of which the log cannot tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from evaluator.replays.guardrails import GuardrailAnswer, parse_guardrail
from evaluator.replays.result import ReplayResult
from evaluator.report.delay_charts import Spec, drawable, titled
from evaluator.report.interval_charts import line_name
from evaluator.report.numbers import interval_text

# By shape, word and colour: any one of them tells them apart.
_MARKS = {
    "holds": ("circle", "#009E73"), "broken": ("cross", "#D55E00"), "cannot tell": ("triangle-up", "#808080")
}  # fmt: skip
_WIDTH, _ROW, _MOST = 400, 26, 40
_ROOM = 0.08
Row = dict[str, Any]


def guardrail_chart(results: Sequence[ReplayResult]) -> Spec | None:
    """Return each guardrail's interval for every line, with its limit; None without any, or with too many to be seen.

    Each guardrail has an axis of its own, for their quantities differ.
    """
    number = len(results[0].guardrails)
    if not 0 < number * len(results) <= _MOST:
        return None
    several = len(results) > 1
    names = [line_name(result, i) if several else drawable(result.plan["policy"]) for i, result in enumerate(results)]
    parts = [
        found
        for j in range(number)
        if (found := _part([(name, of.guardrails[j]) for name, of in zip(names, results, strict=True)]))
    ]
    if not parts:
        return None
    said = [
        "dashed: the limit, beyond which, shaded, a guardrail is broken",
        f"all these intervals hold at once with a probability of {results[0].value.level:.0%}",
    ]
    return titled(alt.vconcat(*parts), "Guardrails", said)


def _part(answers: Sequence[tuple[str, GuardrailAnswer]]) -> Any:
    """Return one guardrail as a chart, a row a line; None where no interval is known."""
    first = answers[0][1]
    percent = first.quantity == "relative uplift"
    shown = [(name, one) for name, one in answers if math.isfinite(one.interval.estimate + one.interval.low)]
    if not shown:
        return None
    ends = [end for _, one in shown for end in (one.interval.estimate, one.interval.low, one.interval.high)]
    known = [first.limit, *(end for end in ends if math.isfinite(end))]
    room = _ROOM * (max(known) - min(known)) or abs(first.limit) or 1.0
    low, high = min(known) - room, max(known) + room
    rows: list[Row] = []
    for name, one in shown:
        of = one.interval
        numbers = interval_text(of.estimate, of.low, of.high, percent=percent, sign=first.quantity != "value")
        rows.append({
            "of": name, "estimate": of.estimate, "low": of.low, "high": min(of.high, high), "answer": one.answer,
            "said": f"{one.answer}: {numbers}", "told": f"{name}: {drawable(first.guardrail)} {one.answer}, {numbers}",
        })  # fmt: skip
    below = parse_guardrail(first.guardrail).below
    wrong = {"low": first.limit if below else low, "high": high if below else first.limit}
    scale = alt.Scale(domain=[low, high], nice=False)
    x = alt.X("low:Q", scale=scale, axis=alt.Axis(title=None, format="%" if percent else "", tickCount=5))
    y = alt.Y("of:N", sort=[name for name, _ in shown], axis=alt.Axis(title=None, labelLimit=0))
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
        base.mark_text(align="left", fontSize=11).encode(x=alt.value(_WIDTH + 8), text="said:N"),
    )  # fmt: skip
    title = alt.TitleParams(drawable(first.guardrail), anchor="start", fontSize=12, fontWeight="normal")
    return chart.properties(width=_WIDTH, height=_ROW * len(shown), title=title)


def _scale(part: int) -> alt.Scale:
    return alt.Scale(domain=list(_MARKS), range=[mark[part] for mark in _MARKS.values()])
