"""Every way a log can break its contract, with rows, values and the repair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from evaluator.log.contract import Log

SHOWN = 3
TARGET_REPAIR = (
    "give the policy's probabilities of the log's own actions: it may show no action that the log never shows or that "
    "--actions leaves out"
)
# How far from 1 the probabilities of a row may sum.
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Breach:
    """One kind of breach.

    Parameters
    ----------
    table, column
        Where.
    rows
        Row numbers (0-based rows of the table), all of them.
    values
        The offending values of the first rows.
    problem, repair
        What is wrong, and how to repair it.
    """

    table: str
    column: str
    rows: npt.NDArray[np.int64]
    values: tuple[object, ...]
    problem: str
    repair: str

    def __str__(self) -> str:
        if len(self.rows) == 0:
            return f"{self.table}: {self.problem}. Hint: {self.repair}."
        shown = ", ".join(f"row {r}: {v}" for r, v in zip(self.rows[:SHOWN].tolist(), self.values, strict=False))
        more = f" and {len(self.rows) - SHOWN} more" if len(self.rows) > SHOWN else ""
        return f"{self.table}.{self.column}: {self.problem} ({shown}{more}). Hint: {self.repair}."


def find_breaches(log: Log, *, vectors: bool = True) -> list[Breach]:
    """Return the breaches of the contract, empty for a sound log. Cost: one pass, batch by batch.

    Parameters
    ----------
    log
        The log.
    vectors
        Whether to read contexts and action sets too, most of a log's bytes.
    """
    return list(_structure(log)) or _Rows().of(log, vectors=vectors)


def _structure(log: Log) -> Iterator[Breach]:
    from evaluator.log.contract import ACTIONS, CONVERSIONS, DISPLAYS

    nothing = np.zeros(0, dtype=np.int64)
    for name, schema in (("displays", DISPLAYS), ("conversions", CONVERSIONS), ("actions", ACTIONS)):
        present = log.schema if name == "displays" else getattr(log, name).schema
        for column, kind in schema.items():
            if column not in present.names:
                yield Breach(name, column, nothing, (), f"column {column!r} is missing", f"add it as {kind}")
            elif present.field(column).type != kind:
                found = present.field(column).type
                yield Breach(name, column, nothing, (), f"column {column!r} is {found}", f"cast it to {kind}")
    if len(log) == 0:
        yield Breach("displays", "display_id", nothing, (), "the log is empty", "check the filters and the source")
    elif log.actions.num_rows < 2:
        yield Breach(
            "actions", "action", nothing, (), "a single action leaves nothing to choose",
            "check the action column, or keep at least two actions",
        )  # fmt: skip


class _Rows:
    """The rows in breach, gathered by what is wrong with them while the batches go by."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str, str], list[npt.NDArray[np.int64]]] = {}
        self._values: dict[tuple[str, str, str, str], list[object]] = {}

    def of(self, log: Log, *, vectors: bool) -> list[Breach]:
        """Return the breaches of a log of the right structure."""
        self._displays(log, vectors=vectors)
        self._conversions(log)
        return [
            Breach(table, column, np.concatenate(rows), tuple(self._values[key][:SHOWN]), problem, repair)
            for key, rows in self._rows.items()
            for table, column, problem, repair in [key]
        ]

    def _add(
        self,
        where: str,
        bad: npt.NDArray[np.bool_],
        values: npt.NDArray[np.generic],
        problem: str,
        repair: str,
        *,
        first: int = 0,
    ) -> None:
        rows = np.flatnonzero(bad)
        if len(rows):
            table, column = where.split(".")
            key = (table, column, problem, repair)
            self._rows.setdefault(key, []).append(rows + first)
            self._values.setdefault(key, []).extend(values[rows[:SHOWN]].tolist())

    def _displays(self, log: Log, *, vectors: bool) -> None:
        present = [c for c in ("context", "action_set", "target") if vectors and c in log.schema.names]
        columns = ["display_id", "time", "action", *present]
        if log.meta.propensity != "absent":
            columns.append("propensity")
        before: npt.NDArray[np.int64] | None = None
        for first, batch in log.batches(columns):
            ids, time, action = batch["display_id"], batch["time"], batch["action"]
            self._add("displays.display_id", ids != np.arange(first, first + len(ids)), ids, "not dense",
                      "number the displays 0..n-1 in their order", first=first)  # fmt: skip
            step: npt.NDArray[np.int64] = np.diff(time, prepend=time[:1] if before is None else before)
            self._add(
                "displays.time",
                np.atleast_1d(step < 0),
                time,
                "earlier than the row before",
                "sort by time",
                first=first,
            )
            before = time[-1:]
            self._add("displays.action", (action < 0) | (action >= log.n_actions), action,
                      f"not an action index below {log.n_actions}", "list it in actions", first=first)  # fmt: skip
            if "propensity" in batch:
                p = batch["propensity"].astype(np.float64)
                for wrong, problem in _propensity_breaches(p):
                    self._add("displays.propensity", wrong, p, problem,
                              "give the probability with which the logger showed the action", first=first)  # fmt: skip
            for column in present:
                array = batch[column].reshape(len(ids), -1)
                finite = np.isfinite(array)
                bad = np.asarray(~finite.all(axis=1))
                if bad.any():
                    worst = array[np.arange(len(ids)), np.argmin(finite, axis=1)]
                    self._add(f"displays.{column}", bad, worst, "not finite", "fill or drop the rows", first=first)
            if "target" in batch:
                for wrong, values, problem in target_breaches(batch["target"]):
                    self._add("displays.target", wrong, values, problem, TARGET_REPAIR, first=first)

    def _conversions(self, log: Log) -> None:
        from evaluator.log.contract import to_numpy

        of, when, value = (to_numpy(log.conversions[c]) for c in ("display_id", "time", "value"))
        known = (of >= 0) & (of < len(log))
        self._add("conversions.display_id", ~known, of, "no display has this id", "drop it or check the join key")
        shown = np.zeros(len(of), np.int64)
        shown[known] = to_numpy(log.take(of[known], ["time"])["time"])
        early = known & (when < shown)
        self._add("conversions.time", early, when, "earlier than its display", "check the time columns and their units")
        # A log that stopped looking when it says cannot hold later conversions.
        sound, until, longest = known & ~early, log.meta.observed_until, log.meta.attribution_window
        if until is not None:
            self._add("conversions.time", sound & (when > until), when, f"later than observed_until = {until}",
                      "raise observed_until, or drop the conversion")  # fmt: skip
        if longest is not None:
            self._add("conversions.time", sound & (when - shown > longest), when,
                      f"later than attribution_window = {longest} ticks",
                      "raise attribution_window, or drop the conversion")  # fmt: skip
        self._add("conversions.value", ~np.isfinite(value), value, "not finite", "fill or drop the rows")
        self._add("conversions.display_id", np.diff(of, prepend=of[:1]) < 0, of, "not sorted by display",
                  "sort by display_id, time")  # fmt: skip


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
