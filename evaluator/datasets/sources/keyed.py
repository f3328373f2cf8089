"""Rows that are in no file: known by the columns that identify them, not by a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.datasets.sources.part import TablePart

# What no column is called.
NUMBER = "__number"


@dataclass(frozen=True)
class KeyedPart(TablePart):
    """A part whose rows can be read again in the same order, and have no lines.

    Parameters
    ----------
    key
        Columns that identify a row; none where nobody knows, and its number has to do.
    """

    key: tuple[str, ...]

    def keys(self, rows: Sequence[int]) -> list[str] | None:
        """Return what identifies some rows, by their numbers, the first of which is 1: ``id = 17``. One more pass."""
        if not self.key:
            return None
        import polars as pl

        from evaluator.datasets.labels import plain_decimals

        wanted = pl.Series(NUMBER, rows, dtype=pl.Int64)
        numbered = self.scan(self.key, rows=max(rows, default=0)).with_row_index(NUMBER, offset=1)
        asked = numbered.with_columns(pl.col(NUMBER).cast(pl.Int64)).filter(
            pl.col(NUMBER).is_in(wanted.unique().implode())
        )
        found = wanted.to_frame().join(asked.collect(engine="streaming"), on=NUMBER, how="left", maintain_order="left")
        found = found.with_columns(plain_decimals(pl.selectors.decimal().cast(pl.String)))
        return [", ".join(f"{name} = {row[name]}" for name in self.key) for row in found.iter_rows(named=True)]
