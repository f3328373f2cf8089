"""The factor updated in place is the factor of V, and draws have the covariance scale² V⁻¹."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.kernels.cholesky import add_to_cholesky, sample_normal, start_cholesky
from evaluator.kernels.compiling import compiled_uncached

Floats = npt.NDArray[np.float64]


@compiled_uncached
def update(factor: Floats, vectors: Floats, scratch: Floats) -> None:
    for i in range(len(vectors)):
        add_to_cholesky(factor, vectors[i], scratch)


@compiled_uncached
def sample(mean: Floats, factor: Floats, scale: float, rng: np.random.Generator, out: Floats) -> None:
    for i in range(len(out)):
        sample_normal(mean, factor, scale, rng, out[i])


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("n", [0, 1, 4, 10_000])
def test_equals_the_factor_of_v(n: int, ridge: float) -> None:
    d = 5
    vectors = np.random.default_rng(1).standard_normal((n, d))
    factor = start_cholesky(2, d, ridge)
    update(factor[1], vectors, np.zeros(d))
    v = ridge * np.eye(d) + vectors.T @ vectors
    np.testing.assert_allclose(factor[1], np.linalg.cholesky(v), rtol=0, atol=1e-12 * np.sqrt(v.max()) * (1 + n))
    np.testing.assert_array_equal(np.triu(factor[1], 1), 0.0)
    np.testing.assert_array_equal(factor[0], np.sqrt(ridge) * np.eye(d))


def test_the_vector_is_left_alone() -> None:
    vector = np.array([1.0, -2.0, 3.0])
    add_to_cholesky(start_cholesky(1, 3, 1.0)[0], vector, np.zeros(3))
    np.testing.assert_array_equal(vector, [1.0, -2.0, 3.0])


def test_draws_have_the_mean_and_the_covariance() -> None:
    n, d, scale = 40_000, 4, 0.7
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((20, d))
    v = np.eye(d) + vectors.T @ vectors
    mean, out = np.array([1.0, -1.0, 0.5, 3.0]), np.empty((n, d))
    sample(mean, np.linalg.cholesky(v), scale, rng, out)
    sigma = scale**2 * np.linalg.inv(v)
    variances = np.diag(sigma)
    # 4 standard errors; of a product of two centred normals: var = S_ii S_jj + S_ij².
    assert (abs(out.mean(axis=0) - mean) < 4 * np.sqrt(variances / n)).all()
    products = (out - mean).T @ (out - mean) / n
    assert (abs(products - sigma) < 4 * np.sqrt((np.outer(variances, variances) + sigma**2) / n)).all()


def test_no_scale_is_the_mean() -> None:
    mean, out = np.array([1.0, 2.0]), np.empty(2)
    sample_normal(mean, np.eye(2), 0.0, np.random.default_rng(0), out)
    np.testing.assert_array_equal(out, mean)
