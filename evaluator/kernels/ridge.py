"""Ridge regression updated in place: V = ridge·I + Σ a a', B = Σ value·a, theta = V⁻¹B.

The model is *shared* (one block; every action has its own vector, the action sets of Vernade et al. 2020) or *disjoint*
(one block an action; all actions see the display's context). Disjoint is the shared model with vectors e_k ⊗ x, whose V
is block diagonal, so nothing is lost by keeping the blocks apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import inlinable

# The inverse is found from 1 / ridge by subtraction: of vectors of norm 1 its relative error is 1e-16 / ridge, so that
# here half of the digits are left.
LEAST_RIDGE = 1e-8


class Ridge(NamedTuple):
    """State of the regression.

    Parameters
    ----------
    inverse
        Inverse V⁻¹ of each block's design matrix, shape (blocks, d, d).
    moment
        Sum B of the rewards times vectors of each block, shape (blocks, d).
    theta
        Estimate V⁻¹B of each block, shape (blocks, d).
    scratch
        Vector V⁻¹a of the last update, shape (d,).
    size
        Tuple of length d, whose length compiled code knows (`length`); empty when d is large.
    """

    inverse: npt.NDArray[np.float64]
    moment: npt.NDArray[np.float64]
    theta: npt.NDArray[np.float64]
    scratch: npt.NDArray[np.float64]
    size: tuple[int, ...]


def start_ridge(blocks: int, dimension: int, ridge: float) -> Ridge:
    """Return the regression before data: V = ridge·I."""
    inverse = np.zeros((blocks, dimension, dimension))
    inverse[:] = np.eye(dimension) / ridge
    moment = np.zeros((blocks, dimension))
    return Ridge(inverse, moment, moment.copy(), np.zeros(dimension), known_length(dimension))


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
    """Return ||vectors[r]||² in V⁻¹ of block b; never negative, whatever the rounding. O(d²)."""
    inverse = ridge.inverse
    total = 0.0
    for i in range(length(ridge.size, vectors)):
        x = np.float64(vectors[r, i])
        off = 0.0
        for j in range(i):
            off += inverse[b, i, j] * np.float64(vectors[r, j])
        total += x * (2.0 * off + inverse[b, i, i] * x)
    return max(total, 0.0)


@inlinable
def add_display(ridge: Ridge, b: int, vectors: npt.NDArray[np.floating], r: int) -> None:
    """Add the display of vectors[r] to V (Sherman-Morrison); theta follows. O(d²)."""
    d = length(ridge.size, vectors)
    u = ridge.scratch
    inverse = ridge.inverse
    denominator = 1.0
    gain = 0.0
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += inverse[b, i, j] * np.float64(vectors[r, j])
        u[i] = total
        denominator += np.float64(vectors[r, i]) * total
        gain += total * ridge.moment[b, i]
    for i in range(d):
        scaled = u[i] / denominator
        ridge.theta[b, i] -= scaled * gain
        # One product serves both halves, so V⁻¹ stays exactly symmetric.
        for j in range(i):
            change = scaled * u[j]
            inverse[b, i, j] -= change
            inverse[b, j, i] -= change
        inverse[b, i, i] -= scaled * u[i]


@inlinable
def add_reward(ridge: Ridge, b: int, vector: npt.NDArray[np.float64], value: float) -> None:
    """Add a conversion's value to B; theta follows. O(d²)."""
    d = length(ridge.size, vector)
    for i in range(d):
        ridge.moment[b, i] += value * vector[i]
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += ridge.inverse[b, i, j] * vector[j]
        ridge.theta[b, i] += value * total
