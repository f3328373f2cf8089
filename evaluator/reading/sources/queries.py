"""Tables that a database answers with: asked once, and read from a file of the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evaluator.errors import SourceError
from evaluator.log.log_files import file_state
from evaluator.reading.labels import plain_decimals
from evaluator.reading.sources.databases import Databases
from evaluator.reading.sources.files import Staging
from evaluator.reading.sources.part import KeyedPart, is_plain, is_text, plain_cells, plain_type
from evaluator.reading.spec_sections import Table

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

# Rows of a group of the file, and bytes of one whose rows are wide.
_GROUP, _BYTES = 65_536, 32 * 1024 * 1024
# Types of PostgreSQL that its driver hands over as other numbers than they are: cents, and 32 bits with a sign.
_DISGUISED = {b"money": "numeric", b"oid": "bigint", b"xid": "text", b"cid": "text"}
# Days beyond which no calendar goes, in which "infinity" comes.
_LAST_DAY = 95_000_000


@dataclass(frozen=True)
class QueryPart(KeyedPart):
    """The rows that a query gave.

    `path` is the Parquet file of the rows; it holds `exact` columns, decimal numbers of any length, as text, and no
    `refused` ones, each with why.
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

        Raises SourceError if a column is of a type that cannot be read.
        """
        import polars as pl

        wanted = list(columns)
        for column in wanted:
            if why := self.refused.get(column):
                raise SourceError(f"{self.name}: column {column!r} {why}.", remedy="write so in the query.")
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

    Memory: some tens of megabytes, however many rows there are and however wide they are. `section` is the name of the
    section that has the query; `key` identifies a row in messages; `staging` gets the file of the rows. Raises
    SourceError if the database cannot be reached or refuses the query, or if two columns have one name.
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
                f"{name}: two columns are called {twice[0]!r}.", remedy="give one of them another name, with AS."
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


class StoredColumn(NamedTuple):
    """How a column is written.

    Its Arrow type in the file is None where it cannot be read, and `why` says so, and how to write the query; `exact`
    ones hold decimal numbers of any length, as text.
    """

    type: pa.DataType | None
    exact: bool = False
    why: str = ""


def stored_column(field: pa.Field) -> StoredColumn:
    """Return how a column of a database's answer is written."""
    import pyarrow as pa

    kind = field.type
    named = (field.metadata or {}).get(b"POSTGRESQL:type", b"")
    if named in _DISGUISED:
        return _refused(field.name, named.decode(), f"CAST({field.name} AS {_DISGUISED[named]})")
    if isinstance(kind, pa.BaseExtensionType):
        if getattr(kind, "type_name", None) == "numeric":
            return StoredColumn(pa.string(), exact=True)
        if is_plain(plain := plain_type(kind)):
            return StoredColumn(plain)
        if is_text(kind.storage_type):
            return StoredColumn(pa.string())
        return _refused(field.name, str(getattr(kind, "type_name", kind.extension_name)))
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return stored_column(pa.field(field.name, kind.value_type))
    if pa.types.is_decimal256(kind):
        return StoredColumn(plain_type(kind))
    if is_text(kind) or pa.types.is_null(kind):
        return StoredColumn(pa.string())
    if pa.types.is_timestamp(kind):
        return StoredColumn(pa.timestamp(kind.unit, None if kind.tz is None else "UTC"))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        of = stored_column(kind.value_field)
        plain = of.type is not None and not of.exact and not pa.types.is_nested(of.type)
        return StoredColumn(pa.list_(of.type)) if plain else _refused(field.name, str(kind))
    if pa.types.is_interval(kind) or pa.types.is_duration(kind):
        return _refused(field.name, "an interval", f"EXTRACT(EPOCH FROM {field.name})")
    if pa.types.is_nested(kind) or pa.types.is_time(kind):
        return _refused(field.name, str(kind))
    return StoredColumn(kind)


def stored_cells(column: pa.Array, field: pa.Field, to: pa.DataType) -> pa.Array:
    """Return cells as they are written.

    `field` describes the cells of the answer; `to` is the type to write, of `stored_column`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_plain(plain_type(column.type)):
        column = plain_cells(column, plain_type(column.type))
    elif isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if (field.metadata or {}).get(b"POSTGRESQL:type") == b"bpchar":  # char(n), whose blanks at the end mean nothing
        column = pc.utf8_rtrim(column, " ")
    return column if column.type == to else column.cast(to)


def beyond_calendar(column: pa.Array) -> bool:
    """Return whether a column of dates holds one that no calendar has, as "infinity" is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_date32(column.type) or column.null_count == len(column):
        return False
    ends = pc.min_max(column.cast(pa.int32()))
    return not -_LAST_DAY <= ends["min"].as_py() <= ends["max"].as_py() <= _LAST_DAY


def _refused(column: str, what: str, instead: str = "") -> StoredColumn:
    return StoredColumn(None, why=f"holds {what}, which cannot be read; {instead or f'CAST({column} AS text)'} can")
