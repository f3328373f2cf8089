"""The eligible actions of displays: how a log's sets vary, and the sets as the loops read them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.eligible import SetCodes, bits_of, members, set_codes, words
from evaluator.log.schema import ELIGIBLE
from evaluator.log.set_kinds import EligibleByPart, has_eligibility
from evaluator.replays.rounds.batch import EligibleActions


def eligible_actions(
    sets: SetCodes,
    playable: npt.NDArray[np.bool_],
    vectors: npt.NDArray[np.floating],
    first_vector: npt.NDArray[np.int64] | None,
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
    first_vector
        Place of each display's first vector in the last of these cases, shape (n + 1,).
    """
    of, n = np.asarray(sets), len(sets)
    by_action = by_place = 0
    if first_vector is not None and vectors.ndim == 2:
        row, by_place = first_vector[:-1], 1
    elif len(vectors) == 1:
        row, by_action = np.zeros(n, np.int64), int(vectors.shape[1] > 1)
    else:
        row, by_action = np.arange(0, vectors.shape[1] * n, vectors.shape[1]), int(vectors.shape[1] > 1)
    rows = vectors.reshape(1, -1, vectors.shape[-1]) if vectors.shape[-1] else vectors
    return rows, EligibleActions(of, words(sets.distinct), words(bits_of(playable[None]))[0], row, by_action, by_place)


def stated_actions(
    sets: npt.NDArray[np.bool_], vectors: npt.NDArray[np.floating]
) -> tuple[npt.NDArray[np.floating], EligibleActions]:
    """Return the same of eligible actions given as truths, shape (n, K), all of which may be chosen."""
    codes = set_codes(np.arange(len(sets)), bits_of(sets))
    return eligible_actions(codes, np.ones(sets.shape[1], np.bool_), vectors, None)


@dataclass(frozen=True, eq=False)
class EligibleSets:
    """How the displays of a log differ in what could have been shown.

    Parameters
    ----------
    moving
        Action whose eligibility changes most with time, where sets move with it; -1 where they do not.
    eligible
        Number of displays at which each action is eligible, shape (K,).
    displays
        Number of displays.
    """

    moving: int
    eligible: npt.NDArray[np.int64]
    displays: int


def read_sets(log: Log) -> EligibleSets | None:
    """Return how the sets of a log vary, in one pass over them; None where every action is always eligible."""
    if not has_eligibility(log):
        return None
    by_part = EligibleByPart(len(log), log.n_actions)
    for first, batch in log.batches([ELIGIBLE], coded=True):
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        by_part.add(first, np.asarray(sets), *members(sets.distinct))
    return EligibleSets(by_part.moving(), by_part.displays, len(log))
