"""Wear-out: its numbers against a slow fit, what it says, and what a verdict makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evaluator
from evaluator import check
from evaluator.checks.dependence import WEAR_OUT, _fitted, _left, earlier
from evaluator.checks.registry import number_tested
from evaluator.comparisons.verdict import Verdict
from evaluator.log import Log
from evaluator.log.column import read_users
from evaluator.replays.findings.plan import UNWORN
from tests.checks.visits import Visits
from tests.logs import bernoulli_log
from tests.reading.sources import dataset

# The best action is worth .05 more than a random one at a user's first display, and worn out at the thirtieth.
WORN = Visits(n=20_000, users=1_000, same=0.85, logger="rotation", rates=(0.1, 0.11, 0.12, 0.13, 0.18))
FRESH = replace(WORN, same=1.0)


def with_column(log: Log, name: str, values: np.ndarray) -> Log:
    return replace(log, displays=log.displays.append_column(name, pa.array(values))).validated()


def test_earlier_displays_are_those_of_a_loop() -> None:
    key = np.random.default_rng(1).integers(0, 7, 300)
    assert earlier(key).tolist() == [int((key[:i] == key[i]).sum()) for i in range(300)]
    assert earlier(np.zeros(0, np.int64)).tolist() == []


def test_the_fit_is_that_of_a_dense_model() -> None:
    rng = np.random.default_rng(2)
    n = 600
    factors = [rng.integers(0, 40, n), rng.integers(0, 6, n), rng.integers(0, 4, n)]
    y = rng.poisson(1.5 * np.exp(0.3 * factors[1] - 0.2 * factors[2])).astype(float)
    m = _fitted(y, factors)
    dense = np.hstack([np.eye(int(factor.max()) + 1)[factor] for factor in factors])
    # The likelihood of counts is at its maximum where the totals of every factor are those seen.
    beta = np.zeros(dense.shape[1])
    for _ in range(60):
        mean = np.exp(dense @ beta)
        beta += np.linalg.pinv(dense.T @ (mean[:, None] * dense)) @ (dense.T @ (y - mean))
    np.testing.assert_allclose(m, np.exp(dense @ beta), rtol=1e-4)
    x = rng.normal(size=n)
    root = np.sqrt(m)
    slope = np.linalg.lstsq(root[:, None] * dense, root * x, rcond=None)[0]
    np.testing.assert_allclose(_left(x, m, factors), x - dense @ slope, atol=1e-4)


def test_a_log_that_wears_out_is_not_fit_and_one_that_does_not_is() -> None:
    worn, fresh = check(WORN.log(1)), check(FRESH.log(1))
    assert worn[WEAR_OUT.name].verdict == "fail"
    assert "of the same action" in worn[WEAR_OUT.name].what
    assert "looks too good here" in worn[WEAR_OUT.name].what
    assert fresh.fit
    assert fresh[WEAR_OUT.name].verdict == "pass"
    assert "earlier displays" in fresh[WEAR_OUT.name].shows


def test_the_false_alarms_are_shared_with_it_only_where_users_are_known() -> None:
    assert number_tested(clustered=False, users=True) == number_tested(clustered=False) + 1
    assert check(FRESH.log(1, named=False))[WEAR_OUT.name].verdict == "not applicable"


def test_what_cannot_be_told_is_not_tested() -> None:
    log = bernoulli_log(2_000, [0.2, 0.3], mean_delay=10, seed=1)
    single = check(with_column(log, "user_id", np.arange(2_000)))[WEAR_OUT.name]
    assert (single.verdict, single.numbers) == ("not applicable", {"users": "user_id", "earlier": 0})
    rare = bernoulli_log(2_000, [0.005, 0.005], mean_delay=10, seed=1)
    found = check(with_column(rare, "user_id", np.arange(2_000) % 300))[WEAR_OUT.name]
    assert found.verdict == "not applicable"
    assert "Fewer than 50 conversions" in found.what


@pytest.mark.parametrize(
    ("name", "known"),
    [("user_id", True), ("UserID", True), ("uid", True), ("customer", True), ("device_id", True), ("device", False),
     ("user_age", False), ("segment", False)],
)  # fmt: skip
def test_columns_that_look_like_users(name: str, known: bool) -> None:
    log = with_column(bernoulli_log(2_000, [0.2, 0.3], mean_delay=10, seed=1), name, np.arange(2_000) % 500)
    assert (read_users(log, None) is not None) is known
    named = read_users(log, name)
    assert named is not None
    assert named.by == name


def test_kinds_of_users_are_no_users_and_plain_names_win() -> None:
    log = bernoulli_log(2_000, [0.2, 0.3], mean_delay=10, seed=1)
    kinds = with_column(log, "customer", np.array(["new", "old"])[np.arange(2_000) % 2])
    assert read_users(kinds, "every:100") is None
    for crossed in ("customer+every:100", "every:100+customer"):  # days of a user are no users
        by_kind = read_users(kinds, crossed)
        assert by_kind is not None
        assert by_kind.by == "customer"
    both = with_column(with_column(kinds, "session", np.arange(2_000) // 3), "visitor_id", np.arange(2_000) % 500)
    for named in (None, "every:100", "session"):
        found = read_users(both, named)
        assert found is not None
        assert found.by == "visitor_id"


def verdict(world: Visits, *, named: bool = True, **options: Any) -> Verdict:
    found = evaluator.compare(world.log(2, named=named), ["random", "fixed:action=4"], ship_if="uplift > 0", **options)
    assert found.results[0].assumptions[0] == str(UNWORN)
    assert found.verdict is not None
    return found.verdict


def test_a_policy_that_wears_users_out_does_not_ship_where_they_are_known() -> None:
    waits = verdict(WORN)
    assert waits.decision == "wait"
    met = {of.name: of.met for of in waits.conditions}
    assert (met["difference"], met["checks"], met["users"]) == (True, False, False)
    assert any("Try the policy live" in said for said in waits.settle)
    assert "Rewards fall with what a user saw before" in waits.sentence
    # Nobody can tell without users: the assumption stands first, and vetoes nothing.
    unknown = verdict(WORN, named=False)
    assert unknown.decision == "ship"
    assert "users" not in {of.name for of in unknown.conditions}


def test_users_of_a_source_need_not_be_named(tmp_path: Path) -> None:
    # As a file holds them: a column that the spec gives no role.
    log = WORN.log(2)
    sold = dict(zip(*(log.conversions[c].to_pylist() for c in ("display_id", "time")), strict=True))
    shown = zip(*(log.displays[c].to_pylist() for c in ("display_id", "time", "action", "user")), strict=True)
    rows = [f"{time},{action},{sold.get(i, '')},{user}" for i, time, action, user in shown]
    spec = dataset(tmp_path, ["t,ad,sold,user", *rows], display={"propensity_kind": "uniform"})
    assert check(spec)[WEAR_OUT.name].verdict == "fail"
    found = evaluator.compare(spec, ["random", "fixed:action=4"], ship_if="uplift > 0").verdict
    assert found is not None
    assert {of.name: of.met for of in found.conditions}["users"] is False


def test_a_clean_world_with_users_ships() -> None:
    ships = verdict(FRESH)
    assert ships.decision == "ship"
    assert {of.name: of.met for of in ships.conditions}["users"] is True


def test_users_who_tell_nothing_need_their_column_named() -> None:
    tiny = replace(FRESH, users=150, rates=(0.002, 0.002, 0.002, 0.002, 0.03), n=6_000)
    waits = verdict(tiny)
    assert {of.name: of.met for of in waits.conditions}["users"] is None
    assert waits.decision == "wait"
    assert "`cluster_by='user'`" in waits.settle
    named = verdict(tiny, cluster_by="user", bootstrap=50, horizon=900)
    assert {of.name: of.met for of in named.conditions}["users"] is True
