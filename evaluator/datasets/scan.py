"""Read the needed columns of a source chunk by chunk, in file order."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from evaluator.datasets.breaches import FILE, LINE
from evaluator.datasets.cells import TYPES, Kind, parse
from evaluator.datasets.files import SourceFile, delimiter, open_text, refuse_truncated, text_columns
from evaluator.datasets.spec import Source
from evaluator.errors import SourceError, nearest

# Small enough that a chunk's columns and copies are tens of MB, large enough that work done once a chunk costs nothing.
CHUNK_ROWS = 100_000
UNPARSED = "__unparsed_"


@dataclass(frozen=True)
class Chunks:
    """The columns `kinds` of all files, as frames of `CHUNK_ROWS` rows; iterating again reads the files again.

    Beside the columns a frame has `FILE` (index), `LINE` (1-based, header included) and, for a column with cells that
    do not fit its kind, `UNPARSED` + column: their text, null elsewhere. Text files are read as text, so that such a
    cell is at hand with its line when it is met, in one pass and in the memory of a chunk.

    Parameters
    ----------
    files, source
        Files, and how to read them.
    kinds
        Columns and their kinds.
    limit
        Read the first n rows only.

    Raises
    ------
    SourceError
        While iterating: a file is truncated or ragged, lacks a column, or has the wrong delimiter.
    """

    files: list[SourceFile]
    source: Source
    kinds: Mapping[str, Kind]
    limit: int | None = None

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return of_equal_size(self._frames(), CHUNK_ROWS)

    def collect(self) -> pl.DataFrame:
        """Return all rows as one frame."""
        empty = pl.DataFrame(schema={FILE: pl.Int32, LINE: pl.Int64, **{c: TYPES[k] for c, k in self.kinds.items()}})
        whole: pl.DataFrame = pl.concat([empty, *self], how="diagonal")
        return whole

    def _frames(self) -> Iterator[pl.DataFrame]:
        scans = [_scan(file, self.source, self.kinds) for file in self.files]  # a missing column is told before reading
        left = self.limit
        for index, (file, scan) in enumerate(zip(self.files, scans, strict=True)):
            line = 2 if file.is_text and self.source.header else 1
            batches = iter((scan if left is None else scan.head(left)).collect_batches(chunk_size=CHUNK_ROWS))
            while (frame := self._next(batches, file)) is not None:
                where = {FILE: np.full(frame.height, index, np.int32), LINE: np.arange(line, line + frame.height)}
                line += frame.height
                yield frame.hstack(pl.DataFrame(where))
                left = None if left is None else left - frame.height
            if left == 0:
                return

    def _next(self, batches: Iterator[pl.DataFrame], file: SourceFile) -> pl.DataFrame | None:
        try:
            raw = next(batches, None)
            return None if raw is None else self._parsed(raw, file)
        except (OSError, pl.exceptions.PolarsError) as error:
            refuse_truncated(file.path)
            if file.is_text:
                _refuse_ragged(file, self.source)
            hint = "check source.format and source.delimiter."
            raise SourceError(f"{file.path}: cannot be read: {_first_line(error)}.", hint=hint) from None

    def _parsed(self, raw: pl.DataFrame, file: SourceFile) -> pl.DataFrame:
        columns = []
        for name, kind in self.kinds.items():
            given = file.partitions.get(name)
            found = raw[name] if given is None else pl.repeat(given, raw.height, dtype=pl.String, eager=True)
            cells = parse(found, kind, missing_values(self.source, name))
            columns.append(cells.values.alias(name))
            if cells.unparsed is not None:
                columns.append(cells.unparsed.alias(UNPARSED + name))
        return pl.DataFrame(columns)


def of_equal_size(frames: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Yield the rows of some frames as frames of exactly `rows` rows, and a last one with the rest."""
    waiting: list[pl.DataFrame] = []
    height = 0
    for frame in frames:
        waiting.append(frame)
        height += frame.height
        if height < rows:
            continue
        whole = frame if len(waiting) == 1 else pl.concat(waiting, how="diagonal")
        full = height - height % rows
        for start in range(0, full, rows):
            yield whole.slice(start, rows)
        waiting, height = [whole.slice(full)] if height > full else [], height - full
    if height:
        yield pl.concat(waiting, how="diagonal")


def missing_values(source: Source, column: str) -> list[str]:
    """Return what means "none" in a column."""
    values = source.none.get(column, []) if isinstance(source.none, dict) else source.none
    return [str(v) for v in values]


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


def _scan(file: SourceFile, source: Source, kinds: Mapping[str, Kind]) -> pl.LazyFrame:
    names = column_names(file, source)
    _require(kinds, names, file, source)
    if file.is_text:
        lazy = pl.scan_csv(
            file.path,
            separator=delimiter(file, source),
            has_header=source.header,
            schema={name: pl.String() for name in names if name not in file.partitions},
            glob=False,
        )
    else:
        lazy = _scan_binary(file)
        for column, found in lazy.collect_schema().items():
            if kinds.get(column) == "int" and found.is_temporal():
                hint = 'set time.unit = "datetime".'
                raise SourceError(f"Column {column!r} holds {found}, not integers.", hint=hint)
    return lazy.select(c for c in kinds if c not in file.partitions)


def _scan_binary(file: SourceFile) -> pl.LazyFrame:
    if file.format == "parquet":
        return pl.scan_parquet(file.path, glob=False, hive_partitioning=False)
    return pl.scan_ipc(file.path)


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


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
