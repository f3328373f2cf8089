"""Read the needed columns of a source with the types their roles ask for."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import polars as pl

from evaluator.datasets.breaches import FILE, LINE, Breaches
from evaluator.datasets.files import SourceFile, delimiter, open_text, refuse_truncated, text_columns
from evaluator.datasets.spec import Source
from evaluator.errors import SourceError, nearest

Kind = Literal["int", "float", "text", "category", "datetime"]
TYPES: dict[Kind, type[pl.DataType] | pl.DataType] = {
    "int": pl.Int64, "float": pl.Float64, "text": pl.String, "category": pl.Categorical(), "datetime": pl.Int64,
}  # fmt: skip


def read_columns(
    files: list[SourceFile], source: Source, kinds: Mapping[str, Kind], *, limit: int | None, breaches: Breaches
) -> pl.DataFrame:
    """Return the columns `kinds` of all files, with `LINE` (1-based, header included) and `FILE` (index).

    Cells that do not fit their kind become null and are reported to `breaches`. Numbers are parsed by the reader;
    only if that fails is the source read again as text, to find the exact cells.

    Raises
    ------
    SourceError
        A file is truncated or ragged, lacks a column, or has the wrong delimiter.
    """
    try:
        frame = _collect(files, source, kinds, limit, as_text=False)
    except (pl.exceptions.ComputeError, pl.exceptions.InvalidOperationError, pl.exceptions.SchemaError):
        frame = _collect_text(files, source, kinds, limit)
    return _typed(frame, kinds, breaches)


def column_names(file: SourceFile, source: Source) -> list[str]:
    """Return the columns a file offers, hive partitions included."""
    if file.is_text:
        names = text_columns(file, source)
    else:
        try:
            names = _scan_binary(file).collect_schema().names()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise SourceError(
                f"{file.path}: not a readable {file.format} file ({_first_line(error)}).", hint="check source.format."
            ) from None
    return [*names, *(p for p in file.partitions if p not in names)]


def _collect(
    files: list[SourceFile], source: Source, kinds: Mapping[str, Kind], limit: int | None, *, as_text: bool
) -> pl.DataFrame:
    scans = [_scan(f, i, source, kinds, as_text=as_text) for i, f in enumerate(files)]
    lazy = pl.concat(scans)
    try:
        with _shared_categories():
            return (lazy if limit is None else lazy.head(limit)).collect()
    except OSError as error:
        for file in files:
            refuse_truncated(file.path)
        raise SourceError(f"{files[0].path}: cannot be read: {_first_line(error)}.", hint="check the file.") from None


def _shared_categories() -> AbstractContextManager[object]:
    """Let several files share their categories: newer versions of polars always do."""
    return nullcontext() if hasattr(pl, "Categories") else pl.StringCache()


def _collect_text(
    files: list[SourceFile], source: Source, kinds: Mapping[str, Kind], limit: int | None
) -> pl.DataFrame:
    try:
        return _collect(files, source, kinds, limit, as_text=True)
    except (pl.exceptions.ComputeError, pl.exceptions.SchemaError) as error:
        for file in files:
            refuse_truncated(file.path)  # some versions of polars call a truncated gzip a ComputeError
            if file.is_text:
                _refuse_ragged(file, source)
        raise SourceError(
            f"{files[0].path}: cannot be read: {_first_line(error)}.", hint="check source.format and source.delimiter."
        ) from None


def _scan(file: SourceFile, index: int, source: Source, kinds: Mapping[str, Kind], *, as_text: bool) -> pl.LazyFrame:
    names = column_names(file, source)
    _require(kinds, names, file, source)
    sentinels = {c: _sentinels(source, c) for c in kinds}
    parsed = {c: _read_type(kinds[c], sentinels[c], as_text=as_text) for c in kinds}
    if file.is_text:
        lazy = pl.scan_csv(
            file.path,
            separator=delimiter(file, source),
            has_header=source.header,
            schema={name: parsed.get(name, pl.String()) for name in names if name not in file.partitions},
            glob=False,
        )
        first = 2 if source.header else 1
    else:
        lazy, first = _scan_binary(file), 1
    lazy = lazy.select(c for c in kinds if c not in file.partitions).with_row_index(LINE, offset=first)
    lazy = lazy.with_columns(pl.lit(v, pl.String).alias(c) for c, v in file.partitions.items() if c in kinds)
    schema = lazy.collect_schema()
    return lazy.select(
        pl.lit(index, pl.Int32).alias(FILE),
        LINE,
        *(_plain(c, kinds[c], schema[c], parsed[c], sentinels[c]) for c in kinds),
    )


def _scan_binary(file: SourceFile) -> pl.LazyFrame:
    if file.format == "parquet":
        return pl.scan_parquet(file.path, glob=False, hive_partitioning=False)
    return pl.scan_ipc(file.path)


def _read_type(kind: Kind, sentinels: list[str], *, as_text: bool) -> pl.DataType:
    numeric = kind in ("int", "float") and all(_is_number(s) for s in sentinels)
    if kind == "category" and not as_text:
        return pl.Categorical()
    if not numeric or as_text:
        return pl.String()
    return pl.Int64() if kind == "int" else pl.Float64()


def _plain(column: str, kind: Kind, found: pl.DataType, wanted: pl.DataType, sentinels: list[str]) -> pl.Expr:
    """Return the column as its wanted type with sentinels as null."""
    value = pl.col(column)
    if found.is_temporal() and kind == "datetime":
        # Datetime columns need no parsing; they travel as ticks of us.
        return value.cast(pl.Datetime("us", getattr(found, "time_zone", None))).cast(pl.Int64).alias(column)
    if found.is_temporal() and kind == "int":
        raise SourceError(f"Column {column!r} holds {found}, not integers.", hint='set time.unit = "datetime".')
    if found != wanted:
        if wanted == pl.Categorical:
            value = value.cast(pl.String)
        if found == pl.Boolean and wanted == pl.String:
            value = value.cast(pl.Int8)
        value = value.cast(wanted)
    if not sentinels:
        return value
    if wanted.is_numeric():
        missing = pl.any_horizontal([value == float(s) for s in sentinels])
    else:
        missing = pl.any_horizontal([value == s for s in sentinels])
    return pl.when(missing).then(None).otherwise(value).alias(column)


def _typed(frame: pl.DataFrame, kinds: Mapping[str, Kind], breaches: Breaches) -> pl.DataFrame:
    """Convert text cells that stand for numbers or times; report those that do not."""
    for column, kind in kinds.items():
        text = frame[column]
        if kind in ("text", "category"):
            frame = frame.with_columns(text.cast(TYPES[kind])) if text.dtype != TYPES[kind] else frame
            continue
        if text.dtype != pl.String:
            continue
        if kind == "datetime":
            parsed = frame.select(_instant(column))[column]
            problem, repair = "not an ISO date and time", "write 2024-01-31T12:00:00+00:00, or set time.unit"
        else:
            parsed = text.str.strip_chars().cast(TYPES[kind], strict=False)
            word = "a whole number" if kind == "int" else "a number"
            problem, repair = f"not {word}", "repair the cell, list it in source.none, or quarantine the row"
        breaches.add(frame, column, parsed.is_null() & text.is_not_null(), problem, repair, values=text)
        frame = frame.with_columns(parsed.alias(column))
    return frame


def _instant(column: str) -> pl.Expr:
    text = pl.col(column).str.strip_chars().str.replace("T", " ", literal=True).str.replace("Z$", "+00:00")
    text = pl.when(text.str.len_chars() == 10).then(text + pl.lit(" 00:00:00")).otherwise(text)

    def parse(form: str) -> pl.Expr:
        return text.str.to_datetime(form, time_unit="us", strict=False).cast(pl.Int64)

    return pl.coalesce(parse("%Y-%m-%d %H:%M:%S%.f%:z"), parse("%Y-%m-%d %H:%M:%S%.f")).alias(column)


def _require(kinds: Iterable[str], names: list[str], file: SourceFile, source: Source) -> None:
    missing = [c for c in kinds if c not in names]
    if not missing:
        return
    if len(names) == 1 and file.is_text:
        raise SourceError(
            f"{file.path}: one column found where the spec needs {len(list(kinds))}.",
            hint=f"check source.delimiter (now {delimiter(file, source)!r}).",
        )
    raise SourceError(f"{file.path}: no column {missing[0]!r}.", hint=nearest(missing[0], names))


def _refuse_ragged(file: SourceFile, source: Source) -> None:
    width = len(text_columns(file, source))
    with open_text(file.path) as stream:
        reader = csv.reader(stream, delimiter=delimiter(file, source))
        for cells in reader:
            if len(cells) > width:
                raise SourceError(
                    f"{file.path} line {reader.line_num}: {len(cells)} cells where {width} are expected.",
                    hint="check source.delimiter and the quotes of that line.",
                )


def _sentinels(source: Source, column: str) -> list[str]:
    values = source.none.get(column, []) if isinstance(source.none, dict) else source.none
    return [str(v) for v in values]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
