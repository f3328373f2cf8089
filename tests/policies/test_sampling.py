"""Thompson sampling where each display has its own eligible actions: as a draw of theta~, for what is asked alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from evaluator.engine.kernels.compiling import compiled_uncached
from evaluator.policies import dispatch, resolve
from evaluator.policies.base import Setting
from tests.twins.linear import inverse_of

Floats = npt.NDArray[np.float64]
K, D, ROUNDS = 6, 3, 20_000
SPECS = ("lints", "lints:scale=2,ridge=0.3", "otflints", "otflints:width=theorem,bonus=exact")


@compiled_uncached
def scores_of_rounds(state: Any, rng: np.random.Generator, vector: Floats, among: bool, out: Floats) -> None:
    """Write the scores of each action in each round, shape (rounds, K)."""
    for i in range(out.shape[0]):
        if among:
            dispatch.begin_among(state, rng)
        else:
            dispatch.begin(state, rng)
        for k in range(out.shape[1]):
            out[i, k] = dispatch.score_among(state, vector, k)


def learned(spec: str, *, rows: int = 1) -> tuple[Any, Floats]:
    """Return a state that knows of each action another number of displays, and a context or vectors."""
    state = resolve(spec).start(Setting(n_actions=K, dimension=D, rows=rows, window=30, horizon=1000))
    rng = np.random.default_rng(7)
    for _ in range(60):
        vectors, action = rng.normal(size=(rows, D)), int(rng.integers(1, K) * rng.random())
        dispatch.begin(state, rng)
        dispatch.shown(state, vectors, action)
        if rng.random() < 0.5:
            dispatch.told(state, vectors[action if rows > 1 else 0], action, 0, 1.0)
    return state, rng.normal(size=(rows, D))


@pytest.mark.parametrize("spec", SPECS)
def test_scores_at_a_display_have_the_law_of_the_posterior(spec: str) -> None:
    state, context = learned(spec)
    ridge = state.sampler.ridge
    out = np.empty((ROUNDS, K))
    scores_of_rounds(state, np.random.default_rng(8), context, True, out)
    mean = ridge.theta @ context[0]
    deviation = state.sampler.scale[0] * np.sqrt(np.einsum("i,kij,j->k", context[0], inverse_of(ridge), context[0]))
    z = (out - mean) / deviation
    assert min(stats.kstest(z[:, k], "norm").pvalue for k in range(K)) > 1e-3 / K
    # Blocks are drawn independently; a correlation of n pairs has a standard error of 1 / sqrt(n).
    assert (abs(z.T @ z / ROUNDS - np.eye(K))[~np.eye(K, dtype=np.bool_)] < 4 / np.sqrt(ROUNDS)).all()
    # What a draw of theta~ makes of the same display: Kolmogorov-Smirnov of two samples, and who wins how often.
    whole = np.empty((ROUNDS, K))
    scores_of_rounds(state, np.random.default_rng(9), context, False, whole)
    assert min(stats.ks_2samp(out[:, k], whole[:, k]).pvalue for k in range(K)) > 1e-3 / K
    won, of_whole = (np.bincount(s.argmax(axis=1), minlength=K) for s in (out, whole))
    shares = (won + of_whole) / (2 * ROUNDS)
    assert (abs(won - of_whole) <= 4 * np.sqrt(2 * ROUNDS * shares * (1 - shares))).all()


@pytest.mark.parametrize("spec", SPECS)
def test_a_round_holds_its_draws_and_another_has_its_own(spec: str) -> None:
    state, context = learned(spec)
    rng = np.random.default_rng(10)
    dispatch.begin_among(state, rng)
    asked = {k: dispatch.score_among(state, context, k) for k in (4, 0, 2)}
    assert {k: dispatch.score_among(state, context, k) for k in (2, 0, 4)} == asked
    # A draw is of the action: twice the vector has twice the score.
    assert dispatch.score_among(state, 2 * context, 2) == pytest.approx(2 * asked[2], rel=1e-12)
    dispatch.begin_among(state, rng)
    assert all(dispatch.score_among(state, context, k) != was for k, was in asked.items())


@pytest.mark.parametrize("spec", SPECS)
def test_a_round_costs_one_draw_however_many_actions_there_are(spec: str) -> None:
    state, _ = learned(spec)
    rng, other = np.random.default_rng(11), np.random.default_rng(11)
    dispatch.begin_among(state, rng)
    other.random()
    assert rng.bit_generator.state == other.bit_generator.state


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("rows", [1, K])
def test_after_a_round_among_all_scores_are_those_of_its_choice(spec: str, rows: int) -> None:
    state, vectors = learned(spec, rows=rows)
    rng = np.random.default_rng(12)
    for _ in range(20):
        dispatch.begin_among(state, rng)
        dispatch.begin(state, rng)
        own = [dispatch.score_among(state, vectors[[k if rows > 1 else 0]], k) for k in range(K)]
        assert int(np.argmax(own)) == dispatch.choose(state, vectors)


@pytest.mark.parametrize("spec", SPECS)
def test_one_model_for_all_actions_draws_theta_as_ever(spec: str) -> None:
    state, vectors = learned(spec, rows=K)
    other, _ = learned(spec, rows=K)
    dispatch.begin_among(state, np.random.default_rng(13))
    dispatch.begin(other, np.random.default_rng(13))
    for k in range(K):
        assert dispatch.score_among(state, vectors[[k]], k) == dispatch.score(other, vectors[[k]], k)
