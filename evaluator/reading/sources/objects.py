"""Objects of an object store: which make up a table, and how each is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from evaluator.errors import SourceError
from evaluator.outputs.staging import writing
from evaluator.reading.sources.files import (
    SourceFile,
    Staging,
    check_packed,
    format_of,
    hive_values,
    is_glob,
    is_hidden,
    natural,
    refuse_twice,
    told_format,
)
from evaluator.reading.sources.part import TablePart, changed, first_line
from evaluator.reading.sources.stores import Store, StoredObject, is_of_store, open_store
from evaluator.reading.spec_sections import FileFormat, Storage, Table
from evaluator.reading.text import COMPRESSIONS

if TYPE_CHECKING:
    import polars as pl


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
