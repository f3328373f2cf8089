"""Folders of ``--out`` as runs, and studies: runs that ask the same of logs of different dates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.comparisons.variants import Line as VariantLine
from evaluator.errors import SourceError
from evaluator.replays.plan_document import with_label
from evaluator.reports.chapter import Chapter
from evaluator.reports.manifest import AGAIN, MANIFEST, LogDates, log_dates, read_json

KINDS = ("replay", "compare", "check")
# Options that no number depends on, and options on where and how rows are read.
_NO_MATTER = frozenset({"jobs", "path", "on_error", "quarantine_at_most", "sort"})
Ends = Mapping[str, Any]


class Run(NamedTuple):
    """A result that a command wrote to a folder.

    Parameters
    ----------
    name
        Name of the folder.
    chapter
        Chapter of the run on a page.
    result
        Content of its ``result.json``.
    asked
        Question of the run, by parts: runs with the same question belong to one study.
    source
        Facts about its log, from its manifest.
    version
        Version of the package that wrote it.
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

    Raises
    ------
    SourceError
        Manifest or result cannot be read, or are not as a command wrote them.
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
            asked["windows"] = [replay["options"]["window"] for replay in replays]
            first = {
                name: value for name, value in replays[0]["options"].items() if name not in ("window", "warm_start")
            }
            asked["options"] = _that_matter(first)
            asked["baseline"] = result.get("baseline")
        return Run(str(folder), chapter, result, asked, source, manifest["versions"]["delayed-replay"])
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise SourceError(f"{folder / MANIFEST}: not as a command wrote it, at {error}.", remedy=AGAIN) from None


def sort_runs(runs: Sequence[Run]) -> Sorted:
    """Return the studies among some runs, and a line on each run that belongs to none."""
    studies: list[Study] = []
    left: list[str] = []
    for kind in KINDS:
        same_kind = [run for run in runs if run.chapter.kind == kind]
        if len(same_kind) < 2:
            continue
        groups: dict[str, list[Run]] = {}
        for run in same_kind:
            if run.dates is None:
                left.append(f"{run.name} ({kind}): its log has no dates.")
            else:
                groups.setdefault(json.dumps(run.asked, sort_keys=True), []).append(run)
        largest = max(groups.values(), key=len, default=[])
        for group in groups.values():
            if len({run.when for run in group}) > 1:
                studies.append(Study(tuple(sorted(group, key=lambda run: run.when))))
            elif len(group) > 1:
                left += [f"{run.name} ({kind}): no log of other dates was asked the same." for run in group]
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
    """The numbers of one policy and window in a run.

    Parameters
    ----------
    value, difference
        Realised value, and its difference to the baseline or to the logging policy: estimate, low and high; None where
        there is none.
    guardrails
        Answers to the guardrails in words; empty without any.
    """

    value: Ends | None
    difference: Ends | None
    guardrails: str


class Line(NamedTuple):
    """A policy and window over the runs of a study.

    Parameters
    ----------
    name
        Policy and window.
    against
        Reference of the difference, as column names say it.
    is_baseline
        Whether the others are compared with it.
    level
        Level of the intervals.
    points
        Numbers in each run, in the order of the dates.
    """

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
            with_label(one["policy"], [*one["action_share"]]),
        )
        for i, one in enumerate(variants)
    ]  # fmt: skip
    return [line.named_among(lines) for line in lines]


def _guardrails(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{answer['guardrail']}: {answer['answer']}" for answer in result["guardrails"])
