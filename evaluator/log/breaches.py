"""Every way a log can break its contract, with rows, values and the repair."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.eligible import SETS, beyond, holds, set_bytes, sizes, width
from evaluator.log.log_tables import CONVERSION, LogTables, beyond_bound, bounds_of, kinds_of
from evaluator.log.schema import (
    ACTION_SET,
    ACTIONS,
    COST,
    DISPLAYS,
    ELIGIBLE,
    EVENTS,
    KIND,
    KINDS,
    NAMED_TARGET,
    POSITION,
    VECTORS,
    WEIGHT,
    Columns,
    first_vectors,
    is_target,
    is_uneven,
    per_action,
    to_numpy,
)
from evaluator.log.times import with_date
from evaluator.units import LEAST_SAMPLE, MOST_VALUE, ticks_words

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SHOWN = 3
# What is validated by itself: the rows of the displays, and of the events against them and the metadata.
PARTS = ("displays", "events")
TARGET_REPAIR = (
    "give the policy's probabilities of the log's own actions: it may show no action that the log never shows or that "
    "`actions` leaves out"
)
WEIGHT_REPAIR = "give one over the probability with which the display got into the log"
NO_COST = f"no cost from 0 to {MOST_VALUE:g}"
COST_REPAIR = "give what showing the display cost, 0 or more, in the unit of the values"
# How far a propensity that is uniform by design may be from one over the size of its set; and how far from 1 the
# probabilities of a row may sum.
_ROUNDING = 1e-6
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Breach:
    """One kind of breach, in a table and a column of it.

    All rows in breach are numbered from 0, shape (r,), and messages quote `values` of the first of them. `problem` and
    `remedy` are clauses that say what is wrong, and how to repair it.
    """

    table: str
    column: str
    rows: npt.NDArray[np.int64]
    values: tuple[object, ...]
    problem: str
    remedy: str

    @property
    def what(self) -> str:
        """What is wrong and where, without the repair."""
        if len(self.rows) == 0:
            return f"{self.table}: {self.problem}."
        shown = ", ".join(f"row {r}: {v}" for r, v in zip(self.rows[:SHOWN].tolist(), self.values, strict=False))
        more = f" and {len(self.rows) - SHOWN} more" if len(self.rows) > SHOWN else ""
        return f"{self.table}.{self.column}: {self.problem} ({shown}{more})."


class Wrong(NamedTuple):
    """Rows of a batch that are `bad`, shape (n,), in a column with these `values`, shape (n,), and what is wrong."""

    column: str
    bad: Mask
    values: npt.NDArray[Any]
    problem: str
    remedy: str


def find_breaches(log: LogTables, *, vectors: bool = True, parts: Collection[str] = PARTS) -> list[Breach]:
    """Return the breaches of the contract, empty for a sound log. Cost: one pass, batch by batch.

    `vectors` says whether to read contexts, action sets and eligible actions too, most of a log's bytes; `parts` are
    tables to look at, of `PARTS`.
    """
    if structure := list(_structure(log)):
        return structure
    found: dict[tuple[str, str, str, str], tuple[list[Ints], list[object]]] = {}
    displays = _displays(log, vectors=vectors) if "displays" in parts else ()
    events = _events(log) if "events" in parts else ()
    for table, batches in (("displays", displays), ("events", events)):
        for first, (column, bad, array, problem, remedy) in batches:
            at = np.flatnonzero(bad)
            if len(at):
                rows, values = found.setdefault((table, column, problem, remedy), ([], []))
                rows.append(at + first)
                values.extend(array[at[:SHOWN]].tolist())
    return [
        Breach(table, column, np.concatenate(rows), tuple(values[:SHOWN]), problem, remedy)
        for (table, column, problem, remedy), (rows, values) in found.items()
    ]


def _breach(table: str, column: str, problem: str, remedy: str, rows: Ints | None = None, *values: object) -> Breach:
    """Return a breach of some rows with these first values, or of the table as a whole."""
    return Breach(table, column, np.zeros(0, np.int64) if rows is None else rows, values, problem, remedy)


def _structure(log: LogTables) -> Iterator[Breach]:
    """Yield what is wrong with columns, metadata and lists, without which rows cannot be read."""
    schemas = {"displays": log.schema, "events": log.events.schema, "actions": log.actions.schema}
    own = {POSITION: pa.int64(), WEIGHT: pa.float64(), COST: pa.float64(), ELIGIBLE: SETS}
    needed = [("displays", DISPLAYS), ("events", EVENTS), ("actions", ACTIONS)]
    for name, schema in [*needed, ("displays", own), ("events", {KIND: KINDS})]:
        present = schemas[name]
        for column, kind in schema.items():
            if column not in present.names:
                if column in (*own, KIND):
                    continue
                yield _breach(name, column, f"column {column!r} is missing", f"add it as {kind}")
            elif (found := present.field(column).type) != kind:
                yield _breach(name, column, f"column {column!r} is {found}", f"cast it to {kind}")
    for name in ("sampling_rate", "kept_share"):
        share = getattr(log.meta, name)
        if not LEAST_SAMPLE <= share <= 1.0:
            yield _breach("meta", name, f"{name} = {share:g} is no share", f"give one in [{LEAST_SAMPLE:g}, 1]")
    least = log.meta.reward_min
    if least is not None and not -np.inf < least <= 0.0:
        yield _breach("meta", "reward_min", f"reward_min = {least:g} is no bound from below",
                      "a display without a conversion earns 0: give the most that refunds may take beyond its sales, "
                      "as a number of at most 0")  # fmt: skip
    names = [one.name for one in log.meta.outcomes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield _breach("meta", "outcomes", f"outcome {twice[0]!r} is there twice", "name each once")
    yield from _outcomes(log)
    yield from _lists(log)
    if {"action", "label"} <= set(log.actions.schema.names):
        index = to_numpy(log.actions["action"])
        rows = np.flatnonzero(index != np.arange(len(index)))
        if len(rows):
            yield _breach("actions", "action", "not 0..K-1 in order", "number the actions 0..K-1, a row each",
                          rows, *index[rows[:SHOWN]].tolist())  # fmt: skip
        rows = np.flatnonzero(log.actions["label"].is_null().to_numpy())
        if len(rows):
            yield _breach("actions", "label", "missing", "give every action a label", rows, *[None] * SHOWN)
    if len(log) == 0:
        yield _breach("displays", "display_id", "the log is empty", "check the filters and the source")
    elif log.actions.num_rows < 2:
        yield _breach("actions", "action", "a single action leaves nothing to choose",
                      "check the action column, or keep at least two actions")  # fmt: skip


def _outcomes(log: LogTables) -> Iterator[Breach]:
    """Yield what is wrong with what the metadata say of outcomes that count as rewards, or that policies are told."""
    own = log.meta.observed_until, log.meta.attribution_window
    for one in log.meta.outcomes:
        windows = (own, (one.observed_until, one.attribution_window))
        if one.reward and any(until is not None and window is None for until, window in windows):
            problem = f"outcome {one.name!r} is a reward, and nothing says how long after a display rewards may come"
            remedy = "name the attribution_window of the conversions, and of the outcome"
        elif one.reward and one.of_conversions:
            problem, remedy = f"outcome {one.name!r} has a name of conversions", "rename it"
        elif one.told and not one.reward:
            problem, remedy = f"outcome {one.name!r} is told to policies, and is no reward", "count it as a reward"
        else:
            continue
        yield _breach("meta", "outcomes", problem, remedy)


def _lists(log: LogTables) -> Iterator[Breach]:
    """Yield what is wrong with the displays' vectors, policies and sets; with their rows if these are in memory."""
    in_memory = vars(log).get("displays")
    for name in (*VECTORS, *filter(is_target, log.schema.names)):
        if name not in log.schema.names:
            continue
        kind = log.schema.field(name).type
        if name.startswith(NAMED_TARGET) and pa.types.is_string(kind):
            continue
        if name == ACTION_SET and ELIGIBLE in log.schema.names and is_uneven(kind):
            if in_memory is not None:
                yield from _uneven_lists(log)
        elif not pa.types.is_fixed_size_list(kind):
            yield _breach("displays", name, f"column {name!r} is {kind}",
                          "make it fixed-size lists (evaluator.log.schema.fixed_size_lists)")  # fmt: skip
        elif name != "context" and kind.list_size != log.n_actions:
            problem = f"column {name!r} has {kind.list_size} entries a display, the log {log.n_actions} actions"
            yield _breach("displays", name, problem, "give one entry for each row of actions")
        elif in_memory is not None and in_memory[name].null_count:
            rows = np.flatnonzero(in_memory[name].is_null().to_numpy())
            yield _breach("displays", name, "missing", "fill or drop the rows", rows, *[None] * SHOWN)
    if in_memory is None or ELIGIBLE not in log.schema.names or (sets := in_memory[ELIGIBLE]).type != SETS:
        return
    if sets.null_count:
        rows = np.flatnonzero(sets.is_null().to_numpy())
        yield _breach("displays", ELIGIBLE, "missing", "give every display its set, or drop the rows",
                      rows, *[None] * len(rows))  # fmt: skip
        return
    size = width(log.n_actions)
    held = np.concatenate([*(set_bytes(chunk) for chunk in sets.chunks if len(chunk)), np.zeros(0, np.int32)])
    rows = np.flatnonzero(held != size)
    if len(rows):
        yield _breach("displays", ELIGIBLE, f"not the {size} bytes of the log's actions",
                      "give a bit an action (evaluator.log.eligible.pack)",
                      rows, *(f"{count} bytes" for count in held[rows[:SHOWN]].tolist()))  # fmt: skip


def _uneven_lists(log: LogTables) -> Iterator[Breach]:
    """Yield the displays in memory that have not as many vectors as eligible actions."""
    lists = log.displays[ACTION_SET]
    if lists.null_count:
        rows = np.flatnonzero(lists.is_null().to_numpy())
        yield _breach("displays", ACTION_SET, "missing", "fill or drop the rows", rows, *[None] * len(rows))
    elif not pa.types.is_fixed_size_list(lists.type.value_type):
        yield _breach(
            "displays", ACTION_SET, f"column {ACTION_SET!r} is {lists.type}", "make it lists of fixed-size lists"
        )
    elif log.displays[ELIGIBLE].type == SETS:
        held = np.diff(first_vectors(lists))
        of_set = [sizes(batch[ELIGIBLE]) for _, batch in log.batches([ELIGIBLE])]
        rows = np.flatnonzero(held != np.concatenate([*of_set, np.zeros(0, np.int64)]))
        if len(rows):
            yield _breach("displays", ACTION_SET, "not a vector for each eligible action",
                          "give one, in the order of the actions",
                          rows, *(f"{count} vectors" for count in held[rows[:SHOWN]].tolist()))  # fmt: skip


def _displays(log: LogTables, *, vectors: bool) -> Iterator[tuple[int, Wrong]]:
    """Yield what is wrong with the rows of displays, with the number of the first row of each batch."""
    targets = [c for c in per_action(log.schema) if vectors and is_target(c)]
    present = [c for c in ("context", "action_set") if vectors and c in log.schema.names] + targets
    columns = ["display_id", "time", "action", *present, *[ELIGIBLE] * (vectors and ELIGIBLE in log.schema.names)]
    columns += [c for c in (POSITION, WEIGHT, COST) if c in log.schema.names]
    if log.meta.propensity != "absent":
        columns.append("propensity")
    uneven = ACTION_SET in present and is_uneven(log.schema.field(ACTION_SET).type)
    before: tuple[npt.NDArray[Any] | None, int] = None, -1
    for first, batch in log.batches(columns):
        for wrong in _plain_columns(log, first, batch, *before):
            yield first, wrong
        before = batch["time"][-1:], int(batch[POSITION][-1]) if POSITION in batch else -1
        if ELIGIBLE in batch:
            for wrong in _sets(batch, log.n_actions, uniform=log.meta.propensity == "uniform"):
                yield first, wrong
        for column in present:
            array = batch[column]
            if column == ACTION_SET and uneven:
                array = _worst_of_lists(array, batch[ELIGIBLE])
            array = array.reshape(len(batch["time"]), -1)
            finite = np.isfinite(array)
            bad = np.asarray(~finite.all(axis=1))
            if bad.any():
                worst = array[np.arange(len(array)), np.argmin(finite, axis=1)]
                yield first, Wrong(column, bad, worst, "not finite", "fill or drop the rows")
        for column in targets:
            for bad, values, problem in target_breaches(batch[column]):
                yield first, Wrong(column, bad, values, problem, TARGET_REPAIR)


def _plain_columns(
    log: LogTables, first: int, batch: Columns, before: npt.NDArray[Any] | None, passed: int
) -> Iterator[Wrong]:
    """Yield what is wrong with numbers, times, actions and propensities; the rows before ended at a time and place."""
    ids, time, action = batch["display_id"], batch["time"], batch["action"]
    for column, array in (("display_id", ids), ("time", time), ("action", action)):
        if array.dtype.kind == "f":  # only where a cell is null
            yield Wrong(column, np.isnan(array), array, "missing", "fill or drop the rows")
    elsewhere = (ids != np.arange(first, first + len(ids))) & ~np.isnan(ids)
    yield Wrong("display_id", elsewhere, ids, "not dense", "number the displays 0..n-1 in their order")
    step = np.diff(time, prepend=time[:1] if before is None else before)
    yield Wrong("time", np.atleast_1d(step < 0), time, "earlier than the row before", "sort by time")
    if POSITION in batch:
        position = batch[POSITION]
        yield Wrong(POSITION, np.atleast_1d(np.diff(position, prepend=passed) < 0), position,
                    "below 0 or the row before", "number the displays of the traffic in its order")  # fmt: skip
    if WEIGHT in batch:
        weight = batch[WEIGHT].astype(np.float64)
        yield Wrong(WEIGHT, ~(np.isfinite(weight) & (weight > 0)), weight, "no weight above 0", WEIGHT_REPAIR)
    if COST in batch:
        cost = batch[COST].astype(np.float64)
        yield Wrong(COST, ~((cost >= 0.0) & (cost <= MOST_VALUE)), cost, NO_COST, COST_REPAIR)
    yield Wrong("action", (action < 0) | (action >= log.n_actions), action,
                f"not an action index below {log.n_actions}", "list it in actions")  # fmt: skip
    if "propensity" in batch:
        p = batch["propensity"].astype(np.float64)
        remedy = "give the probability with which the logger showed the action"
        yield Wrong("propensity", np.isnan(p), p, "missing or nan", remedy)
        yield Wrong("propensity", p == 0, p, "0 although the action was shown", remedy)
        yield Wrong("propensity", p < 0, p, "negative", remedy)
        yield Wrong("propensity", p > 1, p, "above 1", remedy)


def _sets(batch: Columns, n_actions: int, *, uniform: bool) -> Iterator[Wrong]:
    """Yield what is wrong with the sets of displays, whose columns are ``eligible``, ``action`` and any ``propensity``.

    Where propensities are `uniform` by design, each must be one over the size of its display's set.
    """
    bits, action = batch[ELIGIBLE], np.nan_to_num(batch["action"], nan=-1).astype(np.int64)
    extra, size = beyond(bits, n_actions), sizes(bits)
    yield Wrong(
        ELIGIBLE, extra >= 0, extra, f"a bit that is no action below {n_actions}", "leave the bits beyond K unset"
    )
    yield Wrong(ELIGIBLE, size == 0, size, "no action is eligible",
                "give the actions that could have been shown, or drop rows")  # fmt: skip
    known = (extra < 0) & (size > 0) & (action >= 0) & (action < n_actions)
    yield Wrong(ELIGIBLE, known & ~holds(bits, action), action, "the action that was shown is not eligible",
                "add it to the set, or drop the rows")  # fmt: skip
    if uniform:
        p = batch["propensity"].astype(np.float64)
        off = known & (p > 0) & (np.abs(p * size - 1.0) > _ROUNDING)
        yield Wrong("propensity", off, p, "not one over the number of eligible actions, uniform as it is",
                    "give 1 / |E| of the display's own set E")  # fmt: skip


def target_breaches(
    target: npt.NDArray[np.float64],
) -> list[tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64], str]]:
    """Return which rows of a policy's probabilities, shape (n, K), are none, their worst value, and why."""
    off = np.maximum(-target, target - 1.0)
    worst = target[np.arange(len(target)), off.argmax(axis=1)]
    outside, total = off.max(axis=1) > 0, target.sum(axis=1)
    return [
        (outside, worst, "a probability outside [0, 1]"),
        (~outside & (np.abs(total - 1.0) > SUM_TOLERANCE), total, "the probabilities do not sum to 1"),
    ]


def _events(log: LogTables) -> Iterator[tuple[int, Wrong]]:
    """Yield what is wrong with the events; of sound ones memory holds their ids, and those of one batch of displays."""
    of = to_numpy(log.events["display_id"])
    if _are_sound(log, of):
        return
    known = (of >= 0) & (of < len(log))
    shown = np.zeros(len(of), np.int64)
    shown[known] = to_numpy(log.take(of[known].astype(np.int64), ["time"])["time"])
    for wrong in _event_rows(log, log.events, shown):
        yield 0, wrong


def _are_sound(log: LogTables, of: Ints) -> bool:
    """Whether nothing is wrong with events, which then are sorted: those of a batch of displays at a time."""
    if not len(of):
        return True
    if of.dtype.kind == "f" or of[0] < 0 or of[-1] >= len(log) or (of[1:] < of[:-1]).any():
        return False
    for first, batch in log.batches(["time"]):
        low, high = np.searchsorted(of, [first, first + len(batch["time"])])
        part = log.events.slice(low, high - low)
        if low < high and any(wrong.bad.any() for wrong in _event_rows(log, part, batch["time"][of[low:high] - first])):
            return False
    return True


def _event_rows(log: LogTables, events: pa.Table, shown: Ints) -> Iterator[Wrong]:
    """Yield what is wrong with events, given the times of their displays, and with the sums that a display reaches."""
    names, code = kinds_of(events) or ([CONVERSION], np.zeros(events.num_rows, np.int8))
    kinds = [kind for kind in (log.meta.conversions, *log.meta.outcomes) if kind.name in names]
    rows = {kind: np.asarray(code == names.index(kind.name)) for kind in kinds}
    named = np.array([name in {kind.name for kind in kinds} for name in names] + [False])[code]
    if not named.all():
        yield Wrong("kind", ~named, np.array([*names, None], object)[code], "none of the kinds that the metadata name",
            "name it there (LogMeta.outcomes), or drop the rows")  # fmt: skip
    of, when, value = (to_numpy(events[c]) for c in EVENTS)
    known = (of >= 0) & (of < len(log))
    yield Wrong("display_id", ~known, of, "no display has this id", "drop it or check the join key")
    yield Wrong("time", np.isnan(when), when, "missing", "fill or drop the rows")
    early = known & (when < shown)
    yield Wrong("time", early, when, "earlier than its display", "check the time columns and their units")
    finite, seconds = np.isfinite(value), log.meta.tick_seconds
    # A log that stopped looking when it says cannot hold later events.
    for kind, mine in rows.items():
        sound, until, longest = mine & known & ~early, kind.observed_until, kind.attribution_window
        whose, event = (f" of {kind.name}", "event") if kind.name else ("", "conversion")
        if until is not None:
            yield Wrong("time", sound & (when > until), when,
                f"later than observed_until = {with_date(until, seconds)}{whose}",
                f"raise observed_until, or drop the {event}")  # fmt: skip
        if longest is not None:
            yield Wrong("time", sound & (when - shown > longest), when,
                f"later than attribution_window = {ticks_words(longest, seconds)}{whose}",
                f"raise attribution_window, or drop the {event}")  # fmt: skip
    yield Wrong("value", ~finite, value, "not finite", "fill or drop the rows")
    yield Wrong("value", finite & (np.abs(value) > MOST_VALUE), value, f"beyond {MOST_VALUE:g}",
        "repair the value, or count in a larger unit")  # fmt: skip
    for kind, mine in rows.items():
        at = np.flatnonzero(mine)
        for bound in bounds_of(kind.value_min, kind.value_max) if finite.all() and known.all() else ():
            total, bad = np.zeros(len(of)), np.zeros(len(of), np.bool_)
            total[at], bad[at] = beyond_bound(of[at], when[at], value[at], bound)
            yield Wrong("value", bad, total, *bound.words(kind))
        if not kind.reward:
            yield Wrong("value", mine & (value < 0), value, "below 0",
                "count what takes events back as an outcome of its own, with values above 0")  # fmt: skip
    same = np.diff(of, prepend=of[:1])
    yield Wrong("display_id", same < 0, of, "not sorted by display", "sort by display_id, time")
    back = (same == 0) & (np.diff(when, prepend=when[:1]) < 0)
    yield Wrong("time", back, when, "earlier than the display's event before it", "sort by display_id, time")


def _worst_of_lists(vectors: npt.NDArray[Any], bits: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
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
