"""The regression updated in place is the dense solve of its whole history."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.engine.kernels.compiling import compiled_uncached
from evaluator.engine.kernels.ridge import (
    LARGEST_CONDITION,
    Regression,
    Ridge,
    add_display,
    add_reward,
    factors_of,
    known_length,
    length,
    mean_and_norm,
    predict,
    sample_theta,
    squared_norm,
    start_regression,
    start_ridge,
)
from tests.twins.linear import inverse_of

Floats = npt.NDArray[np.float64]


@compiled_uncached
def learn(ridge: Regression, block: npt.NDArray[np.int64], vectors: Floats, value: Floats) -> None:
    for i in range(len(vectors)):
        add_display(ridge, block[i], vectors, i)
        if value[i] != 0.0:
            add_reward(ridge, block[i], vectors[i], value[i])


def dense(vectors: Floats, value: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Return V and V⁻¹ B."""
    v = ridge * np.eye(vectors.shape[1]) + vectors.T @ vectors
    return v, np.linalg.solve(v, vectors.T @ value)


def history(n: int, d: int, seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), np.where(rng.random(n) < 0.3, rng.random(n), 0.0)


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("n", [0, 1, 3, 100_000])
def test_equals_a_dense_solve(n: int, ridge: float) -> None:
    vectors, value = history(n, 6, seed=1)
    state = start_ridge(1, 6, ridge)
    learn(state, np.zeros(n, np.int64), vectors, value)
    v, theta = dense(vectors, value, ridge)
    inverse = np.linalg.inv(v)
    # Relative to the numbers' own size: V⁻¹ shrinks as 1 / n.
    np.testing.assert_allclose(inverse_of(state)[0], inverse, rtol=0, atol=1e-9 * abs(inverse).max())
    np.testing.assert_allclose(state.theta[0], theta, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state.moment[0], vectors.T @ value, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(np.triu(state.factors[0], 1), 0.0)


@pytest.mark.parametrize("ridge", [0.04, 1.0, 9.0])
def test_before_data_the_width_is_the_norm_over_the_root_of_ridge(ridge: float) -> None:
    x = np.array([[3.0, 4.0]])
    state = start_ridge(1, 2, ridge)
    assert np.sqrt(squared_norm(state, 0, x, 0)) == pytest.approx(5.0 / np.sqrt(ridge), rel=1e-15)
    assert predict(state.theta, state.size, 0, x, 0) == 0.0


@pytest.mark.parametrize("size", [(), known_length(4)], ids=["length not known", "length known"])
def test_norm_and_mean_of_any_row_and_block(size: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    vectors, theta = rng.standard_normal((5, 4)), rng.standard_normal((3, 4))
    roots = rng.standard_normal((3, 4, 4))
    inverse = roots @ roots.transpose(0, 2, 1)
    ridge = Ridge(factors_of(inverse), theta, theta, np.zeros(4), size)
    np.testing.assert_allclose(inverse_of(ridge), inverse, rtol=0, atol=1e-12 * abs(inverse).max())
    for b in range(3):
        for r in range(5):
            x = vectors[r]
            assert predict(theta, size, b, vectors, r) == pytest.approx(theta[b] @ x, rel=1e-13)
            assert squared_norm(ridge, b, vectors, r) == pytest.approx(x @ inverse[b] @ x, rel=1e-12)


@pytest.mark.parametrize("kind", ["columns in their own units", "columns that hang together"])
@pytest.mark.parametrize("d", [3, 12])
@pytest.mark.parametrize("condition", [1.0, 1e4, LARGEST_CONDITION])
def test_up_to_a_condition_of_1e8_it_is_the_dense_solve(condition: float, d: int, kind: str) -> None:
    rng = np.random.default_rng(8)
    vectors = rng.standard_normal((20_000, d)) * np.geomspace(1.0, condition**-0.5, d)
    if kind == "columns that hang together":
        vectors @= np.linalg.qr(rng.standard_normal((d, d)))[0]
    # As a log keeps them, and longer than 1: the second display already has next to all of the first one's V⁻¹ left.
    short = (30.0 * vectors).astype(np.float32)
    value = np.where(rng.random(len(short)) < 0.3, rng.random(len(short)), 0.0)
    state = start_ridge(1, d, 1e-3)
    learn_displays(learn, state, np.zeros(len(short), np.int64), short, value)
    vectors = short.astype(np.float64)
    v, theta = dense(vectors, value, 1e-3)
    assert np.linalg.cond(v) == pytest.approx(condition, rel=0.3)
    np.testing.assert_allclose(state.theta[0], theta, rtol=0, atol=1e-6 * abs(theta).max())
    asked = vectors[:100]
    np.testing.assert_allclose(asked @ state.theta[0], asked @ theta, rtol=0, atol=1e-6 * abs(asked @ theta).max())
    norms = np.einsum("nd,nd->n", asked, np.linalg.solve(v, asked.T).T)
    np.testing.assert_allclose([squared_norm(state, 0, asked, i) for i in range(100)], norms, rtol=1e-6)


def test_a_column_in_milliseconds_changes_no_other_columns_coefficients() -> None:
    """V is beyond any dense solve in float64; as columns with means of 0 are independent, the truth is known."""
    rng = np.random.default_rng(9)
    x = rng.choice([-1.0, 1.0], 4096)
    ms = np.tile([1.7e12, -1.7e12], 2048) * x  # orthogonal to x and to the constant
    value = np.where(x > 0, 0.3, 0.1)
    state = start_ridge(1, 3, 1.0)
    learn(state, np.zeros(4096, np.int64), np.column_stack([x, ms, np.ones(4096)]), value)
    alone = start_ridge(1, 2, 1.0)
    learn(alone, np.zeros(4096, np.int64), np.column_stack([x, np.ones(4096)]), value)
    np.testing.assert_allclose(state.theta[0, [0, 2]], alone.theta[0], rtol=1e-3)


def test_a_draw_has_the_mean_and_the_covariance() -> None:
    n, d, scale = 40_000, 4, 0.7
    vectors, value = history(20, d, seed=2)
    state = start_ridge(2, d, 1.0)
    learn(state, np.ones(20, np.int64), vectors, value)
    out = np.empty((n, d))
    draw(state, scale, np.random.default_rng(2), out)
    sigma = scale**2 * np.linalg.inv(np.eye(d) + vectors.T @ vectors)
    variances = np.diag(sigma)
    # 4 standard errors; of a product of two centred normals: var = S_ii S_jj + S_ij².
    assert (abs(out.mean(axis=0) - state.theta[1]) < 4 * np.sqrt(variances / n)).all()
    products = (out - state.theta[1]).T @ (out - state.theta[1]) / n
    assert (abs(products - sigma) < 4 * np.sqrt((np.outer(variances, variances) + sigma**2) / n)).all()
    draw(state, 0.0, np.random.default_rng(2), out[:1])
    np.testing.assert_array_equal(out[0], state.theta[1])


@compiled_uncached
def draw(ridge: Ridge, scale: float, rng: np.random.Generator, out: Floats) -> None:
    for i in range(len(out)):
        sample_theta(ridge, 1, scale, rng, out[i])


def test_the_length_is_known_when_compiling_up_to_a_bound() -> None:
    assert [len(known_length(d)) for d in (0, 1, 8)] == [0, 1, 8]
    assert known_length(9) == known_length(1000) == ()
    assert length((), np.zeros((5, 9))) == 9
    assert length(known_length(3), np.zeros((5, 3))) == 3


@pytest.mark.parametrize("d", [3, 12])
def test_float32_vectors_count_as_if_cast_first(d: int) -> None:
    vectors, value = history(200, d, seed=6)
    short = vectors.astype(np.float32)
    ours, theirs = start_ridge(1, d, 1.0), start_ridge(1, d, 1.0)
    zeros = np.zeros(200, np.int64)
    for learn_one in (learn, learn.py_func):
        learn_displays(learn_one, ours, zeros, short, value)
        learn_displays(learn_one, theirs, zeros, short.astype(np.float64), value)
        np.testing.assert_array_equal(ours.factors, theirs.factors)
        np.testing.assert_array_equal(ours.theta, theirs.theta)
        for r in range(5):
            assert squared_norm(ours, 0, short, r) == squared_norm(ours, 0, short.astype(np.float64), r)


def learn_displays(
    learn_one: Callable[..., None], ridge: Ridge, block: int, vectors: np.ndarray, value: np.ndarray
) -> None:
    """Learn displays as they are stored, and conversions as the calendar keeps them, in float64."""
    learn_one(ridge, block, vectors, np.zeros_like(value))
    for vector, v in zip(vectors.astype(np.float64), value, strict=True):
        add_reward(ridge, 0, vector, v)


def test_disjoint_is_shared_with_embedded_vectors() -> None:
    k, d, n, ridge = 3, 4, 500, 0.7
    contexts, value = history(n, d, seed=2)
    arm = np.random.default_rng(4).integers(0, k, n)
    disjoint, shared = start_ridge(k, d, ridge), start_ridge(1, k * d, ridge)
    embedded = np.array([np.kron(np.eye(k)[a], x) for a, x in zip(arm, contexts, strict=True)])
    learn(disjoint, arm, contexts, value)
    learn(shared, np.zeros(n, np.int64), embedded, value)
    np.testing.assert_allclose(disjoint.theta.ravel(), shared.theta[0], rtol=0, atol=1e-12)
    for a in range(k):
        block = slice(a * d, (a + 1) * d)
        np.testing.assert_allclose(inverse_of(disjoint)[a], inverse_of(shared)[0, block, block], rtol=0, atol=1e-12)
    off = np.kron(1 - np.eye(k), np.ones((d, d)))
    assert not (inverse_of(shared)[0] * off).any()


def test_order_of_displays_and_conversions_does_not_matter() -> None:
    vectors, value = history(300, 5, seed=5)
    at_once, late = start_ridge(1, 5, 1.0), start_ridge(1, 5, 1.0)
    zeros = np.zeros(300, np.int64)
    learn(at_once, zeros, vectors, value)
    learn(late, zeros, vectors, np.zeros(300))
    for i in reversed(range(300)):
        add_reward(late, 0, vectors[i], value[i])
    np.testing.assert_allclose(at_once.theta, late.theta, rtol=0, atol=1e-12)


@pytest.mark.parametrize("d", [1, 3, 8, 9, 40])
@pytest.mark.parametrize("ridge", [1e-3, 1.0, 50.0])
def test_a_diagonal_regression_is_a_row_of_small_dense_solves(d: int, ridge: float) -> None:
    x, value = history(300, d, seed=7)
    state = start_regression(1, d, ridge, diagonal=True)
    learn(state, np.zeros(300, np.int64), x, value)
    q, theta = np.full(d, ridge), np.zeros(d)
    for one, reward in zip(x, value, strict=True):
        # The minimum over w of Σ q_i (w_i - theta_i)² + (<w, one> - reward)².
        theta = np.linalg.solve(np.diag(q) + np.outer(one, one), q * theta + reward * one)
        q += one**2
    np.testing.assert_allclose(state.theta[0], theta, rtol=1e-9, atol=1e-12)
    for r in range(5):
        norm = x[r] @ np.diag(1.0 / q) @ x[r]
        assert squared_norm(state, 0, x, r) == pytest.approx(norm, rel=1e-12)
        assert mean_and_norm(state, 0, x, r) == pytest.approx((theta @ x[r], norm), rel=1e-9)


def test_a_diagonal_draw_has_the_variance_of_the_diagonal() -> None:
    vectors, value = history(50, 4, seed=8)
    state = start_regression(1, 4, 2.0, diagonal=True)
    learn(state, np.zeros(50, np.int64), vectors, value)
    rng, out = np.random.default_rng(9), np.empty((20_000, 4))
    for draw in out:
        sample_theta(state, 0, 0.5, rng, draw)
    variance = 0.25 / (2.0 + (vectors**2).sum(axis=0))
    n = len(out)
    assert (abs(out.mean(axis=0) - state.theta[0]) < 4 * np.sqrt(variance / n)).all()
    assert (abs(np.cov(out.T) - np.diag(variance)) < 4 * np.sqrt(2 * np.outer(variance, variance) / n)).all()


def test_a_diagonal_stays_finite_where_one_display_outweighs_the_ridge() -> None:
    state = start_regression(1, 2, 1e-8, diagonal=True)
    learn(state, np.zeros(2, np.int64), np.array([[1e6, 1e6], [1e6, 0.0]]), np.array([1.0, 0.0]))
    assert np.isfinite(state.theta).all()
    assert state.theta[0] @ [1e6, 0.0] < 1.0
