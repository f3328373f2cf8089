"""The place of some displays among those of the same action."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import compiled


@compiled
def count_ranks(
    action: npt.NDArray[np.int32],
    places: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    ranks: npt.NDArray[np.int64],
) -> None:
    """Count displays by action, and find how many of the same action came before each of some displays.

    Parameters
    ----------
    action
        Action of each display, shape (n,); -1 does not count.
    places
        Positions in `action` whose rank is wanted, increasing, shape (c,).
    counts
        Number of displays of each action so far, shape (K,); grows in place.
    ranks
        Number of earlier displays of the same action at each place, shape (c,), earlier calls with the same `counts`
        included: written in place, left as it is where the action is -1.
    """
    j = 0
    for i in range(action.shape[0]):
        k = action[i]
        if j < places.shape[0] and places[j] == i:
            if k >= 0:
                ranks[j] = counts[k]
            j += 1
        if k >= 0:
            counts[k] += 1
