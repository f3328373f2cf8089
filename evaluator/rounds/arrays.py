"""Logged rounds as the arrays that the replay's loops read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Batch(NamedTuple):
    """Logged displays in replay order, as the loops read them.

    Parameters
    ----------
    action
        Logged action of each display, shape (n,); -1 where thinning has left the display out.
    vectors
        Shape (n, K, d) or (n, 1, d); (1, 1, 0) without contexts, when all displays read the first.
    first_conversion
        Conversions of display i are first_conversion[i] to first_conversion[i + 1] (excluded), shape (n + 1,).
    delay
        Of each conversion, in rounds.
    value
        Of each conversion.
    """

    action: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.float64]
    first_conversion: npt.NDArray[np.int64]
    delay: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


@dataclass(frozen=True)
class LoggedRounds:
    """All logged displays in memory, in time order, and their conversions on the replay's clock.

    What `evaluator.rounds.stream.LogRounds` reads from a log batch by batch; for logs made in memory.

    Parameters
    ----------
    action
        Shape (n,), int32; -1 where thinning leaves the display out.
    vectors
        Shape (n, K, d) (action sets), (n, 1, d) (contexts), (1, K, d) (one catalogue for all displays) or (1, 1, 0).
    first_conversion
        Conversions of display i are first_conversion[i] to first_conversion[i + 1] (excluded), shape (n + 1,).
    delay, value
        Of each conversion: delay in rounds, and value; shape (c,).
    n_actions
        K.
    """

    action: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.floating]
    first_conversion: npt.NDArray[np.int64]
    delay: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    n_actions: int

    def __len__(self) -> int:
        return len(self.action)

    def thinned(self, kept: npt.NDArray[np.bool_]) -> LoggedRounds:
        """Return the rounds with -1 for the action of displays that are not kept."""
        return replace(self, action=np.where(kept, self.action, np.int32(-1)).astype(np.int32))

    def batches(self, size: int) -> Iterator[tuple[int, Batch]]:
        """Yield (number of its first display, batch); vectors become float64 one batch at a time."""
        for low in range(0, len(self), size):
            high = min(low + size, len(self))
            c = slice(int(self.first_conversion[low]), int(self.first_conversion[high]))
            vectors = self.vectors if len(self.vectors) == 1 else self.vectors[low:high]
            yield (
                low,
                Batch(
                    action=self.action[low:high],
                    vectors=np.ascontiguousarray(vectors, dtype=np.float64),
                    first_conversion=self.first_conversion[low : high + 1] - c.start,
                    delay=self.delay[c],
                    value=self.value[c],
                ),
            )
