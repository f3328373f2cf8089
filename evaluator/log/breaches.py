"""Every way a log can break its contract, with rows, values and the repair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from evaluator.log.contract import Log

SHOWN = 3


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


def find_breaches(log: Log) -> list[Breach]:
    """Return the breaches of the contract, empty for a sound log. Cost: one pass over the tables."""
    structural = list(_structure(log))
    return structural or list(_rows(log))


def _structure(log: Log) -> Iterator[Breach]:
    from evaluator.log.contract import ACTIONS, CONVERSIONS, DISPLAYS

    nothing = np.zeros(0, dtype=np.int64)
    for name, schema in (("displays", DISPLAYS), ("conversions", CONVERSIONS), ("actions", ACTIONS)):
        table = getattr(log, name)
        for column, kind in schema.items():
            if column not in table.column_names:
                yield Breach(name, column, nothing, (), f"column {column!r} is missing", f"add it as {kind}")
            elif table.schema.field(column).type != kind:
                found = table.schema.field(column).type
                yield Breach(name, column, nothing, (), f"column {column!r} is {found}", f"cast it to {kind}")
    if log.displays.num_rows == 0:
        yield Breach("displays", "display_id", nothing, (), "the log is empty", "check the filters and the source")
    elif log.actions.num_rows < 2:
        yield Breach(
            "actions", "action", nothing, (), "a single action leaves nothing to choose",
            "check the action column, or keep at least two actions",
        )  # fmt: skip


def _rows(log: Log) -> Iterator[Breach]:
    from evaluator.log.contract import to_numpy

    def breach(
        table: str,
        column: str,
        bad: npt.NDArray[np.bool_],
        values: npt.NDArray[np.generic],
        problem: str,
        repair: str,
    ) -> Iterator[Breach]:
        rows = np.flatnonzero(bad)
        if len(rows):
            yield Breach(table, column, rows, tuple(values[rows[:SHOWN]].tolist()), problem, repair)

    displays, conversions = log.displays, log.conversions
    n = displays.num_rows
    ids, time, action = (to_numpy(displays[c]) for c in ("display_id", "time", "action"))
    yield from breach(
        "displays",
        "display_id",
        ids != np.arange(n),
        ids,
        "not dense",
        "number the displays 0..n-1 in file order",
    )
    yield from breach(
        "displays",
        "time",
        np.diff(time, prepend=time[:1]) < 0,
        time,
        "earlier than the row before",
        "sort by time",
    )
    yield from breach(
        "displays", "action", (action < 0) | (action >= log.n_actions), action,
        f"not an action index below {log.n_actions}", "list it in actions",
    )  # fmt: skip
    if log.meta.propensity != "absent":
        p = to_numpy(displays["propensity"]).astype(np.float64)
        for bad, problem in _propensity_breaches(p):
            yield from breach(
                "displays",
                "propensity",
                bad,
                p,
                problem,
                "give the probability with which the logger showed the action",
            )
    for column in ("context", "action_set"):
        if column in displays.column_names:
            array = to_numpy(displays[column]).reshape(n, -1)
            finite = np.isfinite(array)
            first = array[np.arange(n), np.argmin(finite, axis=1)]
            yield from breach("displays", column, ~finite.all(axis=1), first, "not finite", "fill or drop the rows")

    of, when, value = (to_numpy(conversions[c]) for c in ("display_id", "time", "value"))
    unknown = (of < 0) | (of >= n)
    yield from breach(
        "conversions", "display_id", unknown, of, "no display has this id", "drop it or check the join key"
    )
    early = np.zeros(len(of), dtype=bool)
    early[~unknown] = when[~unknown] < time[of[~unknown]]
    yield from breach(
        "conversions",
        "time",
        early,
        when,
        "earlier than its display",
        "check the time columns and their units",
    )
    yield from _unfollowed(log, ~(unknown | early), breach)
    yield from breach("conversions", "value", ~np.isfinite(value), value, "not finite", "fill or drop the rows")
    order = np.diff(of, prepend=of[:1]) < 0
    yield from breach("conversions", "display_id", order, of, "not sorted by display", "sort by display_id, time")


def _unfollowed(log: Log, sound: npt.NDArray[np.bool_], breach: Callable[..., Iterator[Breach]]) -> Iterator[Breach]:
    """Find conversions that a log which stopped looking when it says cannot hold."""
    from evaluator.log.contract import to_numpy

    of, when = (to_numpy(log.conversions[c]) for c in ("display_id", "time"))
    if log.meta.observed_until is not None:
        late = sound & (when > log.meta.observed_until)
        yield from breach(
            "conversions", "time", late, when, f"later than observed_until = {log.meta.observed_until}",
            "raise observed_until, or drop the conversion",
        )  # fmt: skip
    if log.meta.attribution_window is not None:
        delay = np.zeros(len(of), np.int64)
        delay[sound] = when[sound] - to_numpy(log.displays["time"])[of[sound]]
        late = delay > log.meta.attribution_window
        yield from breach(
            "conversions", "time", late, when, f"later than attribution_window = {log.meta.attribution_window} ticks",
            "raise attribution_window, or drop the conversion",
        )  # fmt: skip


PropensityBreaches = list[tuple[npt.NDArray[np.bool_], str]]


def _propensity_breaches(p: npt.NDArray[np.float64]) -> PropensityBreaches:
    rules: list[tuple[Callable[[npt.NDArray[np.float64]], npt.NDArray[np.bool_]], str]] = [
        (np.isnan, "missing or nan"),
        (lambda p: p == 0, "0 although the action was shown"),
        (lambda p: p < 0, "negative"),
        (lambda p: p > 1, "above 1"),
    ]
    return [(rule(p), problem) for rule, problem in rules]
