"""Folders of ``--out`` as runs of studies: which ask one question of logs of different dates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.errors import SourceError
from evaluator.reports.chapter import Chapter
from evaluator.reports.manifest import AGAIN, MANIFEST, LogDates, log_dates, read_json

KINDS = ("replay", "compare", "check")
# Options that no number depends on, and how the rows were found.
_NO_MATTER = frozenset({"jobs", "path", "on_error", "quarantine_at_most", "sort"})
Ends = Mapping[str, Any]


class Run(NamedTuple):
    """What a command wrote to a folder.

    Parameters
    ----------
    name
        Name of the folder.
    chapter
        Chapter of a page that it is.
    result
        Content of its ``result.json``.
    asked
        What was asked, by parts: runs that have the same in all of them are of one study.
    source
        Facts about its log, of its manifest.
    version
        Version of the product that made it.
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
        """Dates of the log, of a run that has them."""
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
    """Return the run in a folder; None of a result that is not drawn over time.

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
            asked["policies"] = [[of["policy"], of["warm_start"]] for of in replays]
            asked["windows"] = [of["options"]["window"] for of in replays]
            first = {name: of for name, of in replays[0]["options"].items() if name not in ("window", "warm_start")}
            asked["options"] = _that_matter(first)
            asked["baseline"] = result.get("baseline")
        return Run(str(folder), chapter, result, asked, source, manifest["versions"]["delayed-replay"])
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise SourceError(f"{folder / MANIFEST}: not as a command wrote it, at {error}.", remedy=AGAIN) from None


def sort_runs(runs: Sequence[Run]) -> Sorted:
    """Return the studies among some runs, and what is said of the others."""
    studies: list[Study] = []
    left: list[str] = []
    for kind in KINDS:
        own = [run for run in runs if run.chapter.kind == kind]
        if len(own) < 2:
            continue
        groups: dict[str, list[Run]] = {}
        for run in own:
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
    """Return in what a run is not of the study of another."""
    found = []
    for part, of in run.asked.items():
        if of == than.asked[part]:
            continue
        if isinstance(of, dict):
            names = sorted(name for name in of.keys() | than.asked[part] if of.get(name) != than.asked[part].get(name))
            found.append(f"other {part if part == 'options' else 'ways to read the log'} ({', '.join(names)})")
        else:
            found.append(f"another {part}" if isinstance(of, str) else f"other {part}")
    return ", ".join(found)


def _that_matter(options: dict[str, Any]) -> dict[str, Any]:
    return {name: of for name, of in options.items() if name not in _NO_MATTER and of is not None}


class Point(NamedTuple):
    """What a run found of one policy and window.

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
        What the difference is to, as columns name it.
    is_baseline
        Whether the others are compared with it.
    level
        Level of the intervals.
    points
        What each run found, in the order of their dates.
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
        name = _name(runs[0])
        points = tuple(Point(of["value"], of["uplift"], _guardrails(of)) for of in runs)
        return [Line(name, "uplift over logging", False, float(runs[0]["value"]["level"]), points)]
    baseline = runs[0]["baseline"]
    found = []
    for i, variant in enumerate(runs[0]["variants"]):
        own = [of["variants"][i] for of in runs]
        points = tuple(Point(v["value"], _difference(of, i), _guardrails(v)) for of, v in zip(runs, own, strict=True))
        level = float(variant["value"]["level"])
        base = f"{baseline + 1} {runs[0]['variants'][baseline]['policy']}"
        name = f"{i + 1} {_name(variant)}"
        found.append(Line(name, f"difference to {base}", i == baseline, level, points))
    return found


def _difference(result: Mapping[str, Any], variant: int) -> Ends | None:
    of: Mapping[str, Any] = next((one for one in result["differences"] if one["variant"] == variant), {})
    return of.get("realised")


def _name(result: Mapping[str, Any]) -> str:
    window = result["plan"]["options"]["window"]
    return f"{result['policy']}, window {'none' if window is None else window}"


def _guardrails(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{of['guardrail']}: {of['answer']}" for of in result["guardrails"])
