"""A column of some displays of a log, in one array that is filled while the log is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.log import Log

Ints = npt.NDArray[np.int64]


def taken(log: Log, displays: Ints, column: str) -> npt.NDArray[Any]:
    """Return a column of the displays with these numbers, increasing, shape (m,) or (m, ...). Cost: one scan of it."""
    found: npt.NDArray[Any] | None = None
    for first, batch in log.batches([column]):
        numbers = batch[column]
        if found is None:
            found = np.empty((len(displays), *numbers.shape[1:]), numbers.dtype)
        low, high = np.searchsorted(displays, [first, first + len(numbers)])
        found[low:high] = numbers[displays[low:high] - first]
        if high == len(displays):
            break
    assert found is not None
    return found
