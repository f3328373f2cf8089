"""A frame in memory in the place of a source file: whatever speaks the Arrow C stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from evaluator.datasets.sources.arrow_columns import series_of
from evaluator.datasets.sources.part import TablePart, first_line
from evaluator.errors import SourceError, UsageError


@dataclass(frozen=True, eq=False)
class FrameSource(TablePart):
    """One frame in memory."""

    rows: pa.Table

    def names(self) -> list[str]:
        """Return its columns."""
        return list(self.rows.column_names)

    def state(self) -> object:
        """Return what nobody changes while it is read."""
        return self.rows

    def _unreadable(self, error: BaseException, *, opening: bool) -> SourceError:
        """Return the error that says why its rows cannot be read."""
        return SourceError(f"{self.name}: cannot be read: {first_line(error)}.", hint="check the types of its columns.")

    def scan(self, columns: Iterable[str], *, rows: int | None = None) -> pl.LazyFrame:
        """Return some columns, of the first rows alone where these are counted.

        Raises
        ------
        SourceError
            Polars has no such type, or the frame has several columns of a name.
        """
        series = []
        for column in columns:
            if self.rows.schema.get_field_index(column) < 0:
                raise SourceError(f"{self.name}: several columns are called {column!r}.", hint="rename one of them.")
            cells = self.rows[column] if rows is None else self.rows[column].slice(0, rows)
            series.append(series_of(cells, column, self.name))
        return pl.LazyFrame(series)


def frame_source(frame: object, name: str) -> FrameSource:
    """Return a frame as a source.

    Parameters
    ----------
    frame
        Frame of polars, pandas or pyarrow, relation of DuckDB, or whatever else speaks the Arrow C stream. Without a
        copy, where its library keeps it as Arrow does.
    name
        What messages call it.

    Raises
    ------
    UsageError
        It speaks no Arrow.
    SourceError
        Its library cannot write it as Arrow: a column mixes types, a query fails.
    """
    if not (hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__")) or isinstance(frame, type):
        lazy = ": collect() it" if hasattr(frame, "collect") else ""
        raise UsageError(
            f"`{name}`: a {type(frame).__name__} is no frame that speaks Arrow{lazy}.",
            hint="give a frame of polars, pandas (2.2 or later) or pyarrow, or a relation of DuckDB.",
        )
    try:
        table = pa.table(frame)
    except Exception as error:  # of any library: a relation of DuckDB computes its rows only now
        said = "; ".join(str(part).strip().split("\n")[0].rstrip(".") for part in error.args)
        raise SourceError(
            f"{name}: its library cannot hand it over as Arrow: {said}.",
            hint="give every column one type, and a name of its own.",
        ) from None
    return FrameSource(name, {}, table)
