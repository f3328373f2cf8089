"""Tables that a database answers with: asked once, and read from a file of the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.datasets.labels import plain_decimals
from evaluator.datasets.sources.databases import Databases
from evaluator.datasets.sources.keyed import KeyedPart
from evaluator.datasets.sources.local_copies import Staging
from evaluator.datasets.sources.query_columns import beyond_calendar, stored_cells, stored_column
from evaluator.datasets.spec_sections import Table
from evaluator.errors import SourceError
from evaluator.log.log_files import file_state

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

# Rows of a group of the file, and bytes of one whose rows are wide.
_GROUP, _BYTES = 65_536, 32 * 1024 * 1024


@dataclass(frozen=True)
class QueryPart(KeyedPart):
    """The rows that a query gave.

    Parameters
    ----------
    path
        Parquet file of the rows.
    columns
        Names of the columns.
    exact
        Columns of decimal numbers of any length, which the file holds as text.
    refused
        Columns that are not in the file, by name, and why.
    """

    path: Path
    columns: Sequence[str]
    exact: frozenset[str]
    refused: Mapping[str, str]

    def names(self) -> list[str]:
        """Return the columns of the answer."""
        return list(self.columns)

    def scan(self, columns: Iterable[str], *, rows: int | None = None) -> pl.LazyFrame:
        """Return some columns; numbers of any length as the shortest text that says them.

        Raises
        ------
        SourceError
            A column is of a type that cannot be read.
        """
        import polars as pl

        wanted = list(columns)
        for column in wanted:
            if why := self.refused.get(column):
                raise SourceError(f"{self.name}: column {column!r} {why}.", hint="write so in the query.")
        found = pl.scan_parquet(self.path, glob=False, hive_partitioning=False).select(wanted)
        return found.with_columns(plain_decimals(pl.col(column)) for column in wanted if column in self.exact)

    def type_of(self, column: str) -> pl.DataType:
        """Return the type of a column: text that holds numbers is numbers."""
        import polars as pl

        return pl.Float64() if column in self.exact else super().type_of(column)

    def state(self) -> object:
        """Return what the file of its rows is known by."""
        return file_state(self.path)


def ask(table: Table, section: str, *, key: Sequence[str], staging: Staging, databases: Databases) -> QueryPart:
    """Return the rows of a query.

    Memory: some tens of megabytes, however many rows there are and however wide they are.

    Parameters
    ----------
    table, section
        Section of the spec that has the query, and its name.
    key
        Columns that identify a row, in messages.
    staging
        Folder that gets the file of the rows.
    databases
        Connections that are open.

    Raises
    ------
    SourceError
        The database cannot be reached or refuses the query; or two columns have one name.
    """
    assert table.database is not None
    assert table.uri_env is not None
    assert table.query is not None
    name = f"query of [{section}]"
    path = staging.new_file(f"{section}.parquet")
    asked = databases.answer(table.database, table.uri_env, table.query, table.parameters, name=name)
    with closing(asked) as batches:
        first = next(batches)
        writing = _Writing(first.schema, name, path)
        with writing:
            writing.add(first)
            for batch in batches:
                writing.add(batch)
    return QueryPart(
        name, {}, tuple(key), path, tuple(first.schema.names), frozenset(writing.exact), dict(writing.refused)
    )


class _Writing:
    """The file of an answer in the making."""

    def __init__(self, schema: pa.Schema, name: str, path: Path) -> None:
        import pyarrow as pa

        twice = [column for column, times in Counter(schema.names).items() if times > 1]
        if twice:
            raise SourceError(
                f"{name}: two columns are called {twice[0]!r}.", hint="give one of them another name, with AS."
            )
        self._fields = list(schema)
        found = {field.name: stored_column(field) for field in schema}
        self.exact = [column for column, of in found.items() if of.exact]
        self.refused = {column: of.why for column, of in found.items() if of.type is None}
        self._schema = pa.schema([(column, of.type) for column, of in found.items() if of.type is not None])
        self._path, self._stack = path, ExitStack()
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._size = 0

    def __enter__(self) -> None:
        import pyarrow.parquet as pq

        self._writer = self._stack.enter_context(pq.ParquetWriter(self._path, self._schema, compression="zstd"))

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        with self._stack:
            if kind is None:
                self._write()

    def add(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        import pyarrow as pa

        cells = [
            stored_cells(batch.column(place), field, self._schema.field(field.name).type)
            for place, field in enumerate(self._fields)
            if field.name in self._schema.names
        ]
        for field, column in zip(self._schema, cells, strict=True):
            if beyond_calendar(column):
                self.refused[field.name] = (
                    f"holds dates beyond any calendar; NULLIF({field.name}, 'infinity') holds none"
                )
        self._waiting.append(pa.record_batch(cells, schema=self._schema))
        self._rows, self._size = self._rows + batch.num_rows, self._size + self._waiting[-1].nbytes
        if self._rows >= _GROUP or self._size >= _BYTES:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting, self._rows, self._size = [], 0, 0
