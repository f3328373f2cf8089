"""One scan for many replays: each gives what it gives alone, from memory or from disk, whatever batches and threads."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator.arguments import as_description
from evaluator.log import Log, StoredLog
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.replays.options import ReplayOptions
from evaluator.replays.planning import plan_replay, read_basis
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute, execute_all
from evaluator.replays.values import rewards as references
from evaluator.replays.values.rewards import observed_rewards
from tests.logs import build_log

N = 4000
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("linucb", {"window": 40}),
    ("otflinucb", {"window": 100, "repeats": 2}),
    ("otflinucb", {"window": 100, "accept_quantile": 0.3}),
    ("thompson", {"window": 40, "sampler": "keep"}),
    ("delayed-klucb", {"window": "2h", "sampler": "queue"}),
    ("ucb1", {"sampler": "rejection", "clock": "wall"}),
    ("ucb1", {"reward": "observed", "window": 40, "horizon": 300}),
    ("ucb1", {"immature": "correct", "seed": 5}),
    ("logging", {"window": 40}),
]


def softmax_log(n: int = N) -> Log:
    """Return a log with contexts, uneven propensities, several conversions a display and an end of follow-up."""
    rng = np.random.default_rng(1)
    context = rng.integers(0, 2, (n, 5)).astype(float)
    scores = np.exp(context[:, :2] @ np.array([[1.0, 0.0, -0.5], [-1.0, 0.5, 0.0]]))
    p = scores / scores.sum(axis=1, keepdims=True)
    action = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    of = np.sort(rng.integers(0, n, n // 5))
    time = np.sort(rng.integers(0, 50_000, n))
    when = time[of] + rng.geometric(1 / 500, len(of))
    seen = (when <= 50_000) & (when - time[of] <= 4000)
    order = np.lexsort((when[seen], of[seen]))
    return build_log(
        time=time, action=action, propensity=p[np.arange(n), action], context=context, n_actions=3,
        conversion_display=of[seen][order], conversion_time=when[seen][order],
        conversion_value=rng.random(len(order)) / 8, tick="s", observed_until=50_000, attribution_window=4000,
    )  # fmt: skip


LOG = softmax_log()


def same(a: ReplayResult, b: ReplayResult) -> bool:
    return a.to_dict() == b.to_dict() and a.trajectory.equals(b.trajectory)


def plans_of(log: Log) -> list[Any]:
    basis = read_basis(log, ReplayOptions())
    return [plan_replay(basis, as_description(policy), ReplayOptions(**options)) for policy, options in VARIANTS]


@cache
def alone() -> list[ReplayResult]:
    """Return what each gives alone."""
    return [execute(plan, batch_size=N) for plan in plans_of(LOG)]


@pytest.mark.parametrize("batch_size", [97, 1000, N])
@pytest.mark.parametrize("jobs", [1, 3])
def test_together_they_give_what_each_gives_alone(batch_size: int, jobs: int) -> None:
    together = execute_all(plans_of(LOG), jobs=jobs, batch_size=batch_size)
    assert [same(one, other) for one, other in zip(together, alone(), strict=True)] == [True] * len(VARIANTS)


@pytest.mark.parametrize("batch_size", [97, N])
def test_a_log_on_disk_gives_what_it_gives_in_memory(batch_size: int, tmp_path: Path) -> None:
    write_canonical(LOG, tmp_path, fingerprint=LOG.meta.fingerprint)
    found = execute_all(plans_of(open_canonical(tmp_path)), batch_size=batch_size)
    assert [same(one, other) for one, other in zip(found, alone(), strict=True)] == [True] * len(VARIANTS)


@pytest.mark.parametrize("propensity", ["estimate", "estimate:context", "uniform"])
def test_estimated_propensities_are_shared(propensity: Any) -> None:
    options = ReplayOptions(window=40, propensity=propensity)
    basis = read_basis(LOG, ReplayOptions(propensity=propensity))
    together = execute_all([plan_replay(basis, as_description(p), options) for p in ("linucb", "ucb1")], batch_size=500)
    by_itself = [execute(plan_replay(LOG, as_description(p), options)) for p in ("linucb", "ucb1")]
    assert [same(one, other) for one, other in zip(together, by_itself, strict=True)] == [True, True]


def test_contexts_are_read_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    batches = Log.batches

    def counting(self: Log, columns: list[str], size: int = N, *, coded: bool = False) -> Any:
        read.extend(columns)
        return batches(self, columns, size, coded=coded)

    plans = plans_of(LOG)
    monkeypatch.setattr(Log, "batches", counting)
    execute_all(plans)
    assert read.count("context") == 1


def addresses(table: pa.Table, name: str) -> int:
    """Return where in memory a column of one chunk begins."""
    return int(table[name].chunk(0).buffers()[1].address)


def test_rounds_of_the_logging_policy_are_the_columns_of_the_log() -> None:
    log = softmax_log()
    alone = execute(plan_replay(log, as_description("logging"), ReplayOptions(window=40)))
    basis = read_basis(log, ReplayOptions(window=40))
    plans = [plan_replay(basis, as_description(name), ReplayOptions(window=40)) for name in ("linucb", "logging")]
    for result in (alone, execute_all(plans)[1]):
        table = result.trajectory
        assert table["display_id"].to_numpy().tolist() == list(range(result.rounds)), "every display is a round"
        assert table["round"].to_numpy().tolist() == list(range(1, result.rounds + 1))
        for name in ("time", "action", "propensity"):
            assert addresses(table, name) == addresses(log.displays, name), name
        assert np.shares_memory(table["round"].to_numpy(), table["display_id"].to_numpy())


def test_what_rounds_showed_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_canonical(LOG, tmp_path, fingerprint=LOG.meta.fingerprint)
    asked: list[str] = []
    take = StoredLog.take

    def counting(self: StoredLog, displays: Any, columns: list[str]) -> pa.Table:
        asked.extend(columns)
        return take(self, displays, columns)

    plans = plans_of(open_canonical(tmp_path))
    monkeypatch.setattr(StoredLog, "take", counting)
    found = execute_all([plan for plan in plans if plan.sampler != "queue"])
    assert "action" not in asked
    expected = [of for plan, of in zip(plans, alone(), strict=True) if plan.sampler != "queue"]
    assert [same(*of) for of in zip(found, expected, strict=True)] == [True] * len(found)


def test_rewards_of_rounds_that_follow_each_other_are_those_of_any_rounds() -> None:
    plan = plan_replay(softmax_log(), as_description("logging"), ReplayOptions(window=40, reward="observed"))
    displays = np.arange(100, N)
    assert observed_rewards(plan, displays).sum() > 0
    other = np.append(displays, displays[-1])  # shown twice, and so not one after the other
    played = observed_rewards(plan, other)[:-1]
    late = observed_rewards(plan, displays)
    assert (played >= late).all(), "one more round reveals no less"
    np.testing.assert_array_equal(played[: -40 - 1], late[: -40 - 1])


def test_where_replays_read_is_looked_up_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    looked_up = references.displays_of
    monkeypatch.setattr(references, "displays_of", lambda *of: asked.append(of) or looked_up(*of))
    basis = read_basis(softmax_log(), ReplayOptions(window=40))
    plans = [plan_replay(basis, as_description(name), ReplayOptions(window=40)) for name in ("ucb1", "linucb")]
    first, second = execute_all(plans)
    assert len(asked) == 1
    assert first.learned is not None
    assert second.learned is not None
    assert first.learned.learned_from == second.learned.learned_from != ()
