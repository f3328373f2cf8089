"""The first chapter of a page with runs of one study on logs of different dates: how values and checks changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import altair as alt

from evaluator.errors import SourceError
from evaluator.reports.chart_parts import GREY, LINES, drawable, finished
from evaluator.reports.dated_runs import (
    KINDS,
    Line,
    Run,
    Study,
    joint_sections,
    lines_of,
    read_run,
    sort_runs,
    verdicts_of,
)
from evaluator.reports.document import (
    Block,
    Cell,
    Chapter,
    Column,
    Section,
    Spec,
    VerdictBlock,
    column,
    grid,
    listed,
    paragraph,
    section,
    words,
)
from evaluator.reports.document import Run as Styled
from evaluator.reports.document import lines as text_lines
from evaluator.reports.manifest import AGAIN
from evaluator.reports.numbers import Measured, significant_text

TITLE = "Over time"
_LISTED = f"runs of {', '.join(KINDS[:-1])} and {KINDS[-1]}"
_BAD = {"fail": "failed", "warn": "warned"}
_HEIGHT = 200
# Largest number of lines of a chart: more lines hide each other, and the table has all of them.
_MOST = 6
# Share of the time between two logs over which the marks of the lines are spread.
_SPREAD = 0.3
_MS = 1000.0
_ROW = 24
_LIGHTS = {"pass": "#009E73", "warn": "#E69F00", "fail": "#D55E00", "not applicable": GREY}
_WORDS = {"pass": "pass", "warn": "warn", "fail": "fail", "not applicable": "-"}
Row = dict[str, Any]


class Chapters(NamedTuple):
    """Chapters of a page in their order, and a line on each run that is in no study while others of its kind are."""

    chapters: list[Chapter]
    left: list[str]


def order_by_time(folders: Sequence[Path], chapters: Sequence[Chapter]) -> Chapters:
    """Return the chapters of a page, after a chapter on each study of the same question on logs of different dates.

    SourceError if the manifest or the result of a folder cannot be read, or is not what a command writes.
    """
    from evaluator.reports.chart_schema import check_charts

    several = Counter(chapter.kind for chapter in chapters)
    pairs = [pair for pair in zip(folders, chapters, strict=True) if several[pair[1].kind] > 1]
    runs = [run for folder, chapter in pairs if (run := read_run(folder, chapter))]
    sorted_runs = sort_runs(runs)
    if not sorted_runs.studies:
        return Chapters(list(chapters), sorted_runs.left)
    others = [
        f"{folder} ({chapter.kind}): only {_LISTED} are drawn over time."
        for folder, chapter in pairs
        if chapter.kind not in KINDS
    ]
    left = [*sorted_runs.left, *others]
    try:
        first = _chapter(sorted_runs.studies, left)
        check_charts(first.charts)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        names = ", ".join(run.name for run in runs)
        raise SourceError(f"A result.json of {names} is not as a command wrote it, at {error}.", remedy=AGAIN) from None
    ordered = [run for study in sorted_runs.studies for run in study.runs]
    dated = [replace(run.chapter, title=f"{run.chapter.title}, {run.when.days}") for run in ordered]
    rest = [chapter for chapter in chapters if not any(chapter is run.chapter for run in ordered)]
    return Chapters([first, *dated, *rest], left)


def _chapter(studies: Sequence[Study], left: Sequence[str]) -> Chapter:
    checked = {_log_of(run): run for study in studies if study.kind == "check" for run in study.runs}
    joint: list[Section] = []
    sections: list[Section] = []
    charts: dict[str, Spec] = {}
    for i, study in enumerate(studies):
        if blocks := [] if joint else verdicts_of(study):
            for part, drawn in joint_sections(study, blocks):
                joint.append(part)
                charts |= drawn
        if study.kind == "check":
            sections.append(_checks(study))
            drawn = _known({f"checks {i + 1}": check_chart(study)})
        else:
            lines = lines_of(study)
            sections.append(_values(study, lines, checked))
            kinds: tuple[Literal["value", "difference"], ...] = ("value", "difference")
            drawn = _known({f"{what} {i + 1}": moved_chart(study, lines, what) for what in kinds})
        sections[-1] = replace(sections[-1], charts=tuple(drawn))
        charts |= drawn
    head = section("", paragraph(_head(studies)))
    if joint:
        fold = words(
            Styled("All runs in numbers", bold=True), Styled(" values, differences and checks by date", dim=True)
        )
        sections = [*joint, *(replace(part, fold=fold) for part in (head, *sections))]
    else:
        sections = [head, *sections]
    if left:
        sections.append(listed("Not in this order", left))
    return Chapter("over time", TITLE, tuple(sections), charts)


def _known(charts: Mapping[str, Spec | None]) -> dict[str, Spec]:
    return {name: chart for name, chart in charts.items() if chart is not None}


def _head(studies: Sequence[Study]) -> str:
    parts = [f"{len(study.runs)} runs of evaluate {study.kind}" for study in studies]
    sentences = f"{', '.join(parts)}: each asks the same of logs of different dates; the oldest log stands first."
    versions = list(dict.fromkeys(run.version for study in studies for run in study.runs))
    if len(versions) > 1:
        sentences += f" They were made by versions {', '.join(versions)}: a number may have moved with the version."
    return sentences


def _values(study: Study, lines: Sequence[Line], checked: Mapping[Any, Run]) -> Section:
    """Return the table of a study of replays or comparisons, with a note on how to read it."""
    several = len(lines) > 1
    guarded = any(point.guardrails for line in lines for point in line.points)
    decisions = [_decisions(run.chapter) for run in study.runs]
    decided = any(decisions)
    level = f"{lines[0].level:.0%}"
    columns: list[Column] = [
        column("log", "whole"),
        *([column("policy", "whole")] if several else []),
        column("displays", "number"),
        column(text_lines("value", level), "number"),
        column(text_lines(lines[0].against, level), "number"),
        *([column("guardrails")] if guarded else []),
        *([column("verdict", "whole")] if decided else []),
        column("checks"),
        column("run", "whole"),
    ]
    rows: list[list[Cell]] = []
    for i, run in enumerate(study.runs):
        for j, line in enumerate(lines):
            point, first = line.points[i], line is lines[0]
            rows.append(
                [
                    run.when.days if first else "",
                    *([line.name] if several else []),
                    f"{run.displays:,}" if first else "",
                    _interval(point.value),
                    "baseline" if line.is_baseline else _interval(point.difference, sign=True),
                    *([point.guardrails] if guarded else []),
                    *([decisions[i].get(j, "")] if decided else []),
                    _verdicts(checked.get(_log_of(run))) if first else "",
                    run.name if first else "",
                ]
            )
    overlap = _overlap(study)
    below = [_how_to_read(study, lines), *([overlap] if overlap else [])]
    return section(study.title, grid(columns, rows), *map(paragraph, below))


def _decisions(chapter: Chapter) -> dict[int, str]:
    """Return the decision (ship, wait or don't) on each variant for which the chapter has a verdict, by its number."""
    blocks = [block for part in chapter.sections for block in part.blocks if isinstance(block, VerdictBlock)]
    return {one.line.variant: one.decision for block in blocks for one in block.verdict.candidates}


def _how_to_read(study: Study, lines: Sequence[Line]) -> str:
    level = lines[0].level
    number = sum(point.value is not None for line in lines for point in line.points)
    miss = f"{(1 - level) * number:.2g}"
    return (
        f"Values and differences are realised, per round. Each {level:.0%} interval holds for its own run: of {number} "
        f"intervals of values, {miss} may miss on average. Whether two of them overlap says little about a change "
        "between their logs."
    )


def _overlap(study: Study) -> str:
    """Return a sentence on logs whose dates overlap."""
    shared = sum(after.when.first <= before.when.last for before, after in pairwise(study.runs))
    if not shared:
        return ""
    return f"{shared} of the logs begin{'s' * (shared == 1)} before the one above ends: what they share, runs share."


def _checks(study: Study) -> Section:
    """Return the table of a study of checks."""
    rows = [
        [run.when.days, f"{run.displays:,}", "yes" if run.result["fit"] else "no", _verdicts(run), run.name]
        for run in study.runs
    ]
    columns = [
        column("log", "whole"), column("displays", "number"), column("fit for replay"), column("checks"),
        column("run", "whole"),
    ]  # fmt: skip
    blocks: list[Block] = [grid(columns, rows)]
    worse, better = _moved(study.runs[-2], study.runs[-1])
    for names, what in ((worse, "Worse"), (better, "Better")):
        if names:
            blocks.append(paragraph(f"{what} on the latest log than on the one before: {', '.join(names)}."))
    return section(study.title, *blocks)


def _moved(before: Run, after: Run) -> tuple[list[str], list[str]]:
    """Return the checks whose verdict became worse, and those whose verdict became better."""
    rank = {"pass": 0, "warn": 1, "fail": 2}
    was = {check["name"]: check["verdict"] for check in before.result["checks"]}
    now = {check["name"]: check["verdict"] for check in after.result["checks"]}
    both = [name for name in now if now[name] in rank and was.get(name) in rank]
    worse = [f"{name} ({was[name]}, now {now[name]})" for name in both if rank[now[name]] > rank[was[name]]]
    better = [f"{name} ({was[name]}, now {now[name]})" for name in both if rank[now[name]] < rank[was[name]]]
    return worse, better


def _verdicts(run: Run | None) -> str:
    """Return the names of the checks that failed and of those that warned, as text."""
    if run is None:
        return "not checked here"
    verdicts = []
    for verdict, word in _BAD.items():
        names = [check["name"] for check in run.result["checks"] if check["verdict"] == verdict]
        if names:
            verdicts.append(f"{len(names)} {word} ({', '.join(names)})")
    return ", ".join(verdicts) or "none failed or warned"


def _log_of(run: Run) -> tuple[Any, ...]:
    return run.source["dataset"], run.source["fingerprint"], run.when


def _interval(interval: Mapping[str, Any] | None, *, sign: bool = False) -> Cell:
    if interval is None or interval["estimate"] is None:
        return "none"
    estimate, low, high = interval["estimate"], interval["low"], interval["high"]
    if low is None or high is None:
        return significant_text(estimate, 4, sign=sign)
    return Measured(estimate, low, high, "below", sign)


def moved_chart(study: Study, lines: Sequence[Line], what: Literal["value", "difference"]) -> Spec | None:
    """Return a chart of values, or of differences to the baseline, by the dates of the logs; None without any."""
    plotted = [line for line in lines if what == "value" or not line.is_baseline]
    few = plotted[:_MOST]
    middles = sorted({run.when.middle for run in study.runs})
    step = _SPREAD / _MOST * min((after - before for before, after in pairwise(middles)), default=0.0)
    rows: list[Row] = []
    for j, line in enumerate(few):
        for run, point in zip(study.runs, line.points, strict=True):
            interval = getattr(point, what)
            if interval is None or interval["estimate"] is None:
                continue
            ends = "" if interval["low"] is None else f" [{interval['low']:.4g}, {interval['high']:.4g}]"
            rows.append(
                {
                    "at": _MS * (run.when.middle + (j - (len(few) - 1) / 2) * step),
                    "of": drawable(line.name),
                    **{end: interval[end] for end in ("estimate", "low", "high")},
                    "told": f"{drawable(line.name)}, {run.when.days}: {what} {interval['estimate']:.4g}{ends}",
                }
            )
    if not rows:
        return None
    names = [drawable(line.name) for line in few]
    # Each line has the colour that it has in the chart of values.
    colours = [LINES[[other.name for other in lines].index(line.name) % len(LINES)] for line in few]
    alone = len(lines) == 1
    legend = None if alone else alt.Legend(orient="top", symbolOpacity=1, labelLimit=0, columns=2)
    colour = alt.Color("of:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend)
    first, last = (_MS * end for end in (study.runs[0].when.first, max(run.when.last for run in study.runs)))
    axis = alt.Axis(title="dates of the log", format="%Y-%m-%d", labelOverlap=True, tickCount=6)
    x = alt.X("at:T", axis=axis, scale=alt.Scale(type="utc", domain=[first, last], nice=False))
    y = alt.Y("estimate:Q", axis=alt.Axis(title=f"{what} per round"), scale=alt.Scale(zero=False))
    base = alt.Chart(alt.InlineData(rows)).encode(x=x, color=colour)
    layers: list[Any] = [
        base.mark_line(strokeWidth=1, strokeDash=[3, 3]).encode(y=y),
        base.mark_rule(strokeWidth=2.5).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(y=y, description="told:N"),
    ]
    if what == "difference":
        zero = alt.Chart(alt.InlineData([{"zero": 0}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(y="zero:Q")
        layers.insert(0, zero)
    level = f"{lines[0].level:.0%}"
    subtitle = [f"realised, with {level} intervals; at the middle of each log's dates"]
    if len(few) < len(plotted):
        subtitle.append(f"the first {len(few)} of {len(plotted)}; the table has all")
    about = "Value" if what == "value" else lines[0].against[:1].upper() + lines[0].against[1:]
    title = f"{drawable(about)} from log to log"
    if alone:
        title += f": {drawable(lines[0].name)}"
    return finished(alt.layer(*layers), title, subtitle, height=_HEIGHT)


def check_chart(study: Study) -> Spec | None:
    """Return a chart of the verdicts of checks that failed or warned on a log; None if no check did."""
    verdicts: dict[str, list[str]] = {}
    for run in study.runs:
        for check in run.result["checks"]:
            verdicts.setdefault(check["name"], []).append(check["verdict"])
    bad = [name for name, answers in verdicts.items() if {"warn", "fail"} & set(answers)]
    if not bad:
        return None
    starts = [run.when.days[:10] for run in study.runs]
    logs = starts if len(set(starts)) == len(starts) else [f"{i}. {day}" for i, day in enumerate(starts, start=1)]
    rows = [
        {"log": log, "check": check["name"], "verdict": check["verdict"], "said": _WORDS[check["verdict"]],
         "told": f"{check['name']}, {run.when.days}: {check['verdict']}"}
        for log, run in zip(logs, study.runs, strict=True)
        for check in run.result["checks"]
        if check["name"] in bad
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
    subtitle = f"those that failed or warned on any log; {rest} others did on none"
    return finished(chart, "Checks from log to log", subtitle, height=_ROW * len(bad))
