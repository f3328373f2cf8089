"""Tie rules. The papers break ties at random; the lowest index serves golden tests across engines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import inlinable


@inlinable
def argmax(scores: npt.NDArray[np.float64], random_ties: bool, rng: np.random.Generator) -> int:
    """Return the index of the largest score; among equals a uniformly random one, or the lowest index.

    Parameters
    ----------
    scores
        Shape (K,), without nan.
    random_ties
        Reservoir sampling among equals: one draw for each further equal, none without ties.
    rng
        The policy's own stream.
    """
    best = 0
    equals = 1
    for k in range(1, scores.shape[0]):
        if scores[k] > scores[best]:
            best = k
            equals = 1
        elif random_ties and scores[k] == scores[best]:
            equals += 1
            if rng.random() * equals < 1.0:
                best = k
    return best


@inlinable
def shuffle(priority: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
    """Shuffle in place (Fisher-Yates): the priorities that break a round's ties, held until a display is accepted."""
    for k in range(priority.shape[0] - 1, 0, -1):
        j = int(rng.random() * (k + 1))
        priority[k], priority[j] = priority[j], priority[k]


def lowest_first(n_actions: int) -> npt.NDArray[np.int64]:
    """Return priorities, shape (K,), under which the lowest index wins a tie."""
    return np.arange(n_actions - 1, -1, -1, dtype=np.int64)
