"""Files on disk and objects of a store: which make up a table, in what format, and what tells one from another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import unquote

from evaluator.errors import SourceError, UsageError, nearest_file, refuse_no_utf8
from evaluator.escape import shortened
from evaluator.log.log_files import file_state
from evaluator.outputs.staging import writing
from evaluator.reading.sources.part import TablePart, changed, file_rows, file_schema, first_line, is_plain
from evaluator.reading.sources.stores import Store, StoredObject, is_of_store, open_store
from evaluator.reading.spec_sections import FileFormat, Storage, Table
from evaluator.reading.text import COMPRESSIONS, compression_of, refuse_batches, refuse_row_groups
from evaluator.store_addresses import is_address, refuse_secret

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

SUFFIXES: dict[str, FileFormat] = {
    ".csv": "csv", ".tsv": "tsv", ".txt": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc",
}  # fmt: skip
# How Hive, Spark and what follows them name the folder of rows whose value is missing.
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
# Compressions that are not read, and what unpacks them.
_UNPACK = {
    ".7z": "7z x", ".rar": "unrar x", ".tar": "tar xf", ".tgz": "tar xzf", ".z": "uncompress", ".br": "brotli -d",
    ".lz4": "lz4 -d", ".lzo": "lzop -d", ".sz": "snzip -d", ".snappy": "snzip -d",
}  # fmt: skip
_SHEETS = {".xlsx", ".xlsm", ".xls", ".ods", ".numbers"}


@dataclass(frozen=True)
class SourceFile(TablePart):
    """One file on disk.

    Messages call it by `name`, which differs from its path where it is a copy of what lies elsewhere.
    """

    path: Path
    format: FileFormat

    @property
    def is_text(self) -> bool:
        """Whether it is a table of text, its rows lines and its cells between delimiters."""
        return self.format in ("csv", "tsv")

    @property
    def is_lines(self) -> bool:
        """Whether its rows stand in lines of text that are no table: they name their own columns."""
        return self.format not in ("csv", "tsv", "parquet", "ipc")

    def names(self) -> list[str]:
        """Return the columns of a file whose columns have types."""
        import polars as pl

        try:
            schema = self._schema
        except UnicodeDecodeError as error:
            what = f"the name of a column is no UTF-8 text ({error.object!r})"
            raise SourceError(f"{self.name}: {what}.", remedy="write the file anew, with another name.") from None
        for kind in [] if schema is None or self.format != "parquet" else schema.types:
            # At a time zone that it does not know, the reader of Parquet panics aloud.
            if zone := getattr(kind, "tz", None):
                pl.Series([], dtype=pl.Datetime("us", zone))
        return self.rows().collect_schema().names()

    def scan(self, columns: Iterable[str], *, rows: int | None = None) -> pl.LazyFrame:
        """Return some columns of a file whose columns have types, read when they are asked for."""
        import polars as pl

        columns, schema = list(columns), self._schema
        named = pl.selectors.by_name(columns)  # a name like ^a.*$ would select others
        if rows == 0 or schema is None or not columns:
            return self.rows().select(named)
        if self.format == "ipc":
            refuse_batches(self.path, self.name)
            return self.rows().select(named)
        large = refuse_row_groups(self.path, self.name, columns)
        # Polars takes large row groups whole, and hashes a label of Arrow's dictionaries once for each row that has it.
        whole = large or not all(map(is_plain, schema.types))
        coded = {field.name for field in schema if whole or "dictionary<" in str(field.type)}
        others = [column for column in columns if column not in coded]
        if len(others) == len(columns):
            return self.rows().select(named)
        found = file_rows(self.path, schema, self.name, parquet=True, coded=large)
        if not others:
            return found.select(named)
        by_arrow = pl.selectors.by_name([column for column in columns if column in coded])
        beside = self.rows().select(pl.selectors.by_name(others))
        return pl.concat([found.select(by_arrow), beside], how="horizontal").select(named)

    @cached_property
    def _schema(self) -> pa.Schema | None:
        return file_schema(self.path, parquet=self.format == "parquet")

    def rows(self) -> pl.LazyFrame:
        """Return all columns of a file whose columns have types, read when they are asked for."""
        import polars as pl

        if self._schema is not None and not all(is_plain(kind) for kind in self._schema.types):
            return file_rows(self.path, self._schema, self.name, parquet=self.format == "parquet")
        if self.format == "parquet":
            return pl.scan_parquet(self.path, glob=False, hive_partitioning=False)
        return pl.scan_ipc(self.path)

    def state(self) -> object:
        """Return its inode, size and time."""
        return file_state(self.path)

    def _unreadable(self, error: BaseException, *, opening: bool) -> SourceError:
        """Return the error that says why its rows cannot be read, or not even its columns (`opening`)."""
        if opening:
            what = f"not a readable {self.format} file ({first_line(error)})"
            return SourceError(f"{self.name}: {what}.", remedy="check source.format.")
        hint = "check source.format and source.delimiter."
        return SourceError(f"{self.name}: cannot be read: {first_line(error)}.", remedy=hint)


def file_at(path: Path, kind: FileFormat, partitions: dict[str, str | None] | None = None) -> SourceFile:
    """Return a file that messages call by its path."""
    return SourceFile(str(path), partitions or {}, path, kind)


def find_files(table: Table, folder: Path, *, override: str | Path | None = None) -> list[SourceFile]:
    """Return the files of a table, in natural order of their paths (``day=2`` before ``day=10``).

    Globs and folders give neither hidden files nor files in hidden folders, unless the glob names them. They are
    relative to `folder`; an `override`, path, glob or folder to read instead, is relative to the working folder. Raises
    SourceError if no file matches, or if the format cannot be told from the suffix; UsageError if the name of a file is
    not UTF-8, or if an object of a store is named.
    """
    refuse_secret(str(override or table.files))
    if is_address(str(override or table.files)):
        raise UsageError(
            f"{override or table.files}: only specs, and path= with one, name objects of a store.",
            remedy="copy one of them to this machine.",
        )
    pattern = Path(override) if override is not None else folder / (table.files or "")
    root = pattern
    try:
        pattern.stat()  # from Python 3.14 on, is_dir says of every error that there is none
    except (FileNotFoundError, NotADirectoryError, ValueError):
        pass
    except OSError as error:  # a name that is too long
        raise SourceError(
            f"{shortened(str(pattern))}: {error.strerror}.", remedy="name a file, folder or glob."
        ) from None
    if pattern.is_dir():
        paths = [p for p in pattern.rglob("*") if p.is_file() and not p.name.startswith("_")]
        paths = [p for p in paths if not is_hidden(p, pattern) and format_of(table, p)]
    elif pattern.is_file():
        paths, root = [pattern], pattern.parent
    else:
        anchor = pattern
        while is_glob(str(anchor)):
            anchor = anchor.parent
        paths = [p for p in anchor.glob(str(pattern.relative_to(anchor))) if p.is_file()] if anchor != pattern else []
        if not is_hidden(pattern, anchor):
            paths = [p for p in paths if not is_hidden(p, anchor)]
        root = anchor
    if not paths:
        bundled = "of a bundled dataset, download it from its homepage, or give path="
        hint = nearest_file(pattern, f"check its name; {bundled}.")
        raise SourceError(f"No file matches {pattern}.", remedy=hint)
    files = []
    for path in sorted(paths, key=lambda p: natural(str(p))):
        refuse_no_utf8(str(path))
        files.append(file_at(path, told_format(table, path, str(path)), hive_values(path, root)))
        check_packed(path, str(path))
    refuse_twice(paths)
    return files


def told_format(table: Table, path: PurePath, name: str) -> FileFormat:
    """Return the format of a file of a table that messages call `name`.

    Raises SourceError if neither the spec nor the suffix tells, or if it is compressed in a way that is not read.
    """
    packed = path.suffix.lower()
    if packed in COMPRESSIONS and path.stem.lower().endswith(".tar"):
        packed = ".tar"
    if packed in _UNPACK:
        raise SourceError(f"{name}: {packed} files are not read.", remedy=f"unpack it: {_UNPACK[packed]} {path.name}.")
    if packed in _SHEETS:
        raise SourceError(f"{name}: {packed} files are not read.", remedy="save its sheet as CSV.")
    kind = format_of(table, path)
    if kind is None:
        raise SourceError(f"{name}: unknown suffix.", remedy="set source.format to csv, tsv, jsonl, parquet or ipc.")
    if kind in ("parquet", "ipc") and (whole := COMPRESSIONS.get(path.suffix.lower())):
        unpack = {"gzip": "gunzip", "zstd": "zstd -d", "bzip2": "bunzip2", "xz": "unxz", "zip": "unzip"}[whole]
        raise SourceError(
            f"{name}: a {kind} file that is compressed as a whole.", remedy=f"unpack it: {unpack} {path.name}."
        )
    return kind


def check_packed(path: Path, name: str) -> None:
    """Refuse a file that messages call `name`, if it is not compressed as its suffix says."""
    wanted = COMPRESSIONS.get(path.suffix.lower())
    if wanted is not None and compression_of(path) != wanted:
        raise SourceError(
            f"{name}: not a {wanted} file.", remedy=f"remove {path.suffix} from its name, or download it again."
        )


def refuse_twice(paths: Iterable[PurePath]) -> None:
    """Raise SourceError where a file lies beside one that is compressed: they have the same rows."""
    seen: dict[PurePath, PurePath] = {}
    for path in paths:
        plain = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
        if plain in seen:
            raise SourceError(
                f"{seen[plain]} and {path.name} are one file, packed and unpacked: its rows would count twice.",
                remedy="remove one of them, or name files by a glob.",
            )
        seen[plain] = path


def format_of(table: Table, path: PurePath) -> FileFormat | None:
    """Return the format of a file of a table; None where neither the spec nor the suffix tells."""
    packed = path.suffix.lower() in COMPRESSIONS
    return table.format or SUFFIXES.get(Path(path.stem).suffix.lower() if packed else path.suffix.lower())


def is_glob(text: str) -> bool:
    """Return whether a path names files by a pattern."""
    return any(c in text for c in "*?[")


def is_hidden(path: PurePath, root: PurePath) -> bool:
    """Return whether the file, or a folder between it and `root`, is hidden: outputs in the making are."""
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def hive_values(path: PurePath, root: PurePath) -> dict[str, str | None]:
    """Return the values that the folders (``day=3``) between a file and `root` give to all of its rows, by column.

    >>> hive_values(PurePath("land=a%3Ab/day=__HIVE_DEFAULT_PARTITION__/1.parquet"), PurePath())
    {'land': 'a:b', 'day': None}
    """
    parts = (part.split("=", 1) for part in path.relative_to(root).parts[:-1] if "=" in part)
    return {unquote(name): None if value == _HIVE_NULL else unquote(value) for name, value in parts}


def natural(text: str) -> list[tuple[int, str]]:
    """Return what sorts numbers within a text as numbers."""
    return [(int(t), "") if t.isdigit() else (-1, t) for t in re.split(r"(\d+)", text)]


class Staging:
    """A folder of temporary files, made when the first of them is."""

    def __init__(self, stack: ExitStack, within: Path | None) -> None:
        self._stack, self._within = stack, within
        self._folder: Path | None = None
        self._files = 0

    def new_file(self, name: str) -> Path:
        """Return the path of a new file, whose name ends with `name`."""
        if self._folder is None:
            made = TemporaryDirectory(prefix="evaluate-", dir=self._within)
            self._folder = Path(self._stack.enter_context(made))
        self._files += 1
        return self._folder / f"{self._files}-{name}"


@contextmanager
def staging(within: Path | None) -> Iterator[Staging]:
    """Give a place for copies that vanishes with the block, inside of a folder or of that of temporary files."""
    with ExitStack() as stack:
        yield Staging(stack, within)


@dataclass(frozen=True)
class ObjectPart(TablePart):
    """An object whose columns have types, so that only the wanted columns are fetched."""

    store: Store
    listed: StoredObject
    format: FileFormat

    def names(self) -> list[str]:
        """Return its columns."""
        return list(self._schema)

    def scan(self, columns: Iterable[str], *, rows: int | None = None) -> pl.LazyFrame:
        """Return some of its columns, read when they are asked for; without rows, from what is known already."""
        import polars as pl

        if rows == 0:
            return pl.LazyFrame(schema={column: self._schema[column] for column in columns})
        return self._rows().select(list(columns))

    @cached_property
    def _schema(self) -> dict[str, pl.DataType]:
        return dict(self._rows().collect_schema())

    def _rows(self) -> pl.LazyFrame:
        import polars as pl

        # Without a provider of credentials Polars takes them from the environment, as what lists the objects does.
        options = self.store.polars_options
        if self.format == "parquet":
            return pl.scan_parquet(
                self.name, glob=False, hive_partitioning=False, storage_options=options, credential_provider=None
            )
        return pl.scan_ipc(self.name, storage_options=options, credential_provider=None)

    def state(self) -> object:
        """Return its ETag and size now; None where it is no more."""
        return self.store.head(self.listed.key)

    def found(self) -> object:
        """Return its ETag and size when it was listed."""
        return self.listed

    def _unreadable(self, error: BaseException, *, opening: bool) -> SourceError:
        """Return the error that says why its rows cannot be read, or not even its columns (`opening`)."""
        if is_of_store(error):
            return self.store.explained(error, self.name)
        what = f"not a readable {self.format} file" if opening else "cannot be read"
        return SourceError(f"{self.name}: {what} ({first_line(error)}).", remedy="check source.format.")


def find_objects(table: Table, address: str, staging: Staging) -> list[TablePart]:
    """Return the objects of a table, in natural order of their keys (``day=2`` before ``day=10``).

    Globs and folders give what they would give of files. Text is copied, at once. An `address` is
    ``s3://bucket/displays/**/*.parquet``; `staging` is the folder of the copies, whose disk is that of the objects.
    Raises SourceError if it is no address of an object store, no object matches, the store cannot be reached or
    refuses, or an object changes while it is copied; UsageError if the address holds a secret; OutputError if the
    copies do not fit into the folder of temporary files.
    """
    store, key = open_store(address, table.storage or Storage())
    objects, root = _matching(table, store, key)
    if not objects:
        raise SourceError(f"No object matches {address}.", remedy="check its name, or give path=.")
    parts: list[TablePart] = []
    refuse_twice(one.path for one in objects)
    for one in sorted(objects, key=lambda found: natural(found.key)):
        name = store.url(one.key)
        kind = told_format(table, one.path, name)
        values = hive_values(one.path, root)
        if kind == "parquet" or (kind == "ipc" and not is_glob(one.key)):
            parts.append(ObjectPart(name, values, store, one, kind))
        else:
            parts.append(_copied(name, values, store, one, kind, staging))
    return parts


def _matching(table: Table, store: Store, key: str) -> tuple[list[StoredObject], PurePosixPath]:
    """Return the objects of a table, and the folder that their hive folders are relative to."""
    if key and not key.endswith("/") and "*" not in key and (whole := store.head(key)) is not None:
        return [whole], whole.path.parent
    path = PurePosixPath(key)
    if not is_glob(key):
        inside = [one for one in store.objects(key.strip("/")) if one.path != path]
        seen = [one for one in inside if not one.path.name.startswith("_") and not is_hidden(one.path, path)]
        return [one for one in seen if format_of(table, one.path)], path
    root = path
    while is_glob(str(root)):
        root = root.parent
    pattern = path.relative_to(root).parts
    folder = "" if str(root) == "." else str(root)
    found = [one for one in store.objects(folder) if _fits(one.path.relative_to(root).parts, pattern)]
    if not is_hidden(path, root):
        found = [one for one in found if not is_hidden(one.path, root)]
    return found, root


def _fits(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Return whether a glob matches a key, part by part: ``**`` stands for any folders."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[skip:], pattern[1:] or ("*",)) for skip in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _copied(
    name: str, values: dict[str, str | None], store: Store, one: StoredObject, kind: FileFormat, staging: Staging
) -> SourceFile:
    """Return a copy of an object as it was listed: of text, which is read line by line."""
    path = staging.new_file(
        "object" + (one.path.suffix if one.path.suffix in COMPRESSIONS else "")
    )  # Polars takes other names as globs
    got = store.get(one.key)
    if got is None or got[0] != one:
        raise changed(name, gone=got is None)
    with writing(path), path.open("wb") as stream:
        for piece in got[1]:
            stream.write(piece)
    check_packed(path, name)
    return SourceFile(name, values, path, kind)
