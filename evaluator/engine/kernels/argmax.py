"""Tie rules. The papers break ties at random; the lowest index serves golden tests across engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable


class NanScoreError(ArithmeticError):
    """The score of an action, its only argument, is NaN."""


@inlinable
def check_score(score: float, action: int) -> None:
    """Raise `NanScoreError` if an action's score is NaN."""
    if score != score:
        raise NanScoreError(action)


@inlinable
def argmax(scores: npt.NDArray[np.float64], random_ties: bool, rng: np.random.Generator) -> int:
    """Return the index of the largest score; among equals a uniformly random one, or the lowest index.

    Scores are those of each action, shape (K,). Equals are drawn from by reservoir sampling: one draw for each further
    equal, none without ties. A score that is NaN raises `NanScoreError`.
    """
    best = 0
    equals = 1
    check_score(scores[0], 0)
    for k in range(1, scores.shape[0]):
        check_score(scores[k], k)
        if scores[k] > scores[best]:
            best = k
            equals = 1
        elif random_ties and scores[k] == scores[best]:
            equals += 1
            if rng.random() * equals < 1.0:
                best = k
    return best


LOWEST_FIRST = -1
_BITS_32 = 0xFFFFFFFF


@inlinable
def tie_key(rng: np.random.Generator) -> Any:
    """Return a round's tie-breaking key, from which `goes_first` derives a random order of the actions."""
    return np.int64(rng.random() * 4294967296.0)


@inlinable
def goes_first(a: int, b: int, key: int) -> bool:
    """Return whether action a wins a tie with action b: by the round's random order, or the lower index.

    The order follows from the key alone, so a round's choice is held with its randomness while one draw, not a shuffle
    of K actions, is spent on it, and nothing is computed unless two scores tie.
    The key is that of `tie_key`, or `LOWEST_FIRST`.
    """
    if key < 0:
        return a < b
    # 64 bits, whatever the log's actions have: products below are that long.
    first, second = _rank(np.int64(a), key), _rank(np.int64(b), key)
    return bool(first > second or (first == second and a < b))


@inlinable
def _rank(action: Any, key: int) -> Any:
    return _mixed(_mixed(action + 1) ^ key)


@inlinable
def _mixed(x: Any) -> Any:
    """Return a bijective hash of 32 bits; factors below 2^31 keep products within a signed 64-bit integer."""
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & _BITS_32
    x = ((x ^ (x >> 15)) * 0x735A2D97) & _BITS_32
    return x ^ (x >> 15)
