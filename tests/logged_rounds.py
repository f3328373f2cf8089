"""Logged rounds as arrays in memory: replays of rounds that no log holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evaluator.replays.rounds.stream import Batch, LogRounds, read_only_batch


@dataclass(frozen=True)
class LoggedRounds:
    """All logged displays in memory, in time order, and their conversions on the replay's clock.

    What `evaluator.replays.rounds.stream.LogRounds` reads from a log batch by batch; for logs made in memory.

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

    def first(self, n: int) -> LoggedRounds:
        """Return the first `n` displays with their conversions."""
        if n >= len(self):
            return self
        c = int(self.first_conversion[n])
        return replace(
            self,
            action=self.action[:n],
            vectors=self.vectors if len(self.vectors) == 1 else self.vectors[:n],
            first_conversion=self.first_conversion[: n + 1],
            delay=self.delay[:c],
            value=self.value[:c],
        )

    def thinned(self, kept: npt.NDArray[np.bool_]) -> LoggedRounds:
        """Return the rounds with -1 for the action of displays that are not kept."""
        return replace(self, action=np.where(kept, self.action, np.int32(-1)).astype(np.int32))

    def batches(self, size: int) -> Iterator[tuple[int, Batch]]:
        """Yield (number of its first display, batch); vectors become float64 one batch at a time."""
        for low in range(0, len(self), size):
            high = min(low + size, len(self))
            c = slice(int(self.first_conversion[low]), int(self.first_conversion[high]))
            vectors = self.vectors if len(self.vectors) == 1 else self.vectors[low:high]
            batch = Batch(
                action=self.action[low:high],
                vectors=np.ascontiguousarray(vectors, dtype=np.float64),
                first_conversion=self.first_conversion[low : high + 1] - c.start,
                delay=self.delay[c],
                value=self.value[c],
            )
            # As the engine hands them to the loops, for tests that call these themselves: compiled once for both.
            yield low, read_only_batch(batch)


def in_memory(rounds: LogRounds) -> LoggedRounds:
    """Return all used displays of a log as arrays."""
    parts = [batch for _, batch in rounds.batches()]
    one_for_all = len(parts[0].vectors) == 1 and rounds.vectors != "context"
    counts = np.concatenate([np.diff(batch.first_conversion) for batch in parts])
    return LoggedRounds(
        action=np.concatenate([batch.action for batch in parts]),
        vectors=parts[0].vectors if one_for_all else np.concatenate([batch.vectors for batch in parts]),
        first_conversion=np.concatenate([[0], np.cumsum(counts)]),
        delay=np.concatenate([batch.delay for batch in parts]),
        value=np.concatenate([batch.value for batch in parts]),
        n_actions=rounds.n_actions,
    )
