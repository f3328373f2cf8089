"""Logged rounds, and their eligible actions, as the arrays that the replay's loops read; how a log's sets vary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.contract import has_eligibility
from evaluator.log.eligible import EligibleByPart, SetCodes, bits_of, members, set_codes, words
from evaluator.log.schema import ELIGIBLE


class EligibleActions(NamedTuple):
    """The actions that could have been shown at some displays, where that differs from display to display.

    Parameters
    ----------
    of
        Number of each display's set, shape (n,).
    word
        Bits of each set, 64 actions at a time, the first the lowest bit, shape (sets, ceil(K / 64)). A loop reads them
        where the log has them: most displays are decided by a few actions of their set.
    playable
        Bits of the actions that a policy may choose where they are eligible, shape (ceil(K / 64),).
    row
        Row of each display's first vector among those of the batch, shape (n,).
    by_action
        1 where action k has the k-th vector from there on, 0 where all share that one.
    by_place
        1 where the k-th eligible action, playable or not, has the k-th vector from there on.
    """

    of: npt.NDArray[np.int32]
    word: npt.NDArray[np.uint64]
    playable: npt.NDArray[np.uint64]
    row: npt.NDArray[np.int64]
    by_action: int
    by_place: int


class Batch(NamedTuple):
    """Logged displays in replay order, as the loops read them.

    Parameters
    ----------
    action
        Logged action of each display, shape (n,); -1 where thinning has left the display out.
    vectors
        Vectors of each display, float32 or float64, shape (n, K, d) or (n, 1, d); (1, 1, 0) without contexts, when all
        displays read the first. Where displays have their own eligible actions, shape (1, rows, d), whose rows these
        name.
    first_conversion
        Place in `delay` and `value` of each display's first conversion, shape (n + 1,): those of display i are
        first_conversion[i] to first_conversion[i + 1] (excluded).
    delay
        Delay of each conversion in rounds, shape (c,).
    value
        Value of each conversion in the log's own unit, shape (c,).
    eligible
        Eligible actions of each display; None where all always are.
    """

    action: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.floating]
    first_conversion: npt.NDArray[np.int64]
    delay: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    eligible: EligibleActions | None = None


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array, not to be written to.

    A loop is compiled for each kind of array that it is given, whether it writes to it or not: a log's arrays cannot be
    written to, and copies of parts of them could.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def read_only_batch(batch: Batch) -> Batch:
    """Return the batch with arrays that are not to be written to."""
    sets = batch.eligible
    return batch._replace(**_read_only_arrays(batch), eligible=None if sets is None else read_only_sets(sets))


def read_only_sets(sets: EligibleActions) -> EligibleActions:
    """Return eligible actions in arrays that are not to be written to."""
    return sets._replace(**_read_only_arrays(sets))


def _read_only_arrays(of: Batch | EligibleActions) -> dict[str, Any]:
    return {name: read_only(value) for name, value in of._asdict().items() if isinstance(value, np.ndarray)}


def eligible_actions(
    sets: SetCodes,
    playable: npt.NDArray[np.bool_],
    vectors: npt.NDArray[np.floating],
    first_vector: npt.NDArray[np.int64] | None,
) -> tuple[npt.NDArray[np.floating], EligibleActions]:
    """Return the vectors of some displays as rows, shape (1, rows, d), and their eligible actions, which name the rows.

    Of the eligible actions a policy may choose those that are `playable`, shape (K,). Vectors have shape (n, 1, d), (n,
    K, d), (1, K, d), (1, 1, 0), or (m, d), those of the eligible actions alone, one display after the other, each
    display's first at `first_vector`, shape (n + 1,).
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

    `eligible` counts the displays at which each action is, shape (K,); `moving` is the action whose eligibility changes
    most with time, where sets move with it; else -1.
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
