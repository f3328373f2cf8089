"""A log whose refunds are taken off at once: its conversions are sales, and worth what is left of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evaluator.log import Log
from evaluator.log.costs import sales
from evaluator.log.schema import to_numpy

SAID = (
    "refunds are taken off at once: a display that sold something is worth, when it first sells, what is left in the "
    "end; nothing here tells how late refunds come"
)


def refunds_at_once(log: Log) -> Log:
    """Return a log in which a display's conversions are one, at its first sale, worth their sum; others as they are."""
    sold = sales(log.conversions)
    if sold is None:
        return log
    of, time, value = (to_numpy(log.conversions[name]) for name in ("display_id", "time", "value"))
    first = np.flatnonzero(np.diff(of, prepend=-1))
    # The first sale of each display; of one with refunds alone, its first refund.
    order = np.lexsort((time, ~sold, of))
    table = {
        "display_id": pa.array(of[first]),
        "time": pa.array(time[order[first]]),
        "value": pa.array(np.add.reduceat(value, first)),
    }
    return log.with_conversions(pa.table(table)).with_meta(notes=(*log.meta.notes, SAID))
