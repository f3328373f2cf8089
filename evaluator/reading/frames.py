"""Read the needed columns of a source chunk by chunk, in file order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.errors import SourceError, nearest
from evaluator.reading.cells import (
    NUMBERS,
    TYPES,
    WHOLE,
    Cell,
    Cells,
    Kind,
    ZonedCells,
    ZonesSeen,
    first_of_each,
    in_calendar,
    label_lists,
    parse,
)
from evaluator.reading.json_lines import (
    BROKEN,
    element_type,
    field_of,
    field_type,
    flat_columns,
    key_names,
    no_list,
    object_frames,
    path_of,
    with_elements,
    within,
)
from evaluator.reading.labels import Remembered, coded
from evaluator.reading.row_breaches import FILE, LINE
from evaluator.reading.sources.files import SourceFile, natural
from evaluator.reading.sources.part import KeyedPart, TablePart
from evaluator.reading.spec_sections import ORDER, Table, Time, all_met, columns_of, conditions
from evaluator.reading.text import Unpacked, refuse_illegal
from evaluator.reading.text_rows import CELLS, Header, delimiter, refuse_open_quote, text_frames, text_header
from evaluator.reading.vw.decision_frames import NO_DECISION, decision_columns, decision_frames

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
    """The columns `kinds` of all files, as frames of about `CHUNK_ROWS` rows; iterating again reads the files again.

    Beside the columns a frame has `FILE` (index), `LINE` (1-based, header included) and, for a column with cells that
    do not fit its kind, `UNPARSED` + column: their text, null elsewhere. Where rows have too few or too many cells,
    `CELLS` says how many, in words, null elsewhere. Where a cell of a text file is no number, rows are read as text, so
    that it is at hand with its line when it is met, in one pass and in the memory of a chunk.

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
    coded
        Columns of categories that are read as codes: functions that take n values and return their codes, and behind
        them that of a missing one, shape (n + 1,).

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
    coded: Mapping[str, Callable[[pl.Series], npt.NDArray[Any]]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return of_similar_size(self._frames(), CHUNK_ROWS)

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
        read.pop(ORDER, None)
        tables = [_table(file, self.source, read, self.optional, self.files) for file in self.files]
        _require_keys(tables)
        chosen = self.source.where is not None or self.source.explode is not None
        left, before = self.limit, 0
        for index, table in enumerate(tables):
            line = table.first_line
            # Counted anew whenever the files are read again.
            passed_over = self.passed_over[table.file.name] = Counter()
            batches = table.batches(None if chosen else left, before, passed_over)
            unpacked = Unpacked(table.file.path, table.file.name) if isinstance(table.file, SourceFile) else None
            while not (chosen and left == 0) and (found := self._next(batches, table, unpacked, line)) is not None:
                frame, zoned, rows, others = found
                if others:
                    passed_over[f"not where {self.source.where}"] += others
                self.zones.join(self._placed(zoned, table.file, frame, line))
                frame = frame if left is None else frame.head(left)
                where: dict[str, npt.NDArray[Any]] = {FILE: np.full(frame.height, index, np.int32)}
                if ORDER in self.kinds:
                    where[ORDER] = np.arange(before, before + frame.height)
                if LINE not in frame.columns:
                    where[LINE] = np.arange(line, line + frame.height)
                line += rows
                before += frame.height
                yield frame.hstack(pl.DataFrame(where))
                left = None if left is None else left - frame.height
            if left == 0:
                return

    def _next(
        self, batches: Iterator[pl.DataFrame], table: _Table, unpacked: Unpacked | None, line: int
    ) -> tuple[pl.DataFrame, Zoned, int, int] | None:
        """Return the next rows that are meant, their zones, and how many rows were read and not meant; None at the end.

        The first of them is in line `line`.
        """
        file = table.file
        try:
            raw = _next_rows(batches, file)
            if raw is None:
                return None
            if unpacked is not None:
                unpacked.add_frame(raw)
            rows, others = raw.height, 0
            if not table.is_plain:
                raw = table.flat(raw, line)
            if self.source.where is not None:
                meant = self._is_meant(raw, file)
                others = int((~meant).sum())
                raw = raw.filter(meant) if others else raw
            return *self._parsed(raw, file), rows, others
        except SourceError:
            raise
        except UNREADABLE as error:
            if isinstance(file, SourceFile) and file.is_text:
                refuse_illegal(file.path, self.source.encoding)
                refuse_open_quote(file, self.source)
            raise file.unreadable(error) from None

    def _is_meant(self, raw: pl.DataFrame, file: TablePart) -> pl.Series:
        """Return which rows meet the conditions, or are no rows of the table: these are told."""
        meant = conditions(str(self.source.where))
        return all_met(meant, lambda column: self._cells(raw, column, _CONDITION, file).values) | _is_marked(raw)

    def _parsed(self, raw: pl.DataFrame, file: TablePart) -> tuple[pl.DataFrame, Zoned]:
        columns, zoned = [], {}
        for name, kind in self.kinds.items():
            if name == ORDER:
                continue
            if name in self.coded:
                columns.append(pl.Series(name, self._codes(raw, name, file)))
                continue
            cells = self._cells(raw, name, kind, file)
            columns.append(cells.values.alias(name))
            if cells.unparsed is not None:
                columns.append(cells.unparsed.alias(UNPARSED + name))
            for said, row in first_of_each(cells.aware, cells.values) if kind == "datetime" else ():
                zoned[name, said] = row, str(_raw(raw, name, file)[row])
        columns += [raw[name] for name in (LINE, BROKEN, NO_DECISION, CELLS) if name in raw.columns]
        return pl.DataFrame(columns).rechunk(), zoned

    def _codes(self, raw: pl.DataFrame, name: str, file: TablePart) -> npt.NDArray[Any]:
        """Return the codes of a column."""
        cells = _raw(raw, name, file)
        if cells.dtype != pl.String:
            cells = self._cells(raw, name, self.kinds[name], file).values
        return self._coders[name](cells)

    @cached_property
    def _coders(self) -> dict[str, Remembered]:
        return {name: Remembered(partial(self._codes_of, name)) for name in self.coded}

    def _codes_of(self, name: str, cells: pl.Series) -> npt.NDArray[Any]:
        """Return the codes of texts: each distinct one is parsed once."""
        labels, code = coded(cells)
        values = parse(pl.Series(labels), self.kinds[name], missing_values(self.source, name)).values
        return self.coded[name](values)[code]

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
        if file.is_text and found.dtype == pl.String and kind not in ("text", "category"):
            empty = found == ""  # quoted or not, an empty cell is missing; of these kinds in every source
            found = found.set(empty, None) if empty.any() else found
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


def of_similar_size(frames: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Yield the rows of some frames as frames of about `rows` rows, from half as many, but for the last one, to 1.5.

    A frame of such a size stays itself: to cut frames and to join them copies them.
    """
    waiting: list[pl.DataFrame] = []
    height = 0
    for frame in chain(frames, [None]):
        if frame is not None:
            waiting.append(frame)
            height += frame.height
        if height and (frame is None or 2 * height >= rows):
            whole = waiting[0] if len(waiting) == 1 else pl.concat(waiting, how="diagonal")
            yield from whole.iter_slices(-(-height // max(round(height / rows), 1)))
            waiting, height = [], 0


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
    names = column_names(file, source)
    asked = [column, *([] if source.explode is None else [source.explode])]
    paths = {name: path for name in asked if (path := path_of(name, names)) is not None}
    if asked == [column] and paths.get(column) == (column,):
        return file.type_of(column)  # of a database's decimals, which are kept as text, numbers
    return _types(file, source, paths).get(column) if column in paths else None


@dataclass(frozen=True)
class _Table:
    """How one part is read: its columns in file order, where its rows are lines, and those that are wanted."""

    file: TablePart
    source: Table
    columns: list[str]
    wanted: dict[str, Kind]
    first_line: int
    header: Header | None = None
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether its rows and columns are those of the file."""
        within = any(len(path) > 1 for path in self.paths.values())
        return self.source.where is None and self.source.explode is None and not within

    @property
    def held(self) -> list[str]:
        """The columns of the file that hold those that are wanted, in the order of the file.

        Another one is a step of its own for Polars, which then holds twice as many rows.
        """
        roots = {path[0] for path in self.paths.values()}
        return [column for column in dict.fromkeys(self.columns) if column in roots]

    def flat(self, raw: pl.DataFrame, line: int) -> pl.DataFrame:
        """Return rows with their numbers, each wanted column by itself, and one for each element that makes a row.

        The first row is in line `line`.
        """
        if LINE not in raw.columns:
            raw = raw.with_columns(pl.Series(LINE, np.arange(line, line + raw.height)))
        if self.file.is_lines:  # objects are flat when they are read
            return raw
        explode = self.source.explode
        if explode is not None:
            raw = with_elements(raw, self._lists(raw, self.paths[explode]), also=_is_marked(raw))
        columns = {name: raw[name] for name in (LINE, CELLS) if name in raw.columns}
        return pl.DataFrame(columns | flat_columns(raw, self.paths, () if explode is None else self.paths[explode]))

    def _lists(self, raw: pl.DataFrame, path: Sequence[str]) -> pl.Series:
        """Return the lists whose elements make rows; those of text are JSON arrays."""
        cells = field_of(raw[path[0]], path[1:])
        if cells.dtype != pl.String:
            return cells.cast(pl.List(element_type(cells.dtype)))  # type: ignore[arg-type]
        lists, failed = label_lists(cells.set((cells == "") | _is_marked(raw), None), None)
        if failed is not None:
            row = int(failed.is_not_null().arg_true()[0])
            raise no_list(self.file.places([int(raw[LINE][row])])[0], str(self.source.explode), failed[row])
        return lists

    def batches(self, limit: int | None, before: int, passed_over: Counter[str]) -> Iterator[pl.DataFrame]:
        """Return the wanted columns of the first rows, of a file behind `before` rows of others."""
        file = self.file
        if isinstance(file, SourceFile) and file.format == "jsonl":
            kinds = {**self.wanted, **dict.fromkeys(columns_of(self.source.where), _CONDITION)}
            # A key with a dot may be the path to one within another.
            nested = any("." in column and path_of(column, {*self.columns} - {column}) for column in kinds)
            nested |= any("." in column and column not in self.columns for column in kinds)
            return object_frames(
                file.path, self.source.encoding, kinds, CHUNK_ROWS, limit, nested=nested, explode=self.source.explode
            )
        if isinstance(file, SourceFile) and file.is_lines:
            return decision_frames(
                file.path, self.source.encoding, file.format, self.wanted, CHUNK_ROWS, limit,
                name=file.name, before=before, passed_over=passed_over,
            )  # fmt: skip
        if isinstance(file, SourceFile) and self.header is not None:
            numbers = {c: TYPES[kind] for c, kind in self.wanted.items() if kind in NUMBERS and self.is_plain}
            encoding = self.source.encoding
            return text_frames(file.path, encoding, self.header, self.held, limit=limit, numbers=numbers)
        scan = file.scan(self.held)
        return iter((scan if limit is None else scan.head(limit)).collect_batches(chunk_size=CHUNK_ROWS))


def _is_marked(raw: pl.DataFrame) -> pl.Series:
    """Return which rows are no rows of the table."""
    found = pl.repeat(False, raw.height, dtype=pl.Boolean, eager=True)
    for marks in (CELLS, BROKEN, NO_DECISION):
        found = found | raw[marks].is_not_null() if marks in raw.columns else found
    return found


def _table(
    file: TablePart, source: Table, kinds: Mapping[str, Kind], optional: frozenset[str], files: Sequence[TablePart]
) -> _Table:
    header = text_header(file, source) if isinstance(file, SourceFile) and file.is_text else None
    names = column_names(file, source) if header is None else header.names
    wanted = {column: kind for column, kind in kinds.items() if column not in file.partitions}
    if file.is_lines:
        if source.explode is not None and isinstance(file, SourceFile) and file.format != "jsonl":
            raise SourceError(f"{file.name}: {file.format} has no lists to explode.", remedy="leave `explode` out.")
        return _Table(file, source, names, wanted, 1)
    asked = [*wanted, *([] if source.explode is None or source.explode in wanted else [source.explode])]
    paths = {column: path for column in asked if (path := path_of(column, names)) is not None}
    if header is not None:  # whose cells hold no fields
        types: dict[str, pl.DataType] = {column: pl.String() for column, path in paths.items() if len(path) == 1}
    else:
        types = _types(file, source, paths)
    needed = [column for column in (*kinds, *asked) if column not in optional]
    _require(dict.fromkeys(needed), list(dict.fromkeys([*names, *types, *file.partitions])), file, source, files)
    paths = {column: path for column, path in paths.items() if column in types}
    wanted = {column: kind for column, kind in wanted.items() if column in types}
    table = _Table(file, source, names, wanted, 1, paths=paths)
    if header is not None:
        assert isinstance(file, SourceFile)
        _refuse_quotes(header, file)
        return replace(table, columns=header.names, first_line=1 + header.above + header.lines, header=header)
    for column, kind in wanted.items():
        _refuse_type(file, column, types[column], kind)
    return table


def _types(file: TablePart, source: Table, paths: Mapping[str, Sequence[str]]) -> dict[str, pl.DataType]:
    """Return the type of each column, or field, that a part with types has, by their `paths`."""
    schema = file.scan(dict.fromkeys(path[0] for path in paths.values()), rows=0).collect_schema()
    whole = {column: field_type(schema[path[0]], path[1:]) for column, path in paths.items()}
    explode = source.explode
    if explode is not None and (kind := whole.get(explode)) is not None:
        if (of := element_type(kind)) is None:
            raise no_list(file.name, explode, kind)
        depth = len(paths[explode])
        for column, path in paths.items():
            if path[:depth] == paths[explode]:
                whole[column] = field_type(of, path[depth:])
    return {column: kind for column, kind in whole.items() if kind is not None}


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
        raise SourceError(f"{where} holds {found}: several values a cell, or bytes.", remedy=within(column, found))


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


def _require(
    kinds: Iterable[str], names: list[str], file: TablePart, source: Table, files: Sequence[TablePart] = ()
) -> None:
    """Refuse a part that lacks a column; whether others of the `files` have it tells what to do."""
    missing = [c for c in kinds if c not in names]
    if not missing:
        return
    if len(names) == 1 and isinstance(file, SourceFile) and file.is_text:
        raise SourceError(
            f"{file.name}: one column found where the spec needs {len(list(kinds))}.",
            remedy=f"check source.delimiter (now {delimiter(file, source)!r}).",
        )
    has = next((of.name for of in files if of is not file and missing[0] in column_names(of, source)), None)
    if has is None:
        raise SourceError(f"{file.name}: no column {missing[0]!r}.", remedy=nearest(missing[0], names))
    raise SourceError(
        f"{file.name}: no column {missing[0]!r}, which {has} has.",
        remedy="add it, or leave the file out: what its rows would say there is not known.",
    )


def _require_keys(tables: list[_Table]) -> None:
    """Refuse a column that no object of the files has: one may lack what it has no value of, but not all."""
    objects = [table for table in tables if table.file.is_lines]
    asked = {column for table in objects for column in (*table.wanted, table.source.explode) if column is not None}
    lacking = asked.difference(*(table.columns for table in objects))
    for table in objects if lacking else ():
        lacking.difference_update(_keys(table.file, table.source, until=lacking))
    if lacking:
        _require(sorted(lacking), objects[0].columns, objects[0].file, objects[0].source)


def _keys(file: TablePart, source: Table, *, until: Iterable[str] = ()) -> list[str]:
    """Return the columns that rows of a file name themselves, those of the first ones; read on until some are found."""
    assert isinstance(file, SourceFile)
    if file.format == "jsonl":
        return key_names(file.path, source.encoding, until=until, explode=source.explode)
    return decision_columns(file.path, source.encoding, file.format, until=until)
