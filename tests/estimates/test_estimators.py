"""An estimator is a function and one line: results, tables and sentences have it from there. Documents name it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import evaluator
from evaluator import replay
from evaluator.estimates.weighted import ESTIMATORS, Estimator, WeightedValue, mean_value
from evaluator.replays.values import final
from evaluator.reports import replay as replay_report
from evaluator.reports.console import ReportConsole
from evaluator.reports.document import Document
from evaluator.reports.terminal import print_document
from tests.logs import bernoulli_log

Floats = npt.NDArray[np.float64]
SCHEMA = json.loads((Path(evaluator.__file__).parent / "reports" / "replay.schema.json").read_text(encoding="utf-8"))


def logged(
    reward: Floats, target: Floats, propensity: Floats, *, level: float, clusters: npt.NDArray[np.int64] | None
) -> WeightedValue:
    return mean_value(reward, level=level, clusters=clusters)


LOGGED = Estimator(name="logged", short="LOG", title="as logged (LOG)", estimate=logged)


def what_is_missing(estimators: tuple[Estimator, ...]) -> list[str]:
    values = SCHEMA["$defs"]["FinalValue"]
    return [
        f"evaluator.replays.values.final.FinalValue has no property {one.name!r} that is in documents"
        for one in estimators
        if one.name not in values["properties"] or one.name not in values["required"]
    ]


def test_the_schema_has_every_estimator() -> None:
    assert what_is_missing(ESTIMATORS) == []
    assert what_is_missing((*ESTIMATORS, LOGGED)) == [
        "evaluator.replays.values.final.FinalValue has no property 'logged' that is in documents"
    ]


def test_a_new_estimator_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (final, replay_report):
        monkeypatch.setattr(module, "ESTIMATORS", (*ESTIMATORS, LOGGED))
    found = replay(bernoulli_log(4000, [0.3, 0.5], mean_delay=5.0, seed=2), "ucb1", window=50, final="last:50%").final
    assert list(found.estimates) == ["ips", "snips", "dr", "logged"]
    assert found.estimates["logged"] == found.logging
    assert (found.ips, found.snips, found.dr) == tuple(found.estimates[name] for name in ("ips", "snips", "dr"))
    out = io.StringIO()
    document = Document("replay", "", (replay_report.final_section(found),))
    print_document(ReportConsole(file=out, width=100), document)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    titles = [one.title for one in (LOGGED, *reversed(ESTIMATORS))]
    assert [title for title in titles if any(line.startswith(title) for line in lines)] == titles
