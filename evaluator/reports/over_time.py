"""The first chapter of a page with runs of one study on logs of different dates: how values and checks changed.

The latest verdict comes first, then what all of them say and what changed from run to run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import altair as alt

from evaluator.comparisons.variants import Line as VariantLine
from evaluator.comparisons.variants import learned_at, taught_by
from evaluator.comparisons.verdict import Candidate, Decision, Verdict
from evaluator.errors import SourceError
from evaluator.replays.plan import with_label
from evaluator.reports import document as doc
from evaluator.reports.answer_charts import intervals_chart
from evaluator.reports.chart_parts import GREY, LINES, drawable, finished
from evaluator.reports.decision_words import (
    baseline_of,
    counted_word,
    limit_of,
    planned_looks,
    ranked,
    rule_words,
    short_name,
)
from evaluator.reports.manifest import AGAIN, MANIFEST, LogDates, log_dates, read_json
from evaluator.reports.numbers import Measured, significant_text

TITLE = "Over time"
KINDS = ("replay", "compare", "check")
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
# Options that no number depends on, and options on where and how rows are read.
_NO_MATTER = frozenset({"jobs", "path", "on_error", "quarantine_at_most", "sort"})
# What differs between the lines of a study, and the option that says it.
_CASES = {"windows": "window", "schedules": "learn_every", "teachers": "learn_from"}
Ends = Mapping[str, Any]
# Candidates with a chart of their own, and runs in it: the latest ones.
_MOST_CHARTS, MOST_RUNS = 4, 6
_LETTERS = 40
_DOES: dict[Decision, str] = {"ship": "ships", "wait": "waits", "don't": "is not to be shipped"}


class Chapters(NamedTuple):
    """Chapters of a page in their order, and a line on each run that is in no study while others of its kind are."""

    chapters: list[doc.Chapter]
    left: list[str]


def order_by_time(folders: Sequence[Path], chapters: Sequence[doc.Chapter]) -> Chapters:
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


def _chapter(studies: Sequence[Study], left: Sequence[str]) -> doc.Chapter:
    checked = {_log_of(run): run for study in studies if study.kind == "check" for run in study.runs}
    joint: list[doc.Section] = []
    sections: list[doc.Section] = []
    charts: dict[str, doc.Spec] = {}
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
    head = doc.section("", doc.paragraph(_head(studies)))
    if joint:
        fold = doc.words(
            doc.Run("All runs in numbers", bold=True), doc.Run(" values, differences and checks by date", dim=True)
        )
        sections = [*joint, *(replace(part, fold=fold) for part in (head, *sections))]
    else:
        sections = [head, *sections]
    if left:
        sections.append(doc.listed("Not in this order", left))
    return doc.Chapter("over time", TITLE, tuple(sections), charts)


def _known(charts: Mapping[str, doc.Spec | None]) -> dict[str, doc.Spec]:
    return {name: chart for name, chart in charts.items() if chart is not None}


def _head(studies: Sequence[Study]) -> str:
    parts = [f"{len(study.runs)} runs of evaluate {study.kind}" for study in studies]
    sentences = f"{', '.join(parts)}: each asks the same of logs of different dates; the oldest log stands first."
    versions = list(dict.fromkeys(run.version for study in studies for run in study.runs))
    if len(versions) > 1:
        sentences += f" They were made by versions {', '.join(versions)}: a number may have moved with the version."
    return sentences


def _values(study: Study, lines: Sequence[Line], checked: Mapping[Any, Run]) -> doc.Section:
    """Return the table of a study of replays or comparisons, with a note on how to read it."""
    several = len(lines) > 1
    guarded = any(point.guardrails for line in lines for point in line.points)
    decisions = [_decisions(run.chapter) for run in study.runs]
    decided = any(decisions)
    level = f"{lines[0].level:.0%}"
    columns: list[doc.Column] = [
        doc.column("log", "whole"),
        *([doc.column("policy", "whole")] if several else []),
        doc.column("displays", "number"),
        doc.column(doc.lines("value", level), "number"),
        doc.column(doc.lines(lines[0].against, level), "number"),
        *([doc.column("guardrails")] if guarded else []),
        *([doc.column("verdict", "whole")] if decided else []),
        doc.column("checks"),
        doc.column("run", "whole"),
    ]
    rows: list[list[doc.Cell]] = []
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
    return doc.section(study.title, doc.grid(columns, rows), *map(doc.paragraph, below))


def _decisions(chapter: doc.Chapter) -> dict[int, str]:
    """Return the decision (ship, wait or don't) on each variant for which the chapter has a verdict, by its number."""
    blocks = [block for part in chapter.sections for block in part.blocks if isinstance(block, doc.VerdictBlock)]
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


def _checks(study: Study) -> doc.Section:
    """Return the table of a study of checks."""
    rows = [
        [run.when.days, f"{run.displays:,}", "yes" if run.result["fit"] else "no", _verdicts(run), run.name]
        for run in study.runs
    ]
    columns = [
        doc.column("log", "whole"), doc.column("displays", "number"), doc.column("fit for replay"),
        doc.column("checks"), doc.column("run", "whole"),
    ]  # fmt: skip
    blocks: list[doc.Block] = [doc.grid(columns, rows)]
    worse, better = _moved(study.runs[-2], study.runs[-1])
    for names, what in ((worse, "Worse"), (better, "Better")):
        if names:
            blocks.append(doc.paragraph(f"{what} on the latest log than on the one before: {', '.join(names)}."))
    return doc.section(study.title, *blocks)


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


def _interval(interval: Mapping[str, Any] | None, *, sign: bool = False) -> doc.Cell:
    if interval is None or interval["estimate"] is None:
        return "none"
    estimate, low, high = interval["estimate"], interval["low"], interval["high"]
    if low is None or high is None:
        return significant_text(estimate, 4, sign=sign)
    return Measured(estimate, low, high, "below", sign)


def moved_chart(study: Study, lines: Sequence[Line], what: Literal["value", "difference"]) -> doc.Spec | None:
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


def check_chart(study: Study) -> doc.Spec | None:
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


class Run(NamedTuple):
    """A result that a command wrote to a folder: chapter, ``result.json``, and facts on its log.

    `asked` is its question, by parts: runs with the same question belong to one study.
    """

    name: str
    chapter: doc.Chapter
    result: dict[str, Any]
    asked: dict[str, Any]
    source: dict[str, Any]
    version: str

    @property
    def dates(self) -> LogDates | None:
        """Dates of the log; None where it has none."""
        return log_dates(self.source.get("log"))

    @property
    def when(self) -> LogDates:
        """Dates of the log; only for a run whose log has dates."""
        assert self.dates is not None
        return self.dates

    @property
    def displays(self) -> int:
        """Number of displays of the log."""
        return int(self.source["log"]["displays"])


class Study(NamedTuple):
    """Runs that ask the same of logs of different dates, the oldest log first."""

    runs: tuple[Run, ...]

    @property
    def kind(self) -> str:
        """Command that gives such results."""
        return self.runs[0].chapter.kind

    @property
    def title(self) -> str:
        """Title of the chapters."""
        return self.runs[0].chapter.title


class Sorted(NamedTuple):
    """Studies, and a line on each run that belongs to none of them though others of its kind are there."""

    studies: list[Study]
    left: list[str]


def read_run(folder: Path, chapter: doc.Chapter) -> Run | None:
    """Return the run in a folder; None for a kind of result that is not drawn over time.

    SourceError if manifest or result cannot be read, or are not as a command wrote them.
    """
    if chapter.kind not in KINDS:
        return None
    manifest, result = read_json(folder / MANIFEST), read_json(folder / "result.json")
    try:
        source = manifest["source"]
        asked: dict[str, Any] = {"log": source["dataset"], "reading": _that_matter(source["reading"])}
        if chapter.kind == "check":
            asked["options"] = _that_matter(manifest["options"])
        else:
            replays = manifest["replays"]
            asked["policies"] = [[replay["policy"], replay["warm_start"]] for replay in replays]
            options = [replay["options"] for replay in replays]
            for what, name in _CASES.items():
                asked[what] = [of.get(name) for of in options]
            own = (*_CASES.values(), "warm_start")
            asked["options"] = _that_matter({name: of for name, of in options[0].items() if name not in own})
            asked["baseline"] = result.get("baseline")
        return Run(str(folder), chapter, result, asked, source, manifest["versions"]["delayed-replay"])
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise SourceError(f"{folder / MANIFEST}: not as a command wrote it, at {error}.", remedy=AGAIN) from None


def sort_runs(runs: Sequence[Run]) -> Sorted:
    """Return the studies among some runs, and a line on each run that belongs to none."""
    studies: list[Study] = []
    left: list[str] = []
    for kind in KINDS:
        same_kind = [one for one in runs if one.chapter.kind == kind]
        if len(same_kind) < 2:
            continue
        groups: dict[str, list[Run]] = {}
        for one in same_kind:
            if one.dates is None:
                left.append(f"{one.name} ({kind}): its log has no dates.")
            else:
                groups.setdefault(json.dumps(one.asked, sort_keys=True), []).append(one)
        largest = max(groups.values(), key=len, default=[])
        for group in groups.values():
            if len({one.when for one in group}) > 1:
                studies.append(Study(tuple(sorted(group, key=lambda one: one.when))))
            elif len(group) > 1:
                left += [f"{one.name} ({kind}): no log of other dates was asked the same." for one in group]
            elif group is not largest:
                left.append(f"{group[0].name} ({kind}): {_other(group[0], largest[0])} than {largest[0].name}.")
    return Sorted(studies, left)


def _other(run: Run, than: Run) -> str:
    """Return in what the question of a run differs from that of another."""
    reasons = []
    for part, value in run.asked.items():
        if value == than.asked[part]:
            continue
        if isinstance(value, dict):
            names = sorted(
                name for name in value.keys() | than.asked[part] if value.get(name) != than.asked[part].get(name)
            )
            reasons.append(f"other {part if part == 'options' else 'ways to read the log'} ({', '.join(names)})")
        else:
            reasons.append(f"another {part}" if isinstance(value, str) else f"other {part}")
    return ", ".join(reasons)


def _that_matter(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _NO_MATTER and value is not None}


class Point(NamedTuple):
    """The realised value of one policy and window in a run, and its difference to the reference; None without.

    Answers to guardrails are words, empty without any.
    """

    value: Ends | None
    difference: Ends | None
    guardrails: str


class Line(NamedTuple):
    """A policy and window over the runs of a study, in the order of the dates, and what its differences are against."""

    name: str
    against: str
    is_baseline: bool
    level: float
    points: tuple[Point, ...]


def lines_of(study: Study) -> list[Line]:
    """Return the lines of a study of replays or comparisons."""
    runs = [run.result for run in study.runs]
    if study.kind == "replay":
        name = _named(runs[:1])[0]
        points = tuple(Point(result["value"], result["uplift"], _guardrails(result)) for result in runs)
        return [Line(name, "uplift over logging", False, float(runs[0]["value"]["level"]), points)]
    baseline, names = runs[0]["baseline"], _named(runs[0]["variants"])
    lines = []
    for i, (variant, name) in enumerate(zip(runs[0]["variants"], names, strict=True)):
        variants = [result["variants"][i] for result in runs]
        points = tuple(
            Point(v["value"], _difference(result, i), _guardrails(v)) for result, v in zip(runs, variants, strict=True)
        )
        level = float(variant["value"]["level"])
        lines.append(Line(name, f"difference to {names[baseline]}", i == baseline, level, points))
    return lines


def _difference(result: Mapping[str, Any], variant: int) -> Ends | None:
    difference: Mapping[str, Any] = next((one for one in result["differences"] if one["variant"] == variant), {})
    weighted = difference.get("weighted")
    return difference.get("realised") if weighted is None else weighted["value"]


def _named(variants: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the name of each variant, as the report of their comparison has it."""
    lines = [
        VariantLine(
            i, one["policy"], str(one["plan"]["options"]["window"] or "none"),
            title=with_label(one["policy"], [*one["action_share"]]),
            learns=learned_at(one["plan"], (one["schedule"] or {}).get("learn_every")),
            learn_from=taught_by(one["plan"]),
        )
        for i, one in enumerate(variants)
    ]  # fmt: skip
    return [line.named_among(lines) for line in lines]


def _guardrails(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{answer['guardrail']}: {answer['answer']}" for answer in result["guardrails"])


def verdict_of(chapter: doc.Chapter) -> doc.VerdictBlock | None:
    """Return the verdict of a chapter with what the page says of it; None without one."""
    blocks = (block for part in chapter.sections for block in part.blocks if isinstance(block, doc.VerdictBlock))
    return next((block for block in blocks if block.part == "decision"), None)


def verdicts_of(study: Study) -> list[doc.VerdictBlock]:
    """Return the verdict of each run of a study; none unless all runs have one."""
    blocks = [block for one in study.runs if (block := verdict_of(one.chapter)) is not None]
    return blocks if study.kind == "compare" and len(blocks) == len(study.runs) else []


def joint_sections(
    study: Study, blocks: Sequence[doc.VerdictBlock]
) -> Iterator[tuple[doc.Section, dict[str, doc.Spec]]]:
    """Yield the latest verdict, what all runs say, a small chart a candidate, and what changed, each with its charts.

    Runs and their verdicts stand in one order, the oldest log first.
    """
    runs, latest = study.runs, blocks[-1]
    first, last = min(one.when.first for one in runs), max(one.when.last for one in runs)
    which = (str(runs[0].source["dataset"]), LogDates(first, last).spoken, f"{len(runs)} runs")
    base = doc.run(baseline_of(latest.verdict), "bold")
    yield (
        doc.section("", doc.paragraph(doc.run(" · ".join(which), "dim"), doc.run(" · compared with ", "dim"), base)),
        {},
    )
    yield doc.section("", latest), {}
    yield doc.section("", doc.paragraph(f"This is the latest run ({runs[-1].when.spoken}). {_together(blocks)}")), {}
    verdicts = [block.verdict for block in blocks]
    shown = ranked(latest.verdict)[:_MOST_CHARTS]
    for number, of in enumerate(shown, start=1):
        name, chart = f"runs {number}", _chart(study, verdicts, of)
        if chart is not None:
            about = "more a display in each run, the latest last; green: the rule is met"
            if number == 1 and len(runs) > MOST_RUNS:
                about += f"; the last {MOST_RUNS} of {len(runs)} runs"
            title = latest.verdict.name_of(of.line)
            part = doc.section(title, doc.paragraph(about, style="dim"), half=True)
            yield replace(part, charts=(name,)), {name: chart}
    changes = [*_changes(study, verdicts)] or ["No verdict changed from run to run."]
    left = len(latest.verdict.candidates) - len(shown)
    if left:
        changes.append(f"{counted_word(left).capitalize()} more candidates are in the table of all runs, below.")
    yield replace(doc.listed("What changed from run to run", changes), half=True), {}


def _of_variant(verdict: Verdict, variant: int) -> Candidate | None:
    return next((of for of in verdict.candidates if of.line.variant == variant), None)


def _together(blocks: Sequence[doc.VerdictBlock]) -> str:
    """Return what all runs say of the latest headline's candidate, and what that promises."""
    latest = blocks[-1].verdict
    found = [of for block in blocks if (of := _of_variant(block.verdict, latest.variant)) is not None]
    counts = Counter[str](of.decision for of in found)
    decisions = " and ".join(f"{does} in {counts[decision]}" for decision, does in _DOES.items() if counts[decision])
    known = [of.difference for of in found if of.difference is not None]
    above, below = sum(of.low > 0.0 for of in known), sum(of.high < 0.0 for of in known)
    open_ = len(known) - above - below
    sides = ((above, "lies above 0"), (below, "lies below 0"), (open_, "is not told from 0"))
    said = " and ".join(f"{does} in {number}" for number, does in sides if number)
    name = latest.name_of(latest.candidate.line)
    runs = counted_word(len(found))
    any_number = "Each interval holds for its own run at any number of looks."
    looks = planned_looks([block.verdict for block in blocks]) or any_number
    lies = f"; its difference to {baseline_of(latest)} {said}" if said else ""
    return f"Of all {runs} runs, {name} {decisions}{lies}. {looks}"


def _changes(study: Study, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield the changes of each candidate's verdict from a run to the next, with why where the newer one waits."""
    for later, (before, after) in zip(study.runs[1:], pairwise(verdicts), strict=True):
        for of in ranked(after):
            was = _of_variant(before, of.line.variant)
            if was is None or was.decision == of.decision:
                continue
            why = next((f": {limit.what}" for limit in of.limits), "") if of.decision != "ship" else ""
            yield f"{_short(later)}: {after.name_of(of.line)} was {was.decision}, now {of.decision}{why}."


def _chart(study: Study, verdicts: Sequence[Verdict], of: Candidate) -> doc.Spec | None:
    """Return the differences of a candidate in the latest runs, on one scale with those of the other candidates."""
    pairs = list(zip(study.runs, verdicts, strict=True))[-MOST_RUNS:]
    ends = [
        end
        for _, verdict in pairs
        for one in verdict.candidates
        if one.difference is not None
        for end in (one.difference.low, one.difference.high)
    ]
    found = [(one, _of_variant(verdict, of.line.variant)) for one, verdict in pairs]
    rows = [(_short(one), own.difference) for one, own in found if own is not None and own.difference is not None]
    latest = verdicts[-1]
    # A rule in per cent has another limit in each run.
    limit = None if latest.rule.relative else limit_of(latest)
    name = short_name(of.line, latest, _LETTERS)
    return intervals_chart(
        rows, f"Difference of {name} to the baseline in each run", zone=limit,
        said="" if limit is None else f"rule: more than {rule_words(latest)}", ends=ends, most=MOST_RUNS,
        headline=len(rows) - 1,
    )  # fmt: skip


def _short(one: Run) -> str:
    """Return the dates of a run's log in little room, ``1 to 7 Mar 2026``."""
    first, last = (datetime.fromtimestamp(end, UTC) for end in one.when)
    if first.date() == last.date():
        return f"{last.day} {last:%b %Y}"
    start = str(first.day) if (first.year, first.month) == (last.year, last.month) else f"{first.day} {first:%b}"
    return f"{start} to {last.day} {last:%b %Y}"
