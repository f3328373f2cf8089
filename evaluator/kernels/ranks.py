"""The place of some displays among those of the same action."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import compiled


def _count_ranks(
    action: npt.NDArray[np.int32], places: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Count displays by action, and return how many of the same action came before each of some displays.

    Parameters
    ----------
    action
        Action of each display, shape (n,); -1 does not count.
    places
        Positions in `action` whose rank is wanted, increasing, shape (c,).
    counts
        Number of displays of each action so far, shape (K,); grows in place.

    Returns
    -------
    ranks
        Number of earlier displays of the same action at each place, shape (c,), earlier calls with the same `counts`
        included.
    """
    ranks = np.zeros(places.shape[0], np.int64)
    j = 0
    for i in range(action.shape[0]):
        k = action[i]
        if j < places.shape[0] and places[j] == i:
            if k >= 0:
                ranks[j] = counts[k]
            j += 1
        if k >= 0:
            counts[k] += 1
    return ranks


count_ranks = compiled(_count_ranks)
