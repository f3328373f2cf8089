"""Thinning leaves every action the contexts of all, and estimated propensities are the true ones."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.api import replay
from evaluator.log import Log
from evaluator.log.contract import to_numpy
from evaluator.rounds.propensity import Propensities, resolve_propensities, thin
from tests.logs import bernoulli_log, build_log, linear_log


def softmax_log(n: int, seed: int) -> tuple[Log, np.ndarray]:
    """Return a log whose logger is a multinomial logistic model of its context, and all its probabilities."""
    rng = np.random.default_rng(seed)
    context = rng.integers(0, 2, (n, 2)).astype(float)
    scores = context @ np.array([[1.0, 0.0, -0.5], [-1.0, 0.5, 0.0]])
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    action = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    log = build_log(time=np.arange(n), action=action, n_actions=3, propensity=p[np.arange(n), action], context=context)
    return log, p


@pytest.mark.parametrize("per_action", [False, True])
def test_thinning_leaves_each_action_the_contexts_of_all(per_action: bool) -> None:
    log, _ = softmax_log(60_000, seed=21)
    action, context = log.column("action"), log.column("context")
    p = resolve_propensities(log, None)
    kept = thin(p, action, per_action=per_action, quantile=0.0, rng=np.random.default_rng(22)).kept
    cell = (context @ [1, 2]).astype(int)
    c = [p.p[action == k].min() if per_action else p.p.min() for k in range(3)]
    for k in range(3):
        for x in range(4):
            n = int((cell == x).sum())
            shown = int((kept & (action == k) & (cell == x)).sum())
            assert abs(shown / n - c[k]) < 4 * (c[k] * (1 - c[k]) / n) ** 0.5


def test_thinning_by_the_smallest_propensity_of_each_context_tilts_the_contexts() -> None:
    # Why c is one number: with a c for each context every context keeps another share of its displays.
    log, table = softmax_log(60_000, seed=21)
    cell = (log.column("context") @ [1, 2]).astype(int)
    p = log.column("propensity")
    draws = np.random.default_rng(23).random(len(log))
    of_log = np.bincount(cell, minlength=4) / len(log)
    local = draws * p < table.min(axis=1)
    overall = draws * p < p.min()
    for kept, tilted in ((local, True), (overall, False)):
        n = int(kept.sum())
        shares = np.bincount(cell[kept], minlength=4) / n
        far = np.abs(shares - of_log).max() / (0.25 * 0.75 / n) ** 0.5
        assert (far > 5) if tilted else (far < 4)


def test_frequencies_recover_a_logger_that_ignores_the_context() -> None:
    logger, n = np.array([0.5, 0.3, 0.2]), 50_000
    log = bernoulli_log(n, [0.1, 0.2, 0.3], mean_delay=1.0, seed=24, logger=logger)
    found = resolve_propensities(log, "estimate")
    assert found.kind == "estimated"
    action = log.column("action")
    for k in range(3):
        (p,) = np.unique(found.p[action == k])
        assert abs(p - logger[k]) < 4 * (logger[k] * (1 - logger[k]) / n) ** 0.5


def test_the_multinomial_model_recovers_a_logger_that_reads_the_context() -> None:
    n = 50_000
    log, _ = softmax_log(n, seed=25)
    found = resolve_propensities(log, "estimate:context")
    assert found.kind == "estimated"
    assert "no unmeasured confounding" in found.assumption
    # Six free coefficients on 0/1 contexts: a cell's fitted probability is no less precise than its own frequency.
    error = np.abs(found.p - log.column("propensity"))
    assert error.max() < 4 * (0.25 / (n / 4)) ** 0.5
    # Frequencies alone do not see the context.
    blind = resolve_propensities(log, "estimate")
    assert np.abs(blind.p - log.column("propensity")).max() > 0.1


def test_a_quantile_accepts_more_and_reports_what_it_clips() -> None:
    log = linear_log(8000, n_actions=4, dimension=3, mean_delay=5.0, seed=26, temperature=0.2)
    exact, clipped = (replay(log, "otflinucb", window=20, accept_quantile=q) for q in (0.0, 0.2))
    assert (exact.clipped, exact.effective_sample_size) == (0.0, exact.rounds)
    # The share of displays strictly below the 0.2 quantile of n distinct propensities.
    assert clipped.clipped == pytest.approx(0.2, abs=1 / len(log))
    assert clipped.rounds > exact.rounds
    assert clipped.effective_sample_size < clipped.rounds
    assert any("below c" in w for w in clipped.warnings)
    assert not any("below c" in w for w in exact.warnings)
    p = to_numpy(log.displays["propensity"])
    thinned = thin(
        Propensities("logged", p, ""), log.column("action"), per_action=False, quantile=0.2,
        rng=np.random.default_rng(27),
    )  # fmt: skip
    assert thinned.c == pytest.approx(np.quantile(p, 0.2))
    np.testing.assert_allclose(thinned.weight, np.maximum(thinned.c / p, 1.0))
