"""Rows of a source that break a rule: all of them reported, or left out and counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.errors import DataError, LogError, PropensityError, SourceError
from evaluator.reading.log_folders import QUARANTINED
from evaluator.reading.sources.part import TablePart

SHOWN = 3
LINE, FILE = "__line", "__file"
# In place of a column's name: the breach is of the row as a whole.
ROW = ""
# What is recorded of a row in breach, with what a message says behind the value, and what is known of it at the end.
_RECORDED = {FILE: pl.Int32, "line": pl.Int64, "value": pl.String, "more": pl.String}
_FOUND = {**_RECORDED, "column": pl.String, "problem": pl.String}
QUARANTINE = {name: pl.Int64 if name == "line" else pl.String for name in QUARANTINED}


def side_by_side(table: str, ids: Iterable[str]) -> str:
    """Return what shows ids of another table beside those that it lacks, so that a difference of form is seen."""
    some = ", ".join(map(repr, islice(ids, SHOWN)))
    return f": ids of {table} are {some}" if some else ""


class Breaches:
    """The breaches found in one table of a source, chunk by chunk.

    Where every breach will be asked for, they are `listed`; else only the first of each kind are kept. `rows` is the
    number of rows in breach, each counted once.
    """

    def __init__(self, files: list[TablePart], *, listed: bool) -> None:
        self.files = files
        self.rows = 0
        self.listed = listed
        self._found: dict[tuple[str, str], _Found] = {}

    def check(self, frame: pl.DataFrame) -> CheckedRows:
        """Return a chunk to be checked."""
        return CheckedRows(self, frame)

    def refuse(self) -> None:
        """Raise one error that names every kind of breach, its first rows and the repair.

        Raises LogError if there is a breach: PropensityError if all of them concern propensities, SourceError if rows
        are no rows of the table.
        """
        broken = {kind: found for kind, found in self._found.items() if found.count}
        if not broken:
            return
        error: type[DataError] = PropensityError if all("propensity" in p for _, p in broken) else LogError
        if any(column == ROW for column, _ in broken):
            error = SourceError
        said = []
        heads = {kind: found.table(*kind).head(SHOWN).rows(named=True) for kind, found in broken.items()}
        called = self._places([row for head in heads.values() for row in head])
        for (column, problem), found in broken.items():
            shown = str if column == ROW else repr
            head = heads[column, problem]
            places = ", ".join(f"{called[r[FILE], r['line']]}: {shown(r['value'])}{r['more'] or ''}" for r in head)
            more = f" and {found.count - SHOWN} more" if found.count > SHOWN else ""
            subject = f"Column {column!r}: {problem}" if column != ROW else problem[:1].upper() + problem[1:]
            said.append(f"{subject} ({places}{more}); {found.remedy}.")
        raise error(
            " ".join(said),
            remedy="`on_error='quarantine'` leaves such rows out and counts them.",
        )

    def record(
        self,
        kind: tuple[str, str],
        remedy: str,
        frame: pl.DataFrame,
        rows: pl.Series,
        cells: pl.Series,
        more: pl.Series | None = None,
    ) -> None:
        """Record rows of a chunk under (column, problem), with what messages say behind their values.

        The last remedy holds.

        A kind is known before its first row, so that the order of kinds is that of the checks, not of the rows.
        """
        found = self._found.setdefault(kind, _Found())
        found.count += len(rows)
        found.remedy = remedy
        if not self.listed:
            rows = rows.head(max(SHOWN - sum(t.height for t in found.tables), 0))
        if len(rows) == 0:
            return
        places = pl.DataFrame([frame[FILE], frame[LINE].alias("line"), cells.alias("value")])
        table = (places if more is None else places.with_columns(more.alias("more")))[rows]
        found.tables.append(table.cast({name: _FOUND[name] for name in table.columns}))

    def _places(self, breaches: list[dict[str, Any]]) -> dict[tuple[int, int], str]:
        """Return what messages call the rows of some breaches, by file and line: each file is asked once."""
        found: dict[tuple[int, int], str] = {}
        for file in {breach[FILE] for breach in breaches}:
            lines = sorted({breach["line"] for breach in breaches if breach[FILE] == file})
            part: TablePart = self.files[file]
            found |= {(file, line): place for line, place in zip(lines, part.places(lines), strict=True)}
        return found

    def commonest(self) -> str:
        """Return what is wrong most often: how often, an example, and the repair."""
        (column, problem), found = max(self._found.items(), key=lambda item: item[1].count)
        row = found.tables[0].row(0, named=True)
        subject = f"column {column!r}: {problem}" if column != ROW else problem
        place = self._places([row])[row[FILE], row["line"]]
        example = f"{place}: {row['value'] if column == ROW else repr(row['value'])}"
        return f"Most often {subject} ({found.count:,} rows, such as {example}); {found.remedy}"

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows by what is wrong with them."""
        return {
            f"column {column!r}: {problem}" if column != ROW else problem: found.count
            for (column, problem), found in self._found.items()
            if found.count
        }

    def table(self) -> pl.DataFrame:
        """Return one line per breach: file, line, or key of the row where it has no line, column, value, problem."""
        tables = [found.table(*kind) for kind, found in self._found.items() if found.tables]
        if not tables:
            return pl.DataFrame(schema=QUARANTINE)
        found = pl.concat(tables)
        names = pl.Series("file", [self.files[i].name for i in found[FILE]], dtype=pl.String)
        keys = pl.Series("key", [None], dtype=pl.String).new_from_index(0, found.height)
        for i in found[FILE].unique():
            rows = (found[FILE] == i).arg_true()
            if (of_part := self.files[i].keys(found["line"].gather(rows).to_list())) is not None:
                keys = keys.scatter(rows, of_part)
        found = found.with_columns(names, keys).select(list(QUARANTINE))
        found = found.sort("file", "line", maintain_order=True)
        return found.with_columns(pl.when(pl.col("key").is_null()).then(pl.col("line")).alias("line"))


@dataclass
class _Found:
    count: int = 0
    remedy: str = ""
    # The file, line and value of rows, chunk by chunk, and what messages say behind the values, if anything.
    tables: list[pl.DataFrame] = field(default_factory=list)

    def table(self, column: str, problem: str) -> pl.DataFrame:
        """Return what a quarantine lists of the rows, and what messages say, with the columns of `_FOUND`."""
        rows = pl.concat([pl.DataFrame(schema=_RECORDED), *self.tables], how="diagonal")
        return rows.with_columns(column=pl.lit(column), problem=pl.lit(problem)).select(list(_FOUND))


class CheckedRows:
    """The rows of one chunk while rules are applied to them."""

    def __init__(self, breaches: Breaches, frame: pl.DataFrame) -> None:
        self._breaches = breaches
        self._frame = frame
        self._bad = np.zeros(frame.height, dtype=np.bool_)

    @property
    def sound(self) -> pl.Series:
        """Whether each row has broken no rule so far."""
        return pl.Series(~self._bad)

    def add(
        self,
        column: str,
        bad: pl.Series | None,
        problem: str,
        remedy: str,
        *,
        values: pl.Series | None = None,
        more: pl.Series | None = None,
    ) -> None:
        """Record the rows where `bad` is true, `more` behind their values; None where no row can be."""
        rows = pl.Series([], dtype=pl.UInt32)
        if bad is not None and bad.any():
            rows = bad.fill_null(False).arg_true()
        self._bad[rows.to_numpy()] = True
        cells = self._frame[column] if values is None else values
        self._breaches.record((column, problem), remedy, self._frame, rows, cells, more)

    def as_in(self, earlier: pl.DataFrame) -> pl.Series | None:
        """Return what messages say of rows that are as others before: ``, as in log.csv line 2``, of the first ones.

        `earlier` has the numbers of the rows, ``row``, and `FILE` and `LINE` of the earlier one.
        """
        if self._breaches.listed or not earlier.height:
            return None
        said = pl.Series([None], dtype=pl.String).new_from_index(0, len(self._bad))
        for row, file, line in earlier.select("row", FILE, LINE).head(SHOWN).iter_rows():
            said[row] = f", as in {self._breaches.files[file].places([line])[0]}"
        return said

    def close(self) -> npt.NDArray[np.bool_]:
        """Return whether each row broke no rule, all rules having been applied."""
        self._breaches.rows += int(self._bad.sum())
        return ~self._bad
