"""A plan is a short line, a report in a notebook, and the same replay after a copy."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from markupsafe import escape

import evaluator
from evaluator import Log, ReplayResult
from evaluator.replays.run import execute
from tests.replays.rounds.test_fitted import logged


@pytest.fixture(scope="module")
def log() -> Log:
    return evaluator.load("synthetic", limit=1_000)


def said(result: ReplayResult) -> str:
    return json.dumps(result.to_dict())  # in which nan is nan


@pytest.mark.parametrize(
    "options",
    [{}, {"window": 100, "propensity": "estimate"}, {"final": "last:20%"}, {"sampler": "queue"}, {"clock": "wall"}],
    ids=str,
)
def test_a_copy_of_a_plan_and_of_its_result_is_the_same(log: Log, options: dict[str, Any]) -> None:
    plan = evaluator.plan(log, "ucb1", **options)
    result = execute(plan)
    for same in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        again = execute(same)
        assert said(again) == said(result)
        assert again.trajectory.equals(result.trajectory)
    for kept in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert said(kept) == said(result)
        assert kept.trajectory.equals(result.trajectory)


@pytest.mark.parametrize(("propensity", "share"), [("column", 1.0), ("column", 0.5), ("estimate:context", 1.0)])
def test_what_propensities_follow_from_is_copied_too(propensity: str, share: float) -> None:
    given = logged(500, 0)
    given = given.with_meta(kept_share=share)
    plan = evaluator.plan(given, "linucb", propensity=propensity)  # type: ignore[arg-type]
    same = pickle.loads(pickle.dumps(plan))
    displays = {name: given.column(name) for name in plan.propensities.reads}
    assert (same.propensities.of(displays) == plan.propensities.of(displays)).all()


def test_a_plan_is_shown_in_a_line_and_in_a_notebook(log: Log) -> None:
    plan = evaluator.plan(log, "ucb1", window=100)
    assert repr(plan) == "ReplayPlan(ucb1 on synthetic: sampler keep, window 100 rounds, 1,000 of 1,000 displays)"
    page = plan._repr_html_()
    assert "to be replayed on" in page
    for told in ("uniform", "1,000 of 1,000 (sampler: keep)", *plan.assumptions):
        assert escape(told) in page
