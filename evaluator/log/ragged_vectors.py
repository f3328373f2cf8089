"""Columns with as many entries a display as actions are eligible there: their vectors, in the order of the actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.eligible import Bits, members


def is_uneven(kind: pa.DataType) -> bool:
    """Whether a column of this type has its own number of entries a display."""
    return bool(pa.types.is_list(kind))


def uneven_lists(vectors: npt.NDArray[Any], counts: npt.NDArray[np.int64]) -> pa.ListArray:
    """Return vectors of shape (m, d), display after display, as a column, given the number of each display's."""
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors).reshape(-1)), vectors.shape[1])
    return pa.ListArray.from_arrays(pa.array(first), flat)


def first_vectors(lists: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return the place of each display's first vector among all of a column, shape (n + 1,)."""
    counts = [np.diff(chunk.offsets.to_numpy()) for chunk in lists.chunks]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([np.zeros(0, np.int64), *counts]))])


def chosen_lists(lists: pa.ListArray, bits: Bits, actions: npt.NDArray[np.integer]) -> pa.ListArray:
    """Return a column of lists of some actions' vectors alone, in this order of the actions.

    Parameters
    ----------
    lists
        Vectors of the eligible actions of each display.
    bits
        Eligible actions of the displays, shape (n, width).
    actions
        Actions that are kept, shape (k,).
    """
    first, action = members(bits)
    new = np.full(8 * bits.shape[1], -1, np.int64)
    new[actions] = np.arange(len(actions))
    display = np.repeat(np.arange(len(bits)), np.diff(first))
    order = np.lexsort((new[action], display))
    order = order[new[action[order]] >= 0]
    ends = np.cumsum(np.bincount(display[order], minlength=len(bits)))
    first_kept = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(first_kept), lists.flatten().take(pa.array(order)))
