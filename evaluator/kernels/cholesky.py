"""Cholesky factor of V, updated in place, from which Thompson sampling draws."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import inlinable


def start_cholesky(blocks: int, dimension: int, ridge: float) -> npt.NDArray[np.float64]:
    """Return the lower factors of ridge·I, shape (blocks, d, d)."""
    factor = np.zeros((blocks, dimension, dimension))
    factor[:] = np.eye(dimension) * math.sqrt(ridge)
    return factor


@inlinable
def add_to_cholesky(
    factor: npt.NDArray[np.float64], vector: npt.NDArray[np.floating], scratch: npt.NDArray[np.float64]
) -> None:
    """Turn the factor of V, shape (d, d), into that of V + vector vector' (Givens rotations). O(d²)."""
    d = vector.shape[0]
    for i in range(d):
        scratch[i] = vector[i]
    for k in range(d):
        diagonal = factor[k, k]
        r = math.sqrt(diagonal * diagonal + scratch[k] * scratch[k])
        c = r / diagonal
        s = scratch[k] / diagonal
        factor[k, k] = r
        for i in range(k + 1, d):
            factor[i, k] = (factor[i, k] + s * scratch[i]) / c
            scratch[i] = c * scratch[i] - s * factor[i, k]


@inlinable
def sample_normal(
    mean: npt.NDArray[np.float64],
    factor: npt.NDArray[np.float64],
    scale: float,
    rng: np.random.Generator,
    out: npt.NDArray[np.float64],
) -> None:
    """Write a draw of N(mean, scale²·V⁻¹) into `out`, shape (d,), by solving L'y = z. O(d²)."""
    d = mean.shape[0]
    for i in range(d):
        out[i] = rng.standard_normal()
    for i in range(d - 1, -1, -1):
        total = out[i]
        for j in range(i + 1, d):
            total -= factor[j, i] * out[j]
        out[i] = total / factor[i, i]
    for i in range(d):
        out[i] = mean[i] + scale * out[i]
