"""Whether the displays of a log have eligible actions of their own."""

from __future__ import annotations

import numpy as np

from evaluator.log.contract import Log
from evaluator.log.eligible import SetCodes, members
from evaluator.log.schema import ELIGIBLE


def sets_differ(log: Log) -> bool:
    """Whether some action is not eligible at some display; a log may say of every display that all are.

    One pass over the sets, up to the first that lacks an action.
    """
    if ELIGIBLE not in log.schema.names:
        return False
    for _, batch in log.batches([ELIGIBLE], coded=True):
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        first, _ = members(sets.distinct)
        if (np.diff(first)[np.asarray(sets)] < log.n_actions).any():
            return True
    return False
