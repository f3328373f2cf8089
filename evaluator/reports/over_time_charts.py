"""Charts of how values, differences and checks moved from log to log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import altair as alt

from evaluator.reports.dated_runs import Line, Study
from evaluator.reports.delay_charts import GREY, LINES, Spec, drawable, finished

_HEIGHT = 200
# More lines hide each other; the table has them all.
_MOST = 6
# Of the time between two logs, the part over which the lines' marks are spread.
_SPREAD = 0.3
_MS = 1000.0
_ROW = 24
_LIGHTS = {"pass": "#009E73", "warn": "#E69F00", "fail": "#D55E00", "not applicable": GREY}
_WORDS = {"pass": "pass", "warn": "warn", "fail": "fail", "not applicable": "-"}
Row = dict[str, Any]


def moved_chart(study: Study, lines: Sequence[Line], what: Literal["value", "difference"]) -> Spec | None:
    """Return values, or differences to the baseline, by the dates of the logs; None where there are none."""
    shown = [line for line in lines if what == "value" or not line.is_baseline]
    few = shown[:_MOST]
    middles = sorted({run.when.middle for run in study.runs})
    step = _SPREAD / _MOST * min((after - before for before, after in pairwise(middles)), default=0.0)
    rows: list[Row] = []
    for j, line in enumerate(few):
        for run, point in zip(study.runs, line.points, strict=True):
            found = getattr(point, what)
            if found is None or found["estimate"] is None:
                continue
            ends = "" if found["low"] is None else f" [{found['low']:.4g}, {found['high']:.4g}]"
            rows.append(
                {
                    "at": _MS * (run.when.middle + (j - (len(few) - 1) / 2) * step),
                    "of": drawable(line.name),
                    **{end: found[end] for end in ("estimate", "low", "high")},
                    "told": f"{drawable(line.name)}, {run.when.days}: {what} {found['estimate']:.4g}{ends}",
                }
            )
    if not rows:
        return None
    names = [drawable(line.name) for line in few]
    # Each in the colour that it has in the chart of values.
    colours = [LINES[[of.name for of in lines].index(line.name) % len(LINES)] for line in few]
    alone = len(lines) == 1
    legend = None if alone else alt.Legend(orient="top", symbolOpacity=1, labelLimit=0, columns=2)
    of = alt.Color("of:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend)
    first, last = (_MS * end for end in (study.runs[0].when.first, max(run.when.last for run in study.runs)))
    axis = alt.Axis(title="dates of the log", format="%Y-%m-%d", labelOverlap=True, tickCount=6)
    x = alt.X("at:T", axis=axis, scale=alt.Scale(type="utc", domain=[first, last], nice=False))
    y = alt.Y("estimate:Q", axis=alt.Axis(title=f"{what} per round"), scale=alt.Scale(zero=False))
    base = alt.Chart(alt.InlineData(rows)).encode(x=x, color=of)
    layers: list[Any] = [
        base.mark_line(strokeWidth=1, strokeDash=[3, 3]).encode(y=y),
        base.mark_rule(strokeWidth=2.5).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(y=y, description="told:N"),
    ]
    if what == "difference":
        zero = alt.Chart(alt.InlineData([{"zero": 0}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(y="zero:Q")
        layers.insert(0, zero)
    level = f"{lines[0].level:.0%}"
    said = [f"realised, with {level} intervals; at the middle of each log's dates"]
    if len(few) < len(shown):
        said.append(f"the first {len(few)} of {len(shown)}; the table has all")
    about = "Value" if what == "value" else lines[0].against[:1].upper() + lines[0].against[1:]
    title = f"{drawable(about)} from log to log"
    if alone:
        title += f": {drawable(lines[0].name)}"
    return finished(alt.layer(*layers), title, said, height=_HEIGHT)


def check_chart(study: Study) -> Spec | None:
    """Return the verdicts by log of the checks that failed or warned on any; None where none did."""
    verdicts: dict[str, list[str]] = {}
    for run in study.runs:
        for of in run.result["checks"]:
            verdicts.setdefault(of["name"], []).append(of["verdict"])
    bad = [name for name, found in verdicts.items() if {"warn", "fail"} & set(found)]
    if not bad:
        return None
    starts = [run.when.days[:10] for run in study.runs]
    logs = starts if len(set(starts)) == len(starts) else [f"{i}. {day}" for i, day in enumerate(starts, start=1)]
    rows = [
        {"log": log, "check": of["name"], "verdict": of["verdict"], "said": _WORDS[of["verdict"]],
         "told": f"{of['name']}, {run.when.days}: {of['verdict']}"}
        for log, run in zip(logs, study.runs, strict=True)
        for of in run.result["checks"]
        if of["name"] in bad
    ]  # fmt: skip
    x = alt.X("log:N", sort=logs, axis=alt.Axis(title="first day of the log", labelAngle=0 if len(logs) < 9 else -45))
    y = alt.Y("check:N", sort=bad, axis=alt.Axis(title=None, labelLimit=0))
    base = alt.Chart(alt.InlineData(rows)).encode(x=x, y=y)
    lights = alt.Scale(domain=list(_LIGHTS), range=list(_LIGHTS.values()))
    chart = alt.layer(
        base.mark_rect(opacity=0.35, strokeWidth=0).encode(
            color=alt.Color("verdict:N", scale=lights, legend=None), description="told:N"
        ),
        base.mark_text(fontSize=11).encode(text="said:N"),
    )
    rest = len(verdicts) - len(bad)
    said = f"those that failed or warned on any log; {rest} others did on none"
    return finished(chart, "Checks from log to log", said, height=_ROW * len(bad))
