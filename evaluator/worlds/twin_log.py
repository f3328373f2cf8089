"""The log of a twin: its displays are made a batch at a time, of the few numbers a display that were drawn of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import ParameterError
from evaluator.log import Log, LogMeta
from evaluator.log.eligible import members
from evaluator.log.log_tables import CONVERSION, merge_events, with_kind
from evaluator.log.schema import COST, ELIGIBLE, fixed_size_lists, uneven_lists
from evaluator.log.stored import BatchedLog
from evaluator.streams import Stream, child_streams, seed_sequence
from evaluator.units import is_whole
from evaluator.worlds.arrivals import DisplayTimes
from evaluator.worlds.disk_column import DisplayColumn, spans
from evaluator.worlds.event_laws import DrawnEvents, EventLaw, LogCosts
from evaluator.worlds.logger import TwinSets
from evaluator.worlds.scenarios.problem import event_table
from evaluator.worlds.truth import LogTruth

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class TwinCosts:
    """What the displays of a twin cost, drawn once it is asked: replays of revenue never do."""

    def __init__(self, log: LogCosts, luck: np.random.Generator) -> None:
        self._log, self._luck = log, luck
        self._drawn: DisplayColumn | None = None
        self._drawing = Lock()

    def of(self, action: DisplayColumn) -> DisplayColumn:
        """Return the cost of each display, whose actions these are."""
        with self._drawing:
            if self._drawn is None:
                drawn = DisplayColumn(len(action), np.float64)
                for _, part in action.blocks():
                    drawn.append(self._log.pools.drawn(part, self._luck.random(len(part))))
                self._drawn = drawn
            return self._drawn


@dataclass(frozen=True, eq=False)
class TwinDisplays:
    """What was drawn of each display of a twin, and what the rest follows from."""

    n: int
    traffic: DisplayTimes | None  # None where twins count rounds
    first: int  # which of the arrival times is that of the first display
    entry: DisplayColumn | None  # entry of the truth's pool of each display; None where there is one only
    action: DisplayColumn
    logger: Floats | None  # (P, K) or (1, K) chances of the actions by entry; None where the log has no propensities
    sets: TwinSets | None
    vectors: str | None  # name of the column of vectors, and those of each entry, (P, K, d) or (P, d)
    pool: npt.NDArray[np.floating] | None
    costs: TwinCosts | None
    targets: Mapping[str, pa.Array] = field(default_factory=dict)  # columns of policies at each entry, by name

    @property
    def names(self) -> list[str]:
        """Names of the columns, in their order."""
        own = ["display_id", "time", "action", "propensity", *([] if self.costs is None else [COST])]
        own += [ELIGIBLE] * (self.sets is not None) + ([] if self.vectors is None else [self.vectors])
        return [*own, *self.targets]

    def times(self, first: int, end: int) -> Ints:
        """Return the arrival times of some displays that follow one another."""
        if self.traffic is None:
            return np.arange(first, end)
        return self.traffic.times.read(self.first + first, self.first + end)

    def times_of(self, displays: Ints) -> Ints:
        """Return the arrival times of some displays, in one pass over all."""
        return displays if self.traffic is None else self.traffic.times.take(self.first + displays)

    def entries(self, first: int, end: int) -> Ints:
        """Return the entries of some displays that follow one another."""
        return np.zeros(end - first, np.int64) if self.entry is None else self.entry.read(first, end)

    def entries_of(self, displays: Ints) -> Ints:
        """Return the entries of some displays, in one pass over all."""
        return np.zeros(len(displays), np.int64) if self.entry is None else self.entry.take(displays)

    def column(self, name: str, first: int, end: int) -> pa.Array:
        """Return a column of some displays that follow one another, as the log holds it."""
        if name == "display_id":
            return pa.array(np.arange(first, end))
        if name == "time":
            return pa.array(self.times(first, end))
        if name == "action":
            return pa.array(self.action.read(first, end))
        if name == COST and self.costs is not None:
            return pa.array(self.costs.of(self.action).read(first, end))
        entry = self.entries(first, end)
        if name == "propensity":
            if self.logger is None:
                return pa.nulls(end - first, pa.float64())
            at = entry if len(self.logger) > 1 else 0
            return pa.array(self.logger[at, self.action.read(first, end)])
        if name == ELIGIBLE and self.sets is not None:
            return self.sets.of_displays(entry)
        if name == self.vectors and self.pool is not None:
            return self._vectors_of(self.pool, entry)
        if name in self.targets:
            return self.targets[name].take(pa.array(entry))
        raise KeyError(name)

    def kind(self, name: str) -> pa.DataType:
        """Return the type of a column."""
        return pa.float64() if name == COST else self.column(name, 0, 0).type

    def _vectors_of(self, pool: npt.NDArray[np.floating], entry: Ints) -> pa.Array:
        """Return the vectors of displays with these entries as a column; of actions, of the eligible alone."""
        if self.sets is None or pool.ndim == 2:
            return fixed_size_lists(np.take(pool, entry, axis=0))
        first, flat = self._eligible_vectors
        own = np.diff(first)[entry]
        at = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own - first[entry], own)
        return uneven_lists(flat[at], own)

    @cached_property
    def _eligible_vectors(self) -> tuple[Ints, npt.NDArray[np.floating]]:
        """Vectors of the eligible actions, one entry after the other, and the place of each entry's first."""
        assert self.sets is not None
        assert self.pool is not None
        first, action = members(self.sets.bits)
        return first, self.pool[np.repeat(np.arange(len(self.pool)), np.diff(first)), action]


class TwinLog(BatchedLog):
    """The log of a twin, whose displays are made of what was `drawn`; batches of a longer one take no more memory.

    `passed` of the drawn displays come before the log's first one, and `kept` belong to it. Tables of events and
    actions, and metadata, are those of a `Log`, in memory.
    """

    drawn: TwinDisplays
    passed: int
    kept: int

    def __init__(
        self,
        drawn: TwinDisplays,
        *,
        events: pa.Table,
        actions: pa.Table,
        meta: LogMeta,
        counted: tuple[str, ...] = (CONVERSION,),
        passed: int = 0,
        kept: int | None = None,
    ) -> None:
        parts = {"drawn": drawn, "events": events, "actions": actions, "meta": meta, "passed": passed}
        parts |= {"counted": counted}
        for name, value in (*parts.items(), ("kept", drawn.n - passed if kept is None else kept)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self.kept

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of `displays`."""
        return pa.schema([(name, self.drawn.kind(name)) for name in self.drawn.names])

    def _selected(self, columns: Sequence[str], size: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        for first in range(0, self.kept, size):
            end = min(first + size, self.kept)
            yield first, pa.record_batch([self._column(name, first, end) for name in columns], list(columns))

    def _column(self, name: str, first: int, end: int) -> pa.Array:
        """Return a column of some displays, of which the log's first one has number 0."""
        if name == "display_id":
            return pa.array(np.arange(first, end))
        return self.drawn.column(name, self.passed + first, self.passed + end)

    def after(self, first: int) -> Log:
        """Return the log without its first displays and their conversions, the others numbered anew from 0."""
        rest = {"passed": self.passed + first, "kept": max(self.kept - first, 0)}
        return self.changed(**rest, events=self._events_after(first)).as_sound_as(self)

    def _first(self, displays: int) -> Log:
        return self.changed(kept=displays)

    def changed(self, **parts: object) -> TwinLog:
        """Return a copy with other displays of the drawn ones, tables in memory or metadata, by name, not validated."""
        names = ("drawn", "events", "actions", "meta", "counted", "passed", "kept")
        return TwinLog(**{**{name: getattr(self, name) for name in names}, **parts})


# Displays are drawn some at a time, from streams that give the same numbers however many are taken at once; what is
# kept of each is its action and its entry of the truth's pool.


def replay_seed(seed: int, twin: int) -> int:
    """Return the seed of the replays of a twin: others for each, the same for every policy."""
    words = seed_sequence(Stream.AUDIT_SEED, seed, twin).generate_state(2, np.uint32)
    return int(words[0]) << 32 | int(words[1])


class _Streams(NamedTuple):
    """What displays of a twin are drawn from: its streams, a child each, and those of its refunds."""

    contexts: np.random.Generator
    logger: np.random.Generator
    rewards: np.random.Generator
    waits: np.random.Generator
    worths: np.random.Generator
    refunds: tuple[np.random.Generator, ...]


def draw_first_twin(truth: LogTruth, *, displays: int | None, seed: int | None) -> TwinLog:
    """Return the first twin that an audit with this seed draws; None takes as many displays as there are, and 0."""
    n, seed = truth.displays if displays is None else displays, 0 if seed is None else seed
    if not is_whole(n, 1) or n > truth.displays or not is_whole(seed, 0):
        remedy = f"displays is 1 to {truth.displays:,}, or fit the world for more (`displays`); seed is 0 or more."
        raise ParameterError(f"displays={n}, seed={seed}.", remedy=remedy)
    return draw_twin(replace(truth, displays=n), seed=seed, twin=0)


def draw_twin(truth: LogTruth, *, seed: int, twin: int, vectors: bool = True) -> TwinLog:
    """Return a twin, whose streams are fixed by the seed of the audit and its number.

    It holds contexts or action sets if `vectors`; it is the same otherwise.
    """
    outcomes = () if truth.money is None else truth.money.outcomes
    refunds, comes_back, costs, *of_outcomes = child_streams(3 + 3 * len(outcomes), Stream.AUDIT_TWIN_MONEY, seed, twin)
    contexts, logger, rewards, waits, worths, arrivals = child_streams(6, Stream.AUDIT_TWIN, seed, twin)
    streams = _Streams(contexts, logger, rewards, waits, worths, (refunds, comes_back))
    n, traffic, money = truth.displays, truth.traffic, truth.money
    held = vectors and truth.pool is not None
    drawn = TwinDisplays(
        n=n,
        traffic=traffic,
        first=0 if traffic is None else traffic.stretch(n, arrivals),
        entry=DisplayColumn(n, np.int32) if truth.entries > 1 else None,
        action=DisplayColumn(n, np.int32),
        logger=None if truth.meta.propensity == "absent" else truth.logger,
        sets=truth.sets,
        vectors=truth.vectors if held else None,
        pool=truth.pool if held else None,
        costs=None if money is None or money.costing is None else TwinCosts(money.costing, costs),
        targets=truth.targets,
    )
    until = None if truth.beyond is None else int(drawn.times(n - 1, n)[0]) + truth.beyond
    edges = _edges(truth.logger)
    parts = [_draw_part(truth, drawn, streams, edges, first, end) for first, end in spans(0, n)]
    conversions = _known(parts, until)
    events, kinds = [conversions], []
    for number, one in enumerate(outcomes):
        own = None if one.beyond is None else int(drawn.times(n - 1, n)[0]) + one.beyond
        events.append(_outcome_events(one, drawn, of_outcomes[3 * number : 3 * number + 3], own))
        kinds.append(replace(one.kind, observed_until=own))
    meta = replace(truth.meta, observed_until=until, attribution_window=truth.longest, outcomes=tuple(kinds))
    table = merge_events(*events) if kinds else conversions
    return TwinLog(drawn, events=table, actions=truth.actions, meta=meta)


def _outcome_events(
    one: EventLaw, drawn: TwinDisplays, luck: Sequence[np.random.Generator], until: int | None
) -> pa.Table:
    """Draw the events of an outcome of all displays, of which those until a time are known."""
    parts = []
    for first, end in spans(0, drawn.n):
        comes, late, worth = (stream.random(end - first) for stream in luck)
        action = drawn.action.read(first, end).astype(np.int64)
        found = one.drawn(np.arange(end - first), action, (comes, late, worth))
        parts.append(found.of_displays(first, drawn.times(first, end)))
    return with_kind(_known(parts, until), one.kind.name)


def _known(parts: Sequence[tuple[Ints, Ints, Floats]], until: int | None) -> pa.Table:
    """Return the table of events that were drawn in parts, those until a time."""
    display, when, value = (np.concatenate(of) for of in zip(*parts, strict=True))
    seen = slice(None) if until is None else when <= until
    return event_table(display[seen], when[seen], value[seen])


def _draw_part(
    truth: LogTruth, drawn: TwinDisplays, streams: _Streams, edges: Floats, first: int, end: int
) -> tuple[Ints, Ints, Floats]:
    """Draw some displays that follow those drawn before, and return their conversions: display, time, value."""
    n, m = truth.displays, end - first
    time = drawn.times(first, end)
    if truth.sets is not None:
        entry = truth.sets.entries(np.arange(first, end) / n, streams.contexts.random(m))
    else:
        entry = streams.contexts.integers(truth.entries, size=m) if truth.entries > 1 else np.zeros(m, np.int64)
    action = _logged(edges, entry, streams.logger.random(m))
    drawn.action.append(action)
    if drawn.entry is not None:
        drawn.entry.append(entry)
    converts = np.flatnonzero(streams.rewards.random(m) < truth.rates[entry, action] * truth.hours.factor(time))
    wait = truth.laws.drawn(action[converts], streams.waits.random(m)[converts])
    worth = streams.worths.random(m)
    if truth.money is None:
        value = truth.values[(worth[converts] * truth.values.size).astype(np.int64)]
        return DrawnEvents(converts, wait, value).of_displays(first, time)
    luck = (of[converts] for of in (worth, *(stream.random(m) for stream in streams.refunds)))
    return truth.money.drawn_sales(converts, action[converts], wait, *luck).of_displays(first, time)


def _edges(logger: Floats) -> Floats:
    """Return the sums of the probabilities of the actions up to each, by entry."""
    edges = np.cumsum(logger, axis=1)
    # Rounding must never reach an action of probability 0 at the end.
    edges /= edges[:, -1:]
    return edges


def _logged(edges: Floats, entry: Ints, uniform: Floats) -> Ints:
    """Return an action of each display by inversion."""
    if len(edges) == 1:
        return np.searchsorted(edges[0], uniform, side="right")
    found: Ints = (uniform[:, None] >= edges[entry]).sum(axis=1)
    return found
