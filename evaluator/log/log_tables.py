"""The tables of a log: how they are read, and what is wrong with its events and eligible actions.

`evaluator.log.contract` says what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.eligible import SETS, beyond, holds, set_bytes, sizes
from evaluator.log.meta import CONVERSION, EventKind, LogMeta, choose_kinds, kinds_of, outcomes_of
from evaluator.log.schema import (
    ACTION_SET,
    BATCH,
    ELIGIBLE,
    EVENTS,
    Columns,
    first_vectors,
    is_sets,
    is_uneven,
    read,
    take_rows,
    to_numpy,
)
from evaluator.log.times import with_date
from evaluator.units import MOST_VALUE, ticks_words

Ints = npt.NDArray[np.int64]
# How far a propensity that is uniform by design may be from one over the size of its set.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class LogTables:
    """Displays, events, actions and metadata, whether they keep the contract or not; and which kinds of events count.

    Of a log as it was read conversions count; of that of a replay also what else is reward.
    """

    displays: pa.Table
    events: pa.Table
    actions: pa.Table
    meta: LogMeta
    counted: tuple[str, ...] = (CONVERSION,)

    @cached_property
    def conversions(self) -> pa.Table:
        """Events that count; with their kinds only where several kinds may."""
        return choose_kinds(self.events, self.counted)

    @cached_property
    def outcomes(self) -> pa.Table:
        """Events of the outcomes: ``outcome`` (text) and the columns of events."""
        return outcomes_of(self.events)

    def __len__(self) -> int:
        return int(self.displays.num_rows)

    @property
    def n_actions(self) -> int:
        """Number of actions K."""
        return int(self.actions.num_rows)

    @property
    def labels(self) -> list[str]:
        """Label of each action, shape (K,)."""
        return list(self.actions["label"].to_pylist())

    @property
    def schema(self) -> pa.Schema:
        """Schema of `displays`."""
        return self.displays.schema

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column of `displays` as a NumPy array; fixed-size lists become further axes."""
        return to_numpy(self.displays[name])

    def batches(
        self, columns: Sequence[str], size: int = BATCH, *, coded: bool = False
    ) -> Iterator[tuple[int, Columns]]:
        """Yield the displays in order: (number of the first one, columns as NumPy arrays of about `size` rows).

        Sets of actions come as bits or, `coded`, as numbers of distinct ones (`evaluator.log.eligible.SetCodes`).
        """
        # What is another array than its column is made of a batch's displays at a time: sets that many displays share
        # become as many copies, and uneven lists lose where a display's begin.
        kinds = {name: self.displays.schema.field(name).type for name in columns}
        own = {name: self.displays[name] for name, kind in kinds.items() if is_sets(kind) or is_uneven(kind)}
        whole = {name: self.column(name) for name in columns if name not in own}
        for first in range(0, len(self), size):
            batch = {name: array[first : first + size] for name, array in whole.items()}
            yield first, batch | {name: read(column.slice(first, size), coded=coded) for name, column in own.items()}

    def arrays(self, column: str) -> Iterator[tuple[int, pa.Array]]:
        """Yield a column of the displays in order, as Arrow: what is missing is told, and no digit of an id is lost."""
        for first in range(0, len(self), BATCH):
            yield first, pa.concat_arrays(self.displays[column].slice(first, BATCH).chunks)

    def take(self, displays: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Return some columns of the displays with these numbers, in the order asked for."""
        return take_rows(self.displays.select(list(columns)), displays)

    def time_range(self) -> tuple[int, int]:
        """Return the times of the first and the last display in ticks; of a log on disk at the cost of `take`."""
        first, last = to_numpy(self.take(np.array([0, len(self) - 1]), ["time"])["time"])
        return int(first), int(last)


class Bound(NamedTuple):
    """What a display may earn at most (`sign` 1) or at least (-1), all its conversions together."""

    value: float
    sign: int

    def words(self, kind: EventKind) -> tuple[str, str]:
        """Return what is wrong with a display beyond it, with events of a kind, and how to repair it."""
        at, more, change = (1, "more", "raise") if self.sign > 0 else (0, "less", "lower")
        key, of = kind.bound_keys[at], f" of {kind.name}" if kind.name else ""
        return (
            f"the display {'has' if of else 'earns'} {more} than {key} = {self.value:g}{of} in all",
            f"{change} {key}, or repair the values or the rows that repeat",
        )


def bounds_of(least: float | None, most: float | None) -> list[Bound]:
    """Return the bounds that are known."""
    return [Bound(value, sign) for value, sign in ((most, 1), (least, -1)) if value is not None]


def beyond_bound(
    display: npt.NDArray[np.int64], time: npt.NDArray[np.int64], value: npt.NDArray[np.float64], bound: Bound
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return what the display of each conversion earns in all, and which conversions take it beyond a bound.

    Both arrays have shape (n,), as the displays, times and values of the conversions have. Of a display that earns too
    much in all, the conversions marked are those from which on, in the order of their times, its sum is beyond the
    bound; at least the last one. The bound is the largest or smallest sum of a display, up to rounding.
    """
    most = bound.sign * bound.value
    most += 1e-9 * abs(most)  # shares of 1/n sum to 1 but for rounding
    if (display[1:] > display[:-1]).all():  # one each, or none
        return value, bound.sign * value > most
    total, beyond = np.zeros(len(value)), np.zeros(len(value), np.bool_)
    order = np.lexsort((time, display))
    of, paid = display[order], bound.sign * value[order]
    first = np.flatnonzero(np.append(True, of[1:] != of[:-1]))
    sums, sizes = np.add.reduceat(paid, first), np.diff(np.append(first, len(of)))
    total[order] = np.repeat(bound.sign * sums, sizes)
    for i in np.flatnonzero(sums > most):
        rows = slice(first[i], first[i] + sizes[i])
        above = np.cumsum(paid[rows]) > most
        above[-1] = True
        beyond[order[rows]] = above
    return total, beyond


class Add(Protocol):
    """Takes note of rows in breach: ``table.column``, which rows, their values, what is wrong, and the repair."""

    def __call__(
        self, where: str, bad: npt.NDArray[np.bool_], values: npt.NDArray[np.generic], problem: str, remedy: str
    ) -> None:
        """Take note of the rows that are `bad`, shape (n,), as `values`."""


def check_events(add: Add, log: LogTables) -> None:
    """Report to `add` what is wrong with the events of a log of the right structure.

    Memory: their ids, and those of one batch of displays.
    """
    of = to_numpy(log.events["display_id"])
    if not _are_sound(log, of):
        _look(add, log, log.events, _shown(log, of))


def _are_sound(log: LogTables, of: Ints) -> bool:
    """Whether nothing is wrong with events, which then are sorted: those of a batch of displays at a time."""
    if not len(of):
        return True
    if of.dtype.kind == "f" or of[0] < 0 or of[-1] >= len(log) or (of[1:] < of[:-1]).any():
        return False
    wrong = False

    def add(where: str, bad: npt.NDArray[np.bool_], values: object, problem: str, remedy: str) -> None:
        nonlocal wrong
        wrong = wrong or bool(bad.any())

    for first, batch in log.batches(["time"]):
        low, high = np.searchsorted(of, [first, first + len(batch["time"])])
        if low < high:
            _look(add, log, log.events.slice(low, high - low), batch["time"][of[low:high] - first])
            if wrong:
                return False
    return True


def _shown(log: LogTables, of: npt.NDArray[Any]) -> Ints:
    """Return the time of each event's display, shape (n,), 0 where there is no such display."""
    known = (of >= 0) & (of < len(log))
    shown = np.zeros(len(of), np.int64)
    shown[known] = to_numpy(log.take(of[known].astype(np.int64), ["time"])["time"])
    return shown


def _look(add: Add, log: LogTables, events: pa.Table, shown: Ints) -> None:
    """Check events, given the times of their displays, and the sums that a display reaches with each kind of event."""
    names, code = kinds_of(events) or ([CONVERSION], np.zeros(events.num_rows, np.int8))
    kinds = [kind for kind in (log.meta.conversions, *log.meta.outcomes) if kind.name in names]
    rows = {kind: np.asarray(code == names.index(kind.name)) for kind in kinds}
    named = np.array([name in {kind.name for kind in kinds} for name in names] + [False])[code]
    if not named.all():
        add("events.kind", ~named, np.array([*names, None], object)[code], "none of the kinds that the metadata name",
            "name it there (LogMeta.outcomes), or drop the rows")  # fmt: skip
    of, when, value = (to_numpy(events[c]) for c in EVENTS)
    known = (of >= 0) & (of < len(log))
    add("events.display_id", ~known, of, "no display has this id", "drop it or check the join key")
    add("events.time", np.isnan(when), when, "missing", "fill or drop the rows")
    early = known & (when < shown)
    add("events.time", early, when, "earlier than its display", "check the time columns and their units")
    finite, seconds = np.isfinite(value), log.meta.tick_seconds
    # A log that stopped looking when it says cannot hold later events.
    for kind, mine in rows.items():
        sound, until, longest = mine & known & ~early, kind.observed_until, kind.attribution_window
        whose, event = (f" of {kind.name}", "event") if kind.name else ("", "conversion")
        if until is not None:
            add("events.time", sound & (when > until), when,
                f"later than observed_until = {with_date(until, seconds)}{whose}",
                f"raise observed_until, or drop the {event}")  # fmt: skip
        if longest is not None:
            add("events.time", sound & (when - shown > longest), when,
                f"later than attribution_window = {ticks_words(longest, seconds)}{whose}",
                f"raise attribution_window, or drop the {event}")  # fmt: skip
    add("events.value", ~finite, value, "not finite", "fill or drop the rows")
    add("events.value", finite & (np.abs(value) > MOST_VALUE), value, f"beyond {MOST_VALUE:g}",
        "repair the value, or count in a larger unit")  # fmt: skip
    for kind, mine in rows.items():
        at = np.flatnonzero(mine)
        for bound in bounds_of(kind.value_min, kind.value_max) if finite.all() and known.all() else ():
            total, beyond = np.zeros(len(of)), np.zeros(len(of), np.bool_)
            total[at], beyond[at] = beyond_bound(of[at], when[at], value[at], bound)
            add("events.value", beyond, total, *bound.words(kind))
        if not kind.reward:
            add("events.value", mine & (value < 0), value, "below 0",
                "count what takes events back as an outcome of its own, with values above 0")  # fmt: skip
    same = np.diff(of, prepend=of[:1])
    add("events.display_id", same < 0, of, "not sorted by display", "sort by display_id, time")
    back = (same == 0) & (np.diff(when, prepend=when[:1]) < 0)
    add("events.time", back, when, "earlier than the display's event before it", "sort by display_id, time")


class WrongForm(NamedTuple):
    """Rows whose sets cannot be read, with their first values, the problem and the repair."""

    rows: npt.NDArray[np.int64]
    values: tuple[object, ...]
    problem: str
    remedy: str


class WrongSets(NamedTuple):
    """Column, which displays of a batch are wrong, shape (n,), their values, what is wrong and the repair."""

    column: str
    wrong: npt.NDArray[np.bool_]
    values: npt.NDArray[Any]
    problem: str
    remedy: str


def missing_sets(sets: pa.ChunkedArray) -> WrongForm:
    """Return the displays without a set."""
    rows = np.flatnonzero(sets.is_null().to_numpy())
    return WrongForm(rows, (None,) * len(rows), "missing", "give every display its set, or drop the rows")


def uneven_sets(sets: pa.ChunkedArray, size: int) -> WrongForm:
    """Return the displays whose set has not `size` bytes; none is missing."""
    held = np.concatenate([*(set_bytes(chunk) for chunk in sets.chunks if len(chunk)), np.zeros(0, np.int32)])
    rows = np.flatnonzero(held != size)
    values = tuple(f"{count} bytes" for count in held[rows[:3]].tolist())
    problem = f"not the {size} bytes of the log's actions"
    return WrongForm(rows, values, problem, "give a bit an action (evaluator.log.eligible.pack)")


def set_breaches(batch: Columns, n_actions: int, *, uniform: bool) -> Iterator[WrongSets]:
    """Yield what is wrong with the sets of displays, whose columns are ``eligible``, ``action`` and any ``propensity``.

    Where propensities are `uniform` by design, each must be one over the size of its display's set.
    """
    bits, action = batch[ELIGIBLE], np.nan_to_num(batch["action"], nan=-1).astype(np.int64)
    extra, size = beyond(bits, n_actions), sizes(bits)
    yield WrongSets(
        ELIGIBLE, extra >= 0, extra, f"a bit that is no action below {n_actions}", "leave the bits beyond K unset"
    )
    yield WrongSets(
        ELIGIBLE, size == 0, size, "no action is eligible", "give the actions that could have been shown, or drop rows"
    )
    known = (extra < 0) & (size > 0) & (action >= 0) & (action < n_actions)
    yield WrongSets(
        ELIGIBLE, known & ~holds(bits, action), action, "the action that was shown is not eligible",
        "add it to the set, or drop the rows",
    )  # fmt: skip
    if uniform:
        p = batch["propensity"].astype(np.float64)
        off = known & (p > 0) & (np.abs(p * size - 1.0) > _ROUNDING)
        yield WrongSets(
            "propensity", off, p, "not one over the number of eligible actions, uniform as it is",
            "give 1 / |E| of the display's own set E",
        )  # fmt: skip


def wrong_lists(log: LogTables) -> WrongForm | None:
    """Return the displays in memory that have not as many vectors as eligible actions; None where all have."""
    lists = log.displays[ACTION_SET]
    if lists.null_count:
        rows = np.flatnonzero(lists.is_null().to_numpy())
        return WrongForm(rows, (None,) * len(rows), "missing", "fill or drop the rows")
    if not pa.types.is_fixed_size_list(lists.type.value_type):
        nothing = np.zeros(0, np.int64)
        return WrongForm(nothing, (), f"column {ACTION_SET!r} is {lists.type}", "make it lists of fixed-size lists")
    if log.displays[ELIGIBLE].type != SETS:
        return None
    held = np.diff(first_vectors(lists))
    of_set = [sizes(batch[ELIGIBLE]) for _, batch in log.batches([ELIGIBLE])]
    rows = np.flatnonzero(held != np.concatenate([*of_set, np.zeros(0, np.int64)]))
    if len(rows) == 0:
        return None
    values = tuple(f"{count} vectors" for count in held[rows[:3]].tolist())
    return WrongForm(rows, values, "not a vector for each eligible action", "give one, in the order of the actions")


def worst_of_lists(vectors: npt.NDArray[Any], bits: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """Return a number of each display's vectors, shape (n,): one that is not finite if there is any.

    The vectors are those of the eligible actions, one display after the other, shape (m, d); `bits` has shape (n,
    width).
    """
    worst = np.where(np.isfinite(vectors).all(axis=1), 0.0, vectors.sum(axis=1)) if len(vectors) else np.zeros(0)
    display = np.repeat(np.arange(len(bits)), sizes(bits))[: len(worst)]
    found = np.zeros(len(bits))
    bad = np.flatnonzero(~np.isfinite(worst[: len(display)]))
    found[display[bad]] = worst[bad]
    return found
