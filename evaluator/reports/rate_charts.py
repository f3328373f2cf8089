"""Charts of conversion rates: by period as seen and corrected, and what the joint model expects beside what came."""

from __future__ import annotations

from typing import Any

import altair as alt

from evaluator.delays.study.joint_checks import CalibrationPart
from evaluator.delays.study.result import DelayStudy
from evaluator.delays.study.words import words
from evaluator.reports.delay_charts import CORRECTED, GREY, NAIVE, Spec, finished

_DAY_MS = 86_400_000
_ON_CONTEXT = "#009E73"
_SEEN, _LATER, _JOINT = "as seen", "corrected for what is still to come", "corrected on context, with intervals"


def rates_chart(study: DelayStudy) -> Spec | None:
    """Return conversion rates by period; None where the log has no displays or a single period."""
    periods = study.rows.periods
    if periods is None or len(study.rates) < 2:
        return None
    cut = any(rate.corrected is None or abs(rate.corrected - rate.seen) > 1e-9 for rate in study.rates)
    values: list[dict[str, Any]] = []
    for rate in study.rates:
        values.append({"period": rate.period, "rate": rate.seen, "kind": _SEEN})
        if rate.corrected is not None and cut:
            values.append({"period": rate.period, "rate": rate.corrected, "kind": _LATER})
    kinds = {_SEEN: NAIVE, _LATER: CORRECTED}
    if study.joint is not None:
        kinds[_JOINT] = _ON_CONTEXT
        for found in study.joint.cohorts:
            row = {"period": found.period, "rate": found.corrected, "low": found.low, "high": found.high}
            values.append({**row, "kind": _JOINT})
    title = f"{periods.name} of the display"
    for point in values:
        point["named"] = periods.label(point["period"], study.rows.tick_seconds)
    if all(point["named"].isdecimal() for point in values):
        x = alt.X("period:Q", axis=alt.Axis(title=title, tickMinStep=1, format="d"))
    else:
        axis = alt.Axis(title=title, format="%Y-%m-%d", labelOverlap=True, tickMinStep=_DAY_MS)
        x = alt.X("date:T", scale=alt.Scale(type="utc"), axis=axis)
        values = [{**point, "date": point["named"]} for point in values]
    y = alt.Axis(format="%", title="conversions per display")
    shown = [kind for kind in kinds if any(row["kind"] == kind for row in values)]
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=shown, range=[kinds[kind] for kind in shown]),
                       sort=shown, legend=alt.Legend(orient="top", symbolType="stroke", labelLimit=400))  # fmt: skip
    base = alt.Chart(alt.InlineData(values)).encode(x=x)
    band = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.2, color=_ON_CONTEXT)
    line = base.mark_line(point=alt.OverlayMarkDef(size=18)).encode(
        y=alt.Y("rate:Q", axis=y, scale=alt.Scale(zero=True)),
        color=colour,
        tooltip=[alt.Tooltip("named:N", title=periods.name), "kind:N", alt.Tooltip("rate:Q", format=".2%")],
    )
    layers = [band.encode(y=alt.Y("low:Q", axis=y), y2="high:Q"), line] if study.joint is not None else [line]
    missing = sum(rate.corrected is None for rate in study.rates)
    subtitle = (
        ""
        if not missing
        else f"the youngest {periods.name} shows too little to correct"
        + ("" if missing == 1 else f" ({missing} of them)")
    )
    return finished(alt.layer(*layers), f"Conversion rate by {periods.name}", subtitle)


def calibration_chart(study: DelayStudy) -> Spec | None:
    """Return conversions so far against those the joint model expects so far, per display; None without the model."""
    if study.joint is None:
        return None
    found = study.joint.calibration
    by_rate, by_age = "tenths by predicted rate", "tenths by age"
    values = [_point(part, by_rate, f"{part.low:.2%} to {part.high:.2%}") for part in found.by_rate]
    for part in found.by_age:
        values.append(_point(part, by_age, f"{words(study.rows, part.low)} to {words(study.rows, part.high)}"))
    top = 1.05 * max(max(row["expected"], row["high"]) for row in values)
    scale = alt.Scale(domain=[0, top], nice=False)
    x = alt.X("expected:Q", scale=scale, axis=alt.Axis(format="%", title="expected so far, per display"))
    y = alt.Axis(format="%", title="converted so far, per display")
    colour = alt.Color("of:N", title=None, scale=alt.Scale(domain=[by_rate, by_age], range=[CORRECTED, NAIVE]),
                       legend=alt.Legend(orient="top"))  # fmt: skip
    diagonal = alt.Chart(alt.InlineData([{"expected": 0, "seen": 0}, {"expected": top, "seen": top}])).mark_line(
        color=GREY, strokeDash=[4, 3]
    )
    base = alt.Chart(alt.InlineData(values)).encode(x=x, color=colour)
    chart = alt.layer(
        diagonal.encode(x=x, y=alt.Y("seen:Q", scale=scale, axis=y)),
        base.mark_rule().encode(y=alt.Y("low:Q", scale=scale, axis=y), y2="high:Q"),
        base.mark_point(filled=True, size=50, opacity=1).encode(
            y=alt.Y("seen:Q", scale=scale, axis=y),
            tooltip=["of:N", "range:N", alt.Tooltip("expected:Q", format=".2%"), alt.Tooltip("seen:Q", format=".2%")],
        ),
    )
    verdict = "nothing speaks against it" if found.holds else "the model does not hold"
    said = (
        f"on the line it does; p = {found.p:.2g}: {verdict}; differences of {found.detectable:.0%} show on 4 of 5 logs"
    )
    return finished(chart, "Does the model on context hold?", said)


def _point(part: CalibrationPart, of: str, span: str) -> dict[str, Any]:
    expected, seen, error = (value / part.displays for value in (part.expected, part.seen, 2.0 * part.error))
    return {"of": of, "range": span, "expected": expected, "seen": seen, "low": seen - error, "high": seen + error}
