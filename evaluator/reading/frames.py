"""Read the needed columns of a source chunk by chunk, in file order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.errors import SourceError, nearest
from evaluator.reading.cells import TYPES, WHOLE, Cells, Kind, in_calendar, parse
from evaluator.reading.conditions import Condition, all_met, columns_of, conditions
from evaluator.reading.json_lines import BROKEN, key_names, object_frames
from evaluator.reading.row_breaches import FILE, LINE
from evaluator.reading.sources.files import SourceFile, natural
from evaluator.reading.sources.part import KeyedPart, TablePart
from evaluator.reading.spec_sections import Table, Time
from evaluator.reading.text import Unpacked, refuse_illegal
from evaluator.reading.text_rows import CELLS, Header, delimiter, refuse_open_quote, text_frames, text_header
from evaluator.reading.vw.decision_frames import NO_DECISION, decision_columns, decision_frames
from evaluator.reading.zones import Cell, ZonedCells, ZonesSeen, first_of_each

# Small enough that a chunk's columns and copies are tens of MB, large enough that work done once a chunk costs nothing.
CHUNK_ROWS = 100_000
UNPARSED = "__unparsed_"
# What Polars raises at a damaged file; where it panics, that is no Exception.
_BEYOND = (pl.UInt64(), pl.Int128())
# Of a column, and whether they say their zone, the first row of such times in a chunk, and its cell.
Zoned = dict[tuple[str, bool], tuple[int, str]]
# As what the columns of conditions are read: their texts tell values apart.
_CONDITION: Kind = "category"
UNREADABLE = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


@dataclass(frozen=True)
class Chunks:
    """The columns `kinds` of all files, as frames of `CHUNK_ROWS` rows; iterating again reads the files again.

    Beside the columns a frame has `FILE` (index), `LINE` (1-based, header included) and, for a column with cells that
    do not fit its kind, `UNPARSED` + column: their text, null elsewhere. Where rows have too few or too many cells,
    `CELLS` says how many, in words, null elsewhere. Text files are read as text, so that such a cell is at hand with
    its line when it is met, in one pass and in the memory of a chunk.

    Parameters
    ----------
    files, source
        Files to read, and how the spec says to read them: all rows, or those that ``where`` means.
    kinds
        Kind of each column to read, by name.
    limit
        Number of rows to read, the first ones; None reads all.
    time
        ``[time]`` of the spec, which says how dates are written; None for ISO 8601.
    separator
        Text between the labels of a cell that lists some; None for JSON arrays.
    passed_over
        Gets, by the name of its file, the number of lines that are no row and no fault, or not meant, by what they are.
    zones
        Gets the first times that say their zone, and those that do not.
    optional
        Columns that a file may lack: they are missing on all of its rows.

    Raises
    ------
    SourceError
        Raised while iterating: a file is truncated, lacks a column, or has the wrong delimiter.
    """

    files: list[TablePart]
    source: Table
    kinds: Mapping[str, Kind]
    limit: int | None = None
    time: Time | None = None
    separator: str | None = None
    passed_over: dict[str, Counter[str]] = field(default_factory=dict)
    zones: ZonesSeen = field(default_factory=ZonesSeen)
    optional: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return of_equal_size(self._frames(), CHUNK_ROWS)

    def empty(self) -> pl.DataFrame:
        """Return a frame without rows."""
        return pl.DataFrame(schema={FILE: pl.Int32, LINE: pl.Int64, **{c: TYPES[k] for c, k in self.kinds.items()}})

    def collect(self) -> pl.DataFrame:
        """Return all rows as one frame."""
        whole: pl.DataFrame = pl.concat([self.empty(), *self], how="diagonal")
        return whole

    def _frames(self) -> Iterator[pl.DataFrame]:
        # A missing column is told before reading.
        read = {**dict.fromkeys(columns_of(self.source.where), _CONDITION), **self.kinds}
        tables = [_table(file, self.source, read, self.optional) for file in self.files]
        _require_keys(tables)
        left, before = self.limit, 0
        for index, table in enumerate(tables):
            line = table.first_line
            # Counted anew whenever the files are read again.
            passed_over = self.passed_over[table.file.name] = Counter()
            meant = conditions(self.source.where) if self.source.where else []
            batches = table.batches(None if meant else left, before, passed_over)
            unpacked = Unpacked(table.file.path, table.file.name) if isinstance(table.file, SourceFile) else None
            while not (meant and left == 0) and (found := self._next(batches, table.file, unpacked, meant, line)):
                frame, zoned, rows = found
                if rows > frame.height:
                    passed_over[f"not where {self.source.where}"] += rows - frame.height
                self.zones.join(self._placed(zoned, table.file, frame, line))
                frame = frame if left is None else frame.head(left)
                where: dict[str, npt.NDArray[Any]] = {FILE: np.full(frame.height, index, np.int32)}
                if LINE not in frame.columns:
                    where[LINE] = np.arange(line, line + frame.height)
                line += rows
                before += frame.height
                yield frame.hstack(pl.DataFrame(where))
                left = None if left is None else left - frame.height
            if left == 0:
                return

    def _next(
        self,
        batches: Iterator[pl.DataFrame],
        file: TablePart,
        unpacked: Unpacked | None,
        meant: Sequence[Condition],
        line: int,
    ) -> tuple[pl.DataFrame, Zoned, int] | None:
        """Return the next rows that are `meant`, their zones, and how many rows were read; None behind the last."""
        try:
            raw = _next_rows(batches, file)
            if raw is None:
                return None
            if unpacked is not None:
                unpacked.add_frame(raw)
            rows = raw.height
            if meant:
                numbers = [] if LINE in raw.columns else [pl.Series(LINE, np.arange(line, line + rows))]
                raw = raw.with_columns(numbers).filter(self._is_meant(raw, meant, file))
            return *self._parsed(raw, file), rows
        except SourceError:
            raise
        except UNREADABLE as error:
            if isinstance(file, SourceFile) and file.is_text:
                refuse_illegal(file.path, self.source.encoding)
                refuse_open_quote(file, self.source)
            raise file.unreadable(error) from None

    def _is_meant(self, raw: pl.DataFrame, meant: Sequence[Condition], file: TablePart) -> pl.Series:
        """Return which rows meet the conditions, or are no rows of the table: these are told."""
        kept = all_met(meant, lambda column: self._cells(raw, column, _CONDITION, file).values)
        for marks in (CELLS, BROKEN, NO_DECISION):
            kept = kept | raw[marks].is_not_null() if marks in raw.columns else kept
        return kept

    def _parsed(self, raw: pl.DataFrame, file: TablePart) -> tuple[pl.DataFrame, Zoned]:
        columns, zoned = [], {}
        for name, kind in self.kinds.items():
            cells = self._cells(raw, name, kind, file)
            columns.append(cells.values.alias(name))
            if cells.unparsed is not None:
                columns.append(cells.unparsed.alias(UNPARSED + name))
            for said, row in first_of_each(cells.aware, cells.values) if kind == "datetime" else ():
                zoned[name, said] = row, str(_raw(raw, name, file)[row])
        columns += [raw[name] for name in (LINE, BROKEN, NO_DECISION, CELLS) if name in raw.columns]
        return pl.DataFrame(columns), zoned

    def _placed(self, zoned: Zoned, file: TablePart, frame: pl.DataFrame, line: int) -> ZonedCells:
        """Return the first times of a chunk that come before the first ones known of their kind, with their places."""
        found, of_file = {}, tuple(natural(file.name))
        for of, (row, cell) in zoned.items():
            order = of_file, int(frame[LINE][row]) if LINE in frame.columns else line + row
            if of not in self.zones.found or order < self.zones.found[of].order:
                found[of] = Cell(order, f"{file.places([order[1]])[0]}: {cell!r}")
        return found

    def _cells(self, raw: pl.DataFrame, name: str, kind: Kind, file: TablePart) -> Cells:
        found, zone = _raw(raw, name, file), None
        if file.is_text and kind not in ("text", "category"):  # empty ones of these are missing in every source
            empty = found == ""
            found = found.set(empty, None) if empty.any() else found  # quoted or not, an empty cell is missing
        if not in_calendar(found):
            hint = "repair or drop those rows: later steps would stumble over them."
            raise SourceError(f"{file.name}: column {name!r} holds times beyond any calendar.", remedy=hint)
        if self.time is not None and kind == "datetime":
            of = self.time.offset_of(name)
            zone = self.time.zone_of(name) if of is None else self._cells(raw, of, "offset", file).values
        form = None if self.time is None else self.time.format_of(name)
        return parse(found, kind, missing_values(self.source, name), form, separator=self.separator, zone=zone)


def _raw(raw: pl.DataFrame, name: str, file: TablePart) -> pl.Series:
    if name in raw.columns and name not in file.partitions:
        return raw[name]
    # The value of its folder, or nothing where a file lacks a column that others have.
    return pl.repeat(file.partitions.get(name), raw.height, dtype=pl.String, eager=True)


def _next_rows(batches: Iterator[pl.DataFrame], part: TablePart) -> pl.DataFrame | None:
    """Return the next rows, None behind the last; what holds no files raises whatever its library does."""
    try:
        return next(batches, None)
    except Exception as error:
        if isinstance(part, KeyedPart):
            raise part.unreadable(error) from None
        raise


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


def missing_values(source: Table, column: str) -> list[str]:
    """Return what means "none" in a column."""
    values = source.none.get(column, []) if isinstance(source.none, dict) else source.none
    return [str(v) for v in values]


def column_names(file: TablePart, source: Table) -> list[str]:
    """Return the columns that a part of a table offers, hive partitions included."""
    if isinstance(file, SourceFile) and file.is_text:
        names = text_header(file, source).names
    elif isinstance(file, SourceFile) and file.is_lines:
        names = _keys(file, source)
    else:
        try:
            names = file.names()
        except UNREADABLE as error:
            raise file.unreadable(error, opening=True) from None
    return [*names, *(p for p in file.partitions if p not in names)]


def number_columns(files: Sequence[TablePart], source: Table, columns: Iterable[str]) -> dict[str, Kind]:
    """Return the kinds of the columns that hold numbers in all files, by name; text files say no types.

    Whole numbers beyond 64 bits with a sign are none.
    """
    kinds: dict[str, Kind] = {}
    if any(file.is_text or file.is_lines for file in files):
        return kinds
    for column in columns:
        found = [kind for file in files if (kind := _type_of(column, file, source)) is not None]
        if found and all(
            kind.is_float() or kind.is_decimal() or (kind.is_integer() and kind not in _BEYOND) for kind in found
        ):
            kinds[column] = "int" if all(kind.is_integer() for kind in found) else "float"
    return kinds


def _type_of(column: str, file: TablePart, source: Table) -> pl.DataType | None:
    """Return the type of a column of a file that says types; None of one that it lacks, which is told later."""
    if column in file.partitions:
        return pl.String()
    if column not in column_names(file, source):
        return None
    return file.type_of(column)


@dataclass(frozen=True)
class _Table:
    """How one part is read: its columns in file order, where its rows are lines, and those that are wanted."""

    file: TablePart
    source: Table
    columns: list[str]
    wanted: dict[str, Kind]
    first_line: int
    header: Header | None = None

    def batches(self, limit: int | None, before: int, passed_over: Counter[str]) -> Iterator[pl.DataFrame]:
        """Return the wanted columns of the first rows, of a file behind `before` rows of others."""
        file = self.file
        if isinstance(file, SourceFile) and file.format == "jsonl":
            kinds = {**self.wanted, **dict.fromkeys(columns_of(self.source.where), _CONDITION)}
            return object_frames(file.path, self.source.encoding, kinds, CHUNK_ROWS, limit)
        if isinstance(file, SourceFile) and file.is_lines:
            return decision_frames(
                file.path, self.source.encoding, file.format, self.wanted, CHUNK_ROWS, limit,
                name=file.name, before=before, passed_over=passed_over,
            )  # fmt: skip
        if isinstance(file, SourceFile) and self.header is not None:
            return text_frames(file.path, self.source.encoding, self.header, list(self.wanted), limit=limit)
        scan = file.scan(self.wanted)
        return iter((scan if limit is None else scan.head(limit)).collect_batches(chunk_size=CHUNK_ROWS))


def _table(file: TablePart, source: Table, kinds: Mapping[str, Kind], optional: frozenset[str]) -> _Table:
    header = text_header(file, source) if isinstance(file, SourceFile) and file.is_text else None
    names = column_names(file, source) if header is None else header.names
    wanted = {column: kind for column, kind in kinds.items() if column not in file.partitions}
    if file.is_lines:
        return _Table(file, source, names, wanted, 1)
    wanted = {column: kind for column, kind in wanted.items() if column in names or column not in optional}
    _require([column for column in kinds if column not in optional], [*names, *file.partitions], file, source)
    if header is not None:
        assert isinstance(file, SourceFile)
        _refuse_quotes(header, file)
        return _Table(file, source, header.names, wanted, 1 + header.above + header.lines, header)
    for column, found in file.scan(wanted, rows=0).collect_schema().items():
        _refuse_type(file, column, found, kinds[column])
    # In the order of the file: another one is a step of its own for Polars, which then holds twice as many rows.
    return _Table(file, source, [], {column: wanted[column] for column in names if column in wanted}, 1)


def _refuse_type(file: TablePart, column: str, found: pl.DataType, kind: Kind) -> None:
    where = f"{file.name}: column {column!r}"
    if found == pl.Duration:
        wanted = "dates with times" if kind == "datetime" else "integers" if kind in WHOLE else "numbers or text"
        hint = "write them as whole numbers of ticks (time.unit; us where times are dates)."
        raise SourceError(f"{where} holds {found}, not {wanted}.", remedy=hint)
    if kind in WHOLE and found.is_temporal():
        raise SourceError(f"{where} holds {found}, not integers.", remedy='set time.unit = "datetime".')
    if kind == "datetime" and found == pl.Time:
        raise SourceError(f"{where} holds {found}, not dates with times.", remedy="write it as dates with times.")
    if kind == "float" and found.is_temporal():
        raise SourceError(f"{where} holds {found}, not numbers.", remedy="write it as numbers of some unit.")
    listed = isinstance(found, pl.List | pl.Array) and not found.inner.is_nested()
    if (found.is_nested() and not (kind == "labels" and listed)) or found in (pl.Binary, pl.Object):
        raise SourceError(
            f"{where} holds {found}: several values a cell, or bytes.", remedy="write one number or text a row."
        )


def _refuse_quotes(header: Header, file: SourceFile) -> None:
    """Refuse a header in which Polars finds other columns than csv: its rows would end elsewhere."""
    if '"' not in header.text:
        return
    try:
        found = pl.read_csv(
            (header.text.replace("\r", "\n") if header.returns else header.text).encode(),
            separator=header.delimiter,
            infer_schema=False,
            n_rows=0,
        ).columns
    except pl.exceptions.PolarsError:
        found = []
    if len(found) != len(header.names) or header.text.count('"') % 2:
        raise SourceError(
            f"{file.name}: the quotes of line 1 do not fit together.", remedy="check the names of the columns."
        )


def _require(kinds: Iterable[str], names: list[str], file: TablePart, source: Table) -> None:
    missing = [c for c in kinds if c not in names]
    if not missing:
        return
    if len(names) == 1 and isinstance(file, SourceFile) and file.is_text:
        raise SourceError(
            f"{file.name}: one column found where the spec needs {len(list(kinds))}.",
            remedy=f"check source.delimiter (now {delimiter(file, source)!r}).",
        )
    raise SourceError(f"{file.name}: no column {missing[0]!r}.", remedy=nearest(missing[0], names))


def _require_keys(tables: list[_Table]) -> None:
    """Refuse a column that no object of the files has: one may lack what it has no value of, but not all."""
    objects = [table for table in tables if table.file.is_lines]
    lacking = {column for table in objects for column in table.wanted}.difference(*(table.columns for table in objects))
    for table in objects if lacking else ():
        lacking.difference_update(_keys(table.file, table.source, until=lacking))
    if lacking:
        _require(sorted(lacking), objects[0].columns, objects[0].file, objects[0].source)


def _keys(file: TablePart, source: Table, *, until: Iterable[str] = ()) -> list[str]:
    """Return the columns that rows of a file name themselves, those of the first ones; read on until some are found."""
    assert isinstance(file, SourceFile)
    if file.format == "jsonl":
        return key_names(file.path, source.encoding, until=until)
    return decision_columns(file.path, source.encoding, file.format, until=until)
