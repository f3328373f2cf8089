"""A log as the arrays the replay reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.errors import ParameterError
from evaluator.log import Log
from evaluator.log.contract import to_numpy


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
    """Logged displays in time order, and their conversions on the replay's clock.

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

    def rewards(self, share: npt.NDArray[np.float64] | None = None) -> npt.NDArray[np.float64]:
        """Return the summed value of each display's conversions, shape (n,), each counted with its share, (c,)."""
        value = self.value if share is None else self.value * share
        return np.bincount(self.display_of_conversion, weights=value, minlength=len(self)).astype(np.float64)

    @property
    def display_of_conversion(self) -> npt.NDArray[np.int64]:
        """Number of each conversion's display, shape (c,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.first_conversion))


def logged_rounds(log: Log, delay: npt.NDArray[np.int64], *, contextual: bool, policy: str) -> LoggedRounds:
    """Return a log's arrays.

    Parameters
    ----------
    log
        The log.
    delay
        Each conversion's delay in rounds (`evaluator.rounds.clock`), shape (c,).
    contextual
        Whether the policy reads vectors; they are left out otherwise.
    policy
        Its name, for the error.

    Raises
    ------
    ParameterError
        A contextual policy on a log without contexts, action sets or action features.
    """
    of = to_numpy(log.conversions["display_id"])
    first = np.searchsorted(of, np.arange(len(log) + 1), side="left").astype(np.int64)
    return LoggedRounds(
        action=log.column("action").astype(np.int32, copy=False),
        vectors=_vectors(log, policy) if contextual else np.zeros((1, 1, 0)),
        first_conversion=first,
        delay=delay,
        value=to_numpy(log.conversions["value"]).astype(np.float64, copy=False),
        n_actions=log.n_actions,
    )


def _vectors(log: Log, policy: str) -> npt.NDArray[np.floating]:
    columns = log.displays.column_names
    vectors: npt.NDArray[np.floating]
    if "action_set" in columns:
        vectors = log.column("action_set")
    elif "context" in columns:
        vectors = log.column("context")[:, None, :]
    elif "features" in log.actions.column_names:
        vectors = to_numpy(log.actions["features"])[None, :, :]
    else:
        raise ParameterError(
            f"{policy} needs contexts, and log {log.meta.name!r} has none.",
            hint="name context columns with --features, or take a policy without contexts such as delayed-klucb.",
        )
    return vectors
