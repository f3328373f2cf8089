"""What the optimistic linear policies share: the best upper bound, and the lazy match.

An action's score is <a, theta^> + width · ||a|| in V⁻¹, or width · ||a||² where the norm is squared. Equal scores go
by the round's order of the actions (`evaluator.kernels.argmax`), so that the winner is unique.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.argmax import LOWEST_FIRST, check_score, goes_first, tie_key
from evaluator.kernels.compiling import inlinable
from evaluator.kernels.memory import DISPLAYS_AHEAD, prefetch
from evaluator.kernels.ridge import Ridge, block, length, row, start_ridge
from evaluator.policies.base import Setting


class Optimist(NamedTuple):
    """Regression, and what a round's scores depend on.

    Parameters
    ----------
    ridge
        State of the ridge regression.
    width
        Factor of the norm in this round's scores, shape (1,).
    squared
        Whether the norm is squared.
    tie_key
        Key that decides among equal scores in this round, shape (1,).
    random_ties
        Whether the key is drawn anew each round.
    n_actions
        Number of actions K.
    rival
        Action that won last, shape (1,): scored first by the lazy match; it changes how fast, never what is answered.
    """

    ridge: Ridge
    width: npt.NDArray[np.float64]
    squared: bool
    tie_key: npt.NDArray[np.int64]
    random_ties: bool
    n_actions: int
    rival: npt.NDArray[np.int64]


def start_optimist(setting: Setting, *, ridge: float, squared: bool, ties: str) -> Optimist:
    """Return the regression before data, with a width of 0."""
    return Optimist(
        ridge=start_ridge(setting.blocks, setting.dimension, ridge),
        width=np.zeros(1),
        squared=squared,
        tie_key=np.full(1, LOWEST_FIRST),
        random_ties=ties == "random",
        n_actions=setting.n_actions,
        rival=np.zeros(1, np.int64),
    )


@inlinable
def begin_round(optimist: Optimist, width: float, rng: np.random.Generator) -> None:
    """Set the round's width and draw its order among equals."""
    optimist.width[0] = width
    if optimist.random_ties:
        optimist.tie_key[0] = tie_key(rng)


@inlinable
def upper_bound(optimist: Optimist, vectors: npt.NDArray[np.floating], action: int) -> float:
    """Return <theta^, a> + width ||a|| in V⁻¹ (or ||a||²), mean and norm formed in one pass. O(d²)."""
    theta, factors = optimist.ridge.theta, optimist.ridge.factors
    r, b = row(vectors, action), block(optimist.ridge, action)
    mean = 0.0
    norm = 0.0
    for i in range(length(optimist.ridge.size, vectors)):
        x = np.float64(vectors[r, i])
        mean += theta[b, i] * x
        for j in range(i):
            x += factors[b, i, j] * np.float64(vectors[r, j])
        norm += x * factors[b, i, i] * x
    return mean + optimist.width[0] * (norm if optimist.squared else math.sqrt(norm))


@inlinable
def best(optimist: Optimist, vectors: npt.NDArray[np.floating]) -> int:
    """Return the action with the largest upper bound. O(K d²)."""
    key = optimist.tie_key[0]
    winner = 0
    top = upper_bound(optimist, vectors, 0)
    check_score(top, 0)
    for k in range(1, optimist.n_actions):
        s = upper_bound(optimist, vectors, k)
        check_score(s, k)
        if s > top or (s == top and goes_first(k, winner, key)):
            winner = k
            top = s
    return winner


@inlinable
def is_best(optimist: Optimist, vectors: npt.NDArray[np.floating], action: int) -> bool:
    """Return whether `best` would choose the action, stopping at the first one that beats it."""
    key, rival = optimist.tie_key[0], optimist.rival
    own = upper_bound(optimist, vectors, action)
    first = rival[0]
    prefetch(vectors, DISPLAYS_AHEAD, row(vectors, first))
    if first != action:
        s = upper_bound(optimist, vectors, first)
        if s > own or (s == own and goes_first(first, action, key)):
            return False
    for k in range(optimist.n_actions):
        if k != action and k != first:
            s = upper_bound(optimist, vectors, k)
            if s > own or (s == own and goes_first(k, action, key)):
                rival[0] = k
                return False
    # Nothing beats NaN: it comes to here whenever the action is logged, and costs nothing before.
    check_score(own, action)
    rival[0] = action
    return True
