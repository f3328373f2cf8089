"""Of which traffic the displays of a log are a part: how many displays of it each of them stands for.

A log may hold a part of what it was cut from: the displays of some actions (column ``position``: the number a display
had among all at which one of them was eligible), or displays kept with probabilities of their own (column ``weight``:
one over it). Delays count the displays of the traffic, not those of the log.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.schema import POSITION, WEIGHT, Columns

Counts = npt.NDArray[np.int64]


def counted_by(schema: pa.Schema) -> list[str]:
    """Return the columns that count the displays of the traffic; none if the log holds all the traffic."""
    return [name for name in (POSITION, WEIGHT) if name in schema.names][:1]


class TrafficCount:
    """Counts the traffic while the displays of a log go by, from the first one on.

    Parameters
    ----------
    schema
        Arrow schema of the displays.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.columns = counted_by(schema)
        self._total = 0.0

    def read(self, first: int, displays: Columns, n: int) -> Counts:
        """Return how many displays of the traffic there were up to and with each of the next `n`, shape (n,)."""
        if POSITION in self.columns:
            return np.asarray(displays[POSITION] + 1)
        if WEIGHT in self.columns:
            total = summed(self._total, displays[WEIGHT])
            self._total = float(total[-1])
            return np.rint(total).astype(np.int64)
        return np.arange(first + 1, first + n + 1)


def summed(before: float, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return running sums from `before` on, shape (n,), the same wherever the displays are cut into batches."""
    return np.cumsum(np.concatenate([[before], weight]))[1:]
