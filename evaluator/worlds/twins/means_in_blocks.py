"""Means of numbers that are made a block at a time, the same to the bit as NumPy's of all of them at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from evaluator.log.schema import BATCH

Floats = npt.NDArray[np.float64]


def mean_in_blocks(n: int, numbers: Callable[[int, int], Floats], *, block: int = BATCH) -> Floats:
    """Return the mean of n numbers, of several kinds at once.

    NumPy adds up numbers in pairs of halves, each of a multiple of 8 numbers but for the last (`pairwise_sum` of its
    `loops_utils.h.src`). Here the same halves are added up, each made when it is needed: O(block) memory.

    Parameters
    ----------
    n
        Number of numbers, above 0.
    numbers
        Function that returns those from one number to another (excluded), asked in their order, shape (kinds, m).
    block
        Most numbers that are asked for at once, at least 128.

    Examples
    --------
    >>> x = np.random.default_rng(1).random((2, 1000))
    >>> (mean_in_blocks(1000, lambda first, end: x[:, first:end], block=200) == [x[0].mean(), x[1].mean()]).all()
    np.True_
    """
    return _total(0, n, numbers, block) / n


def _total(first: int, m: int, numbers: Callable[[int, int], Floats], block: int) -> Floats:
    if m <= block:
        return np.array([np.add.reduce(np.ascontiguousarray(row)) for row in numbers(first, first + m)])
    half = m // 2
    half -= half % 8
    return np.asarray(_total(first, half, numbers, block) + _total(first + half, m - half, numbers, block))


def mean_of_columns(n: int, numbers: Callable[[int, int], Floats], *, block: int = BATCH) -> Floats:
    """Return the means of n numbers of several kinds as NumPy's where those of one place lie together in memory.

    There it adds up one number after the other; of a single kind, as in `mean_in_blocks`, whose parameters these are.
    """
    total = numbers(0, min(block, n)).T
    if total.shape[1] == 1:
        return mean_in_blocks(n, numbers, block=block)
    total = np.add.reduce(total, axis=0)
    for first in range(block, n, block):
        total = np.add.reduce(np.vstack([total, numbers(first, min(first + block, n)).T]), axis=0)
    found: Floats = total / n
    return found
