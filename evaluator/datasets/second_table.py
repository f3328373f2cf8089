"""Conversions in a table of their own, joined to the displays by id."""

from __future__ import annotations

import polars as pl

from evaluator.datasets.cells import Kind
from evaluator.datasets.conversions import converted_rows
from evaluator.datasets.files import SourceFile
from evaluator.datasets.frames import Chunks
from evaluator.datasets.row_breaches import FILE, LINE, Breaches
from evaluator.datasets.row_rules import check_cells
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.time_guesses import TimeGuesses


class SecondTable:
    """The rows of ``[conversion.source]``, in memory: the displays are joined as they pass by.

    Parameters
    ----------
    spec
        Spec of a dataset with a second table.
    files
        Files of the second table.
    kinds
        Kind of each column of the second table, by name.
    listed
        Whether every breach will be asked for, as in `Breaches`.
    """

    def __init__(self, spec: FileSpec, files: list[SourceFile], kinds: dict[str, Kind], *, listed: bool) -> None:
        source = spec.conversion.source
        assert source is not None
        self._spec, self._column, self._kinds = spec, source.display, kinds
        self.breaches = Breaches(files, listed=listed)
        self._table = Chunks(files, source.table(), kinds, time=spec.time).collect()
        self.rows = self._table.height
        self._ids = self._table[source.display].cast(pl.String)
        self._wanted = self._ids.drop_nulls().unique().implode()

    def wanted(self, displays: pl.DataFrame) -> pl.DataFrame:
        """Return the displays whose ``id`` occurs here."""
        return displays.filter(displays["id"].is_in(self._wanted))

    def converted(self, displays: pl.DataFrame, *, limited: bool) -> tuple[pl.DataFrame, int]:
        """Return the rows that hold a conversion of a display, and how many have none because of a limit.

        Parameters
        ----------
        displays
            All displays that are `wanted`: ``id``, ``display`` (number), ``shown`` (time in ticks), ``sound``.
        limited
            Whether only the first displays were read, so that some conversions belong to none of them.
        """
        rows = self.breaches.check(self._table)
        time = self._spec.conversion.time
        times = TimeGuesses(self._spec.time, [] if time is None else [time])
        check_cells(rows, self._table, self._kinds, times)
        first = displays.unique("id", keep="first", maintain_order=True)
        shown = self._ids.alias("id").to_frame().join(first, on="id", how="left", maintain_order="left").drop("id")
        shown = shown.hstack(self._table.select(FILE, LINE))
        lost = shown["display"].is_null()
        if not limited:
            rows.add(self._column, lost, "conversion without display", "check conversion.source.display")
        found = converted_rows(self._table, shown, self._spec.conversion, rows)
        rows.close()
        return found.filter(pl.col("display").is_not_null()), int(lost.sum())
