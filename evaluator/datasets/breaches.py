"""Rows of a source that break a rule: all of them reported, or left out and counted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.files import SourceFile
from evaluator.errors import DataError, LogError, PropensityError, UsageError

SHOWN = 3
ROW, LINE, FILE = "__row", "__line", "__file"


@dataclass
class Breaches:
    """The breaches found in one table of a source.

    Parameters
    ----------
    files
        Files of the table, for line numbers.
    """

    files: list[SourceFile]
    found: list[tuple[pl.DataFrame, str, str]] = field(default_factory=list)

    def add(
        self,
        frame: pl.DataFrame,
        column: str,
        bad: pl.Series,
        problem: str,
        repair: str,
        *,
        values: pl.Series | None = None,
    ) -> None:
        """Record the rows of `frame` where `bad` is true."""
        rows = bad.fill_null(False).arg_true()
        if len(rows) == 0:
            return
        cells = (frame[column] if values is None else values).gather(rows).cast(pl.String)
        where = frame.select(pl.col(FILE, LINE).gather(rows))
        table = pl.DataFrame(
            {
                "file": [str(self.files[i].path) for i in where[FILE].to_list()],
                "line": where[LINE].cast(pl.Int64),
                "column": [column] * len(rows),
                "value": cells,
                "problem": [problem] * len(rows),
                ROW: rows.cast(pl.Int64),
            }
        )
        self.found.append((table, problem, repair))

    def refuse(self) -> None:
        """Raise one error that names every kind of breach, its first rows and the repair.

        Raises
        ------
        LogError
            There is a breach; PropensityError if all of them concern propensities.
        """
        if not self.found:
            return
        kind: type[DataError] = PropensityError if all("propensity" in p for _, p, _ in self.found) else LogError
        said = []
        for table, problem, repair in self.found:
            head = table.head(SHOWN).rows(named=True)
            places = ", ".join(f"{r['file']} {self._word()} {r['line']}: {r['value']!r}" for r in head)
            more = f" and {table.height - SHOWN} more" if table.height > SHOWN else ""
            said.append(f"Column {table['column'][0]!r}: {problem} ({places}{more}); {repair}.")
        raise kind(" ".join(said), hint="on_error='quarantine' leaves such rows out and counts them.")

    def moved(self, order: npt.NDArray[np.int64]) -> Breaches:
        """Return the breaches after the rows were put into `order`: row order[i] became row i, others were dropped."""
        place = pl.DataFrame({ROW: order, "to": np.arange(len(order))}, schema={ROW: pl.Int64, "to": pl.Int64})
        moved = [
            (t.join(place, on=ROW, how="inner", maintain_order="left").drop(ROW).rename({"to": ROW}), problem, repair)
            for t, problem, repair in self.found
        ]
        return Breaches(self.files, [m for m in moved if m[0].height])

    def rows(self) -> pl.Series:
        """Return the row numbers in breach, each once."""
        if not self.found:
            return pl.Series(ROW, [], pl.Int64)
        return pl.concat([t[ROW] for t, _, _ in self.found]).unique().sort()

    def mask(self, n: int) -> pl.Series:
        """Return whether each of the table's `n` rows is in breach."""
        bad = np.zeros(n, dtype=np.bool_)
        bad[self.rows().to_numpy()] = True
        return pl.Series(bad)

    def table(self) -> pl.DataFrame:
        """Return one line per breach: file, line, column, value, problem."""
        if not self.found:
            return pl.DataFrame(schema=QUARANTINE)
        return pl.concat([t.drop(ROW) for t, _, _ in self.found]).sort("file", "line", maintain_order=True)

    def _word(self) -> str:
        return "line" if self.files[0].is_text else "row"


QUARANTINE = {"file": pl.String, "line": pl.Int64, "column": pl.String, "value": pl.String, "problem": pl.String}


def check_on_error(on_error: str) -> None:
    """Raise UsageError unless `on_error` is ``stop`` or ``quarantine``."""
    if on_error not in ("stop", "quarantine"):
        raise UsageError(f"on_error={on_error!r}.", hint="choose stop or quarantine.")
