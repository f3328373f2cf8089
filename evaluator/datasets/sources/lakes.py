"""Tables of a lake, Delta or Iceberg: pinned to the state in which they were opened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.datasets.sources.part import KeyedPart, first_line
from evaluator.datasets.sources.store_environment import refuse_unlisted_endpoint
from evaluator.datasets.spec_sections import Storage, Table
from evaluator.errors import EvaluatorError, SourceError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class LakeTable(KeyedPart):
    """A table of a lake as it was in one state: what is written to it later is not seen.

    Parameters
    ----------
    kind
        Kind of the table: ``delta`` or ``iceberg``.
    identity
        Identity of the table, the same wherever it lies.
    pinned
        State of it that is read: ``version 7``, ``snapshot 123``.
    rows
        All columns of that state, in an order of rows that is the same each time they are read.
    """

    kind: str
    identity: str
    pinned: str
    rows: pl.LazyFrame

    @property
    def note(self) -> str:
        """What was read, so that it can be read again."""
        return f"{self.kind} table {self.name} at {self.pinned}"

    def names(self) -> list[str]:
        """Return its columns."""
        return self.rows.collect_schema().names()

    def scan(self, columns: Iterable[str], *, rows: int | None = None) -> pl.LazyFrame:
        """Return some columns, read when they are asked for."""
        found = self.rows.select(list(columns))
        return found if rows is None else found.head(rows)

    def state(self) -> object:
        """Return which state is read: nobody changes it."""
        return self.identity, self.pinned

    def _unreadable(self, error: BaseException, *, opening: bool) -> SourceError:
        """Return the error that says why its rows cannot be read."""
        return SourceError(
            f"{self.name}: {self.pinned} cannot be read: {first_line(error)}.",
            remedy="its files may have been removed since: name a later state of the table, or restore them.",
        )


def lake_table(
    rows: pl.LazyFrame, name: str, key: Iterable[str], *, kind: str, identity: str, pinned: str
) -> LakeTable:
    """Return a table of a lake, whose rows are known by those columns of `key` that it has."""
    columns = rows.collect_schema().names()
    return LakeTable(name, {}, tuple(dict.fromkeys(c for c in key if c in columns)), kind, identity, pinned, rows)


def lake_paths(table: Table, folder: Path) -> list[Path]:
    """Return where on disk a table of a lake lies; nothing where it lies elsewhere, or only a catalog knows."""
    given = table.delta or table.iceberg
    path = None if given is None or "://" in given else folder / given
    return [path] if path is not None and path.exists() else []


def not_installed(extra: str, library: str) -> EvaluatorError:
    """Return the error that says how to install what reads a kind of table."""
    return EvaluatorError(
        f"Tables of {extra.capitalize()} are read with {library}, which is not installed.",
        remedy=f"pip install 'delayed-replay[{extra}]'.",
    )


def store_options(location: str, storage: Storage | None, *, endpoint: str, region: str) -> dict[str, str]:
    """Return where an object store answers, in the words of a library.

    Parameters
    ----------
    location
        Path or URL of the table.
    storage
        What the spec says of the store; None for nothing.
    endpoint, region
        What the library calls the address of a store of the kind S3, and its region.

    Raises
    ------
    SourceError
        The store is of another kind, where an address is not needed, or not known how to give; or more is said of it
        than a library can be told.
    """
    for key in ("account", "anonymous"):
        if storage is not None and getattr(storage, key):
            raise SourceError(
                f"{location}: storage.{key} is of files alone.",
                remedy="take it out: the environment says who asks the store of a table.",
            )
    given = {endpoint: storage.endpoint, region: storage.region} if storage is not None else {}
    said = {name: value for name, value in given.items() if value is not None}
    if said and "://" in location and not location.startswith(("s3://", "s3a://")):
        raise SourceError(
            f"{location}: storage says where an S3 store answers, and this is none.",
            remedy="take storage out: the environment says what its store needs.",
        )
    if storage is not None and "://" in location:
        refuse_unlisted_endpoint("s3", storage)
    return said
