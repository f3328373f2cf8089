"""Logged rounds as the arrays that the replay's loops read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Batch(NamedTuple):
    """Logged displays in replay order, as the loops read them.

    Parameters
    ----------
    action
        Logged action of each display, shape (n,); -1 where thinning has left the display out.
    vectors
        Vectors of each display, float32 or float64, shape (n, K, d) or (n, 1, d); (1, 1, 0) without contexts, when all
        displays read the first.
    first_conversion
        Place in `delay` and `value` of each display's first conversion, shape (n + 1,): those of display i are
        first_conversion[i] to first_conversion[i + 1] (excluded).
    delay
        Delay of each conversion in rounds, shape (c,).
    value
        Value of each conversion in the log's own unit, shape (c,).
    """

    action: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.floating]
    first_conversion: npt.NDArray[np.int64]
    delay: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array, not to be written to.

    A loop is compiled for each kind of array that it is given, whether it writes to it or not: a log's arrays cannot be
    written to, and copies of parts of them could.
    """
    view = array.view()
    view.flags.writeable = False
    return view
