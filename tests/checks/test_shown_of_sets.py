"""Checks of a log whose displays have their own eligible actions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evaluator
from evaluator.log import Log
from evaluator.log.eligible import unpack
from evaluator.log.schema import uneven_lists
from tests.logs import build_log

K, N = 6, 6_000


def log_of(kind: str = "logged") -> Log:
    rng = np.random.default_rng(0)
    sets = rng.random((N, K)) < 0.5
    sets[np.arange(N), rng.integers(0, K, N)] = True
    action = np.array([rng.choice(np.flatnonzero(own)) for own in sets])
    shown = np.flatnonzero(rng.random(N) < 0.2)
    return build_log(
        time=np.arange(N), action=action, propensity=1.0 / sets.sum(axis=1), eligible=sets, n_actions=K,
        context=rng.normal(size=(N, 5)), conversion_display=shown, conversion_time=shown + 3,
    ).with_meta(propensity=kind)  # fmt: skip


@pytest.mark.parametrize("kind", ["logged", "uniform"])
def test_right_propensities_pass_and_checks_of_all_actions_do_not_apply(kind: str) -> None:
    report = evaluator.check(log_of(kind))
    assert report.fit
    found = report["eligible actions"]
    assert found.verdict == "pass"
    assert found.numbers["moves_with_time"] is False
    assert "bind how many displays a replay accepts" in found.what
    for name in ("replay of the logger", "uniformity", "calibration", "drift of action shares"):
        assert report[name].verdict == "not applicable"
        assert "have their own eligible actions" in report[name].what


def test_propensities_of_one_over_k_fail() -> None:
    log = log_of()
    at = log.displays.schema.get_field_index("propensity")
    wrong = replace(log, displays=log.displays.set_column(at, "propensity", pa.array(np.full(N, 1.0 / K))))
    found = evaluator.check(wrong)["eligible actions"]
    assert found.verdict == "fail"
    assert "times as often as its propensities say where it was eligible" in found.what


def test_a_log_with_vectors_of_the_eligible_actions_alone_is_checked() -> None:
    log = log_of()
    sets = unpack(log.displays["eligible"], K)
    vectors = np.random.default_rng(1).normal(size=(int(sets.sum()), 3))
    lists = uneven_lists(vectors, sets.sum(axis=1))
    found = replace(log, displays=log.displays.drop_columns("context").append_column("action_set", lists))
    assert evaluator.check(found.validated()).fit


def test_without_sets_it_does_not_apply() -> None:
    log = log_of()
    plain = replace(log, displays=log.displays.drop_columns("eligible"))
    assert evaluator.check(plain)["eligible actions"].verdict == "not applicable"
    assert evaluator.check(plain)["calibration"].verdict != "not applicable"


def test_errors_that_cancel_out_in_every_action_are_found_by_the_size_of_the_set() -> None:
    log = log_of()
    size = unpack(log.displays["eligible"], K).sum(axis=1)
    at = log.displays.schema.get_field_index("propensity")
    p = pa.array(np.minimum(np.where(size >= 4, 1.3, 0.8) / size, 1.0))
    found = evaluator.check(replace(log, displays=log.displays.set_column(at, "propensity", p)))["eligible actions"]
    assert found.verdict == "fail"
    assert "rounds lean to sets of some sizes" in found.what


def test_sets_of_one_action_leave_nothing_to_choose() -> None:
    action = np.arange(N) % K
    log = build_log(time=np.arange(N), action=action, eligible=np.eye(K, dtype=np.bool_)[action], n_actions=K)
    found = evaluator.check(log)["eligible actions"]
    assert found.verdict == "warn"
    assert "no policy has a choice" in found.what


def test_an_action_that_is_eligible_once_is_not_called_an_error_of_the_propensities() -> None:
    rng = np.random.default_rng(5)
    sets = rng.random((N, K)) < 0.5
    sets[:, 0], sets[:, 5] = True, np.arange(N) == 7
    action = np.array([rng.choice(np.flatnonzero(own)) for own in sets])
    action[7] = 5
    log = build_log(time=np.arange(N), action=action, eligible=sets, n_actions=K)
    found = evaluator.check(log)["eligible actions"]
    assert found.verdict == "warn"
    assert "Hardly ever eligible: a5" in found.what
    assert found.effect is not None
    assert found.effect < 0.1


def test_an_action_that_retired_is_missed_by_no_policy() -> None:
    rng = np.random.default_rng(0)
    sets = np.ones((N, K), np.bool_)
    sets[N // 2 :, 2] = False
    action = np.where(sets, rng.random((N, K)), -1.0).argmax(axis=1)
    shown = np.flatnonzero(rng.random(N) < 0.2)
    given: dict[str, Any] = {
        "time": np.arange(N), "action": action, "propensity": 1.0 / sets.sum(axis=1), "n_actions": K,
        "conversion_display": shown, "conversion_time": shown + 3,
    }  # fmt: skip
    found = evaluator.check(build_log(**given, eligible=sets))["overlap"]
    assert (found.verdict, found.numbers["launched_or_retired"]) == ("pass", 0)
    assert evaluator.check(build_log(**given))["overlap"].numbers["launched_or_retired"] == 1
