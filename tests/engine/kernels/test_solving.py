"""Equations have a solution whatever the columns: the exact one where there is one, else the least-norm one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import evaluator
from evaluator.engine.kernels.solving import inverted, solved, squared_length, standard_of

RNG = np.random.default_rng(1)
X = RNG.random(400)
T = np.arange(400.0)
COLUMNS = {
    "one": X[:, None],
    "a unit of its own": np.column_stack([X, 1e12 * RNG.random(400)]),
    "twice": np.column_stack([X, X]),
    "twice in other units": np.column_stack([X, 2e9 * X]),
    "a date twice": np.column_stack([1.7e12 + 1e3 * T, 1.7e12 + 1e3 * T]),
    "constant": np.column_stack([X, np.full(400, 1.7e9), np.zeros(400)]),
    "huge and tiny": np.column_stack([1e30 * X, 1e-30 * RNG.random(400)]),
    "adds up to the constant": np.column_stack([X < 0.5, X >= 0.5]).astype(np.float64),
}
EACH = pytest.mark.parametrize("x", COLUMNS.values(), ids=COLUMNS)


@EACH
def test_least_squares_predict_what_the_columns_can(x: np.ndarray) -> None:
    design = standard_of(x).with_constant(x)
    y = 1.0 + RNG.random(400) + X
    theta = solved(design.T @ design, design.T @ y)
    # Of the singular value decomposition, which needs no inverse.
    expected = design @ np.linalg.lstsq(design, y, rcond=1e-12)[0]
    np.testing.assert_allclose(design @ theta, expected, rtol=0, atol=1e-7)


@EACH
def test_an_inverse_gives_each_prediction_its_variance(x: np.ndarray) -> None:
    design = standard_of(x).with_constant(x)
    leverage = np.einsum("nd,de,ne->n", design, inverted(design.T @ design), design)
    u, singular, _ = np.linalg.svd(design, full_matrices=False)
    expected = (u[:, singular > 1e-6 * singular[0]] ** 2).sum(axis=1)
    np.testing.assert_allclose(leverage, expected, rtol=1e-6)


def test_stacks_are_solved_one_by_one() -> None:
    x = RNG.random((3, 50, 4))
    x[1, :, 3] = x[1, :, 0]
    gram, right = np.swapaxes(x, 1, 2) @ x, RNG.random((3, 4))
    right[1, 3] = right[1, 0]
    for i, theta in enumerate(solved(gram, right)):
        np.testing.assert_allclose(gram[i] @ theta, right[i], rtol=1e-6)
        np.testing.assert_allclose(theta, solved(gram[i], right[i]), rtol=1e-6)


@EACH
def test_columns_have_mean_0_and_variance_1_unless_they_are_constant(x: np.ndarray) -> None:
    standard = standard_of(x)
    found = standard.of(x)
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-6)
    spread = np.where(np.isfinite(standard.deviation), 1.0, 0.0)
    np.testing.assert_allclose(found.std(axis=0), spread, rtol=1e-6)
    np.testing.assert_array_equal(spread == 0, x.std(axis=0) <= 1e-9 * abs(x.mean(axis=0)))


def test_a_squared_length_has_the_directions_that_vary() -> None:
    covariance = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 4.0]])
    assert squared_length(np.array([1.0, 1.0, 2.0]), covariance) == (pytest.approx(0.5 + 1.0), 2)
    assert squared_length(np.zeros(2), np.zeros((2, 2))) == (0.0, 0)


def test_nothing_else_in_the_package_solves_equations() -> None:
    package = Path(evaluator.__file__).parent
    bare = re.compile(r"linalg\.(solve|inv|pinv|tensorsolve|matrix_rank|cho_solve)\b")
    using = {str(p.relative_to(package)) for p in package.rglob("*.py") if bare.search(p.read_text(encoding="utf-8"))}
    assert using == {"engine/kernels/solving.py"}
