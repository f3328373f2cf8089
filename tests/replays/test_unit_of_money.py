"""A replay in cents is a replay in euros: the same rounds, and every number times 100."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from evaluator import replay
from evaluator.log import Log
from evaluator.log.schema import fixed_size_lists
from evaluator.policies import resolve
from evaluator.replays.result import ReplayResult
from tests.logs import linear_log

# One of each kind of state and feedback. That every policy shows the same displays is a check of its contract
# (tests/policies/checks.py); what is estimated from them knows no policy.
POLICIES = ("logging", "random", "columns", "thompson", "klucb", "delayed-klucb", "odaaf", "linucb", "otflinucb")


@cache
def shop() -> Log:
    """Four actions in context, a policy's probabilities beside them; one sale in five has a second one after it."""
    log = linear_log(3000, n_actions=4, dimension=5, mean_delay=10.0, seed=2)
    rng = np.random.default_rng(2)
    target = rng.dirichlet(np.ones(4), len(log))
    of, when = (log.conversions[name].to_numpy() for name in ("display_id", "time"))
    twice = rng.random(len(of)) < 0.2
    of, when = np.concatenate([of, of[twice]]), np.concatenate([when, when[twice] + 3])
    order = np.lexsort((when, of))
    sales = {"display_id": of[order], "time": when[order], "value": rng.uniform(0.1, 0.5, len(of))}
    displays = log.displays.append_column("target", fixed_size_lists(target))
    return Log(displays, pa.table(sales), log.actions, log.meta).validated()


def priced(factor: float, *, known: bool) -> Log:
    log = shop()
    value = factor * log.conversions["value"].to_numpy()
    log = dataclasses.replace(log, events=log.conversions.set_column(2, "value", [value]))
    return log.with_meta(reward_max=factor if known else None)


def numbers(result: ReplayResult) -> np.ndarray:
    intervals = (result.value, result.regret, result.uplift, result.logging_value, result.best_fixed_action.value)
    return np.array([x for interval in intervals for x in (interval.estimate, interval.low, interval.high)])


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_unit_of_money_does_not_matter(policy: str, known: bool) -> None:
    euros = replay(priced(1.0, known=known), policy, window=30)
    assert euros.rounds > 300
    for factor in (64.0, 100.0):
        cents = replay(priced(factor, known=known), policy, window=30)
        assert cents.trajectory["display_id"].equals(euros.trajectory["display_id"])
        np.testing.assert_allclose(numbers(cents), factor * numbers(euros), rtol=1e-9, atol=factor * 1e-12)
        assert (cents.delivered, cents.pending) == (euros.delivered, euros.pending)


@pytest.mark.parametrize("policy", ["thompson", "klucb", "linucb"])
def test_a_policy_that_is_told_money_plays_otherwise(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the equivariance rests on: all policies once were told rewards as they are."""
    right = replay(priced(64.0, known=True), policy, window=30)
    monkeypatch.setattr(type(resolve(policy)), "unit_rewards", False)
    wrong = replay(priced(64.0, known=True), policy, window=30)
    assert not wrong.trajectory["display_id"].equals(right.trajectory["display_id"])
