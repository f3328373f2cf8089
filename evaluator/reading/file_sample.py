"""The first rows of a file whose format nobody has described: its encoding, delimiter, header and cells."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import ge
from pathlib import Path
from shlex import quote
from typing import Any

import polars as pl

from evaluator.errors import SourceError
from evaluator.reading.cells import Kind
from evaluator.reading.column_profile import GUESSED, Look
from evaluator.reading.frames import UNREADABLE, column_names
from evaluator.reading.json_lines import element_type, field_of, object_frames, path_of
from evaluator.reading.locate import bundled_logs
from evaluator.reading.sources.files import SUFFIXES, SourceFile, find_files
from evaluator.reading.spec import FileSpec, read_spec
from evaluator.reading.spec_sections import Source, columns_of, written_name, written_text
from evaluator.reading.text import COMPRESSIONS, UTF8, open_text, unzipped_pieces
from evaluator.reading.text_rows import delimiter, table_rows, text_header
from evaluator.store_addresses import refuse_secret

SAMPLE = 10_000
_DELIMITERS = (",", "\t", ";", "|")
_LINES = 50
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*")
_FORMAT_LINES = 50
# action:cost:probability, or the line that a decision's actions share, before what VowpalWabbit reads as features.
_VW = re.compile(r"(\d+:-?[\d.eE+-]+:[\d.eE+-]+\s.*\||shared\s*\|)")


@dataclass(frozen=True)
class FileSample:
    """The first rows of a file, or of the first one of a folder or glob.

    `source` has the keys of ``[source]`` that differ from their defaults, and ``files`` as it was given; `guesses` are
    the comments of those that were guessed. Cells are text, missing ones null, or of the file's own type; fields of
    objects are columns, ``user.country``. `unusable` are columns of bytes and of lists; each element of those in
    `lists` can make a row.
    """

    source: dict[str, Any]
    guesses: dict[str, str]
    columns: dict[str, pl.Series]
    rows: int
    whole: bool
    unusable: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    @property
    def conditions(self) -> list[str]:
        """Columns whose values say which rows are meant."""
        return columns_of(self.source.get("where"))

    def where(self, column: str, value: str, comment: str) -> FileSample:
        """Return the rows that have a value in a column, of a source that says so with a `comment`."""
        meant = self.columns[column].cast(pl.String).is_in([value])
        columns = {name: cells.filter(meant) for name, cells in self.columns.items()}
        source = self.source | {"where": f"{written_name(column)} = {written_text(value)}"}
        return replace(self, source=source, guesses=self.guesses | {"where": comment}, columns=columns)

    def exploded(self, column: str, comment: str) -> FileSample:
        """Return the file with a row of each element of a list, of a source that says so with a `comment`."""
        found = sample_file(self.source["files"], explode=column)
        return replace(found, guesses=found.guesses | {"explode": comment})


def sample_file(path: str | Path, *, explode: str | None = None) -> FileSample:
    """Return the first `SAMPLE` rows of a file, glob or folder, or a row of each element of a list in them.

    Memory: that of the rows and one megabyte. Raises SourceError if there is no such file, or it is no table.
    """
    refuse_secret(str(path))
    kind = None if _known(Path(path)) or not Path(path).is_file() else _kind_by_content(Path(path))
    file = find_files(Source.model_validate({"files": str(path), "format": kind}), Path())[0]
    given: dict[str, Any] = {"files": str(path)} | ({"format": kind} if kind else {})
    given |= {} if explode is None else {"explode": explode}
    if file.format in ("parquet", "ipc"):
        return _of_binary(file, given)
    refuse_decisions(file.path, file.name)
    given |= _encoding(file.path)
    guesses = {"encoding": GUESSED + "the bytes are no UTF-8"} if "encoding" in given else {}
    if file.format == "jsonl":
        return _of_objects(file, given, guesses)
    return _of_text(file, given, guesses)


def _known(path: Path) -> bool:
    suffix = Path(path.stem).suffix if path.suffix.lower() in COMPRESSIONS else path.suffix
    return suffix.lower() in SUFFIXES


def _kind_by_content(path: Path) -> str:
    """Tell from its content whether a text file such as .json holds objects or a table, and return that format."""
    return "jsonl" if next(unzipped_pieces(path), b"").lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") else "csv"


def _encoding(path: Path) -> dict[str, str]:
    """Return the encoding of the first megabyte as keys of [source], none for UTF-8."""
    start = next(unzipped_pieces(path), b"")
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return {"encoding": "utf-16"}
    for name in (UTF8, "windows-1252"):
        # The piece may end within a character.
        for cut in range(4):
            try:
                start[: len(start) - cut].decode(name)
            except UnicodeDecodeError:
                continue
            return {} if name == UTF8 else {"encoding": name}
    return {"encoding": "latin-1"}


def _of_text(file: SourceFile, given: dict[str, Any], guesses: dict[str, str]) -> FileSample:
    encoding = given.get("encoding", UTF8)
    separator, usual = _delimiter(file.path, encoding), "\t" if file.format == "tsv" else ","
    # Another one than the usual is known where the file names it itself.
    if delimiter(file, _as_source(given, file)) == usual != separator:
        given["delimiter"] = separator
        guesses["delimiter"] = GUESSED + "it cuts the first lines into equally many cells"
    source = _as_source(given, file)
    with open_text(file.path, encoding) as stream:
        rows = [row for row in islice(table_rows(file, source, stream), SAMPLE + 2) if row]
    whole = len(rows) <= SAMPLE + 1
    if rows and _is_data(rows):
        given |= {"header": False, "columns": [f"column_{k}" for k in range(1, len(rows[0]) + 1)]}
        guesses["header"] = GUESSED + "the first line holds numbers or dates; these names are made up"
    names = text_header(file, _as_source(given, file)).names
    rows = rows[0 if "header" in given else 1 :][:SAMPLE]
    cells = [[row[k] if k < len(row) and row[k] != "" else None for row in rows] for k in range(len(names))]
    columns = {name: pl.Series(found, dtype=pl.String) for name, found in zip(names, cells, strict=True) if name}
    return FileSample(given, guesses, columns, len(rows), whole)


def _as_source(given: dict[str, Any], file: SourceFile) -> Source:
    return Source.model_validate({**given, "format": file.format})


def _delimiter(path: Path, encoding: str) -> str:
    with open_text(path, encoding) as stream:
        lines = [line for line in islice(iter(lambda: stream.readline(1024 * 1024), ""), _LINES) if line.strip()]
    best, most = ",", 1
    for separator in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=separator) if row]
        except csv.Error:
            continue
        # The last row may be broken over lines that were not read.
        if widths and len(set(widths[:-1] or widths)) == 1 and widths[0] > most:
            best, most = separator, widths[0]
    return best


def _is_data(rows: Sequence[list[str]]) -> bool:
    """Whether the first row looks like those below it: a cell of a number or date where they have numbers or dates."""
    first, below = rows[0], rows[1:_LINES]
    return any(
        _NUMBER.fullmatch(cell) and all(_NUMBER.fullmatch(row[k]) for row in below if k < len(row) and row[k])
        for k, cell in enumerate(first)
    )


def _of_objects(file: SourceFile, given: dict[str, Any], guesses: dict[str, str]) -> FileSample:
    source = _as_source(given, file)
    names = column_names(file, source)
    # Objects are parsed with care, and once, for all that lies within others.
    within = [name for name in names if "." in name]
    columns = _object_cells(file, source, within)
    for name in names:
        columns |= {} if name in within else _object_cells(file, source, [name])
    if not columns:
        raise SourceError(f"{file.name}: no object of it holds a number or text.", remedy="check the export.")
    height = max(map(len, columns.values()))
    # A line that names a key twice has no list for that key.
    columns = {name: columns[name].head(SAMPLE) for name in names if len(columns.get(name, ())) == height}
    unusable = [name for name in names if name not in columns and not any(n.startswith(f"{name}.") for n in names)]
    lists = tuple(name for name in unusable if _valid(name))
    return FileSample(given, guesses, columns, min(height, SAMPLE), height <= SAMPLE, tuple(unusable), lists)


def _object_cells(file: SourceFile, source: Source, names: list[str]) -> dict[str, pl.Series]:
    """Return the text of those keys of the first objects that hold neither lists nor objects."""
    kinds: dict[str, Kind] = dict.fromkeys(filter(_valid, names), "text")
    if not kinds:
        return {}
    try:
        frames = object_frames(
            file.path, source.encoding, kinds, SAMPLE + 1, SAMPLE + 1,
            nested=any("." in name for name in kinds), explode=source.explode,
        )  # fmt: skip
        found = pl.concat(frames, how="diagonal")
    except SourceError:
        half = len(names) // 2
        return _object_cells(file, source, names[:half]) | _object_cells(file, source, names[half:]) if half else {}
    return {name: found[name].set(found[name] == "", None) for name in kinds}


def _valid(name: str) -> bool:
    """Whether a name is text that can be written, not half a pair of surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _of_binary(file: SourceFile, given: dict[str, Any]) -> FileSample:
    column_names(file, _as_source(given, file))  # tells what is no such file
    explode = given.get("explode")
    try:
        frame = file.scan(file.names()).head(SAMPLE + 1).collect()
    except UNREADABLE as error:
        said = str(error).strip().split("\n")[0].rstrip(".")
        raise SourceError(f"{file.name}: cannot be read: {said}.", remedy="check the download or export.") from None
    height = frame.height
    if explode is not None and not frame.is_empty():
        root, *fields = path_of(explode, frame.columns) or (explode,)
        cells = field_of(frame[root], fields)
        lists = cells.cast(pl.List(element_type(cells.dtype))).alias(explode)  # type: ignore[arg-type]
        frame = frame.drop(root).with_columns(lists).filter(lists.list.len() > 0).explode(explode)
    columns = {cells.name: cells for whole in frame.head(SAMPLE) for cells in _fields(whole) if cells.name}
    unusable = [name for name, c in columns.items() if c.dtype.is_nested() or c.dtype in (pl.Binary, pl.Object)]
    of_lists = tuple(name for name in unusable if isinstance(columns[name].dtype, pl.List | pl.Array))
    columns = {name: cells for name, cells in columns.items() if name not in unusable}
    return FileSample(given, {}, columns, min(height, SAMPLE), height <= SAMPLE, tuple(unusable), of_lists)


def _fields(cells: pl.Series) -> Iterator[pl.Series]:
    """Yield a column, or the fields of the objects that it holds, called as a spec calls them."""
    if not isinstance(cells.dtype, pl.Struct):
        yield cells
        return
    for name in [field.name for field in cells.dtype.fields]:
        yield from _fields(cells.struct.field(name).alias(f"{cells.name}.{name}"))


def refuse_decisions(path: Path, name: str) -> None:
    """Raise SourceError if a file of text holds decisions as VowpalWabbit writes them, by its first lines."""
    start = next(unzipped_pieces(path), b"")[:200_000].decode("utf-8", "replace")
    lines = [line for line in start.splitlines()[:_FORMAT_LINES] if line.strip()]
    if any(_VW.match(line) for line in lines):
        raise _bundled(name, "vw_text")
    if any("_label" in line and _is_dsjson(line) for line in lines):
        raise _bundled(name, "vw_dsjson")


def _is_dsjson(line: str) -> bool:
    try:
        said = json.loads(line)
    except ValueError:
        return False
    return isinstance(said, dict) and any(key.startswith("_label") for key in said)


def refuse_bundled(columns: Mapping[str, Look], source: dict[str, Any], name: str) -> None:
    """Raise SourceError if a table has all columns of a bundled dataset, or columns like its own that have no names."""
    for dataset, path in sorted(bundled_logs().items()):
        spec = read_spec(path)
        if not isinstance(spec, FileSpec) or spec.candidates is not None:
            continue
        own = spec.source.columns
        if own is not None:
            like = [look.numbers is None for look in columns.values()]
            kinds = [column in spec.context.kinds() for column in own]
            if source.get("header") is False and len(like) == len(own) and all(map(ge, like, kinds)):
                raise _bundled(name, dataset)
            continue
        wide = [] if spec.action_set is None else [pattern.partition("{")[0] for pattern in spec.action_set.patterns]
        named = {*spec.no_features(), *spec.context.kinds(), *spec.leakage.columns, *spec.keep.values()}
        if named <= set(columns) and all(any(c.startswith(prefix) for c in columns) for prefix in wide):
            raise _bundled(name, dataset)


def _bundled(name: str, dataset: str) -> SourceError:
    return SourceError(
        f"{name} is in the format of {dataset}, whose spec comes with the package: no draft is needed.",
        remedy=f"evaluate datasets convert {dataset} LOG --path {quote(name)} writes the log that commands read.",
    )
