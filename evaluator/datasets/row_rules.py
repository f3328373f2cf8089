"""The rules that every row of displays must keep."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from evaluator.datasets.cells import PROBLEMS, Kind
from evaluator.datasets.contexts import Features
from evaluator.datasets.frames import UNPARSED
from evaluator.datasets.json_lines import BROKEN
from evaluator.datasets.row_breaches import FILE, LINE, ROW, CheckedRows
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.text_rows import CELLS
from evaluator.datasets.time_guesses import TimeGuesses
from evaluator.datasets.vw.decision_frames import NO_DECISION
from evaluator.datasets.zones import ZonesSeen, comes_twice
from evaluator.errors import LogError
from evaluator.log.breaches import COST_REPAIR, NO_COST, WEIGHT_REPAIR
from evaluator.units import MOST_VALUE

# Differences of times fit into 64 bits too.
_LAST_TICK = 2**62
RAGGED = ("a row with too few or too many cells", "check source.delimiter and the quotes of such rows")
NO_OBJECT = ("a line that is no JSON object", "repair such lines, or quarantine them")
UNDECIDED = ("a line that is no decision", "repair such lines, or quarantine them")
BEYOND = ("a time beyond 2^62 ticks", "check the column and time.unit, or quarantine the row")


def beyond_clocks(times: pl.Series) -> pl.Series:
    """Return whether each time, or delay, in ticks is so large that sums and differences leave 64 bits."""
    return ~times.is_between(-_LAST_TICK, _LAST_TICK)


def check_cells(
    rows: CheckedRows, frame: pl.DataFrame, kinds: Mapping[str, Kind], times: TimeGuesses | None = None
) -> None:
    """Report the rows of another width than the table, and the cells that do not fit the kind of their column.

    Parameters
    ----------
    rows, frame
        Chunk of the source, as it is checked and as it was read.
    kinds
        Kind of each column of the chunk, by its name.
    times
        Record of the cells of its times that cannot be read: it looks at them, and says how to repair them.
    """
    whole = pl.repeat(True, frame.height, dtype=pl.Boolean, eager=True)
    for marks, said in ((CELLS, RAGGED), (BROKEN, NO_OBJECT), (NO_DECISION, UNDECIDED)):
        marked = frame[marks] if marks in frame.columns else None
        rows.add(
            ROW,
            None if marked is None else marked.is_not_null(),
            *said,
            values=frame[LINE] if marked is None else marked,
        )
        whole = whole if marked is None else whole & marked.is_null()
    unfit = {c: frame[UNPARSED + c].set(~whole, None) for c in kinds if UNPARSED + c in frame.columns}
    if times is not None:
        for column in times.columns:
            for found, problem, remedy in times.unplaced(column, unfit.get(column)):
                rows.add(column, found, problem, remedy, values=unfit[column])
                unfit[column] = unfit[column].set(found, None)
            times.see(column, frame[column], unfit[column].drop_nulls() if column in unfit else None)
    for column, kind in kinds.items():
        if kind in PROBLEMS:
            text = unfit.get(column)
            said = PROBLEMS[kind] if times is None or column not in times.columns else times.said(column)
            rows.add(column, None if text is None else text.is_not_null(), *said, values=text)


def check_displays(
    rows: CheckedRows, frame: pl.DataFrame, spec: FileSpec, features: Features, repeated: pl.DataFrame
) -> None:
    """Report displays without time or action, with impossible numbers, or listed twice.

    Parameters
    ----------
    rows, frame
        The chunk of the source that is checked, and its values.
    spec, features
        Spec of the dataset, and its context columns.
    repeated
        Rows of the chunk whose id an earlier display has: ``row``, and `FILE` and `LINE` of that display.
    """
    display = spec.display
    sound = rows.sound
    numbers = features.columns("number")
    for column in dict.fromkeys([display.time, display.action, *numbers]):
        rows.add(column, sound & frame[column].is_null(), "missing", "fill the cell, or quarantine the row")
    rows.add(display.time, sound & beyond_clocks(frame[display.time]), *BEYOND)
    for column in numbers:
        # Contexts are float32, where 1e39 is no number.
        finite = frame[column].cast(pl.Float32).is_finite().fill_null(True)
        rows.add(column, sound & ~finite, "not finite", "fill the cell")
    if display.propensity_column is not None:
        p = frame[display.propensity_column].cast(pl.Float64)
        for bad, problem in (
            (p.is_null() | p.is_nan(), "propensity missing or nan"),
            (p == 0, "propensity 0 although the action was shown"),
            (p < 0, "negative propensity"),
            ((p > 1) & p.is_not_nan(), "propensity above 1"),
        ):
            rows.add(display.propensity_column, sound & bad, problem,
                     "give the probability with which the logger showed the action")  # fmt: skip
    if display.weight is not None:
        w = frame[display.weight].cast(pl.Float64)
        rows.add(display.weight, sound & ~(w.is_finite() & (w > 0)).fill_null(False), "no weight above 0",
                 WEIGHT_REPAIR)  # fmt: skip
    if display.cost is not None:
        cost = frame[display.cost].cast(pl.Float64)
        rows.add(display.cost, sound & ~cost.is_between(0.0, MOST_VALUE).fill_null(False), NO_COST,
                 COST_REPAIR)  # fmt: skip
    if display.id is not None:
        rows.add(display.id, sound & frame[display.id].is_null(), "missing", "give every display an id")
        again = np.zeros(frame.height, dtype=np.bool_)
        again[repeated["row"].to_numpy()] = True
        rows.add(display.id, sound & pl.Series(again), "duplicate display", "keep one row per display",
                 more=rows.as_in(repeated.filter(sound.gather(repeated["row"]))))  # fmt: skip


class TimeOrder:
    """Whether the displays come in the order of their times, chunk by chunk."""

    def __init__(self, files: list[TablePart], time: str, zones: ZonesSeen) -> None:
        self._files, self._time, self._zones = files, time, zones
        self._last: int | None = None
        self._late = 0
        self._first = ""
        self._step = (0, 0)

    def see(self, frame: pl.DataFrame) -> None:
        """Look at the sound rows of a chunk."""
        if frame.height == 0:
            return
        times = frame[self._time].to_numpy()
        before = np.concatenate([times[:1] if self._last is None else [self._last], times[:-1]])
        late = np.flatnonzero(times < before)
        if len(late) and not self._late:
            row = int(late[0])
            file = self._files[frame[FILE][row]]
            (where,) = file.places([frame[LINE][row]])
            self._first = f"{where}: time {times[row]} is earlier than {before[row]} before it"
            self._step = int(before[row]), int(times[row])
        self._late += len(late)
        self._last = int(times[-1])

    @property
    def kept(self) -> bool:
        """Whether no display is earlier than the one before it."""
        return not self._late

    def refuse(self) -> None:
        """Raise LogError if a display is earlier than the one before it."""
        if not self.kept:
            if self._zones.is_naive(self._time) and (zone := comes_twice(*self._step)):
                early, late = (pl.Series([of]).cast(pl.Datetime("us"))[0] for of in self._step)
                raise LogError(
                    f"{self._first.partition(': time ')[0]}: column {self._time!r} goes back from {early} to {late}, "
                    f"in an hour that comes twice in zones such as {zone}, where clocks were put back.",
                    remedy="give times in UTC, or with what they are ahead of it (2024-10-27T02:30:00+01:00), or in a "
                    'column that offset = "..." under [time] names: sorting does not tell the two hours apart. Where '
                    'they are UTC, say so: timezone = "UTC" under [time].',
                )
            raise LogError(
                f"{self._first} ({self._late} such rows).",
                remedy="sort the source, set sort = true in [source], or pass `sort=True`.",
            )
