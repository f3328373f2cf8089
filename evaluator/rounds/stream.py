"""A log as the batches a replay reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.errors import LogError, ParameterError
from evaluator.log import Log
from evaluator.log.contract import BATCH, Columns, to_numpy
from evaluator.rounds.arrays import Batch

NO_VECTORS = np.zeros((1, 1, 0))


class Piece(NamedTuple):
    """Displays that follow one another, read once for all replays.

    Parameters
    ----------
    first
        Number of the first display.
    displays
        Columns that were read, always with ``action``.
    vectors
        Shape (n, K, d), (n, 1, d) or (1, K, d), as the log stores them, float32 or float64; (1, 1, 0) where none were
        read.
    first_conversion
        Conversions of display i are first_conversion[i] to first_conversion[i + 1] (excluded) among the log's own.
    """

    first: int
    displays: Columns
    vectors: npt.NDArray[np.floating]
    first_conversion: npt.NDArray[np.int64]

    @property
    def action(self) -> npt.NDArray[np.int32]:
        """Logged action of each display, shape (n,)."""
        action: npt.NDArray[np.int32] = self.displays["action"]
        return action


@dataclass(frozen=True, eq=False)
class LogRounds:
    """The displays of a log that a replay uses, and their conversions on its clock.

    Parameters
    ----------
    log
        The log.
    used
        Only its first so many displays.
    vectors
        What a policy reads: ``action_set``, ``context``, ``features`` (of the actions), or None.
    delay
        Of each of the log's conversions, in rounds, shape (c,).
    """

    log: Log
    used: int
    vectors: str | None
    delay: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return self.used

    @property
    def n_actions(self) -> int:
        """K."""
        return self.log.n_actions

    @property
    def rows(self) -> int:
        """Vectors a display: K when each action has its own, 1 for the display's context, 0 without."""
        return 0 if self.vectors is None else 1 if self.vectors == "context" else self.n_actions

    @property
    def dimension(self) -> int:
        """Length d of the vectors, 0 without."""
        if self.vectors is None:
            return 0
        of_actions = self.vectors == "features"
        kind = (self.log.actions.schema if of_actions else self.log.schema).field(self.vectors).type
        return int((kind.value_type if self.vectors == "action_set" else kind).list_size)

    def batch(self, piece: Piece, action: npt.NDArray[np.int32]) -> Batch:
        """Return the used displays of a piece, with `action` (thinned) for what was logged."""
        n = min(len(action), self.used - piece.first)
        low, high = int(piece.first_conversion[0]), int(piece.first_conversion[n])
        value = to_numpy(self.log.conversions["value"])
        if self.vectors is None:
            vectors: npt.NDArray[np.floating] = NO_VECTORS
        else:
            vectors = piece.vectors if len(piece.vectors) == 1 else piece.vectors[:n]
        return Batch(
            action=action[:n],
            vectors=vectors,
            first_conversion=piece.first_conversion[: n + 1] - low,
            delay=self.delay[low:high],
            value=value[low:high],
        )

    def batches(self, size: int = BATCH) -> Iterator[tuple[int, Batch]]:
        """Yield (number of its first display, batch)."""
        for piece in pieces(self.log, ["action"], self.vectors, size):
            if piece.first >= self.used:
                return
            yield piece.first, self.batch(piece, piece.action)


def vectors_of(log: Log, *, policy: str) -> str:
    """Return which vectors of a log a contextual policy reads.

    Raises
    ------
    ParameterError
        The log has no contexts, action sets or action features.
    """
    for name in ("action_set", "context"):
        if name in log.schema.names:
            return name
    if "features" in log.actions.column_names:
        return "features"
    raise ParameterError(
        f"{policy} needs contexts, and log {log.meta.name!r} has none.",
        hint="name context columns with --features, or take a policy without contexts such as delayed-klucb.",
    )


def pieces(log: Log, columns: list[str], vectors: str | None, size: int = BATCH) -> Iterator[Piece]:
    """Read a log once.

    Parameters
    ----------
    log
        The log.
    columns
        Columns of displays to read, with ``action``.
    vectors
        What the policies read, as in `LogRounds`.
    size
        Displays at a time, about.

    Raises
    ------
    LogError
        A vector is not finite.
    """
    of = to_numpy(log.conversions["display_id"]).astype(np.int64, copy=False)
    stored = vectors in ("action_set", "context")
    read = [*dict.fromkeys([*columns, vectors] if stored and vectors else columns)]
    shared = to_numpy(log.actions["features"]).astype(np.float64)[None] if vectors == "features" else NO_VECTORS
    low = 0
    for first, displays in log.batches(read, size):
        n = len(displays["action"])
        high = int(np.searchsorted(of, first + n, side="left"))
        counts = np.bincount(of[low:high] - first, minlength=n)
        own = _finite(first, str(vectors), displays[vectors]) if stored and vectors else shared
        yield Piece(first, displays, own, np.concatenate([[low], low + np.cumsum(counts)]))
        low = high


def blocks(log: Log, columns: list[str], vectors: str | None, size: int) -> Iterator[Piece]:
    """Read a log once, as `pieces` does, in blocks of exactly `size` displays but for the last."""
    shared = vectors not in ("action_set", "context")
    held: list[Piece] = []
    for piece in pieces(log, columns, vectors, size):
        held.append(piece)
        while sum(len(p.action) for p in held) >= size:
            whole = _joined(held, shared)
            yield _part(whole, slice(0, size), shared)
            held = [_part(whole, slice(size, None), shared)] if len(whole.action) > size else []
    if held:
        yield _joined(held, shared)


def _joined(several: list[Piece], shared: bool) -> Piece:
    first, *rest = several
    if not rest:
        return first
    return Piece(
        first.first,
        {name: np.concatenate([piece.displays[name] for piece in several]) for name in first.displays},
        first.vectors if shared else np.concatenate([piece.vectors for piece in several]),
        np.concatenate([first.first_conversion, *(piece.first_conversion[1:] for piece in rest)]),
    )


def _part(piece: Piece, at: slice, shared: bool) -> Piece:
    return Piece(
        piece.first + at.start,
        {name: column[at] for name, column in piece.displays.items()},
        piece.vectors if shared else piece.vectors[at],
        piece.first_conversion[at.start : None if at.stop is None else at.stop + 1],
    )


def _finite(first: int, name: str, vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    bad = ~np.isfinite(vectors).reshape(len(vectors), -1).all(axis=1)
    if bad.any():
        raise LogError(f"displays.{name}: not finite (row {first + int(bad.argmax())}). Hint: fill or drop the rows.")
    if name == "context":
        vectors = vectors[:, None, :]
    return np.ascontiguousarray(vectors)
