"""The eligible actions of a log whose displays do not all have the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.eligible import SetCodes, members
from evaluator.log.schema import ELIGIBLE
from evaluator.log.set_kinds import EligibleByPart, has_eligibility


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
