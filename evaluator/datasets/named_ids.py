"""Which ids a table may name: a Bloom filter, in memory that does not grow with the table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

# Bits, a power of two of at most 2^32. Of 5 million ids, 1 in 200 others passes; of 100 million, most do.
BITS = 2**27


class NamedIds:
    """The ids of a table, as two bits of each (Bloom 1970): an id that is there always passes, another one seldom.

    Parameters
    ----------
    bits
        Those of ids that are known, `BITS` of them, shape (BITS // 8,); None for no ids.
    """

    def __init__(self, bits: npt.NDArray[np.uint8] | None = None) -> None:
        self.bits = np.zeros(BITS // 8, np.uint8) if bits is None else bits

    def add(self, hashes: pl.Series) -> None:
        """Add ids by their hashes, uint64 without nulls."""
        for place in _places(hashes):
            np.bitwise_or.at(self.bits, place >> 3, np.left_shift(1, place & 7).astype(np.uint8))

    def may_hold(self, hashes: pl.Series) -> npt.NDArray[np.bool_]:
        """Return whether ids may be there, by their hashes, shape (n,)."""
        found = np.ones(len(hashes), np.bool_)
        for place in _places(hashes):
            found &= (self.bits[place >> 3] >> (place & 7).astype(np.uint8) & 1).astype(np.bool_)
        return found


def _places(hashes: pl.Series) -> list[npt.NDArray[np.int64]]:
    of = hashes.to_numpy()
    return [(half & np.uint64(BITS - 1)).astype(np.int64) for half in (of, of >> np.uint64(32))]
