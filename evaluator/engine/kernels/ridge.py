"""Ridge regression updated in place: V = ridge·I + Σ a a', B = Σ value·a, theta = V⁻¹B.

V⁻¹ is kept as its factors U D U', U upper triangular with 1 on its diagonal, D diagonal (Bierman 1977). An update of
the inverse itself (Sherman-Morrison) subtracts nearly all of it in the direction of a long vector, and where a column
is a time in milliseconds nothing but rounding is left. The factors' updates multiply D by numbers in (0, 1], and round
alike in whatever unit a column is: theta and norms are within 1e-6 of a dense solve up to a condition of V of
`LARGEST_CONDITION`, and norms are never negative.

The model is *shared* (one block; every action has its own vector, the action sets of Vernade et al. 2020) or *disjoint*
(one block an action; all actions see the display's context). Disjoint is the shared model with vectors e_k ⊗ x, whose V
is block diagonal, so nothing is lost by keeping the blocks apart.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable

# Of V: up to here numbers are those of a dense solve in float64 (`tests/engine/kernels/test_ridge.py`).
LARGEST_CONDITION = 1e8
# Vectors have a norm of about 1: with less, one display is beyond that condition.
LEAST_RIDGE = 1.0 / LARGEST_CONDITION


class Ridge(NamedTuple):
    """State of the regression.

    Parameters
    ----------
    factors
        Factors of the inverse V⁻¹ = U D U' of each block's design matrix, shape (blocks, d, d): D on the diagonal, U'
        below it, nothing above.
    moment
        Sum B of the rewards times vectors of each block, shape (blocks, d).
    theta
        Estimate V⁻¹B of each block, shape (blocks, d).
    scratch
        Vector V⁻¹a of the last update, shape (d,).
    size
        Tuple of length d, whose length compiled code knows (`length`); empty when d is large.
    """

    factors: npt.NDArray[np.float64]
    moment: npt.NDArray[np.float64]
    theta: npt.NDArray[np.float64]
    scratch: npt.NDArray[np.float64]
    size: tuple[int, ...]

    def read_earlier(self, name: str, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Turn V⁻¹, which files of earlier versions hold in place of its factors, into these."""
        if f"{name}.inverse" in saved:
            saved[f"{name}.factors"] = factors_of(saved.pop(f"{name}.inverse"))


def start_ridge(blocks: int, dimension: int, ridge: float) -> Ridge:
    """Return the regression before data: V = ridge·I."""
    factors = np.zeros((blocks, dimension, dimension))
    factors[:] = np.eye(dimension) / ridge
    moment = np.zeros((blocks, dimension))
    return Ridge(factors, moment, moment.copy(), np.zeros(dimension), known_length(dimension))


def factors_of(inverse: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return D and U' of some V⁻¹, shape (..., d, d), as `Ridge` has them; `LinAlgError` where one is not positive."""
    # Cholesky from the last coordinate to the first: V⁻¹ = (U D^½)(U D^½)'.
    root = np.linalg.cholesky(inverse[..., ::-1, ::-1])[..., ::-1, ::-1]
    diagonal = np.diagonal(root, axis1=-2, axis2=-1)
    factors: npt.NDArray[np.float64] = np.swapaxes(root / diagonal[..., None, :], -2, -1).copy()
    at = np.arange(factors.shape[-1])
    factors[..., at, at] = diagonal**2
    return factors


# The loops over a vector's elements are so short that counting and leaving them costs more than their arithmetic. A
# tuple's length is part of its type, so d is a constant when compiled, and the loops are unrolled. The price is that
# each d is compiled anew; for long vectors it buys nothing.
_UNROLLED = 8


def known_length(dimension: int) -> tuple[int, ...]:
    """Return a tuple of length d; empty where d is better not known when compiling."""
    return (0,) * dimension if dimension <= _UNROLLED else ()


@inlinable
def length(size: tuple[int, ...], vectors: npt.NDArray[np.floating]) -> int:
    """Return d of vectors of shape (..., d), as a constant where `known_length` has made it one."""
    return len(size) if len(size) > 0 else vectors.shape[-1]


@inlinable
def row(vectors: npt.NDArray[np.floating], action: int) -> int:
    """Return the row of an action's vector: its own in shape (K, d), the only one in (1, d)."""
    return action if vectors.shape[0] > 1 else 0


@inlinable
def block(ridge: Ridge, action: int) -> int:
    """Return the block of an action: its own in the disjoint model, the only one in the shared model."""
    return action if ridge.theta.shape[0] > 1 else 0


# Vectors come as they are stored, often float32. Each element is cast as it is read: float32 times float32 would be
# rounded to float32.


@inlinable
def predict(
    theta: npt.NDArray[np.float64], size: tuple[int, ...], b: int, vectors: npt.NDArray[np.floating], r: int
) -> float:
    """Return <theta[b], vectors[r]>, summed in index order; theta has shape (blocks, d)."""
    total = 0.0
    for i in range(length(size, vectors)):
        total += theta[b, i] * np.float64(vectors[r, i])
    return total


@inlinable
def estimate_rewards(ridge: Ridge, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    """Write <theta, a> of each action into `values`, shape (K,): 0 where nothing is known. O(K d)."""
    for k in range(values.shape[0]):
        values[k] = predict(ridge.theta, ridge.size, block(ridge, k), vectors, row(vectors, k))


@inlinable
def squared_norm(ridge: Ridge, b: int, vectors: npt.NDArray[np.floating], r: int) -> float:
    """Return ||vectors[r]||² in V⁻¹ of block b, a sum of D (U' vectors[r])²: never negative. O(d²)."""
    factors = ridge.factors
    total = 0.0
    for i in range(length(ridge.size, vectors)):
        x = np.float64(vectors[r, i])
        for j in range(i):
            x += factors[b, i, j] * np.float64(vectors[r, j])
        total += x * factors[b, i, i] * x
    return total


@inlinable
def add_display(ridge: Ridge, b: int, vectors: npt.NDArray[np.floating], r: int) -> None:
    """Add the display of vectors[r] to V (Bierman's update of the factors); theta follows. O(d²)."""
    d = length(ridge.size, vectors)
    gain = ridge.scratch
    factors = ridge.factors
    error = 0.0
    # 1 + ||vectors[r]||² over the coordinates so far.
    total = 1.0
    for i in range(d):
        x = np.float64(vectors[r, i])
        error += ridge.theta[b, i] * x
        for j in range(i):
            x += factors[b, i, j] * np.float64(vectors[r, j])
        own = factors[b, i, i] * x
        before, total = total, total + x * own
        factors[b, i, i] *= before / total
        step = x / before
        for j in range(i):
            old = factors[b, i, j]
            factors[b, i, j] = old - step * gain[j]
            gain[j] += own * old
        gain[i] = own
    error /= total
    for i in range(d):
        ridge.theta[b, i] -= error * gain[i]


@inlinable
def add_reward(ridge: Ridge, b: int, vector: npt.NDArray[np.float64], value: float) -> None:
    """Add a conversion's value to B; theta follows. O(d²)."""
    d = length(ridge.size, vector)
    factors = ridge.factors
    for i in range(d):
        ridge.moment[b, i] += value * vector[i]
    for i in range(d):
        x = vector[i]
        for j in range(i):
            x += factors[b, i, j] * vector[j]
        x *= value * factors[b, i, i]
        ridge.theta[b, i] += x
        for j in range(i):
            ridge.theta[b, j] += factors[b, i, j] * x


@inlinable
def sample_theta(ridge: Ridge, b: int, scale: float, rng: np.random.Generator, out: npt.NDArray[np.float64]) -> None:
    """Write a draw of N(theta, scale²·V⁻¹) of block b into `out`, shape (d,): U D^½ is a root of V⁻¹. O(d²)."""
    d = out.shape[0]
    for i in range(d):
        x = rng.standard_normal() * math.sqrt(ridge.factors[b, i, i])
        out[i] = x
        for j in range(i):
            out[j] += ridge.factors[b, i, j] * x
    for i in range(d):
        out[i] = ridge.theta[b, i] + scale * out[i]
