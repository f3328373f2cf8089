"""Rewards of many rounds of which few are not zero: conversions are rare, and logs are long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class SparseRewards:
    """Rewards of n rounds, stored where they are not zero.

    Parameters
    ----------
    n
        Number of rounds, those without a reward among them.
    at
        Numbers of the rounds with a reward, counted from 0, strictly increasing, shape (c,).
    value
        Rewards of these rounds, shape (c,).
    """

    n: int
    at: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]

    @classmethod
    def of(cls, rewards: npt.ArrayLike) -> SparseRewards:
        """Return the rewards of an array of shape (n,)."""
        dense = np.asarray(rewards, np.float64)
        at = np.flatnonzero(dense != 0.0)
        return cls(len(dense), at, dense[at])

    @property
    def total(self) -> float:
        """Sum of all rewards."""
        return float(self.value.sum())

    def taken(self, rounds: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the rewards of some rounds, in the order asked for."""
        out = np.zeros(len(rounds))
        if 0 < len(self.at) < len(rounds) and (rounds[1:] > rounds[:-1]).all():
            place = np.minimum(np.searchsorted(rounds, self.at), len(rounds) - 1)
            found = rounds[place] == self.at
            out[place[found]] = self.value[found]
        elif len(self.at):
            place = np.minimum(np.searchsorted(self.at, rounds), len(self.at) - 1)
            found = self.at[place] == rounds
            out[found] = self.value[place[found]]
        return out
