"""The regression updated in place is the dense solve of its whole history."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.kernels.compiling import compiled_uncached
from evaluator.kernels.ridge import (
    Ridge,
    add_display,
    add_reward,
    known_length,
    length,
    predict,
    squared_norm,
    start_ridge,
)

Floats = npt.NDArray[np.float64]


@compiled_uncached
def learn(ridge: Ridge, block: npt.NDArray[np.int64], vectors: Floats, value: Floats) -> None:
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
    np.testing.assert_allclose(state.inverse[0], inverse, rtol=0, atol=1e-9 * abs(inverse).max())
    np.testing.assert_allclose(state.theta[0], theta, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state.moment[0], vectors.T @ value, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(state.inverse[0], state.inverse[0].T)


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
    inverse = (inverse + inverse.transpose(0, 2, 1)) / 2
    ridge = Ridge(inverse, theta, theta, np.zeros(4), size)
    for b in range(3):
        for r in range(5):
            x = vectors[r]
            assert predict(theta, size, b, vectors, r) == pytest.approx(theta[b] @ x, rel=1e-13)
            assert squared_norm(ridge, b, vectors, r) == pytest.approx(x @ inverse[b] @ x, rel=1e-12)


def test_a_norm_is_never_negative() -> None:
    # V⁻¹ after rounding: its smallest eigenvalue is -1e-20.
    ridge = start_ridge(1, 1, 1.0)
    ridge.inverse[0, 0, 0] = -1e-20
    assert squared_norm(ridge, 0, np.ones((1, 1)), 0) == 0.0


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
        np.testing.assert_array_equal(ours.inverse, theirs.inverse)
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
        np.testing.assert_allclose(disjoint.inverse[a], shared.inverse[0, block, block], rtol=0, atol=1e-12)
    off = np.kron(1 - np.eye(k), np.ones((d, d)))
    assert not (shared.inverse[0] * off).any()


def test_order_of_displays_and_conversions_does_not_matter() -> None:
    vectors, value = history(300, 5, seed=5)
    at_once, late = start_ridge(1, 5, 1.0), start_ridge(1, 5, 1.0)
    zeros = np.zeros(300, np.int64)
    learn(at_once, zeros, vectors, value)
    learn(late, zeros, vectors, np.zeros(300))
    for i in reversed(range(300)):
        add_reward(late, 0, vectors[i], value[i])
    np.testing.assert_allclose(at_once.theta, late.theta, rtol=0, atol=1e-12)
