"""What displays have earned by each of their conversions: a refund may take back what a sale brought."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def running_sums(display: npt.NDArray[np.int64], value: Floats) -> Floats:
    """Return what the display of each conversion has earned with it and those before it, shape (c,).

    Parameters
    ----------
    display, value
        Display and value of each conversion, shape (c,), sorted by display, then time.

    Examples
    --------
    >>> running_sums(np.array([0, 0, 3]), np.array([5.0, -2.0, 1.0])).tolist()
    [5.0, 3.0, 1.0]
    """
    sums = value.astype(np.float64)
    if not len(value):
        return sums
    first = np.flatnonzero(np.diff(display, prepend=display[0] - 1))
    # Display by display, as differences of one long sum would round; all second conversions at once, then all third.
    rank = np.arange(len(value)) - np.repeat(first, np.diff(np.append(first, len(value))))
    later = np.flatnonzero(rank)
    later = later[np.argsort(rank[later], kind="stable")]
    bounds = np.flatnonzero(np.diff(rank[later], prepend=0, append=np.iinfo(np.int64).max))
    for low, high in pairwise(bounds):
        sums[later[low:high]] += sums[later[low:high] - 1]
    return sums


def extremes(display: npt.NDArray[np.int64], value: Floats) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return the distinct displays, and the smallest and largest sum that each has earned at some time.

    The smallest counts the time before its first conversion, and so is never above 0. Parameters as of `running_sums`.
    """
    sums = running_sums(display, value)
    first = np.flatnonzero(np.diff(display, prepend=-1))
    if not len(first):
        return display[first], np.zeros(0), np.zeros(0)
    least = np.minimum(np.minimum.reduceat(sums, first), 0.0)
    return display[first], least, np.maximum.reduceat(sums, first)
