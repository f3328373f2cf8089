"""Runs that ask the same of logs of different dates: how folders give them, and what their verdicts say together.

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
from typing import Any, NamedTuple

from evaluator.comparisons.variants import Line as VariantLine
from evaluator.comparisons.variants import learned_at, taught_by
from evaluator.comparisons.verdict import Candidate, Decision, Verdict
from evaluator.errors import SourceError
from evaluator.replays.plan import with_label
from evaluator.reports.decision_words import (
    baseline_of,
    counted_word,
    limit_of,
    planned_looks,
    ranked,
    rule_words,
    short_name,
)
from evaluator.reports.document import Chapter, Section, Spec, VerdictBlock, listed, paragraph, run, section
from evaluator.reports.manifest import AGAIN, MANIFEST, LogDates, log_dates, read_json
from evaluator.reports.small_charts import intervals_chart

KINDS = ("replay", "compare", "check")
# Options that no number depends on, and options on where and how rows are read.
_NO_MATTER = frozenset({"jobs", "path", "on_error", "quarantine_at_most", "sort"})
# What differs between the lines of a study, and the option that says it.
_CASES = {"windows": "window", "schedules": "learn_every", "teachers": "learn_from"}
Ends = Mapping[str, Any]
# Candidates with a chart of their own, and runs in it: the latest ones.
_MOST_CHARTS, MOST_RUNS = 4, 6
_LETTERS = 40
_DOES: dict[Decision, str] = {"ship": "ships", "wait": "waits", "don't": "is not to be shipped"}


class Run(NamedTuple):
    """A result that a command wrote to a folder: chapter, ``result.json``, and facts on its log.

    `asked` is its question, by parts: runs with the same question belong to one study.
    """

    name: str
    chapter: Chapter
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


def read_run(folder: Path, chapter: Chapter) -> Run | None:
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


def verdict_of(chapter: Chapter) -> VerdictBlock | None:
    """Return the verdict of a chapter with what the page says of it; None without one."""
    blocks = (block for part in chapter.sections for block in part.blocks if isinstance(block, VerdictBlock))
    return next((block for block in blocks if block.part == "decision"), None)


def verdicts_of(study: Study) -> list[VerdictBlock]:
    """Return the verdict of each run of a study; none unless all runs have one."""
    blocks = [block for one in study.runs if (block := verdict_of(one.chapter)) is not None]
    return blocks if study.kind == "compare" and len(blocks) == len(study.runs) else []


def joint_sections(study: Study, blocks: Sequence[VerdictBlock]) -> Iterator[tuple[Section, dict[str, Spec]]]:
    """Yield the latest verdict, what all runs say, a small chart a candidate, and what changed, each with its charts.

    Runs and their verdicts stand in one order, the oldest log first.
    """
    runs, latest = study.runs, blocks[-1]
    first, last = min(one.when.first for one in runs), max(one.when.last for one in runs)
    which = (str(runs[0].source["dataset"]), LogDates(first, last).spoken, f"{len(runs)} runs")
    base = run(baseline_of(latest.verdict), "bold")
    yield section("", paragraph(run(" · ".join(which), "dim"), run(" · compared with ", "dim"), base)), {}
    yield section("", latest), {}
    yield section("", paragraph(f"This is the latest run ({runs[-1].when.spoken}). {_together(blocks)}")), {}
    verdicts = [block.verdict for block in blocks]
    shown = ranked(latest.verdict)[:_MOST_CHARTS]
    for number, of in enumerate(shown, start=1):
        name, chart = f"runs {number}", _chart(study, verdicts, of)
        if chart is not None:
            about = "more a display in each run, the latest last; green: the rule is met"
            if number == 1 and len(runs) > MOST_RUNS:
                about += f"; the last {MOST_RUNS} of {len(runs)} runs"
            title = latest.verdict.name_of(of.line)
            part = section(title, paragraph(about, style="dim"), half=True)
            yield replace(part, charts=(name,)), {name: chart}
    changes = [*_changes(study, verdicts)] or ["No verdict changed from run to run."]
    left = len(latest.verdict.candidates) - len(shown)
    if left:
        changes.append(f"{counted_word(left).capitalize()} more candidates are in the table of all runs, below.")
    yield replace(listed("What changed from run to run", changes), half=True), {}


def _of_variant(verdict: Verdict, variant: int) -> Candidate | None:
    return next((of for of in verdict.candidates if of.line.variant == variant), None)


def _together(blocks: Sequence[VerdictBlock]) -> str:
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


def _chart(study: Study, verdicts: Sequence[Verdict], of: Candidate) -> Spec | None:
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
