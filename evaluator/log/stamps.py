"""What time stamps tell apart: the unit that a log's times are whole multiples of, whatever its tick."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

# Time stamps of so many seconds are coarse: what they do not tell is a good part of many windows.
COARSE_S = 60.0
# A delay of fewer time stamps than this is known by a tenth at best.
TOLD_APART = 10


def stamp_of(*differences: Ints, known: int = 0) -> int:
    """Return the largest number of ticks of which all these are whole multiples, `known` among them; 1 if all are 0.

    A log in microseconds whose times are whole seconds is the log in seconds, and says no more of a delay than it.

    Examples
    --------
    >>> stamp_of(np.array([0, 120, 300]), np.array([60])), stamp_of(np.array([0, 0]))
    (60, 1)
    """
    for values in differences:
        if known == 1:
            break
        known = int(np.gcd.reduce(np.abs(values), initial=known))
    return known or 1
