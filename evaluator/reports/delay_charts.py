"""Charts of a study of delays, as Vega-Lite specifications: CDF with bands, density of log delays, groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt

from evaluator.delays.families import family_named
from evaluator.delays.study.result import DelayStudy
from evaluator.delays.study.words import first_positive, last_shown, words
from evaluator.reports.chart_parts import WindowMark, window_layers
from evaluator.units import format_duration
from evaluator.visible import shortened, visible

Floats = npt.NDArray[np.float64]
Spec = dict[str, Any]

# Okabe and Ito's colours, told apart by all.
CORRECTED, NAIVE, GREY = "#0072B2", "#D55E00", "#999999"
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#7F3C8D", "#B5A800", "#000000")
_DAYS = (1.0, 3.0, 7.0, 14.0, 30.0, 90.0, 365.0)
_MARKS = (1e-3, 1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, *(86400.0 * days for days in _DAYS))
_WIDTH, _HEIGHT = 640, 300
# Where a component's density is lower, its line would only hide the axis.
_VISIBLE = 5e-4
_LETTERS = 28
_POINTS, _GROUP_POINTS, _BINS, _LINE_POINTS = 400, 160, 60, 240


def cdf_chart(study: DelayStudy) -> Spec:
    """Return the CDF with its pointwise and simultaneous band, corrected and, where that differs, as seen."""
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
    # Later than the last delay seen nothing is sure either.
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
        WindowMark(float(of.share.window) * scale, of.share.tau, of.label(rows))
        for of in study.windows
        # The curve is of delays in time.
        if not (of.in_rounds and rows.tick_seconds) and of.share.identified
    ]
    windows, width = window_layers(marks, values[0]["delay"], end, study.conversions, height=_HEIGHT)
    layers += windows
    given = "" if rows.limit is None else f", given a delay of at most {words(rows, fit.longest)}"
    subtitle = [f"inner band: each delay at {level}; outer band: the whole curve at {level}, where it is calibrated"]
    if not differs:
        subtitle.append("as seen and corrected are one curve: no delay was cut off earlier than another")
    return finished(alt.layer(*layers), f"Conversions come by a delay{given}", subtitle, width=width)


def density_chart(study: DelayStudy) -> Spec:
    """Return the density of the logarithm of the delays with the best law and, of a mixture, its components."""
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
    # Limits of 0 are none: the library's own cut letters in two.
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


def drawable(label: str) -> str:
    """Return a label that pictures can show: the library that draws dies of some characters."""
    return shortened(visible(label), _LETTERS)


def _law_lines(study: DelayStudy, low: float, high: float) -> list[dict[str, Any]]:
    """Return points of the best law, and of the parts of a mixture, each as its share of what the log can see."""
    if study.choice is None:
        return []
    best = study.choice.comparison.best_fit
    scale = study.rows.tick_seconds or 1.0
    family, parameters = best.law
    seen = 1.0 if math.isinf(best.longest) else float(best.cdf(study.fit.longest))
    x = np.geomspace(low, high, _LINE_POINTS + 1)
    found = [(best.family, "whole", np.diff(family.cdf(x, parameters)))]
    k = len(parameters) // 3 if "mixture" in best.family else 0
    lognormal = family_named("lognormal")
    for j in range(k):
        mass = parameters[j] * np.diff(lognormal.cdf(x, (parameters[k + j], parameters[2 * k + j])))
        found.append(("its components", f"component {j + 1}", mass))
    density = _LINE_POINTS / (math.log10(high / low) * seen)
    middle = np.sqrt(x[:-1] * x[1:]) * scale
    return [
        {"delay": float(at), "density": round(float(m * density), 6), "law": law, "part": part}
        for law, part, mass in found
        for at, m in zip(middle, mass, strict=True)
        if part == "whole" or m * density >= _VISIBLE
    ]


def delay_axis(tick_seconds: float | None, values: Sequence[dict[str, Any]], high: float) -> alt.X:
    """Return a logarithmic axis from the first value to `high`, with durations for labels, or rounds."""
    low = min((row["delay"] for row in values), default=1.0)
    high = max(high, 1.5 * low)
    # Not rounded to powers of ten: that would leave half of the axis empty.
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    if tick_seconds is None:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        rounds = [m * 10.0**k for k in decades for m in (1, 2, 5) if low <= m * 10.0**k <= high]
        return alt.X("delay:Q", scale=scale, axis=alt.Axis(title="delay in rounds", format=",", values=rounds))
    marks = [mark for mark in _MARKS if low <= mark <= 1.001 * high]
    label = "''"
    for mark in marks:
        label = f"abs(datum.value / {mark} - 1) < 1e-6 ? '{format_duration(mark)}' : {label}"
    axis = alt.Axis(title="delay", values=marks, labelExpr=label) if marks else alt.Axis(title="delay in seconds")
    return alt.X("delay:Q", scale=scale, axis=axis)


def _spread(delays: npt.NDArray[Any], points: int) -> npt.NDArray[np.int64]:
    """Return indices of at most about `points` delays, half evenly in log delay and half evenly in rank."""
    n = delays.size
    if n <= points:
        return np.arange(n)
    low = max(float(delays[0]), 1.0)
    by_log = np.searchsorted(delays, np.geomspace(low, max(float(delays[-1]), 2.0 * low), points // 2))
    return np.unique(np.concatenate([np.minimum(by_log, n - 1), np.linspace(0, n - 1, points // 2).astype(np.int64)]))


def finished(
    chart: Any, title: str, subtitle: str | Sequence[str], *, height: int = _HEIGHT, width: int = _WIDTH
) -> Spec:
    """Return a chart with its title, in the size and look of all."""
    return titled(chart.properties(width=width, height=height), title, subtitle)


def titled(chart: Any, title: str, subtitle: str | Sequence[str]) -> Spec:
    """Return a chart, or several that stand together, with a title and in the look of all."""
    words = alt.TitleParams(title, anchor="start", offset=10)
    if subtitle:  # an empty one would take its room
        words["subtitle"] = subtitle
    named = chart.properties(title=words)
    spec: Spec = named.configure_view(strokeWidth=0).configure_axis(gridColor="#EEEEEE").to_dict()
    return spec
