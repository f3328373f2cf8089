"""Charts of a study of delays, as Vega-Lite specifications: CDF with bands, density, groups, rates by day."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt

from evaluator.delays.families import family_named
from evaluator.delays.study.joint_rate import CalibrationPart
from evaluator.delays.study.result import DelayStudy, first_positive, last_shown, words
from evaluator.reports.chart_parts import (
    CORRECTED,
    GREY,
    HEIGHT,
    LINES,
    NAIVE,
    WindowMark,
    delay_axis,
    drawable,
    finished,
    window_layers,
)
from evaluator.reports.document import Spec

Floats = npt.NDArray[np.float64]

# Smallest density of a component that is drawn: a lower line would only hide the axis.
_VISIBLE = 5e-4
_POINTS, _GROUP_POINTS, _BINS, _LINE_POINTS = 400, 160, 60, 240
_DAY_MS = 86_400_000
_ON_CONTEXT = "#009E73"
_SEEN, _LATER, _JOINT = "as seen", "corrected for what is still to come", "corrected on context, with intervals"


def cdf_chart(study: DelayStudy) -> Spec:
    """Return the corrected CDF with its pointwise and simultaneous bands, and the CDF as seen where it differs."""
    fit, rows = study.fit, study.rows
    names = ("cdf", "naive", "low", "high", "band_low", "band_high")
    scale = rows.tick_seconds or 1.0
    values = []
    for i in _spread(fit.delays, _POINTS):
        if fit.delays[i] > 0:
            row = {"delay": float(fit.delays[i]) * scale}
            row |= {name: round(float(getattr(fit, name)[i]), 6) for name in names}
            if not fit.band_from <= fit.delays[i] <= fit.band_to:
                del row["band_low"], row["band_high"]
            values.append(row)
    # After the last delay the curve goes on as it is, and so does its uncertainty.
    end = scale * (fit.longest if math.isfinite(fit.longest) else 2.0 * float(fit.delays[-1]))
    values.append({name: values[-1][name] for name in ("cdf", "naive", "low", "high")} | {"delay": end})
    level = f"{fit.confidence:.0%}"
    differs = bool(np.abs(fit.naive - fit.cdf).max() > 1e-9)
    kinds = [f"corrected, with {level} bands", "as seen"][: 1 + differs]
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=kinds, range=[CORRECTED, NAIVE][: len(kinds)]),
                       sort=kinds, legend=alt.Legend(orient="top", symbolType="stroke", labelLimit=400))  # fmt: skip
    base = alt.Chart(alt.InlineData(values)).encode(x=delay_axis(rows.tick_seconds, values, end))
    share = alt.Axis(format="%", title="share of conversions come")
    area = base.mark_area(color=CORRECTED, interpolate="step-after", clip=True)
    wide = area.transform_filter("isValid(datum.band_low)").encode(
        y=alt.Y("band_low:Q", axis=share, scale=alt.Scale(domain=[0, 1])), y2="band_high:Q"
    )
    narrow = area.encode(y=alt.Y("low:Q", axis=share), y2="high:Q")
    tips = [alt.Tooltip("cdf:Q", format=".2%"), alt.Tooltip("low:Q", format=".2%"), alt.Tooltip("high:Q", format=".2%")]
    layers: list[Any] = [wide.encode(opacity=alt.value(0.15)), narrow.encode(opacity=alt.value(0.3))]
    if differs:
        naive = base.transform_calculate(kind=f"'{kinds[1]}'").mark_line(interpolate="step-after", strokeDash=[5, 3])
        layers.append(naive.encode(y=alt.Y("naive:Q", axis=share), color=colour))
    corrected = base.transform_calculate(kind=f"'{kinds[0]}'").mark_line(interpolate="step-after")
    layers.append(corrected.encode(y=alt.Y("cdf:Q", axis=share), color=colour, tooltip=tips))
    marks = [
        WindowMark(float(window.share.window) * scale, window.share.tau, window.label(rows))
        for window in study.windows
        # The curve shows delays in time.
        if not (window.in_rounds and rows.tick_seconds) and window.share.identified
    ]
    windows, width = window_layers(marks, values[0]["delay"], end, study.conversions, height=HEIGHT)
    layers += windows
    given = "" if rows.limit is None else f", given a delay of at most {words(rows, fit.longest)}"
    subtitle = [f"inner band: each delay at {level}; outer band: the whole curve at {level}, where it is calibrated"]
    if not differs:
        subtitle.append("as seen and corrected are one curve: no delay was cut off earlier than another")
    return finished(alt.layer(*layers), f"Conversions come by a delay{given}", subtitle, width=width)


def density_chart(study: DelayStudy) -> Spec:
    """Return the density of the logarithm of the delays with the best law and, if it is a mixture, its components."""
    rows, fit = study.rows, study.fit
    bins = int(np.clip(2.0 * study.conversions**0.4, 8, _BINS))
    edges = np.unique(np.floor(np.geomspace(first_positive(fit), float(fit.delays[-1]) + 1.0, bins + 1)))
    width = np.diff(np.log10(edges))
    mass = np.diff(fit(edges - 1))
    scale = rows.tick_seconds or 1.0
    bars = [
        {"delay": low * scale, "to": high * scale, "density": round(float(m / w), 6)}
        for low, high, m, w in zip(edges[:-1].tolist(), edges[1:].tolist(), mass, width, strict=True)
    ]
    base = alt.Chart(alt.InlineData(bars)).mark_bar(color="#B7CBDD", binSpacing=0)
    axis = alt.Axis(title="density of log10(delay)", grid=False)
    layers: list[Any] = [
        base.encode(
            x=delay_axis(rows.tick_seconds, bars, max(float(edges[-1]), last_shown(fit)) * scale),
            x2="to:Q",
            y=alt.Y("density:Q", axis=axis, scale=alt.Scale(domainMin=0)),
            y2=alt.datum(0),
            tooltip="density:Q",
        )
    ]
    title = "When conversions come"
    lines = _law_lines(study, float(edges[0]), float(edges[-1]))
    if lines and study.choice is not None:
        names = list(dict.fromkeys(row["law"] for row in lines))
        colours = [CORRECTED] + ([NAIVE] if len(names) > 1 else [])
        colour = alt.Color("law:N", title=None, scale=alt.Scale(domain=names, range=colours),
                           legend=alt.Legend(orient="top", symbolType="stroke", labelLimit=400))  # fmt: skip
        dash = alt.StrokeDash("law:N", scale=alt.Scale(domain=names, range=[[1, 0], [4, 3]]), legend=None)
        layers.append(
            alt.Chart(alt.InlineData(lines))
            .mark_line(interpolate="monotone")
            .encode(x="delay:Q", y="density:Q", color=colour, strokeDash=dash, detail="part:N")
        )
        title += f", and the {'best law' if study.choice.fits else 'nearest law, which does not fit'}"
    at_zero = float(fit(0))
    subtitle = f"bars: corrected delays{f'; {at_zero:.1%} of them are 0, left of the axis' if at_zero >= 5e-4 else ''}"
    return finished(alt.layer(*layers), title, subtitle)


def groups_chart(study: DelayStudy) -> Spec | None:
    """Return the CDFs of the groups; None without groups."""
    if not study.groups:
        return None
    rows = study.rows
    scale = rows.tick_seconds or 1.0
    values = []
    names: list[str] = []
    for group in study.groups:
        label = f"{len(group.members)} others" if len(group.members) > 1 else group.label
        name = f"{drawable(label)} ({group.conversions:,})"
        names.append(f"{name} [{len(names) + 1}]" if name in names else name)
        fit = group.fit
        for i in _spread(fit.delays, _GROUP_POINTS):
            if fit.delays[i] > 0:
                row = {"delay": float(fit.delays[i]) * scale, "cdf": round(float(fit.cdf[i]), 5), "group": names[-1]}
                values.append(row)
    colours = [LINES[i % len(LINES)] for i in range(len(names))]
    if len(study.groups[-1].members) > 1:
        colours[-1] = GREY
    share = alt.Axis(format="%", title="share of conversions come")
    by = drawable(rows.by)
    # A limit of 0 means no limit: the library's own limits cut words.
    legend = alt.Legend(title=f"{by} (conversions)", labelLimit=0, titleLimit=0)
    chart = (
        alt.Chart(alt.InlineData(values))
        .mark_line(interpolate="step-after", strokeWidth=1.5)
        .encode(
            x=delay_axis(rows.tick_seconds, values, last_shown(study.fit) * scale),
            y=alt.Y("cdf:Q", axis=share, scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("group:N", sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend),
            tooltip=["group:N", alt.Tooltip("cdf:Q", format=".1%")],
        )
    )
    test = study.heterogeneity
    subtitle = "" if test is None else f"one law for all: p = {test.p:.2g}"
    return finished(chart, f"Delays by {by}", subtitle)


def _law_lines(study: DelayStudy, low: float, high: float) -> list[dict[str, Any]]:
    """Return points of the best law and of the parts of a mixture, as shares of the delays that the log can see."""
    if study.choice is None:
        return []
    best = study.choice.comparison.best_fit
    scale = study.rows.tick_seconds or 1.0
    family, parameters = best.law
    seen = 1.0 if math.isinf(best.longest) else float(best.cdf(study.fit.longest))
    x = np.geomspace(low, high, _LINE_POINTS + 1)
    masses = [(best.family, "whole", np.diff(family.cdf(x, parameters)))]
    k = len(parameters) // 3 if "mixture" in best.family else 0
    lognormal = family_named("lognormal")
    for j in range(k):
        mass = parameters[j] * np.diff(lognormal.cdf(x, (parameters[k + j], parameters[2 * k + j])))
        masses.append(("its components", f"component {j + 1}", mass))
    density = _LINE_POINTS / (math.log10(high / low) * seen)
    middle = np.sqrt(x[:-1] * x[1:]) * scale
    return [
        {"delay": float(at), "density": round(float(m * density), 6), "law": law, "part": part}
        for law, part, mass in masses
        for at, m in zip(middle, mass, strict=True)
        if part == "whole" or m * density >= _VISIBLE
    ]


def _spread(delays: npt.NDArray[Any], points: int) -> npt.NDArray[np.int64]:
    """Return indices of at most about `points` delays, half evenly in log delay and half evenly in rank."""
    n = delays.size
    if n <= points:
        return np.arange(n)
    low = max(float(delays[0]), 1.0)
    by_log = np.searchsorted(delays, np.geomspace(low, max(float(delays[-1]), 2.0 * low), points // 2))
    return np.unique(np.concatenate([np.minimum(by_log, n - 1), np.linspace(0, n - 1, points // 2).astype(np.int64)]))


def rates_chart(study: DelayStudy) -> Spec | None:
    """Return conversion rates by period; None if the log has no displays or one period only."""
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
        for cohort in study.joint.cohorts:
            row = {"period": cohort.period, "rate": cohort.corrected, "low": cohort.low, "high": cohort.high}
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
    drawn = [kind for kind in kinds if any(row["kind"] == kind for row in values)]
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=drawn, range=[kinds[kind] for kind in drawn]),
                       sort=drawn, legend=alt.Legend(orient="top", symbolType="stroke", labelLimit=400))  # fmt: skip
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
    """Return observed conversions per display beside those that the joint model expects; None without the model."""
    if study.joint is None:
        return None
    check = study.joint.calibration
    by_rate, by_age = "tenths by predicted rate", "tenths by age"
    values = [_point(part, by_rate, f"{part.low:.2%} to {part.high:.2%}") for part in check.by_rate]
    for part in check.by_age:
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
    verdict = "nothing speaks against it" if check.holds else "the model does not hold"
    subtitle = (
        f"on the line it does; p = {check.p:.2g}: {verdict}; differences of {check.detectable:.0%} show on 4 of 5 logs"
    )
    return finished(chart, "Does the model on context hold?", subtitle)


def _point(part: CalibrationPart, kind: str, span: str) -> dict[str, Any]:
    expected, seen, error = (value / part.displays for value in (part.expected, part.seen, 2.0 * part.error))
    return {"of": kind, "range": span, "expected": expected, "seen": seen, "low": seen - error, "high": seen + error}
