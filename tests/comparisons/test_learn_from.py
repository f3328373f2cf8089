"""What teaches as a dimension of a comparison: a variant for each, as for windows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator import compare, replay
from evaluator.errors import ParameterError
from evaluator.log import Log
from tests.logs import bernoulli_log, with_outcome


def a_log() -> Log:
    log = bernoulli_log(3000, [0.2, 0.6, 0.4], mean_delay=30, seed=1)
    rng = np.random.default_rng(5)
    of = np.flatnonzero(rng.random(len(log)) < np.array([0.5, 0.1, 0.3])[log.column("action")])
    return with_outcome(log, "click", of, log.column("time")[of] + 3, value_max=1.0)


def test_every_policy_that_learns_is_taught_by_each_and_the_others_once(tmp_path: Path) -> None:
    log = a_log()
    found = compare(log, ["ucb1", "random"], windows=[50, 500], learn_from="objective,click", bootstrap=0)
    lived = [(of.plan["policy"], of.plan["window_rounds"], of.plan["options"]["learn_from"]) for of in found.results]
    assert lived == [
        ("ucb1", 50, "objective"), ("ucb1", 50, "click"), ("ucb1", 500, "objective"), ("ucb1", 500, "click"),
        ("random", 50, "objective"), ("random", 500, "objective"), ("logging", 50, "objective"),
    ]  # fmt: skip
    for result in found.results[:4]:
        options = {name: result.plan["options"][name] for name in ("learn_from", "window", "sampler")}
        assert result.trajectory.equals(replay(log, "ucb1", **options).trajectory)
    assert found.variant_table["learn_from"].to_pylist() == [of[2] for of in lived]
    # The cost of a window is to the widest one of the same teacher.
    assert [(of.variant, of.reference) for of in found.window_costs] == [(0, 2), (1, 3), (4, 5)]
    said = str(found)
    assert "ucb1, window 50, told click" in said
    assert "random, window 50, told" not in said
    study = tmp_path / "study.toml"
    study.write_text('policies = ["ucb1", "random"]\nwindows = [50, 500]\nlearn_from = ["objective", "click"]\n')
    assert compare(log, study=study, bootstrap=0).to_dict() == found.to_dict()
    listed = compare(log, ["ucb1", "random"], windows=[50, 500], learn_from=["objective", "click"], bootstrap=0)
    assert listed.to_dict() == found.to_dict()
    own = log.with_meta(deployment={"learn_from": "click"})
    assert replay(own, "ucb1").plan["options"]["learn_from"] == "click"
    assert replay(own, "ucb1").trajectory.equals(replay(log, "ucb1", learn_from="click").trajectory)
    assert replay(own, "ucb1", learn_from="objective").trajectory.equals(replay(log, "ucb1").trajectory)
    assert [of.plan["options"]["learn_from"] for of in compare(own, ["ucb1"], bootstrap=0).results] == [
        "click", "objective"
    ]  # fmt: skip


def test_the_cost_of_a_schedule_is_to_learning_from_the_same_events_at_once() -> None:
    found = compare(a_log(), ["ucb1"], learn_from="objective,click", schedules=["event", 100], bootstrap=0)
    lived = [of.plan["options"] for of in found.results]
    assert [(str(of["learn_every"]), of["learn_from"]) for of in lived[:4]] == [
        ("event", "objective"), ("event", "click"), ("100", "objective"), ("100", "click"),
    ]  # fmt: skip
    assert [(of.variant, of.reference) for of in found.schedule_costs] == [(2, 0), (3, 1)]


def test_one_teacher_changes_no_name_and_one_twice_is_refused() -> None:
    log = a_log()
    assert ", told" not in str(compare(log, ["ucb1"], learn_from="click", bootstrap=0))
    with pytest.raises(ParameterError, match="ucb1 without a window, told click, is there twice"):
        compare(log, ["ucb1"], learn_from="click,click")
    with pytest.raises(ParameterError, match=r"names several, and a replay has one.*compare"):
        replay(log, "ucb1", learn_from="sales,click")
