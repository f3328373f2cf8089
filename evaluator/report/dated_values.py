"""Values and differences of the runs of a study, a line a policy and window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evaluator.report.dated_runs import Study

Ends = Mapping[str, Any]


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
