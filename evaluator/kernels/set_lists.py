"""Sets of actions from bits to lists."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import compiled

# The upper six bits of its product with a power of 2 tell which (Leiserson, Prokop, Randall 1998).
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.argsort([((0x03F79D71B4CB0A89 << bit) & (2**64 - 1)) >> 58 for bit in range(64)]).astype(np.int32)


@compiled
def list_sets(word: npt.NDArray[np.uint64], action: npt.NDArray[np.int32]) -> None:
    """List the actions of each set, one set after the other.

    Parameters
    ----------
    word
        Sets, 64 actions at a time, shape (sets, ceil(K / 64)).
    action
        Actions, shape (m,), written in place.
    """
    place = 0
    for s in range(word.shape[0]):
        for at in range(word.shape[1]):
            left = word[s, at]
            while left:
                lowest = left & (~left + np.uint64(1))
                action[place] = 64 * at + _PLACES[(lowest * _DE_BRUIJN) >> np.uint64(58)]
                place += 1
                left ^= lowest
