"""Policies that are columns of a log are audited: a display of a twin has the columns of one of the log's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from evaluator import audit
from evaluator.arguments import as_descriptions
from evaluator.audits.options import AuditOptions
from evaluator.audits.replays import fit, replay_twin
from evaluator.log import Log
from evaluator.log.schema import fixed_size_lists
from evaluator.worlds.twin_log import draw_twin
from tests.logs import build_log

K, N = 3, 3000


def shop(*, sets: bool = False) -> Log:
    """Return displays in three segments, the contexts, each with a best action, and policies that know it or do not."""
    rng = np.random.default_rng(5)
    segment = rng.integers(K, size=N)
    eligible = rng.random((N, K)) < 0.7
    eligible[np.arange(N), rng.integers(K, size=N)] = True
    among = eligible if sets else np.ones((N, K), np.bool_)
    action = np.array([rng.choice(np.flatnonzero(own)) for own in among])
    sold = np.flatnonzero(rng.random(N) < np.where(action == segment, 0.5, 0.1))
    log = build_log(
        time=np.arange(N), action=action, context=np.eye(K)[segment], conversion_display=sold, conversion_time=sold,
        n_actions=K, eligible=eligible if sets else None,
    )  # fmt: skip
    labels = np.array([*log.labels, "gold"])
    best = np.where(np.arange(N) % 10 == 0, K, segment)  # every tenth time an action that the log does not have
    displays = log.displays.append_column("target:best", pa.array(labels[best], pa.string()))
    displays = displays.append_column("target", fixed_size_lists(np.eye(K)[segment] * 0.8 + 0.2 / K))
    return replace(log, displays=displays).validated()


def test_live_values_are_those_of_the_columns_and_replays_are_not_biased() -> None:
    found = audit(shop(), ["target:best", "columns", "random"], twins=30)
    knows, half, random = found.policies
    # Of 0.5 where the action is right and 0.1 where it is not, by their probabilities; rates are fitted to the log.
    error = 4 * np.sqrt(0.5 * 0.5 / (N / K))
    for policy, right in ((knows, 0.9 + 0.1 / K), (half, 0.8 + 0.2 / K), (random, 1 / K)):
        assert abs(policy.live_value - (0.1 + 0.4 * right)) < error
        assert abs(policy.bias) < 4 * policy.bias_standard_error
        assert not policy.biased
    assert any(said.startswith("columns does at a display") for said in found.truth)


def test_a_display_of_a_twin_has_context_and_columns_of_one_display_of_the_log() -> None:
    log, policies = shop(), as_descriptions(["target:best", "columns"])
    truth = fit(log, policies, AuditOptions(twins=10)).truth
    twin = draw_twin(truth, seed=1, twin=0)
    assert twin.schema.field("target:best").type == pa.string()
    segment = twin.column("context").argmax(axis=1)
    labels = np.array([label for _, part in twin.arrays("target:best") for label in part.to_pylist()])
    np.testing.assert_array_equal(twin.column("target").argmax(axis=1), segment)
    own = labels != "gold"
    np.testing.assert_array_equal(labels[own], np.array(log.labels)[segment[own]])
    assert abs(own.mean() - 0.9) < 4 * np.sqrt(0.09 / N)


def test_other_audits_draw_the_twins_that_they_drew() -> None:
    log, policies = shop(), as_descriptions(["random"])
    without = replace(log, displays=log.displays.drop_columns(["target", "target:best"]))
    one, other = (fit(of, policies, AuditOptions(twins=10)) for of in (log, without))
    assert one.truth.targets == {}
    a, b = (replay_twin(of.truth, policies, AuditOptions(twins=10), of.claimed, 0, horizon=None) for of in (one, other))
    assert a.told == b.told
