"""Ridge regression updated in place: V = ridge·I + Σ a a', B = Σ value·a, theta = V⁻¹B.

The model is *shared* (one block; every action has its own vector, the action sets of Vernade et al. 2020) or *disjoint*
(one block an action; all actions see the display's context). Disjoint is the shared model with vectors e_k ⊗ x, whose V
is block diagonal, so nothing is lost by keeping the blocks apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import inlinable, inlined


class Ridge(NamedTuple):
    """State of the regression.

    Parameters
    ----------
    inverse
        V⁻¹ of each block, shape (blocks, d, d).
    moment
        B of each block, shape (blocks, d).
    theta
        V⁻¹B of each block, shape (blocks, d).
    scratch
        V⁻¹a of the last update, shape (d,).
    """

    inverse: npt.NDArray[np.float64]
    moment: npt.NDArray[np.float64]
    theta: npt.NDArray[np.float64]
    scratch: npt.NDArray[np.float64]


def start_ridge(blocks: int, dimension: int, ridge: float) -> Ridge:
    """Return the regression before data: V = ridge·I."""
    inverse = np.zeros((blocks, dimension, dimension))
    inverse[:] = np.eye(dimension) / ridge
    moment = np.zeros((blocks, dimension))
    return Ridge(inverse, moment, moment.copy(), np.zeros(dimension))


@inlinable
def row(vectors: npt.NDArray[np.float64], action: int) -> int:
    """Return the row of an action's vector: its own in shape (K, d), the only one in (1, d)."""
    return action if vectors.shape[0] > 1 else 0


@inlined
def block(ridge: Ridge, action: int) -> int:
    """Return the block of an action: its own in the disjoint model, the only one in the shared model."""
    return action if ridge.theta.shape[0] > 1 else 0


@inlinable
def predict(theta: npt.NDArray[np.float64], b: int, vectors: npt.NDArray[np.float64], r: int) -> float:
    """Return <theta[b], vectors[r]>, summed in index order; theta has shape (blocks, d)."""
    total = 0.0
    for i in range(vectors.shape[1]):
        total += theta[b, i] * vectors[r, i]
    return total


@inlinable
def squared_norm(inverse: npt.NDArray[np.float64], b: int, vectors: npt.NDArray[np.float64], r: int) -> float:
    """Return ||vectors[r]||² in inverse[b], shape (blocks, d, d); never negative, whatever the rounding. O(d²)."""
    total = 0.0
    for i in range(vectors.shape[1]):
        x = vectors[r, i]
        off = 0.0
        for j in range(i):
            off += inverse[b, i, j] * vectors[r, j]
        total += x * (2.0 * off + inverse[b, i, i] * x)
    return max(total, 0.0)


@inlined
def add_display(ridge: Ridge, b: int, vectors: npt.NDArray[np.float64], r: int) -> None:
    """Add the display of vectors[r] to V (Sherman-Morrison); theta follows. O(d²)."""
    d = vectors.shape[1]
    u = ridge.scratch
    inverse = ridge.inverse
    denominator = 1.0
    gain = 0.0
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += inverse[b, i, j] * vectors[r, j]
        u[i] = total
        denominator += vectors[r, i] * total
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


@inlined
def add_reward(ridge: Ridge, b: int, vector: npt.NDArray[np.float64], value: float) -> None:
    """Add a conversion's value to B; theta follows. O(d²)."""
    d = vector.shape[0]
    for i in range(d):
        ridge.moment[b, i] += value * vector[i]
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += ridge.inverse[b, i, j] * vector[j]
        ridge.theta[b, i] += value * total
