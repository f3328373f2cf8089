"""Every way a log can break its contract, with rows, values and the repair."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.eligible import SETS, width
from evaluator.log.log_tables import (
    LogTables,
    check_events,
    missing_sets,
    set_breaches,
    uneven_sets,
    worst_of_lists,
    wrong_lists,
)
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
    is_target,
    is_uneven,
    per_action,
    to_numpy,
)
from evaluator.units import LEAST_SAMPLE, MOST_VALUE

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
# How far from 1 the probabilities of a row may sum.
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Breach:
    """One kind of breach.

    Parameters
    ----------
    table, column
        Table and column of the breach.
    rows
        Numbers of all rows in breach, shape (r,), counted from 0 in their table.
    values
        Values of the first of these rows, which messages quote.
    problem, remedy
        Clauses that say what is wrong, and how to repair it.
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


def find_breaches(log: LogTables, *, vectors: bool = True, parts: Collection[str] = PARTS) -> list[Breach]:
    """Return the breaches of the contract, empty for a sound log. Cost: one pass, batch by batch.

    Parameters
    ----------
    log
        The log to look at.
    vectors
        Whether to read contexts, action sets and eligible actions too, most of a log's bytes.
    parts
        Tables to look at, of `PARTS`.
    """
    return list(_structure(log)) or _Rows().of(log, vectors=vectors, parts=parts)


def _structure(log: LogTables) -> Iterator[Breach]:
    nothing = np.zeros(0, dtype=np.int64)
    tables = {"displays": DISPLAYS, "events": EVENTS, "actions": ACTIONS}
    for name, schema in tables.items():
        present = log.schema if name == "displays" else getattr(log, name).schema
        for column, kind in schema.items():
            if column not in present.names:
                yield Breach(name, column, nothing, (), f"column {column!r} is missing", f"add it as {kind}")
            elif present.field(column).type != kind:
                found = present.field(column).type
                yield Breach(name, column, nothing, (), f"column {column!r} is {found}", f"cast it to {kind}")
    own = ((POSITION, pa.int64()), (WEIGHT, pa.float64()), (COST, pa.float64()), (ELIGIBLE, SETS))
    optional = [("displays", log.schema, *of) for of in own] + [("events", log.events.schema, KIND, KINDS)]
    for name, present, column, kind in optional:
        if column in present.names and (found := present.field(column).type) != kind:
            yield Breach(name, column, nothing, (), f"column {column!r} is {found}", f"cast it to {kind}")
    for name in ("sampling_rate", "kept_share"):
        share = getattr(log.meta, name)
        if not LEAST_SAMPLE <= share <= 1.0:
            problem = f"{name} = {share:g} is no share"
            yield Breach("meta", name, nothing, (), problem, f"give one in [{LEAST_SAMPLE:g}, 1]")
    yield from _bounds(log)
    names = [one.name for one in log.meta.outcomes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield Breach("meta", "outcomes", nothing, (), f"outcome {twice[0]!r} is there twice", "name each once")
    yield from _of_rewards(log)
    yield from _shapes(log)
    if len(log) == 0:
        yield Breach("displays", "display_id", nothing, (), "the log is empty", "check the filters and the source")
    elif log.actions.num_rows < 2:
        yield Breach(
            "actions", "action", nothing, (), "a single action leaves nothing to choose",
            "check the action column, or keep at least two actions",
        )  # fmt: skip


def _of_rewards(log: LogTables) -> Iterator[Breach]:
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
        yield Breach("meta", "outcomes", np.zeros(0, np.int64), (), problem, remedy)


def _bounds(log: LogTables) -> Iterator[Breach]:
    """Yield what is wrong with the bounds of a display's reward."""
    least = log.meta.reward_min
    if least is not None and not -np.inf < least <= 0.0:
        yield Breach("meta", "reward_min", np.zeros(0, np.int64), (), f"reward_min = {least:g} is no bound from below",
                     "a display without a conversion earns 0: give the most that refunds may take beyond its sales, "
                     "as a number of at most 0")  # fmt: skip


def _shapes(log: LogTables) -> Iterator[Breach]:
    """Yield what is wrong with the lists and with the actions."""
    nothing = np.zeros(0, dtype=np.int64)
    in_memory = vars(log).get("displays")
    for name in (*VECTORS, *filter(is_target, log.schema.names)):
        if name not in log.schema.names:
            continue
        kind = log.schema.field(name).type
        if name.startswith(NAMED_TARGET) and pa.types.is_string(kind):
            continue
        if name == ACTION_SET and ELIGIBLE in log.schema.names and is_uneven(kind):
            if in_memory is not None and (found := wrong_lists(log)) is not None:
                yield Breach("displays", name, *found)
            continue
        if not pa.types.is_fixed_size_list(kind):
            yield Breach("displays", name, nothing, (), f"column {name!r} is {kind}",
                         "make it fixed-size lists (evaluator.log.schema.fixed_size_lists)")  # fmt: skip
        elif name != "context" and kind.list_size != log.n_actions:
            yield Breach("displays", name, nothing, (),
                         f"column {name!r} has {kind.list_size} entries a display, the log {log.n_actions} actions",
                         "give one entry for each row of actions")  # fmt: skip
        elif in_memory is not None and in_memory[name].null_count:
            rows = np.flatnonzero(in_memory[name].is_null().to_numpy())
            yield Breach("displays", name, rows, (None,) * SHOWN, "missing", "fill or drop the rows")
    sets = None if in_memory is None or ELIGIBLE not in log.schema.names else in_memory[ELIGIBLE]
    if sets is not None and sets.type == SETS:
        found = missing_sets(sets) if sets.null_count else uneven_sets(sets, width(log.n_actions))
        if len(found.rows):
            yield Breach("displays", ELIGIBLE, *found)
    if "action" in log.actions.schema.names and "label" in log.actions.schema.names:
        index = to_numpy(log.actions["action"])
        rows = np.flatnonzero(index != np.arange(len(index)))
        if len(rows):
            yield Breach("actions", "action", rows, tuple(index[rows[:SHOWN]].tolist()), "not 0..K-1 in order",
                         "number the actions 0..K-1, a row each")  # fmt: skip
        rows = np.flatnonzero(log.actions["label"].is_null().to_numpy())
        if len(rows):
            yield Breach("actions", "label", rows, (None,) * SHOWN, "missing", "give every action a label")


class _Rows:
    """The rows in breach, gathered by what is wrong with them while the batches go by."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str, str], list[npt.NDArray[np.int64]]] = {}
        self._values: dict[tuple[str, str, str, str], list[object]] = {}

    def of(self, log: LogTables, *, vectors: bool, parts: Collection[str]) -> list[Breach]:
        """Return the breaches of a log of the right structure."""
        if "displays" in parts:
            self._displays(log, vectors=vectors)
        if "events" in parts:
            check_events(self._add, log)
        return [
            Breach(table, column, np.concatenate(rows), tuple(self._values[key][:SHOWN]), problem, remedy)
            for key, rows in self._rows.items()
            for table, column, problem, remedy in [key]
        ]

    def _add(
        self,
        where: str,
        bad: npt.NDArray[np.bool_],
        values: npt.NDArray[np.generic],
        problem: str,
        remedy: str,
        *,
        first: int = 0,
    ) -> None:
        rows = np.flatnonzero(bad)
        if len(rows):
            table, column = where.split(".")
            key = (table, column, problem, remedy)
            self._rows.setdefault(key, []).append(rows + first)
            self._values.setdefault(key, []).extend(values[rows[:SHOWN]].tolist())

    def _displays(self, log: LogTables, *, vectors: bool) -> None:
        targets = [c for c in per_action(log.schema) if vectors and is_target(c)]
        present = [c for c in ("context", "action_set") if vectors and c in log.schema.names] + targets
        columns = ["display_id", "time", "action", *present, *[ELIGIBLE] * (vectors and ELIGIBLE in log.schema.names)]
        columns += [c for c in (POSITION, WEIGHT, COST) if c in log.schema.names]
        if log.meta.propensity != "absent":
            columns.append("propensity")
        before: npt.NDArray[Any] | None = None
        passed = -1
        for first, batch in log.batches(columns):
            ids, time, action = batch["display_id"], batch["time"], batch["action"]
            for column, array in (("display_id", ids), ("time", time), ("action", action)):
                if array.dtype.kind == "f":  # only where a cell is null
                    self._add(
                        f"displays.{column}", np.isnan(array), array, "missing", "fill or drop the rows", first=first
                    )
            elsewhere = (ids != np.arange(first, first + len(ids))) & ~np.isnan(ids)
            self._add("displays.display_id", elsewhere, ids, "not dense",
                      "number the displays 0..n-1 in their order", first=first)  # fmt: skip
            step = np.diff(time, prepend=time[:1] if before is None else before)
            self._add(
                "displays.time",
                np.atleast_1d(step < 0),
                time,
                "earlier than the row before",
                "sort by time",
                first=first,
            )
            before = time[-1:]
            if "position" in batch:
                position = batch["position"]
                back = np.diff(position, prepend=passed) < 0
                self._add("displays.position", np.atleast_1d(back), position, "below 0 or the row before",
                          "number the displays of the traffic in its order", first=first)  # fmt: skip
                passed = int(position[-1])
            if "weight" in batch:
                weight = batch["weight"].astype(np.float64)
                self._add("displays.weight", ~(np.isfinite(weight) & (weight > 0)), weight, "no weight above 0",
                          WEIGHT_REPAIR, first=first)  # fmt: skip
            if COST in batch:
                cost = batch[COST].astype(np.float64)
                self._add("displays.cost", ~((cost >= 0.0) & (cost <= MOST_VALUE)), cost, NO_COST, COST_REPAIR,
                          first=first)  # fmt: skip
            self._add("displays.action", (action < 0) | (action >= log.n_actions), action,
                      f"not an action index below {log.n_actions}", "list it in actions", first=first)  # fmt: skip
            if "propensity" in batch:
                p = batch["propensity"].astype(np.float64)
                for wrong, problem in _propensity_breaches(p):
                    self._add("displays.propensity", wrong, p, problem,
                              "give the probability with which the logger showed the action", first=first)  # fmt: skip
            if ELIGIBLE in batch:
                uniform = log.meta.propensity == "uniform"
                for column, wrong, values, problem, remedy in set_breaches(batch, log.n_actions, uniform=uniform):
                    self._add(f"displays.{column}", wrong, values, problem, remedy, first=first)
            for column in present:
                array = batch[column]
                if column == ACTION_SET and is_uneven(log.schema.field(column).type):
                    array = worst_of_lists(array, batch[ELIGIBLE])
                array = array.reshape(len(ids), -1)
                finite = np.isfinite(array)
                bad = np.asarray(~finite.all(axis=1))
                if bad.any():
                    worst = array[np.arange(len(ids)), np.argmin(finite, axis=1)]
                    self._add(f"displays.{column}", bad, worst, "not finite", "fill or drop the rows", first=first)
            for column in targets:
                for wrong, values, problem in target_breaches(batch[column]):
                    self._add(f"displays.{column}", wrong, values, problem, TARGET_REPAIR, first=first)


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


def _propensity_breaches(p: npt.NDArray[np.float64]) -> list[tuple[npt.NDArray[np.bool_], str]]:
    return [
        (np.isnan(p), "missing or nan"),
        (p == 0, "0 although the action was shown"),
        (p < 0, "negative"),
        (p > 1, "above 1"),
    ]
