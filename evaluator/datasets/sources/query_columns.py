"""Columns of what a database answers as columns of Parquet that the reader takes, whatever driver hands them over."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evaluator.datasets.sources.arrow_columns import is_plain, plain_cells, plain_type

if TYPE_CHECKING:
    import pyarrow as pa

# Types of PostgreSQL that its driver hands over as other numbers than they are: cents, and 32 bits with a sign.
_DISGUISED = {b"money": "numeric", b"oid": "bigint", b"xid": "text", b"cid": "text"}
# Days beyond which no calendar goes, in which "infinity" comes.
_LAST_DAY = 95_000_000


class StoredColumn(NamedTuple):
    """How a column is written.

    Parameters
    ----------
    type
        Arrow type of the column in the file; None where it cannot be read.
    exact
        Whether it holds decimal numbers of any length, as text.
    why
        Why it cannot be read, and how to write the query; empty where it can.
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
        if _is_text(kind.storage_type):
            return StoredColumn(pa.string())
        return _refused(field.name, str(getattr(kind, "type_name", kind.extension_name)))
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return stored_column(pa.field(field.name, kind.value_type))
    if pa.types.is_decimal256(kind):
        return StoredColumn(plain_type(kind))
    if _is_text(kind) or pa.types.is_null(kind):
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

    Parameters
    ----------
    column, field
        Cells of the answer, and the field that describes them.
    to
        Type to write, of `stored_column`.
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


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _refused(column: str, what: str, instead: str = "") -> StoredColumn:
    return StoredColumn(None, why=f"holds {what}, which cannot be read; {instead or f'CAST({column} AS text)'} can")
