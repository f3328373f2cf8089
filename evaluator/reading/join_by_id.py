"""Ids of displays, in bounded memory: which are listed twice, and which a second table of events names.

The hashes of ids wait on disk. Those that occur twice are settled by reading their ids again; a table's rows and the
displays that they may name are joined by id, those of some hashes at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.reading.cells import Kind, ZonesSeen, merged_kinds
from evaluator.reading.event_rows import EventRules, event_columns, event_rows
from evaluator.reading.frames import Chunks
from evaluator.reading.labels import value_texts
from evaluator.reading.row_breaches import FILE, LINE, SHOWN, Breaches, side_by_side
from evaluator.reading.row_rules import TimeGuesses, check_cells
from evaluator.reading.sorting import Spool, split
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec_sections import Time

# Number of a display among those that may be named.
ASKED = "asked"
# Bits, a power of two of at most 2^32. Of 5 million ids, 1 in 200 others passes; of 100 million, most do.
BITS = 2**27
# So many rows, and displays that they may name, are joined in memory.
JOINED_ROWS = 1_000_000
ROW, PLACE = "row", "place"
ID, HASH, TIME = "id", "hash", "at"
# So many hashes are sorted in memory.
SORTED_HASHES = 4_000_000
# Files that hashes are distributed into.
MOST_PARTS = 64


class DisplayIds:
    """The displays of a pass that a table may name: in memory nothing but their number.

    The `sample` has the ids of the first displays, whether they may be named or not.
    """

    def __init__(self, named: BloomFilter, new_spool: Callable[[], Spool]) -> None:
        self.named, self._spool = named, new_spool()
        self.rows = 0
        self.sample: tuple[str, ...] = ()

    def wanted(self, displays: pl.DataFrame) -> pl.DataFrame:
        """Return those of the next displays that may be named, without their ids, numbered in `ASKED`."""
        if len(self.sample) < SHOWN:
            self.sample = (*self.sample, *displays[ID].drop_nulls().head(SHOWN))[:SHOWN]
        known = displays if displays[HASH].null_count() == 0 else displays.filter(pl.col(HASH).is_not_null())
        found = known.filter(pl.Series(self.named.may_hold(known[HASH])))
        found = found.with_columns(pl.int_range(self.rows, self.rows + found.height, dtype=pl.Int64).alias(ASKED))
        self.rows += found.height
        self._spool.add(found.select(ID, HASH, ASKED))
        return found.drop(ID, HASH)

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield the ids of all displays that may be named, with their hashes and numbers."""
        yield from self._spool.frames()

    def discard(self) -> None:
        """Free what the ids take."""
        self._spool.discard()


class BloomFilter:
    """The ids of a table, as two bits of each (Bloom 1970): an id that is there always passes, another one seldom."""

    def __init__(self) -> None:
        self.bits = np.zeros(BITS // 8, np.uint8)

    def add(self, hashes: pl.Series) -> None:
        """Add ids by their hashes, uint64 without nulls."""
        for place in _places(hashes):
            np.bitwise_or.at(self.bits, place >> 3, np.left_shift(1, place & 7).astype(np.uint8))

    def may_hold(self, hashes: pl.Series) -> npt.NDArray[np.bool_]:
        """Return whether ids may be there, by their hashes, shape (n,)."""
        found = np.ones(len(hashes), np.bool_)
        for place in _places(hashes):
            found &= (self.bits[place >> 3] >> (place & 7).astype(np.uint8) & 1).astype(np.bool_)
        return found


def _places(hashes: pl.Series) -> list[npt.NDArray[np.int64]]:
    of = hashes.to_numpy()
    return [(half & np.uint64(BITS - 1)).astype(np.int64) for half in (of, of >> np.uint64(32))]


class SecondTable:
    """The rows of ``[conversion.source]``, or an outcome's, which wait in a spool until all displays have passed by.

    Of the displays those wait, too, that may be named (`display_ids`). Both are then joined by id, those of some hashes
    at a time: in memory 25 bytes of each display that may be named.
    """

    def __init__(
        self,
        rules: EventRules,
        time: Time,
        files: list[TablePart],
        zones: ZonesSeen,
        *,
        listed: bool,
        new_spool: Callable[[], Spool],
    ) -> None:
        source = rules.columns.source
        assert source is not None
        self._rules, self._time, self._columns, self._new_spool = rules, time, source.joined, new_spool
        key: dict[str, Kind] = {str(source.display or source.user): "text"}
        key |= {source.action: "category"} if source.action else {}
        self._kinds: dict[str, Kind] = merged_kinds(event_columns(rules, time), key)
        self.breaches = Breaches(files, listed=listed)
        self.rows = 0
        self._spool, self.ids = new_spool(), BloomFilter()
        passed_over: dict[str, Counter[str]] = {}
        chunks = Chunks(files, source, self._kinds, time=time, passed_over=passed_over, zones=zones)
        self._empty = chunks.empty()
        for frame in chunks:
            self.ids.add(hashed(joined(frame, self._columns))[HASH].drop_nulls())
            self._spool.add(frame)
            self.rows += frame.height
        others = sum(of.total() for of in passed_over.values())
        # What a log must say of a table of which no row is meant: a condition may name a word that no cell holds.
        self.notes = (
            () if self.rows or not others or source.where is None else
            (f"[{rules.table}.source] gives no {rules.word}: none of its {others:,} rows is where {source.where}.",)
        )  # fmt: skip
        self._place = np.zeros(0, np.int64)
        self._sample: tuple[str, ...] = ()

    def display_ids(self) -> DisplayIds:
        """Return what displays that pass by are shown to."""
        return DisplayIds(self.ids, self._new_spool)

    def named(self, displays: pl.DataFrame, asked: DisplayIds) -> pl.DataFrame:
        """Return those displays that are named here.

        Of all displays that may be, in their order, or some of them; `asked` has been shown all displays, and numbered
        these; its ids are freed.
        """
        place = np.full(asked.rows, -1, np.int64)
        place[displays[ASKED].to_numpy()] = np.arange(displays.height)
        named = np.zeros(displays.height, np.bool_)
        self._place = np.full(self.rows, -1, np.int64)
        for some, rows in self._parts(asked):
            some = some.select(ID, pl.Series(PLACE, place[some[ASKED].to_numpy()])).filter(pl.col(PLACE) >= 0)
            if self._rules.by_user:
                at = pl.col(PLACE)
                some = some.with_columns(displays["shown"].gather(some[PLACE]), displays["display"].gather(some[PLACE]))
                found = _of_last_displays(rows, some.drop_nulls("shown").sort("shown", "display", at))
                named[found[PLACE].to_numpy()] = True
            else:
                named[some.join(rows, on=ID, how="semi")[PLACE].to_numpy()] = True
                # Of displays listed twice the first one counts.
                found = rows.join(some.unique(ID, keep="first", maintain_order=True), on=ID)
            self._place[found[ROW].to_numpy()] = found[PLACE].to_numpy()
        asked.discard()
        self._sample = asked.sample
        moved = np.append(np.where(named, np.cumsum(named) - 1, -1), -1)
        self._place = moved[self._place]  # -1 takes the last
        return displays.filter(pl.Series(named)).drop(ASKED)

    def _parts(self, asked: DisplayIds) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Yield the ids of displays and those of rows, equal ones together, as many at a time as fit into memory."""
        both = [asked.frames(), self._row_ids()]
        parts = min((asked.rows + self.rows) // JOINED_ROWS + 1, MOST_PARTS)
        of_rows = (ROW, TIME) if self._rules.by_user else (ROW,)
        empty = [pl.DataFrame(schema={ID: pl.String, **dict.fromkeys(of, pl.Int64)}) for of in ((ASKED,), of_rows)]
        if parts == 1:
            some, rows = (_whole(frames, none) for frames, none in zip(both, empty, strict=True))
            yield some, rows
            return
        for of in zip(*(by_hash(frames, parts, self._new_spool) for frames in both), strict=True):
            some, rows = (_whole(spool.frames(), none) for spool, none in zip(of, empty, strict=True))
            yield some, rows
            for spool in of:
                spool.discard()

    def _row_ids(self) -> Iterator[pl.DataFrame]:
        """Yield the ids of the rows that have one, with their hashes, the number of the row and, by user, the time.

        That is the latest time at which their display was shown.
        """
        first = 0
        for frame in self._spool.frames():
            number = pl.int_range(first, first + frame.height, dtype=pl.Int64, eager=True)
            first += frame.height
            of = hashed(joined(frame, self._columns)).with_columns(number.alias(ROW))
            if self._rules.by_user:
                of = of.with_columns((frame[self._rules.clock] - self._rules.min_delay).alias(TIME))
            yield of.drop_nulls()

    def converted(self, displays: pl.DataFrame, *, limited: bool) -> tuple[pl.DataFrame, int]:
        """Return the rows that hold an event of a display, and how many have none, by a limit or by user and time.

        `displays` are all that are `named`: ``display`` (number), ``shown`` (time in ticks), ``sound``. Where only the
        first displays were read (`limited`), some events belong to none of them.
        """
        clock = self._rules.columns.time
        times = TimeGuesses(self._time, [] if clock is None else [clock])
        found, first, without = [], 0, 0
        # The first one, without rows, has the columns where there are no others.
        for frame in chain([self._empty], self._spool.frames()):
            rows = self.breaches.check(frame)
            whole = check_cells(rows, frame, self._kinds, times)
            shown = _gathered(displays, self._place[first : first + frame.height]).hstack(frame.select(FILE, LINE))
            first += frame.height
            lost = shown["display"].is_null()
            without += 0 if self._rules.by_user else int(lost.sum())
            if not limited and not self._rules.by_user:
                remedy = f"check {self._rules.table}.source.display" + side_by_side("displays", self._sample)
                rows.add(self._columns[0], lost & whole, f"{self._rules.word} without display", remedy)
            events = event_rows(frame, shown, self._rules, rows)
            rows.close()
            without += events["display"].null_count() if self._rules.by_user else 0
            found.append(events.filter(pl.col("display").is_not_null()))
        self._spool.discard()
        self._place = np.zeros(0, np.int64)
        return pl.concat(found), without


def _whole(frames: Iterator[pl.DataFrame], empty: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([empty, *(frame.select(empty.columns) for frame in frames)])


def _gathered(displays: pl.DataFrame, places: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Return the displays at some places, shape (n,), nulls where a place is -1."""
    at = pl.Series(places)
    return displays.select(pl.all().gather(at.set(at < 0, None)))


def _of_last_displays(rows: pl.DataFrame, displays: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that have a display of their id at or before their time, with the `PLACE` of the last such one.

    The displays are in the order of the log.
    """
    found = rows.sort(TIME).join_asof(displays, left_on=TIME, right_on="shown", by=ID, check_sortedness=False)
    return found.drop_nulls(PLACE)


def joined(frame: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """Return what identifies displays: a column, or the text of several, missing where one is."""
    if len(columns) == 1:
        return frame[columns[0]]
    # The length of the first one tells ("a", "bc") from ("ab", "c").
    first, second = (value_texts(frame[column]) for column in columns)
    parts = pl.DataFrame([first.str.len_bytes().cast(pl.String).alias("n"), first.alias("a"), second.alias("b")])
    return parts.select(pl.concat_str("n", "a", "b", separator=" "))["n"]


def hashed(ids: pl.Series) -> pl.DataFrame:
    """Return ids as text, `ID`, with their hashes, `HASH` uint64; both null where an id is missing.

    Equal ids have equal hashes: without equal hashes there are no equal ids.
    """
    text = ids if ids.dtype == pl.String else value_texts(ids)
    found = _hashes(text)
    return pl.DataFrame({ID: text, HASH: found.set(text.is_null(), None) if text.null_count() else found})


def by_hash(frames: Iterable[pl.DataFrame], parts: int, new_spool: Callable[[], Spool]) -> list[Spool]:
    """Return rows in `parts` spools, in their order, those of equal `HASH` in the same one."""
    spools = [new_spool() for _ in range(parts)]
    for frame in frames:
        for part, rows in split(frame, frame[HASH].to_numpy() % np.uint64(parts), parts):
            spools[part].add(rows)
    for spool in spools:
        spool.close()
    return spools


class SeenIds:
    """The ids met so far, as hashes that wait in a spool; `repeated` settles equal ones by reading their ids again.

    Of each display 8 bytes wait.
    """

    def __init__(self, new_spool: Callable[[], Spool]) -> None:
        self._new_spool = new_spool
        self._spool = new_spool()
        self._rows = 0

    def add(self, ids: pl.DataFrame) -> None:
        """Add the ids of a chunk, as of `hashed`, in any order; missing ones equal no other."""
        found = ids.select(HASH).drop_nulls()
        self._rows += found.height
        self._spool.add(found)

    def suspects(self) -> pl.Series:
        """Return the hashes met more than once."""
        found = [np.zeros(0, np.uint64)]
        for frames in self._parts():
            hashes = np.concatenate([np.zeros(0, np.uint64), *(frame[HASH].to_numpy() for frame in frames)])
            hashes.sort()
            found.append(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))
        return pl.Series(np.concatenate(found))

    def _parts(self) -> Iterator[Iterable[pl.DataFrame]]:
        """Yield all hashes, equal ones together, as many at a time as are sorted in memory."""
        parts = min(self._rows // SORTED_HASHES + 1, MOST_PARTS)
        if parts == 1:
            yield self._spool.frames()
        else:
            for spool in by_hash(self._spool.frames(), parts, self._new_spool):
                yield spool.frames()
                spool.discard()
        self._spool.discard()


def repeated(chunks: Iterable[pl.DataFrame], column: str, suspects: pl.Series) -> pl.DataFrame:
    """Return the rows whose id an earlier row has, in order: the number of each, ``row``, and where the earlier one is.

    `chunks` are all rows again, in the same order; what they have beside the id in `column` is returned of the first
    row with it; `suspects` are from `SeenIds`.
    """
    found, before = [], 0
    for chunk in chunks:
        of = hashed(chunk[column])
        number = pl.int_range(before, before + chunk.height, dtype=pl.Int64, eager=True)
        rows = of[HASH].is_in(suspects.implode())
        found.append(chunk.drop(column).hstack([of[ID], number.alias("row")]).filter(rows))
        before += chunk.height
    rows_of = pl.concat(found)
    first = rows_of[ID].is_first_distinct()
    again = rows_of.filter(~first).select(ID, "row")
    return again.join(rows_of.filter(first).drop("row"), on=ID, how="left", maintain_order="left").drop(ID)


def _hashes(text: pl.Series) -> pl.Series:
    return text.hash()
