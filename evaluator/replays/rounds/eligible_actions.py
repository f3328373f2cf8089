"""The eligible actions of some displays as the loops read them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.kernels.set_lists import list_sets
from evaluator.log.eligible import SetCodes, words
from evaluator.replays.rounds.batch import EligibleActions


def eligible_actions(
    sets: SetCodes, playable: npt.NDArray[np.bool_], vectors: npt.NDArray[np.floating]
) -> tuple[npt.NDArray[np.floating], EligibleActions]:
    """Return the vectors of some displays as rows, shape (1, rows, d), and their eligible actions, which name the rows.

    Parameters
    ----------
    sets
        Eligible actions of each display, shape (n,).
    playable
        Actions that a policy may choose where they are eligible, shape (K,).
    vectors
        Vectors of the displays, shape (n, 1, d), (n, K, d), (1, K, d), (1, 1, 0), or (m, d), those of the eligible
        actions alone, one display after the other.
    """
    distinct, of = sets.distinct, np.asarray(sets)
    if len(distinct) > 2 * len(of):  # most are of displays elsewhere
        distinct, of = distinct[of], np.arange(len(of), dtype=np.int32)
    mask = words(np.packbits(playable, bitorder="little")[None])
    whole = words(distinct)
    word = whole & mask
    first, action = _listed(word)
    place = np.zeros(0, np.int32)
    if vectors.ndim == 2:
        size = np.bitwise_count(whole).sum(axis=1, dtype=np.int64)
        row = np.cumsum(size[of]) - size[of]
        _, all_actions = _listed(whole)
        own = np.arange(len(all_actions)) - np.repeat(np.cumsum(size) - size, size)
        place = own[playable[all_actions]].astype(np.int32)
        return vectors[None], EligibleActions(of, first, action, word, row, 0, place)
    displays, rows, _ = vectors.shape
    row = np.arange(len(of)) * rows if displays > 1 else np.zeros(len(of), np.int64)
    by_action = int(rows > 1)
    return vectors.reshape(1, displays * rows, -1), EligibleActions(of, first, action, word, row, by_action, place)


def _listed(word: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return where each set's actions begin, and these."""
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bitwise_count(word).sum(axis=1, dtype=np.int64))])
    action = np.empty(first[-1], np.int32)
    list_sets(word, action)
    return first, action
