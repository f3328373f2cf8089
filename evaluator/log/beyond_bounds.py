"""What a display may earn, and the conversions that take it beyond."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Bound(NamedTuple):
    """What a display may earn at most (`sign` 1) or at least (-1), all its conversions together."""

    value: float
    sign: int

    @property
    def problem(self) -> str:
        """What is wrong with a display beyond it."""
        if self.sign > 0:
            return f"the display earns more than reward_max = {self.value:g} in all"
        return f"the display earns less than reward_min = {self.value:g} in all"

    @property
    def repair(self) -> str:
        """How to repair it."""
        change = "raise reward_max" if self.sign > 0 else "lower reward_min"
        return f"{change}, or repair the values or the rows that repeat"


def bounds_of(least: float | None, most: float | None) -> list[Bound]:
    """Return the bounds that are known."""
    return [Bound(value, sign) for value, sign in ((most, 1), (least, -1)) if value is not None]


def beyond_bound(
    display: npt.NDArray[np.int64], time: npt.NDArray[np.int64], value: npt.NDArray[np.float64], bound: Bound
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return what the display of each conversion earns in all, and which conversions take it beyond a bound.

    Of a display that earns too much in all, those are the conversions from which on, in the order of their times, its
    sum is beyond; at least the last one.

    Parameters
    ----------
    display, time, value
        Display, time and value of each conversion, shape (n,).
    bound
        Largest or smallest sum of a display, up to rounding.

    Returns
    -------
    tuple
        What the display of each conversion earns in all, shape (n,), and whether that conversion takes it beyond the
        bound, shape (n,).
    """
    total, beyond = np.zeros(len(value)), np.zeros(len(value), np.bool_)
    if not len(value):
        return total, beyond
    order = np.lexsort((time, display))
    of, paid = display[order], bound.sign * value[order]
    first = np.flatnonzero(np.append(True, of[1:] != of[:-1]))
    sums, sizes = np.add.reduceat(paid, first), np.diff(np.append(first, len(of)))
    total[order] = np.repeat(bound.sign * sums, sizes)
    most = bound.sign * bound.value
    most += 1e-9 * abs(most)  # shares of 1/n sum to 1 but for rounding
    for i in np.flatnonzero(sums > most):
        rows = slice(first[i], first[i] + sizes[i])
        above = np.cumsum(paid[rows]) > most
        above[-1] = True
        beyond[order[rows]] = above
    return total, beyond
