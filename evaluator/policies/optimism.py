"""What the optimistic linear policies share: the best upper bound, and the lazy match.

An action's score is <a, theta^> + width · ||a|| in V⁻¹, or width · ||a||² where the norm is squared. Equal scores go
to the higher priority (shuffled each round for random ties), so that the winner is unique.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import inlinable, inlined
from evaluator.kernels.ridge import Ridge, start_ridge
from evaluator.kernels.ties import lowest_first, shuffle
from evaluator.policies.base import Setting


class Optimist(NamedTuple):
    """Regression, and what a round's scores depend on.

    Parameters
    ----------
    ridge
        The regression.
    width
        Factor of the norm in this round, shape (1,).
    squared
        Whether the norm is squared.
    priority
        Shape (K,): among equal scores the highest wins.
    random_ties
        Whether priorities are shuffled each round.
    rival
        The last winner, shape (1,): scored first by the lazy match; it changes how fast, never what is answered.
    """

    ridge: Ridge
    width: npt.NDArray[np.float64]
    squared: bool
    priority: npt.NDArray[np.int64]
    random_ties: bool
    rival: npt.NDArray[np.int64]


def start_optimist(setting: Setting, *, ridge: float, squared: bool, ties: str) -> Optimist:
    """Return the regression before data, with a width of 0."""
    return Optimist(
        ridge=start_ridge(setting.blocks, setting.dimension, ridge),
        width=np.zeros(1),
        squared=squared,
        priority=lowest_first(setting.n_actions),
        random_ties=ties == "random",
        rival=np.zeros(1, np.int64),
    )


@inlined
def begin_round(optimist: Optimist, width: float, rng: np.random.Generator) -> None:
    """Set the round's width and shuffle its priorities."""
    optimist.width[0] = width
    if optimist.random_ties:
        shuffle(optimist.priority, rng)


# Arrays are taken out of the state once a display, mean and norm are formed in one pass, and rows and blocks are
# found by multiplication: each of the three was measured to cost as much as the arithmetic when done otherwise.
@inlinable
def upper_bound(
    theta: npt.NDArray[np.float64],
    inverse: npt.NDArray[np.float64],
    b: int,
    vectors: npt.NDArray[np.float64],
    r: int,
    width: float,
    squared: bool,
) -> float:
    """Return <theta[b], a> + width ||a|| in inverse[b] (or ||a||²), a = vectors[r]. O(d²)."""
    mean = 0.0
    norm = 0.0
    for i in range(vectors.shape[1]):
        x = vectors[r, i]
        off = 0.0
        for j in range(i):
            off += inverse[b, i, j] * vectors[r, j]
        norm += x * (2.0 * off + inverse[b, i, i] * x)
        mean += theta[b, i] * x
    norm = max(norm, 0.0)
    return mean + width * (norm if squared else math.sqrt(norm))


@inlined
def best(optimist: Optimist, vectors: npt.NDArray[np.float64]) -> int:
    """Return the action with the largest upper bound. O(K d²)."""
    theta, inverse, priority = optimist.ridge.theta, optimist.ridge.inverse, optimist.priority
    width, squared = optimist.width[0], optimist.squared
    own_row, own_block = int(vectors.shape[0] > 1), int(theta.shape[0] > 1)
    winner = 0
    top = upper_bound(theta, inverse, 0, vectors, 0, width, squared)
    for k in range(1, priority.shape[0]):
        s = upper_bound(theta, inverse, k * own_block, vectors, k * own_row, width, squared)
        if s > top or (s == top and priority[k] > priority[winner]):
            winner = k
            top = s
    return winner


@inlined
def is_best(optimist: Optimist, vectors: npt.NDArray[np.float64], action: int) -> bool:
    """Return whether `best` would choose the action, stopping at the first one that beats it."""
    theta, inverse, priority = optimist.ridge.theta, optimist.ridge.inverse, optimist.priority
    width, squared, rival = optimist.width[0], optimist.squared, optimist.rival
    own_row, own_block = int(vectors.shape[0] > 1), int(theta.shape[0] > 1)
    own = upper_bound(theta, inverse, action * own_block, vectors, action * own_row, width, squared)
    first = rival[0]
    if first != action:
        s = upper_bound(theta, inverse, first * own_block, vectors, first * own_row, width, squared)
        if s > own or (s == own and priority[first] > priority[action]):
            return False
    for k in range(priority.shape[0]):
        if k != action and k != first:
            s = upper_bound(theta, inverse, k * own_block, vectors, k * own_row, width, squared)
            if s > own or (s == own and priority[k] > priority[action]):
                rival[0] = k
                return False
    rival[0] = action
    return True
