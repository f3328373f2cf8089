"""What the reader asks of a part of a table, wherever it lies."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluator.errors import DataError, SourceError

if TYPE_CHECKING:
    import polars as pl

# What no column is called.
NUMBER = "__number"


@dataclass(frozen=True)
class TablePart(ABC):
    """Rows of a table that lie together, in one order: a file, an object of a store, a frame, a table of a lake.

    Parameters
    ----------
    name
        What messages call it.
    partitions
        Values that its hive folders (``day=3``) give to every row, by column; None where one says that it is missing.
    """

    name: str
    partitions: dict[str, str | None]

    @property
    def is_text(self) -> bool:
        """Whether it is a table of text, its rows lines and its cells between delimiters."""
        return False

    @property
    def is_lines(self) -> bool:
        """Whether its rows stand in lines of text that are no table: they name their own columns."""
        return False

    @property
    def row_word(self) -> str:
        """What a row is called where its number is told."""
        return "line" if self.is_text or self.is_lines else "row"

    @property
    def note(self) -> str | None:
        """Sentence that a log needs about the source of these rows; None if the spec says it all."""
        return None

    @abstractmethod
    def names(self) -> list[str]:
        """Return its columns, if it is one whose columns have types."""

    @abstractmethod
    def scan(self, columns: Iterable[str], *, rows: int | None = None) -> pl.LazyFrame:
        """Return some of its columns, of the first rows alone where these are counted, if these have types."""

    def type_of(self, column: str) -> pl.DataType:
        """Return what one of its columns holds, if these have types."""
        return self.scan([column], rows=0).collect_schema()[column]

    @abstractmethod
    def state(self) -> object:
        """Return what changes when its rows do; None where it is no more."""

    def found(self) -> object:
        """Return its state when it was found."""
        return self.state()

    def keys(self, rows: Sequence[int]) -> list[str] | None:
        """Return what identifies some rows, by their numbers; None where their numbers do."""
        return None

    def places(self, rows: Sequence[int]) -> list[str]:
        """Return what messages call some rows, by their numbers: ``log.csv line 17``."""
        words = self.keys(rows) or [f"{self.row_word} {row}" for row in rows]
        return [f"{self.name} {word}" for word in words]

    def unreadable(self, error: BaseException, *, opening: bool = False) -> SourceError:
        """Return the error that says why its rows cannot be read, or not even its columns (`opening`)."""
        zone = re.search(r"unable to parse time zone: '([^']*)'", str(error))
        if zone is None:
            return self._unreadable(error, opening=opening)
        return SourceError(
            f"{self.name}: holds times of the zone {zone[1]!r}, which is none of the time zone database.",
            remedy="write the times in UTC: the moments stay the same.",
        )

    def _unreadable(self, error: BaseException, *, opening: bool) -> SourceError:
        """Return the error for what is of this kind of part."""
        return SourceError(f"{self.name}: cannot be read: {first_line(error)}.", remedy="check the source.")


@contextmanager
def unchanged(parts: Sequence[TablePart]) -> Iterator[None]:
    """Raise SourceError if one of the parts is not what it was when the block was entered.

    Bad data and failures to read are reported as such only if the parts stayed as they were.
    """
    before = [part.found() for part in parts]

    def refuse_changed() -> None:
        for part, state in zip(parts, before, strict=True):
            if (now := part.state()) != state:
                raise changed(part.name, gone=now is None)

    try:
        yield
    except (DataError, OSError):
        refuse_changed()
        raise
    refuse_changed()


def changed(name: str, *, gone: bool) -> SourceError:
    """Return the error that says that a part changed, or is `gone`, while it was read."""
    if gone:
        return SourceError(f"{name}: it vanished while it was read.", remedy="put it back, or read what is left.")
    return SourceError(f"{name}: it changed while it was read.", remedy="wait until it is written.")


def first_line(error: BaseException) -> str:
    """Return what an error says first, without a full stop."""
    return str(error).strip().split("\n")[0].rstrip(".")


@dataclass(frozen=True)
class KeyedPart(TablePart):
    """A part whose rows can be read again in the same order, and have no lines.

    Parameters
    ----------
    key
        Columns that identify a row; none where nobody knows, and its number has to do.
    """

    key: tuple[str, ...]

    def keys(self, rows: Sequence[int]) -> list[str] | None:
        """Return what identifies some rows, by their numbers, the first of which is 1: ``id = 17``. One more pass."""
        if not self.key:
            return None
        import polars as pl

        from evaluator.datasets.labels import plain_decimals

        wanted = pl.Series(NUMBER, rows, dtype=pl.Int64)
        numbered = self.scan(self.key, rows=max(rows, default=0)).with_row_index(NUMBER, offset=1)
        asked = numbered.with_columns(pl.col(NUMBER).cast(pl.Int64)).filter(
            pl.col(NUMBER).is_in(wanted.unique().implode())
        )
        found = wanted.to_frame().join(asked.collect(engine="streaming"), on=NUMBER, how="left", maintain_order="left")
        found = found.with_columns(plain_decimals(pl.selectors.decimal().cast(pl.String)))
        return [", ".join(f"{name} = {row[name]}" for name in self.key) for row in found.iter_rows(named=True)]
