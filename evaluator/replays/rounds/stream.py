"""A log as the batches a replay reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.errors import LogError, ParameterError
from evaluator.log import Log
from evaluator.log.breaches import TARGET_REPAIR, target_breaches
from evaluator.log.readable_vectors import readable_vectors
from evaluator.log.schema import BATCH, FEATURES, Columns, to_numpy
from evaluator.replays.rounds.batch import Batch

NO_VECTORS = np.zeros((1, 1, 0))
# One vector a display, whatever the action.
_OF_A_DISPLAY = ("context", "target")


class LogPiece(NamedTuple):
    """Displays that follow one another, read once for all replays.

    Parameters
    ----------
    first
        Number of the first display in the log.
    displays
        Columns that were read, by name, shape (n,) or (n, p) each; always with ``action``.
    vectors
        Vectors that were read, by name: shape (n, K, d), (n, 1, d) or (1, K, d), as the log stores them, float32 or
        float64.
    first_conversion
        Number, in the log, of each display's first conversion, shape (n + 1,): those of display i are
        first_conversion[i] to first_conversion[i + 1] (excluded).
    """

    first: int
    displays: Columns
    vectors: dict[str, npt.NDArray[np.floating]]
    first_conversion: npt.NDArray[np.int64]

    def part(self, name: str | None, rows: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.floating]:
        """Return the vectors of a name for some displays; shape (1, ...) where all share them, (1, 1, 0) for None."""
        vectors = NO_VECTORS if name is None else self.vectors[name]
        return vectors if len(vectors) == 1 else vectors[rows]

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
        Log whose displays are replayed.
    used
        Number of displays that are used, the first ones.
    vectors
        Kind of vectors that a policy reads: ``action_set``, ``context``, ``target`` (probabilities of a policy),
        ``features`` (of the actions), or None.
    delay
        Delay of each of the log's conversions in rounds, shape (c,); `NO_WINDOW` where a duration cuts it off.
    """

    log: Log
    used: int
    vectors: str | None
    delay: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return self.used

    @property
    def n_actions(self) -> int:
        """Number of actions of the log, K."""
        return self.log.n_actions

    @property
    def rows(self) -> int:
        """Vectors a display: K when each action has its own, 1 for the display's context, 0 without."""
        return 0 if self.vectors is None else 1 if self.vectors in _OF_A_DISPLAY else self.n_actions

    @property
    def dimension(self) -> int:
        """Length d of the vectors, 0 without."""
        if self.vectors is None:
            return 0
        of_actions = self.vectors == FEATURES
        kind = (self.log.actions.schema if of_actions else self.log.schema).field(self.vectors).type
        return int((kind.value_type if self.vectors == "action_set" else kind).list_size)

    def batch(self, piece: LogPiece, action: npt.NDArray[np.int32]) -> Batch:
        """Return the used displays of a piece, with `action` (thinned) for what was logged."""
        n = min(len(action), self.used - piece.first)
        low, high = int(piece.first_conversion[0]), int(piece.first_conversion[n])
        value = to_numpy(self.log.conversions["value"])
        return Batch(
            action=action[:n],
            vectors=piece.part(self.vectors, slice(n)),
            first_conversion=piece.first_conversion[: n + 1] - low,
            delay=self.delay[low:high],
            value=value[low:high],
        )

    def batches(self, size: int = BATCH) -> Iterator[tuple[int, Batch]]:
        """Yield (number of its first display, batch)."""
        for piece in pieces(self.log, ["action"], [] if self.vectors is None else [self.vectors], size):
            if piece.first >= self.used:
                return
            yield piece.first, self.batch(piece, piece.action)


def vectors_of(log: Log, *, policy: str, reads: str = "") -> str:
    """Return which vectors of a log a contextual policy reads.

    Parameters
    ----------
    log
        Log that a policy is to read.
    policy
        Name of the policy, for errors.
    reads
        Name of the one column that it reads; empty if it can do with any.

    Raises
    ------
    ParameterError
        The log has not what it reads, or no contexts, action sets or action features.
    """
    if reads and reads not in log.schema.names:
        raise ParameterError(
            f"{policy} needs the column {reads!r} of displays, and log {log.meta.name!r} has none.",
            hint="name a policy's columns of probabilities in the spec: [target] in datasets/README.md.",
        )
    if reads:
        return reads
    found = readable_vectors(log)
    if found is not None:
        return found
    raise ParameterError(
        f"{policy} needs contexts, and log {log.meta.name!r} has none.",
        hint="name context columns with `features`, or take a policy without contexts such as delayed-klucb.",
    )


def pieces(log: Log, columns: list[str], vectors: Sequence[str], size: int = BATCH) -> Iterator[LogPiece]:
    """Read a log once.

    Parameters
    ----------
    log
        Log to read.
    columns
        Names of the columns of displays to read, with ``action``.
    vectors
        Names of the vectors that the policies read, as in `LogRounds`.
    size
        Number of displays at a time, about.

    Raises
    ------
    LogError
        A vector is not finite, or a row of a policy's probabilities is none.
    """
    of = to_numpy(log.conversions["display_id"]).astype(np.int64, copy=False)
    stored = [name for name in vectors if name != FEATURES]
    read = [*dict.fromkeys([*columns, *stored])]
    shared = {name: to_numpy(log.actions[name]).astype(np.float64)[None] for name in vectors if name == FEATURES}
    low = 0
    for first, displays in log.batches(read, size):
        n = len(displays["action"])
        high = int(np.searchsorted(of, first + n, side="left"))
        counts = np.bincount(of[low:high] - first, minlength=n)
        own = {name: _finite(first, name, displays[name]) for name in stored}
        yield LogPiece(first, displays, own | shared, np.concatenate([[low], low + np.cumsum(counts)]))
        low = high


def blocks(log: Log, columns: list[str], vectors: Sequence[str], size: int) -> Iterator[LogPiece]:
    """Read a log once, as `pieces` does, in blocks of exactly `size` displays but for the last."""
    held: list[LogPiece] = []
    for piece in pieces(log, columns, vectors, size):
        held.append(piece)
        while sum(len(p.action) for p in held) >= size:
            whole = _joined(held)
            yield _part(whole, slice(0, size))
            held = [_part(whole, slice(size, None))] if len(whole.action) > size else []
    if held:
        yield _joined(held)


def _joined(several: list[LogPiece]) -> LogPiece:
    first, *rest = several
    if not rest:
        return first
    return LogPiece(
        first.first,
        {name: np.concatenate([piece.displays[name] for piece in several]) for name in first.displays},
        {
            name: own if name == FEATURES else np.concatenate([piece.vectors[name] for piece in several])
            for name, own in first.vectors.items()
        },
        np.concatenate([first.first_conversion, *(piece.first_conversion[1:] for piece in rest)]),
    )


def _part(piece: LogPiece, at: slice) -> LogPiece:
    return LogPiece(
        piece.first + at.start,
        {name: column[at] for name, column in piece.displays.items()},
        {name: own if name == FEATURES else own[at] for name, own in piece.vectors.items()},
        piece.first_conversion[at.start : None if at.stop is None else at.stop + 1],
    )


def _finite(first: int, name: str, vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    bad = ~np.isfinite(vectors).reshape(len(vectors), -1).all(axis=1)
    if bad.any():
        raise LogError(f"displays.{name}: not finite (row {first + int(bad.argmax())}).", hint="fill or drop the rows.")
    if name == "target":
        for wrong, values, problem in target_breaches(vectors.astype(np.float64, copy=False)):
            if wrong.any():
                row = int(wrong.argmax())
                raise LogError(f"displays.target: {problem} (row {first + row}: {values[row]:g}).", hint=TARGET_REPAIR)
    if name in _OF_A_DISPLAY:
        vectors = vectors[:, None, :]
    return np.ascontiguousarray(vectors)
