"""The eligible actions of a log whose displays do not all have the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.eligible import sizes
from evaluator.log.schema import ELIGIBLE


@dataclass(frozen=True, eq=False)
class EligibleSets:
    """How the displays of a log differ in what could have been shown.

    Parameters
    ----------
    constant
        Whether all have the same set, of fewer than all actions.
    largest
        Size of the largest set.
    """

    constant: bool
    largest: int


def read_sets(log: Log) -> EligibleSets | None:
    """Return how the sets of a log vary, in one pass over them; None where every action is always eligible."""
    if ELIGIBLE not in log.schema.names:
        return None
    one: npt.NDArray[np.uint8] | None = None
    constant, largest = True, 0
    for _, batch in log.batches([ELIGIBLE]):
        bits = batch[ELIGIBLE]
        one = bits[0] if one is None else one
        constant = constant and bool((bits == one).all())
        largest = max(largest, int(sizes(bits).max()))
    return None if constant and largest == log.n_actions else EligibleSets(constant, largest)
