"""The tables of a log, how they are read, and what the log says about itself; `contract` says what they hold.

Events are one table: display, time, kind and value, by display and time. The column of kinds is a dictionary, a byte a
row; a log whose only events are its conversions has no such column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.encoder import ContextEncoder
from evaluator.log.schema import BATCH, EVENTS, KIND, KINDS, Columns, is_sets, is_uneven, read, take_rows, to_numpy
from evaluator.units import ROUND, SECONDS, Tick

Objective = Literal["profit", "revenue"]
PropensityKind = Literal["logged", "uniform", "estimated", "absent"]
# Kinds of conversions, told apart by their sign.
SALES, REFUNDS = "sales", "refunds"
# What reports and guardrails call all that is reward but for costs; and names that no outcome may have.
REVENUE = "revenue"
NO_OUTCOMES = (SALES, REFUNDS, REVENUE, "cost")
# Fields that bound what a display may earn.
BOUNDS = ("reward_min", "reward_max")
# In the note on rows that a quarantine left out.
LEFT_OUT = "broke a rule and were left out"
Mask = npt.NDArray[np.bool_]
# Names of two kinds that no outcome has: conversions, and what displays cost, which a replay may count as events.
CONVERSION, COSTS = "", "(cost)"
# Column of the kinds in tables of events that are no conversions, and in earlier versions of converted logs.
OUTCOME = "outcome"


@dataclass(frozen=True, kw_only=True)
class EventKind:
    """What a log says of a kind of events: sales, refunds, clicks, complaints, goods that came back damaged.

    Parameters
    ----------
    name
        Name of the kind; empty for the conversions, sales and refunds together.
    attribution_window
        Longest delay (ticks) after its display with which the log records such an event; None where there is no
        cut-off.
    observed_until
        Time (ticks) up to which such events were followed; None where every display was followed to its end.
    value_max, value_min
        Largest possible value of one display, all such events of it together; None where unknown (the largest seen is
        used, and said). And the smallest, 0 or less; None where unknown.
    reward
        Whether the events count into a display's reward. Only then may values be negative.
    told
        Whether policies are told of the events as they come; only of those that are rewards.
    """

    name: str
    attribution_window: int | None = None
    observed_until: int | None = None
    value_max: float | None = None
    reward: bool = False
    told: bool = False
    value_min: float | None = None

    @property
    def bound_keys(self) -> tuple[str, str]:
        """Names of the smallest and the largest value of one display, in specs, options and messages."""
        return ("value_min", "value_max") if self.name else ("reward_min", "reward_max")

    @property
    def of_conversions(self) -> bool:
        """Whether the events are conversions, or those of them that are sales or refunds."""
        return self.name in ("", SALES, REFUNDS)


@dataclass(frozen=True, kw_only=True)
class LogMeta:
    """What a log says about itself.

    Parameters
    ----------
    name
        Name of the dataset.
    tick
        Unit of every time in the log: one of ns, us, ms, s, min, h, d, or ``"round"``.
    observed_until, attribution_window
        Time (ticks) up to which conversions were followed, None where every display was followed to its end; longest
        delay (ticks) the log records, None where there is no cut-off.
    propensity
        Kind of the propensities: logged, uniform (by design), estimated, or absent.
    reward_max, reward_min
        Largest possible reward of one display, None where unknown (the largest seen is used, and said). And the
        smallest: below 0 where a refund may be more than the sale; None where unknown (0 where no value is negative,
        else the smallest seen, and that is said).
    objective
        What replays of the log value unless they are told: profit, or revenue where costs are in another unit than the
        values; None for profit where the log has costs.
    sampling_rate
        Share of the traffic's displays that the log holds, taken evenly; what ``position`` and ``weight`` say comes on
        top.
    kept_share
        Share of the displays that were kept when actions were chosen and propensities, which depend on the context,
        stayed those of the full set; 1 where propensities are of the log's own actions.
    fingerprint
        Hash of what the log held when it was read, made or converted: rows, and all that is said here, whatever files
        hold it. Logs that earlier releases converted have the hash of their source; empty where nobody looked.
    counts
        Numbers of what the adapter did: rows read, dropped, de-duplicated... Printed with the result.
    notes
        Sentences that the reader of a result must know (unmeasured confounding, estimated propensities...).
    encoder
        Encoder that says how columns of the source became the contexts; None without, and where nobody noted it.
    outcomes
        Kinds of the events that the log holds beside its conversions.
    timezone
        Zone in which times of day are meant, such as Europe/Berlin; None for UTC.
    deployment
        How policies are deployed on this traffic, by the names of a replay's options: ``learn_every``, ``learn_lag``,
        ``explore_first``, ``keep_for``, ``learn_from``. Replays do so unless they are told otherwise.
    """

    name: str
    tick: Tick
    observed_until: int | None = None
    attribution_window: int | None = None
    propensity: PropensityKind = "absent"
    reward_max: float | None = None
    reward_min: float | None = None
    objective: Objective | None = None
    sampling_rate: float = 1.0
    kept_share: float = 1.0
    fingerprint: str = ""
    counts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    encoder: ContextEncoder | None = None
    outcomes: tuple[EventKind, ...] = ()
    timezone: str | None = None
    deployment: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return what the log says of itself, by name; of outcomes that are no rewards, nothing of rewards."""
        about = asdict(self)
        for name in ("timezone", "deployment"):
            if not about[name]:
                del about[name]  # as in logs of earlier releases, which keep their hash
        for one in about["outcomes"]:
            if not one["reward"]:
                del one["reward"], one["told"], one["value_min"]
        return about

    @property
    def conversions(self) -> EventKind:
        """Kind of the conversions."""
        return EventKind(
            name="", attribution_window=self.attribution_window, observed_until=self.observed_until,
            value_max=self.reward_max, reward=True, told=True, value_min=self.reward_min,
        )  # fmt: skip

    @property
    def left_out(self) -> str:
        """Sentence on the rows that a quarantine left out: how many, why, and whether that depends on their outcome."""
        return next((note for note in self.notes if LEFT_OUT in note), "")

    @property
    def tick_seconds(self) -> float | None:
        """Seconds in a tick; None where the log counts rounds."""
        return None if self.tick == ROUND else SECONDS[self.tick]


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
        found = outcomes_of(self.events)
        return found.set_column(0, OUTCOME, found[OUTCOME].cast(pa.string()))

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


def kinds_of(events: pa.Table) -> tuple[list[str], npt.NDArray[np.int8]] | None:
    """Return the names of kinds, and the number of each event's, shape (n,); None where all are conversions."""
    if KIND not in events.column_names:
        return None
    found = events[KIND].combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], KINDS)
    code = found.indices.fill_null(-1) if found.null_count else found.indices
    return found.dictionary.to_pylist(), code.to_numpy()


def mark_kind(events: pa.Table, name: str) -> Mask:
    """Return which events are of a kind, shape (n,)."""
    found = kinds_of(events)
    if found is None:
        return np.full(events.num_rows, name == CONVERSION)
    return np.asarray(found[1] == found[0].index(name)) if name in found[0] else np.zeros(events.num_rows, np.bool_)


def with_kind(events: pa.Table, name: str) -> pa.Table:
    """Return events that are all of one kind, with the column that says so."""
    kind = pa.DictionaryArray.from_arrays(pa.array(np.zeros(events.num_rows, np.int8)), pa.array([name], pa.string()))
    return events.select(list(EVENTS)).append_column(KIND, kind)


def merge_events(*parts: pa.Table) -> pa.Table:
    """Return the events of several tables as one; those of one display and time in the order of the tables.

    Memory: 25 bytes an event and, meanwhile, 24 more.
    """
    found = [kinds_of(part) or ([CONVERSION], np.zeros(part.num_rows, np.int8)) for part in parts]
    names = list(dict.fromkeys(name for own, _ in found for name in own))

    def whole(name: str) -> npt.NDArray[Any]:
        return np.concatenate([to_numpy(part[name]) for part in parts])

    order = np.lexsort([whole("time"), whole("display_id")])
    table = pa.table({name: pa.array(whole(name)[order], kind) for name, kind in EVENTS.items()})
    if names == [CONVERSION]:
        return table
    code = np.concatenate([np.array([names.index(name) for name in own], np.int8)[codes] for own, codes in found])
    return table.append_column(
        KIND, pa.DictionaryArray.from_arrays(pa.array(code[order]), pa.array(names, pa.string()))
    )


def choose_kinds(events: pa.Table, names: Collection[str]) -> pa.Table:
    """Return the events of some kinds: without their kinds if it is one, without a copy where it is all of them."""
    found = kinds_of(events)
    if found is None:
        return events if CONVERSION in names else events.slice(0, 0)
    chosen = np.array([name in names for name in found[0]], np.bool_)
    rest = events.drop_columns([KIND]) if len(names) == 1 else events
    return rest if chosen.all() else rest.filter(pa.array(chosen[found[1]]))


def outcomes_of(events: pa.Table) -> pa.Table:
    """Return the events that are neither conversions nor costs, ``outcome`` (coded) before their other columns."""
    names, code = kinds_of(events) or ([CONVERSION], np.zeros(events.num_rows, np.int8))
    chosen = np.array([name not in (CONVERSION, COSTS) for name in names], np.bool_)[code]
    named = pa.DictionaryArray.from_arrays(pa.array(code[chosen]), pa.array(names, pa.string()))
    return events.filter(pa.array(chosen)).select(list(EVENTS)).add_column(0, OUTCOME, named)


def code_kinds(events: pa.Table, column: str = KIND) -> pa.Table:
    """Return events whose column of kinds, text or any dictionary, becomes the dictionary that logs have."""
    found = events[column]
    found = found if pa.types.is_dictionary(found.type) else found.dictionary_encode()
    found = pa.concat_arrays([*found.unify_dictionaries().chunks, pa.array([], found.type)])
    kinds = pa.DictionaryArray.from_arrays(found.indices.cast(pa.int8()), found.dictionary.cast(pa.string()))
    return events.select(list(EVENTS)).append_column(KIND, kinds)


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


def bounds_of(kind: EventKind) -> list[Bound]:
    """Return the bounds of a display's events of a kind that are known."""
    return [Bound(value, sign) for value, sign in ((kind.value_max, 1), (kind.value_min, -1)) if value is not None]


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


class GatheredEvents:
    """Events gathered some at a time into one table of one chunk, whose kinds are one dictionary.

    Memory: 25 bytes for each that was added, however many there may be at the `most`.
    """

    def __init__(self, schema: pa.Schema, most: int) -> None:
        self._columns = {of.name: np.empty(most, of.type.to_pandas_dtype()) for of in schema if of.name != KIND}
        self._code = np.empty(most, np.int8) if KIND in schema.names else None
        self._kinds: list[str] = []
        self._rows = 0

    def add(
        self,
        events: pa.Table,
        rows: npt.NDArray[np.int64] | slice = slice(None),
        display: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Take in these rows of some events without missing cells, and number their displays anew if that is asked."""
        own = {name: to_numpy(events[name])[rows] for name in self._columns}
        if display is not None:
            own["display_id"] = display
        here = slice(self._rows, self._rows + len(own["display_id"]))
        for name, column in own.items():
            self._columns[name][here] = column
        found = kinds_of(events)
        if found is not None and self._code is not None:
            self._kinds += [name for name in found[0] if name not in self._kinds]
            self._code[here] = np.array([self._kinds.index(name) for name in found[0]], np.int8)[found[1][rows]]
        self._rows = here.stop

    def table(self) -> pa.Table:
        """Return all that was added."""
        table = pa.table({name: pa.array(column[: self._rows]) for name, column in self._columns.items()})
        if self._code is None:
            return table
        kinds = pa.array(self._kinds, pa.string())
        return table.append_column(KIND, pa.DictionaryArray.from_arrays(pa.array(self._code[: self._rows]), kinds))
