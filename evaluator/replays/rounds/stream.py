"""A log as the batches of arrays that the loops read, in its own order or in another; how its eligible sets vary.

*Other orders* shuffle displays within blocks, so that time stays roughly in order. A replay uses few of a log's
displays, and which ones depends on the order in which they came. Displays that followed one another closely could have
come in another order as well, so a replay of another order is as good, and the mean over several depends on the log's
luck the less. A display takes along all that belongs to it: context, action, propensity, conversions, and their delays,
which stay the displays that came between in the log itself.

Blocks of 1,024 are long enough that other displays are used, and so short that rhythms and drifts over more displays
than that stay as they are: `python -m tests.bench.repeats` measures both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.kernels.compiling import compiled
from evaluator.engine.kernels.intrinsics import count_bits
from evaluator.errors import LogError, ParameterError, nearest
from evaluator.log import Log
from evaluator.log.breaches import TARGET_REPAIR, target_breaches
from evaluator.log.contract import has_eligibility
from evaluator.log.eligible import EligibleByPart, SetCodes, bits_of, joined_codes, members, set_codes, sizes, words
from evaluator.log.schema import (
    ACTION_SET,
    BATCH,
    ELIGIBLE,
    FEATURES,
    NAMED_TARGET,
    Columns,
    is_target,
    is_uneven,
    to_numpy,
)
from evaluator.log.vectors_of_displays import TakenActions, readable_vectors
from evaluator.replays.rounds.survey import Survey
from evaluator.streams import Stream, random_stream

NO_VECTORS = np.zeros((1, 1, 0))
BLOCK = 1_024
Ints = npt.NDArray[np.int64]


class EligibleActions(NamedTuple):
    """The actions that could have been shown at some displays, where that differs from display to display.

    `of` is the number of each display's set, shape (n,), and `word` the bits of each set, 64 actions at a time, the
    first the lowest bit, shape (sets, ceil(K / 64)). A loop reads them where the log has them: most displays are
    decided by a few actions of their set. `playable` are the bits of the actions that a policy may choose where they
    are eligible, shape (ceil(K / 64),).

    `row` is the row of each display's first vector among those of the batch, shape (n,). With `by_action` 1 action k
    has the k-th vector from there on, and with `by_place` 1 the k-th eligible action, playable or not; with both 0 all
    share that one.
    """

    of: npt.NDArray[np.int32]
    word: npt.NDArray[np.uint64]
    playable: npt.NDArray[np.uint64]
    row: npt.NDArray[np.int64]
    by_action: int
    by_place: int


class Batch(NamedTuple):
    """Logged displays in replay order, as the loops read them.

    `action` is the logged action of each display, shape (n,); -1 where thinning has left the display out. `vectors` are
    those of each display, float32 or float64, shape (n, K, d) or (n, 1, d); (1, 1, 0) without contexts, when all
    displays read the first. Where displays have their own eligible actions (`eligible`; None where all always are),
    they have shape (1, rows, d), whose rows these name.

    The conversions of display i are first_conversion[i] to first_conversion[i + 1] (excluded), shape (n + 1,): `delay`
    in rounds and `value` in the log's own unit, shape (c,) each.
    """

    action: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.floating]
    first_conversion: npt.NDArray[np.int64]
    delay: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    eligible: EligibleActions | None = None


class ToldEvents(NamedTuple):
    """The events that a policy may be told of, by their displays, shape (c,) each.

    Numbers of the displays in the log, delays on the clock that the loop counts, and values. Of the surveyed events
    they are the `rows`, a mask; None where they are all.
    """

    display: Ints
    delay: Ints
    value: npt.NDArray[np.float64]
    rows: npt.NDArray[np.bool_] | None

    def delayed(self, delay: Ints) -> ToldEvents:
        """Return them with other delays, those of all surveyed events, shape (e,)."""
        return self._replace(delay=delay if self.rows is None else delay[self.rows])


def told_events(survey: Survey, rows: npt.NDArray[np.bool_] | None, delay: Ints) -> ToldEvents:
    """Return the surveyed events that a policy may be told of, `rows` of them, with the delays of all, shape (e,)."""
    chosen = slice(None) if rows is None else rows
    value = to_numpy(survey.log.conversions["value"]).astype(np.float64, copy=False)
    return ToldEvents(survey.display[chosen], delay[chosen], value[chosen], rows)


class LogPiece(NamedTuple):
    """Displays that follow one another, read once for all replays; the first has the number `first` in the log.

    Columns, always with ``action``, have shape (n,) or (n, p). Vectors have shape (n, K, d), (n, 1, d), (1, K, d), or
    (m, d), those of the eligible actions of one display after the other; as the log stores them, float32 or float64.
    The conversions of display i are first_conversion[i] to first_conversion[i + 1] (excluded) of the piece, shape (n +
    1,), the first of which has the number `conversion` in the log. Where displays have their own number of vectors,
    `first_vector`, shape (n + 1,), is the place of each display's first.
    """

    first: int
    displays: Columns
    vectors: dict[str, npt.NDArray[np.floating]]
    conversion: int
    first_conversion: npt.NDArray[np.int64]
    first_vector: npt.NDArray[np.int64] | None = None

    def part(self, name: str | None, rows: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.floating]:
        """Return the vectors of a name for some displays; shape (1, ...) where all share them, (1, 1, 0) for None.

        Where a display has vectors of its eligible actions alone: those of all, one display after the other, (m, d).
        """
        vectors = NO_VECTORS if name is None else self.vectors[name]
        if vectors.ndim > 2:
            return vectors if len(vectors) == 1 else vectors[rows]
        begin = self.first_vector
        assert begin is not None
        if isinstance(rows, slice):
            low, high, _ = rows.indices(len(begin) - 1)
            return vectors[begin[low] : begin[max(high, low)]]
        first = self.first_vectors(rows)
        assert first is not None
        return vectors.take(np.repeat(begin[rows] - first[:-1], np.diff(first)) + np.arange(first[-1]), axis=0)

    def first_vectors(self, rows: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        """Return `first_vector` of some displays, among the vectors that `part` returns of them."""
        begin = self.first_vector
        if begin is None:
            return None
        if isinstance(rows, slice):
            low, high, _ = rows.indices(len(begin) - 1)
            first: Ints = begin[low : max(high, low) + 1] - begin[low]
            return first
        return _summed(np.diff(begin)[rows])

    def part_of_all(self, name: str | None, rows: slice, n_actions: int) -> npt.NDArray[np.floating]:
        """Return the vectors as `part` does, with one of zeros for each action that is not eligible and has none."""
        vectors = self.part(name, rows)
        if vectors.ndim > 2:
            return vectors
        sets = self.eligible(rows)
        assert sets is not None
        first, action = members(sets.distinct[np.asarray(sets)])
        out = np.zeros((len(sets), n_actions, vectors.shape[1]), vectors.dtype)
        out[np.repeat(np.arange(len(sets)), np.diff(first)), action] = vectors
        return out

    def eligible(self, rows: slice | npt.NDArray[np.int64]) -> SetCodes | None:
        """Return the eligible actions of some displays; None where they were not read."""
        sets = self.displays.get(ELIGIBLE)
        if sets is None:
            return None
        found = sets[rows]
        assert isinstance(found, SetCodes)
        return found

    @property
    def action(self) -> npt.NDArray[np.int32]:
        """Logged action of each display, shape (n,)."""
        action: npt.NDArray[np.int32] = self.displays["action"]
        return action


@dataclass(frozen=True, eq=False)
class LogRounds:
    """The displays of a log that a replay uses, the first `used`, and their conversions on its clock.

    `vectors` is the kind that a policy reads: ``action_set``, ``context``, ``target`` or ``target:NAME`` (a policy),
    ``features`` (of the actions), or None. `delay` is that of each of the log's conversions in rounds, shape (c,),
    `NO_WINDOW` where a duration cuts it off. `told` are the events that the policy may be told of, on its own clock
    (`evaluator.replays.schedule`); None where these are the conversions with those delays. `playable` are the
    actions that are logged at all, shape (K,): of each display's eligible ones a policy chooses among these; None where
    every display has the same.
    """

    log: Log
    used: int
    vectors: str | None
    delay: npt.NDArray[np.int64]
    told: ToldEvents | None = None
    playable: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return self.used

    @property
    def n_actions(self) -> int:
        """Number of actions of the log, K."""
        return self.log.n_actions

    @property
    def rows(self) -> int:
        """Vectors a display: K when each action has its own, 1 for the display's context, 0 without."""
        return 0 if self.vectors is None else 1 if _of_a_display(self.vectors) else self.n_actions

    @property
    def dimension(self) -> int:
        """Length d of the vectors, 0 without."""
        if self.vectors is None:
            return 0
        of_actions = self.vectors == FEATURES
        kind = (self.log.actions.schema if of_actions else self.log.schema).field(self.vectors).type
        if pa.types.is_string(kind):  # the action that a policy takes
            return 1
        return int((kind.value_type if self.vectors == "action_set" else kind).list_size)

    def batch(self, piece: LogPiece, action: npt.NDArray[np.int32]) -> Batch:
        """Return the used displays of a piece, with `action` (thinned) for what was logged."""
        n = min(len(action), self.used - piece.first)
        used, first = slice(n), piece.first_conversion[: n + 1]
        vectors = {self.vectors: piece.part(self.vectors, used)}
        sets, first_vector = piece.eligible(used), piece.first_vectors(used)
        displays = slice(piece.first, piece.first + n)
        conversions = slice(piece.conversion, piece.conversion + int(first[n]))
        return GatheredDisplays(action[used], vectors, displays, first, conversions, sets, first_vector).batch(self)

    def choices(
        self, vectors: npt.NDArray[np.floating], sets: SetCodes | None, first_vector: npt.NDArray[np.int64] | None
    ) -> tuple[npt.NDArray[np.floating], EligibleActions | None]:
        """Return the vectors of some displays, and their eligible actions, as a batch has them.

        Vectors have the shapes that `LogPiece.part` returns, and `first_vector`, shape (n + 1,), is the place of each
        display's first where displays have their own number of them.
        """
        if self.playable is None:
            # Where each set holds all actions there are no sets to choose from, and every display has K vectors.
            return (vectors if vectors.ndim > 2 else vectors.reshape(-1, self.n_actions, vectors.shape[1])), None
        assert sets is not None
        return eligible_actions(sets, self.playable, vectors, first_vector)

    def events(
        self, displays: slice | Ints, first: Ints, conversions: slice | Ints
    ) -> tuple[Ints, Ints, npt.NDArray[np.float64]]:
        """Return what a policy may be told of some displays: the place of each one's first event, delays, and values.

        Displays and their conversions are numbers in the log, shapes (n,) and (c,), or slices; `first` is the place of
        each display's first among these, shape (n + 1,), as is what is returned.
        """
        if self.told is None:
            return first, self.delay[conversions], to_numpy(self.log.conversions["value"])[conversions]
        of, delay, value, _ = self.told
        if isinstance(displays, slice):
            every = slice(*np.searchsorted(of, (displays.start, displays.stop)))
            counts = np.bincount(of[every] - displays.start, minlength=displays.stop - displays.start)
            return _summed(counts), delay[every], value[every]
        low = np.searchsorted(of, displays)
        counts = np.searchsorted(of, displays, side="right") - low
        place = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        at = np.repeat(low - place[:-1], counts) + np.arange(place[-1])
        return place, delay[at], value[at]

    def batches(self, size: int = BATCH) -> Iterator[tuple[int, Batch]]:
        """Yield (number of its first display, batch)."""
        columns = ["action", *([] if self.playable is None else [ELIGIBLE])]
        for piece in pieces(self.log, columns, [] if self.vectors is None else [self.vectors], size):
            if piece.first >= self.used:
                return
            yield piece.first, self.batch(piece, piece.action)


def vectors_of(log: Log, *, policy: str, reads: str = "") -> str:
    """Return which vectors of a log a contextual policy reads: the one column that it names, or any.

    Raise ParameterError if the log has not that column, or no contexts, action sets or action features; it names the
    policy.
    """
    if reads.startswith(NAMED_TARGET) and reads not in log.schema.names:
        raise _no_target(log, reads.removeprefix(NAMED_TARGET))
    if reads and reads not in log.schema.names:
        raise ParameterError(
            f"{policy} needs the column {reads!r} of displays, and log {log.meta.name!r} has none.",
            remedy="name a policy's columns of probabilities in the spec: columns = 'pi_{action}' under [target].",
        )
    if reads:
        return reads
    found = readable_vectors(log)
    if found is not None:
        return found
    raise ParameterError(
        f"{policy} needs contexts, and log {log.meta.name!r} has none.",
        remedy="name context columns with `features`, or take a policy without contexts such as delayed-klucb.",
    )


def _of_a_display(vectors: str) -> bool:
    """Whether a display has one vector of a name, whatever the action."""
    return vectors == "context" or is_target(vectors)


def _no_target(log: Log, name: str) -> ParameterError:
    found = [column.removeprefix(NAMED_TARGET) for column in log.schema.names if column.startswith(NAMED_TARGET)]
    if not found:
        return ParameterError(
            f"Log {log.meta.name!r} has no target{f' {name!r}' if name else ''}: no policy is a column of it.",
            remedy="name the column with its actions in the spec: action = 'new_model' under [target.new_model].",
        )
    if not name:
        return ParameterError("target names none of the log's targets.", remedy=f"write target:{found[0]}.")
    return ParameterError(f"Log {log.meta.name!r} has no target {name!r}.", remedy=nearest(name, found))


def pieces(log: Log, columns: list[str], vectors: Sequence[str], size: int = BATCH) -> Iterator[LogPiece]:
    """Read a log once, about `size` displays at a time: columns with ``action``, and vectors as `LogRounds` names them.

    Raise LogError if a vector is not finite, or a row of a policy's probabilities is none.
    """
    of = to_numpy(log.conversions["display_id"]).astype(np.int64, copy=False)
    labels = [name for name in vectors if is_target(name) and pa.types.is_string(log.schema.field(name).type)]
    stored = [name for name in vectors if name != FEATURES and name not in labels]
    uneven = next((name for name in stored if is_uneven(log.schema.field(name).type)), None)
    kept = [*dict.fromkeys([*columns, *([] if uneven is None else [ELIGIBLE])])]
    read = [*dict.fromkeys([*kept, *stored])]
    shared = {name: to_numpy(log.actions[name]).astype(np.float64)[None] for name in vectors if name == FEATURES}
    low, targets = 0, {name: TakenActions(log, name) for name in labels}
    for first, displays in log.batches(read, size, coded=True):
        n = len(displays["action"])
        high = int(np.searchsorted(of, first + n, side="left"))
        counts = np.bincount(of[low:high] - first, minlength=n)
        begin = None if uneven is None else _first_of_eligible(first, displays[ELIGIBLE], displays[uneven])
        own = {name: _finite(first, name, displays, begin) for name in stored}
        own |= {name: taken.following(n).astype(np.float64)[:, None, None] for name, taken in targets.items()}
        columns_read = {name: displays[name] for name in kept}
        yield LogPiece(first, columns_read, own | shared, low, _summed(counts), begin)
        low = high


def _first_of_eligible(first: int, sets: npt.NDArray[Any], vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Return the place of each display's first vector, where each eligible action has one, shape (n + 1,)."""
    assert isinstance(sets, SetCodes)
    if len(sets.distinct) < len(sets):
        begin = _summed(sizes(sets))
    else:  # sets that hardly repeat are read once, as a loop reads them
        begin = np.zeros(len(sets) + 1, np.int64)
        count_before(read_only(np.asarray(sets)), read_only(words(sets.distinct)), begin)
    if begin[-1] != len(vectors):
        rows = f"rows {first} to {first + len(sets) - 1}"
        raise LogError(
            f"displays.{ACTION_SET}: not a vector for each eligible action ({rows}).",
            remedy="give one, in the order of the actions.",
        )
    return begin


@compiled
def count_before(of: npt.NDArray[np.int32], word: npt.NDArray[np.uint64], begin: Ints) -> None:
    """Write how many eligible actions there are before each display, shape (n + 1,), whose first number is 0.

    `of` and `word` are as in `EligibleActions`.
    """
    for i in range(of.shape[0]):
        size = 0
        for at in range(word.shape[1]):
            size += count_bits(word[np.uint32(of[i]), at])
        begin[i + 1] = begin[i] + size


def _summed(counts: Ints) -> Ints:
    """Return how many come before each place, and at the end how many there are, shape (n + 1,)."""
    begin = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=begin[1:])
    return begin


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
    counts = [np.diff(piece.first_vector) for piece in several if piece.first_vector is not None]
    return LogPiece(
        first.first,
        {name: _one([piece.displays[name] for piece in several]) for name in first.displays},
        {
            name: own if name == FEATURES else np.concatenate([piece.vectors[name] for piece in several])
            for name, own in first.vectors.items()
        },
        first.conversion,
        np.concatenate(
            [
                first.first_conversion,
                *(piece.conversion - first.conversion + piece.first_conversion[1:] for piece in rest),
            ]
        ),
        _summed(np.concatenate(counts)) if counts else None,
    )


def _one(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    sets = [part for part in parts if isinstance(part, SetCodes)]
    return joined_codes(sets) if sets else np.concatenate(parts)


def _part(piece: LogPiece, at: slice) -> LogPiece:
    before = piece.first_conversion[at.start]
    return LogPiece(
        piece.first + at.start,
        {name: column[at] for name, column in piece.displays.items()},
        {name: piece.part(name, at) for name in piece.vectors},
        piece.conversion + int(before),
        piece.first_conversion[at.start : None if at.stop is None else at.stop + 1] - before,
        piece.first_vectors(at),
    )


def _finite(
    first: int, name: str, displays: Columns, first_vector: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.floating]:
    vectors: npt.NDArray[np.floating] = displays[name]
    finite = np.isfinite(vectors)
    if not finite.all():
        row = int(finite.reshape(len(vectors), -1).all(axis=1).argmin())
        if vectors.ndim == 2 and first_vector is not None and name == ACTION_SET:
            row = int(np.searchsorted(first_vector, row, side="right")) - 1
        raise LogError(f"displays.{name}: not finite (row {first + row}).", remedy="fill or drop the rows.")
    if is_target(name):
        for wrong, values, problem in target_breaches(vectors.astype(np.float64, copy=False)):
            if wrong.any():
                row = int(wrong.argmax())
                raise LogError(
                    f"displays.{name}: {problem} (row {first + row}: {values[row]:g}).", remedy=TARGET_REPAIR
                )
    if _of_a_display(name):
        vectors = vectors[:, None, :]
    return np.ascontiguousarray(vectors)


class LogOrder:
    """The order of the displays of a log, part by part; it depends on its random stream alone."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    @classmethod
    def of_repeat(cls, seed: int, repeat: int) -> LogOrder:
        """Return the order that a repeat reads a log in, other than the first, which reads it as it is."""
        return cls(random_stream(Stream.REPEAT_ORDER, seed, repeat))

    def next(self, n: int) -> Ints:
        """Return the next `n` displays in their new order, counted from 0: whole blocks, but at the end of the log."""
        keys = self._rng.random(n)
        whole = n - n % BLOCK
        out = np.empty(n, np.int64)
        out[:whole] = (
            np.argsort(keys[:whole].reshape(-1, BLOCK), axis=1) + np.arange(0, whole, BLOCK)[:, None]
        ).reshape(-1)
        out[whole:] = np.argsort(keys[whole:]) + whole
        return out


class GatheredDisplays(NamedTuple):
    """Some displays of a piece in some order: as a batch, but with their conversions' numbers among the log's own.

    `displays` are their own numbers there, shape (n,), or a slice. Vectors are held by each name that was asked for.
    `first_conversion`, shape (n + 1,), is the place of each display's first in `conversion`, shape (c,), or a slice.
    Eligible actions are None where they were not read; `first_vector`, shape (n + 1,), is there where displays have
    their own number of vectors.
    """

    action: npt.NDArray[np.int32]
    vectors: dict[str | None, npt.NDArray[np.floating]]
    displays: Ints | slice
    first_conversion: Ints
    conversion: Ints | slice
    eligible: SetCodes | None = None
    first_vector: Ints | None = None

    def batch(self, rounds: LogRounds) -> Batch:
        """Return them as a policy reads them."""
        events = rounds.events(self.displays, self.first_conversion, self.conversion)
        vectors, eligible = rounds.choices(self.vectors[rounds.vectors], self.eligible, self.first_vector)
        return Batch(self.action, vectors, *events, eligible)


def gather(
    piece: LogPiece, action: npt.NDArray[np.int32], displays: Ints, vectors: Iterable[str | None]
) -> GatheredDisplays:
    """Take displays out of a piece, in the order asked for and counted from its first one; they may come twice.

    `action` holds the thinned actions of the piece's displays, shape (m,); vectors are named as in `LogPiece.part`.
    """
    first = piece.first_conversion[displays]
    counts = piece.first_conversion[displays + 1] - first
    bounds = _summed(counts)
    conversion = np.repeat(piece.conversion + first - bounds[:-1], counts) + np.arange(bounds[-1])
    own = {name: piece.part(name, displays) for name in vectors}
    sets, first_vector = piece.eligible(displays), piece.first_vectors(displays)
    return GatheredDisplays(action[displays], own, piece.first + displays, bounds, conversion, sets, first_vector)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array, not to be written to.

    A loop is compiled for each kind of array that it is given, whether it writes to it or not: a log's arrays cannot be
    written to, and copies of parts of them could.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def read_only_batch(batch: Batch) -> Batch:
    """Return the batch with arrays that are not to be written to."""
    sets = batch.eligible
    return batch._replace(**_read_only_arrays(batch), eligible=None if sets is None else read_only_sets(sets))


def read_only_sets(sets: EligibleActions) -> EligibleActions:
    """Return eligible actions in arrays that are not to be written to."""
    return sets._replace(**_read_only_arrays(sets))


def _read_only_arrays(of: Batch | EligibleActions) -> dict[str, Any]:
    return {name: read_only(value) for name, value in of._asdict().items() if isinstance(value, np.ndarray)}


def eligible_actions(
    sets: SetCodes,
    playable: npt.NDArray[np.bool_],
    vectors: npt.NDArray[np.floating],
    first_vector: npt.NDArray[np.int64] | None,
) -> tuple[npt.NDArray[np.floating], EligibleActions]:
    """Return the vectors of some displays as rows, shape (1, rows, d), and their eligible actions, which name the rows.

    Of the eligible actions a policy may choose those that are `playable`, shape (K,). Vectors have shape (n, 1, d), (n,
    K, d), (1, K, d), (1, 1, 0), or (m, d), those of the eligible actions alone, one display after the other, each
    display's first at `first_vector`, shape (n + 1,).
    """
    of, n = np.asarray(sets), len(sets)
    by_action = by_place = 0
    if first_vector is not None and vectors.ndim == 2:
        row, by_place = first_vector[:-1], 1
    elif len(vectors) == 1:
        row, by_action = np.zeros(n, np.int64), int(vectors.shape[1] > 1)
    else:
        row, by_action = np.arange(0, vectors.shape[1] * n, vectors.shape[1]), int(vectors.shape[1] > 1)
    rows = vectors.reshape(1, -1, vectors.shape[-1]) if vectors.shape[-1] else vectors
    return rows, EligibleActions(of, words(sets.distinct), words(bits_of(playable[None]))[0], row, by_action, by_place)


def stated_actions(
    sets: npt.NDArray[np.bool_], vectors: npt.NDArray[np.floating]
) -> tuple[npt.NDArray[np.floating], EligibleActions]:
    """Return the same of eligible actions given as truths, shape (n, K), all of which may be chosen."""
    codes = set_codes(np.arange(len(sets)), bits_of(sets))
    return eligible_actions(codes, np.ones(sets.shape[1], np.bool_), vectors, None)


@dataclass(frozen=True, eq=False)
class EligibleSets:
    """How the displays of a log differ in what could have been shown.

    `eligible` counts the displays at which each action is, shape (K,); `moving` is the action whose eligibility changes
    most with time, where sets move with it; else -1.
    """

    moving: int
    eligible: npt.NDArray[np.int64]
    displays: int


def read_sets(log: Log) -> EligibleSets | None:
    """Return how the sets of a log vary, in one pass over them; None where every action is always eligible."""
    if not has_eligibility(log):
        return None
    by_part = EligibleByPart(len(log), log.n_actions)
    for first, batch in log.batches([ELIGIBLE], coded=True):
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        by_part.add(first, np.asarray(sets), *members(sets.distinct))
    return EligibleSets(by_part.moving(), by_part.displays, len(log))
