"""Conversions, or other events, in a table of their own, joined to the displays by id."""

from __future__ import annotations

import polars as pl

from evaluator.datasets.cells import Kind, merged_kinds
from evaluator.datasets.conversions import event_columns, event_rows
from evaluator.datasets.event_kinds import EventKind
from evaluator.datasets.frames import Chunks
from evaluator.datasets.row_breaches import FILE, LINE, Breaches
from evaluator.datasets.row_rules import check_cells
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.spec import Time
from evaluator.datasets.time_guesses import TimeGuesses


class SecondTable:
    """The rows of ``[conversion.source]``, or an outcome's, in memory: the displays are joined as they pass by.

    Parameters
    ----------
    kind
        Kind of the events, which have a table of their own.
    time
        Section ``[time]`` of the spec.
    files
        Files of that table.
    listed
        Whether every breach will be asked for, as in `Breaches`.
    """

    def __init__(self, kind: EventKind, time: Time, files: list[TablePart], *, listed: bool) -> None:
        source = kind.columns.source
        assert source is not None
        self._kind, self._time, self._column = kind, time, source.display
        self._kinds: dict[str, Kind] = merged_kinds(event_columns(kind, time), {source.display: "text"})
        self.breaches = Breaches(files, listed=listed)
        self._table = Chunks(files, source, self._kinds, time=time).collect()
        self.rows = self._table.height
        self._ids = self._table[source.display].cast(pl.String)
        self._wanted = self._ids.drop_nulls().unique().implode()

    def wanted(self, displays: pl.DataFrame) -> pl.DataFrame:
        """Return the displays whose ``id`` occurs here."""
        return displays.filter(displays["id"].is_in(self._wanted))

    def converted(self, displays: pl.DataFrame, *, limited: bool) -> tuple[pl.DataFrame, int]:
        """Return the rows that hold an event of a display, and how many have none because of a limit.

        Parameters
        ----------
        displays
            All displays that are `wanted`: ``id``, ``display`` (number), ``shown`` (time in ticks), ``sound``.
        limited
            Whether only the first displays were read, so that some events belong to none of them.
        """
        rows = self.breaches.check(self._table)
        clock = self._kind.columns.time
        times = TimeGuesses(self._time, [] if clock is None else [clock])
        check_cells(rows, self._table, self._kinds, times)
        first = displays.unique("id", keep="first", maintain_order=True)
        shown = self._ids.alias("id").to_frame().join(first, on="id", how="left", maintain_order="left").drop("id")
        shown = shown.hstack(self._table.select(FILE, LINE))
        lost = shown["display"].is_null()
        if not limited:
            rows.add(self._column, lost, f"{self._kind.word} without display",
                     f"check {self._kind.table}.source.display")  # fmt: skip
        found = event_rows(self._table, shown, self._kind, rows)
        rows.close()
        return found.filter(pl.col("display").is_not_null()), int(lost.sum())
