"""Thinning leaves every action the contexts of all, and estimated propensities are the true ones."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.api import replay
from evaluator.log import Log
from evaluator.options.shared import PropensityMode
from evaluator.replays.rounds.propensity import Propensities, resolve_propensities, thinning
from evaluator.replays.rounds.survey import survey
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


def propensities(log: Log, mode: PropensityMode | None = None) -> tuple[Propensities, np.ndarray]:
    """Return a log's propensities, and that of each display."""
    found = resolve_propensities(survey(log), mode)
    return found, found.of({name: log.column(name) for name in found.reads})


@pytest.mark.parametrize("per_action", [False, True])
def test_thinning_leaves_each_action_the_contexts_of_all(per_action: bool) -> None:
    log, _ = softmax_log(60_000, seed=21)
    action, context = log.column("action"), log.column("context")
    found, p = propensities(log)
    thinned = thinning(log, found, per_action=per_action)
    kept = thinned.kept({"action": action, "propensity": p}, np.random.default_rng(22).random(len(log)))
    cell = (context @ [1, 2]).astype(int)
    c = [p[action == k].min() if per_action else p.min() for k in range(3)]
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
    found, estimated = propensities(log, "estimate")
    assert found.kind == "estimated"
    action = log.column("action")
    for k in range(3):
        (p,) = np.unique(estimated[action == k])
        assert abs(p - logger[k]) < 4 * (logger[k] * (1 - logger[k]) / n) ** 0.5


def test_the_multinomial_model_recovers_a_logger_that_reads_the_context() -> None:
    n = 50_000
    log, _ = softmax_log(n, seed=25)
    found, estimated = propensities(log, "estimate:context")
    assert found.kind == "estimated"
    assert "no unmeasured confounding" in found.assumption
    # Six free coefficients on 0/1 contexts: a cell's fitted probability is no less precise than its own frequency.
    error = np.abs(estimated - log.column("propensity"))
    assert error.max() < 4 * (0.25 / (n / 4)) ** 0.5
    # Frequencies alone do not see the context.
    _, blind = propensities(log, "estimate")
    assert np.abs(blind - log.column("propensity")).max() > 0.1


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
