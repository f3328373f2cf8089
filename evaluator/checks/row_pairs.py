"""Pairs of rows that are the same but for their numbers: more of them than chance makes are copies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.streams import STEP, mixed

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

LAGS = (1, 2)
# Chance pairs a row beyond which times are too coarse to tell copies.
CROWDED = 1.0
_WORDS = 64


@dataclass
class EqualRowPairs:
    """Counts of equal rows at one time, and of rows equal but for a time one or two steps later.

    Arrivals that do not know of each other make as many pairs within a time as half of those between neighbouring
    times, so what exceeds that is not chance.

    Parameters
    ----------
    rows
        Number of rows counted so far.
    same
        Number of pairs of equal rows at one time.
    apart
        Number of pairs of equal rows one step apart, the mean over `LAGS`.
    rows_again
        Number of rows that repeat an earlier one at the same time.
    step
        Ticks of which all times are whole multiples, as far as seen; 0 before the first rows.
    """

    rows: int = 0
    same: float = 0.0
    apart: float = 0.0
    rows_again: int = 0
    step: int = 0

    def add(self, time: Ints, key: Hashes) -> None:
        """Count the pairs within some rows.

        Parameters
        ----------
        time, key
            Time in ticks, and hash of the rest of each row, shape (n,).
        """
        self.rows += len(time)
        if len(time) < 2:
            return
        if self.step == 0:
            self.step = max(int(np.gcd.reduce(np.diff(np.unique(time)))) if len(np.unique(time)) > 1 else 1, 1)
        ticks = (time // self.step).astype(np.uint64)
        codes, count = np.unique(mixed(key) + ticks * STEP, return_counts=True)
        self.rows_again += int((count - 1).sum())
        self.same += float((count * (count - 1) // 2).sum())
        for lag in LAGS:
            later = codes + np.array([lag], np.uint64) * STEP
            at = np.minimum(np.searchsorted(codes, later), len(codes) - 1)
            self.apart += float((count * count[at])[codes[at] == later].sum()) / len(LAGS)

    @property
    def expected(self) -> float:
        """Pairs at one time that chance makes."""
        return self.apart / 2.0

    @property
    def excess(self) -> float:
        """Pairs beyond those, in shares of the rows."""
        return (self.same - self.expected) / max(self.rows, 1)

    @property
    def crowded(self) -> bool:
        """Whether too many rows share a time by chance."""
        return self.expected > CROWDED * self.rows

    @property
    def z(self) -> float:
        """Excess in standard errors.

        With m pairs expected, the difference has variance 2 m times 3 / 4 when counts are Poisson: terms of first order
        cancel between a time and its neighbours.
        """
        return (self.same - self.expected) / math.sqrt(1.5 * self.expected + 1.0)


def hashes(rows: npt.NDArray[Any]) -> Hashes:
    """Return a hash of each row, shape (n,), of its first 256 bytes."""
    flat = np.ascontiguousarray(rows.reshape(len(rows), -1))
    words = flat.view(np.uint32)[:, :_WORDS].astype(np.uint64)
    out = np.zeros(len(rows), np.uint64)
    for column in words.T:
        out = (out ^ column) * STEP
        out ^= out >> np.uint64(29)
    return out
