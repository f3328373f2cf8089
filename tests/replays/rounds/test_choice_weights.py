"""Propensities of a logger that weighs the eligible actions: the weights come back, shares of the log would not do."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.api import plan
from evaluator.errors import PropensityError
from evaluator.replays.rounds.fitted import choice_weights, chosen_with
from tests.logs import build_log

K, N = 6, 60_000


def test_weights_are_those_of_the_logger_within_their_standard_errors() -> None:
    rng = np.random.default_rng(0)
    # The last actions are seldom eligible, and shown the more where they are.
    sets = rng.random((N, K)) < np.linspace(0.9, 0.2, K)
    sets[np.arange(N), rng.integers(0, K, N)] = True
    true = np.arange(1.0, K + 1.0) / np.arange(1.0, K + 1.0).sum()
    p = sets * true / (sets * true).sum(axis=1, keepdims=True)
    action = (rng.random((N, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    log = build_log(time=np.arange(N), action=action, eligible=sets, n_actions=K)
    found = choice_weights(log)
    # Of the log-likelihood's second derivative: each display tells of w_a as p (1 - p).
    information = (p * (1.0 - p)).sum(axis=0)
    assert (np.abs(np.log(found / true)) < 4.0 / np.sqrt(information)).all()
    shares = np.bincount(action, minlength=K) / N
    assert (np.abs(np.log(shares / true)) > 8.0 / np.sqrt(information)).any()
    some = {"action": action[:50], "eligible": log.column("eligible")[:50]}
    expected = found[action[:50]] / (sets[:50] * found).sum(axis=1)
    np.testing.assert_allclose(chosen_with(found, some), expected, rtol=1e-12)
    planned = plan(log.with_meta(propensity="absent"), "ucb1", window=60, propensity="estimate")
    assert planned.propensities.kind == "estimated"
    np.testing.assert_allclose(planned.matched.c, (found[action] / (sets * found).sum(axis=1)).min(), rtol=1e-9)


def test_a_model_of_the_context_is_refused() -> None:
    sets = np.array([[True, True, False], [False, True, True]] * 20)
    log = build_log(
        time=np.arange(40), action=[0, 1] * 20, eligible=sets, n_actions=3, context=np.zeros((40, 2)),
    )  # fmt: skip
    with pytest.raises(PropensityError, match="does not know which actions were eligible"):
        plan(log.with_meta(propensity="absent"), "linucb", window=5, propensity="estimate:context")
