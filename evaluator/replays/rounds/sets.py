"""The eligible actions of a log whose displays do not all have the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.eligible import SetCodes, members
from evaluator.log.schema import ELIGIBLE
from evaluator.log.set_kinds import moves_with_time

# Parts of the log, by the number of the display, in which an action's share of the sets is compared.
_PARTS = 20
# Difference between an action's shares of two parts from which it matters what a calendar means: contexts that drift
# move sets a little, too.
_MUCH = 0.25


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
    if ELIGIBLE not in log.schema.names:
        return None
    n, k = len(log), log.n_actions
    counts, part_sizes = np.zeros((_PARTS, k), np.int64), np.zeros(_PARTS, np.int64)
    for first, batch in log.batches([ELIGIBLE], coded=True):
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        of = np.asarray(sets)
        begins, action = members(sets.distinct)
        size = np.diff(begins)
        part = np.arange(first, first + len(of)) * _PARTS // n
        for p in np.unique(part):
            shown = np.bincount(of[part == p], minlength=len(sets.distinct))
            counts[p] += np.bincount(action, np.repeat(shown, size), minlength=k).astype(np.int64)
            part_sizes[p] += int(shown.sum())
    eligible = counts.sum(axis=0)
    if eligible.min() == n:
        return None
    return EligibleSets(_moving(counts, part_sizes), eligible, n)


def _moving(counts: npt.NDArray[np.int64], part_sizes: npt.NDArray[np.int64]) -> int:
    """Return the action that moves most with time, -1 where none does, given its displays in each part, (parts, K)."""
    known = part_sizes > 0
    counts, part_sizes = counts[known], part_sizes[known]
    if len(counts) < 2:
        return -1
    spread = np.ptp(counts / part_sizes[:, None], axis=0)
    if not moves_with_time(counts, part_sizes):
        return -1
    return int(spread.argmax()) if spread.max() > _MUCH else -1
