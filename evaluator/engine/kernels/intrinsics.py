"""What loops need of the processor and Numba does not offer: arrays borrowed, rows asked for ahead, bits counted.

What concerns memory is nothing or plain NumPy when interpreted, and where Numba's version is not one that was tested
(`evaluator.engine.kernels.compiling`): loops are slower then, and find the same.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable

T = TypeVar("T")

# Far enough for a row to arrive from memory before it is read, near enough for it to be still there.
DISPLAYS_AHEAD = 8


def borrowed(value: T) -> T:
    """Return arrays, or a NamedTuple of them, nested or not, whose references compiled code does not count.

    Every array taken out of a tuple, and every tuple handed to a function, costs an atomic increment and decrement an
    array: measured, more than all that the replay does for an accepted display, and much of what it takes to compile.
    A borrowed array owns nothing, so Numba makes none of those. It must not outlive its lender: call this at the top of
    a compiled loop on the loop's own arguments, which its caller keeps alive.
    """
    return value


def prefetch(vectors: npt.NDArray[Any], ahead: int, r: int) -> None:
    """Ask for row r of the vectors, shape (rows, d), that lie `ahead` displays further on in the same batch.

    A replay knows which rows it will read, so it need not wait for memory. Beyond the batch this is harmless: an
    address that is not there is ignored.
    """


def prefetch_logged(vectors: npt.NDArray[Any], action: npt.NDArray[np.int32], i: int) -> None:
    """Ask for the logged action's row of the display that follows display i by `DISPLAYS_AHEAD`.

    `vectors` are those of all displays, shape (n, K, d) or (n, 1, d), `action` the logged ones, shape (n,), -1 where a
    display is left out.
    """


def one_row(vectors: npt.NDArray[Any], r: int) -> npt.NDArray[Any]:
    """Return row r of the vectors, shape (rows, d), as a view of shape (1, d), whose 1 compiled code knows.

    A slice is cut to the array's length at run time, so that whoever asks it for its rows has to look.
    """
    return vectors[r : r + 1]


# The highest bit of a word, which stands in where none is set.
LAST_BIT = np.uint64(1 << 63)


def count_bits(word: Any) -> Any:
    """Return how many bits of a word are set."""
    return int(word).bit_count()


def lowest_bit(word: Any) -> Any:
    """Return the place of the lowest bit that is set, in a word that is not empty."""
    return (int(word) & -int(word)).bit_length() - 1


@inlinable
def bits_below(word: Any, place: Any) -> Any:
    """Return how many bits of a word are set below a place of 0 to 63."""
    return count_bits(word & ((np.uint64(1) << np.uint64(place)) - np.uint64(1)))


@inlinable
def not_negative(index: Any) -> Any:
    """Return an index below 2^31 so that compiled code knows that it does not count from the end, and need not look."""
    return index & 0x7FFF_FFFF
