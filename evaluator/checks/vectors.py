"""Vectors that many displays share: how many of these convert."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.checks.row_pairs import Hashes, hashes

Floats = npt.NDArray[np.float64]

# A vector is looked at if it has this share of the displays of a sample, and so many of them; at most so many vectors.
SHARE, _FEWEST, _MOST = 0.01, 30, 100


@dataclass(frozen=True, eq=False)
class CommonVectors:
    """Vectors with a good share of the displays.

    Parameters
    ----------
    codes
        Hashes of these vectors, sorted, shape (V,).
    shown, judged, converted
        Number of displays of each vector, of those old enough to be judged, and of these that converted, shape (V +
        1,): the last place is for all other vectors.
    """

    codes: Hashes
    shown: Floats
    judged: Floats
    converted: Floats

    def add(self, key: Hashes, judged: int, converted: npt.NDArray[np.bool_]) -> None:
        """Count some displays, of which the first `judged` can be judged; key, converted: shape (n,)."""
        of = len(self.shown)
        at = np.zeros(len(key), np.int64)
        if of > 1:
            at = np.minimum(np.searchsorted(self.codes, key), of - 2)
            at = np.where(self.codes[at] == key, at, of - 1)
        self.shown[:] += np.bincount(at, minlength=of)
        self.judged[:] += np.bincount(at[:judged], minlength=of)
        self.converted[:] += np.bincount(at[converted], minlength=of)


def frequent(sample: npt.NDArray[np.float32]) -> Hashes:
    """Return the hashes of the vectors that are frequent among some displays, shape (n, ...), sorted."""
    found, count = np.unique(hashes(sample), return_counts=True)
    often = np.flatnonzero(count >= max(SHARE * len(sample), _FEWEST))
    return np.sort(found[often[np.argsort(-count[often], kind="stable")[:_MOST]]])


def no_counts(codes: Hashes) -> CommonVectors:
    """Return vectors of which nothing is counted yet."""
    return CommonVectors(codes, *np.zeros((3, len(codes) + 1)))
