"""Readers of the eligible actions of a source: lists in a column, a calendar, or a table of candidates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.errors import SpecError
from evaluator.log.encoder import value_text
from evaluator.reading.candidate_sets import (
    NOT_ELIGIBLE,
    SET,
    CandidateSets,
    Ints,
    KeptMembers,
    Members,
    SetSource,
    kept_members,
    local_codes,
)
from evaluator.reading.event_rows import no_such_time, ticks_of_date, zone_of_date
from evaluator.reading.labels import Labels, value_texts
from evaluator.reading.roles import CALENDAR, kinds_of
from evaluator.reading.row_breaches import SHOWN, Breaches, CheckedRows
from evaluator.reading.row_rules import read_sound
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec import FileSpec
from evaluator.reading.zones import ZonesSeen

_REPAIR = "list the actions that could have been shown, or quarantine the row"
# Before and after every time that a log may have.
_EVER, _FOR_GOOD = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def find_sets(spec: FileSpec, files: list[TablePart], zones: ZonesSeen, *, listed: bool) -> SetSource:
    """Return what reads the eligible actions of a source, whose spec says which are.

    `files` are those of the calendar or of the candidates, where the spec has either.
    """
    display = spec.display
    if display.eligible is not None:
        return ListedSets(display.eligible, display.action)
    if spec.candidates is not None:
        candidates = CandidateSets(spec, files, listed=listed)
        if not listed:
            candidates.breaches.refuse()
        return candidates
    flights = given_flights(spec, zones) if spec.action else read_flights(spec, files, zones)
    return CalendarSets(flights, display.time, display.action)


def set_breaches(sets: SetSource, *, limited: bool, listed: bool) -> list[Breaches]:
    """Return the breaches of the table of candidates, once all displays are known; none of other sets.

    The reader has checked all displays; where only the first were read (`limited`), some candidates belong to none of
    them. Breaches that are not `listed` are refused.
    """
    if not isinstance(sets, CandidateSets):
        return []
    if not limited:
        sets.see_others()
    if not listed:
        sets.breaches.refuse()
    return [sets.breaches]


class ListedSets:
    """The sets of a column of lists."""

    def __init__(self, column: str, action: str) -> None:
        self._column, self._action = column, action

    def check(self, rows: CheckedRows, frame: pl.DataFrame) -> pl.DataFrame:
        """Report displays without a set, with an empty one, with a missing label in it, or without their own action."""
        lists, shown = frame[self._column], value_texts(frame[self._action])
        none = pl.repeat(None, frame.height, dtype=pl.String, eager=True)
        gaps = frame.select(pl.col(self._column).list.eval(pl.element().is_null()).list.any()).to_series()
        held = frame.select(pl.col(self._column).list.contains(shown)).to_series()
        for bad, problem, values, remedy in (
            (lists.is_null(), "missing", none, _REPAIR),
            (lists.list.len() == 0, "no action is eligible", none, _REPAIR),
            (gaps, "a label is missing among the eligible actions", none, _REPAIR),
            (
                ~held,
                NOT_ELIGIBLE,
                shown,
                "add it to the list, written as in the column of actions, or quarantine the row",
            ),
        ):
            rows.add(self._column, rows.sound & bad.fill_null(False), problem, remedy, values=values)
        return frame

    def codes(self, frame: pl.DataFrame, labels: Labels) -> pl.Series:
        """Return the codes of the labels of each row, as lists."""
        lists = frame[self._column]
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(lists.list.len().to_numpy(), dtype=np.int64)])
        code = labels.codes(lists.explode()) if frame.height else np.zeros(0, np.int32)
        return pl.Series(SET, pa.LargeListArray.from_arrays(pa.array(first), pa.array(code, pa.int32())))

    def offered(self, sets: pl.Series) -> npt.NDArray[np.integer]:
        """Return the codes of the labels that some displays have in their sets, each once."""
        return sets.explode().unique().to_numpy()

    def kept(self, sets: pl.Series, new_action: npt.NDArray[np.int32], n_actions: int) -> KeptMembers:
        """Return the eligible actions of displays of the spool among those that are kept."""
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(sets.list.len().to_numpy(), dtype=np.int64)])
        code = sets.explode().to_numpy() if len(sets) else np.zeros(0, np.int32)
        return kept_members(Members(first, code), new_action, n_actions)


class Flights(NamedTuple):
    """Times between which actions were eligible: labels, first times, and the first at which they no longer were."""

    label: list[str]
    start: Ints
    until: Ints


def given_flights(spec: FileSpec, zones: ZonesSeen) -> Flights:
    """Return the entries ``[[action]]`` of a spec; `zones` sees whether their times say theirs.

    Raises SpecError if a time cannot be read in the unit of the times, or if an action ends before it starts.
    """
    entries = spec.action
    start = [_ticks(spec, zones, i, "from", entry.start, _EVER) for i, entry in enumerate(entries)]
    until = [_ticks(spec, zones, i, "until", entry.until, _FOR_GOOD) for i, entry in enumerate(entries)]
    for i, entry in enumerate(entries):
        if until[i] <= start[i]:
            raise SpecError(
                f"{spec.name}: at `$.action[{i}]`: action {entry.label!r} is eligible until {entry.until}, which is "
                f"not after {entry.start}, when it starts.",
                remedy="until is the first time at which it no longer was eligible.",
            )
    return Flights([value_text(entry.label) for entry in entries], np.array(start, np.int64), np.array(until, np.int64))


def _ticks(spec: FileSpec, zones: ZonesSeen, place: int, key: str, given: int | str | None, absent: int) -> int:
    if given is None:
        return absent
    ticks = ticks_of_date(spec, given) if isinstance(given, str) else given
    if ticks is None or (isinstance(given, int) and spec.time.unit == "datetime"):
        raise no_such_time(spec, f"action[{place}].{key}", given)
    if isinstance(given, str):
        zones.join(zone_of_date(spec, given, f"[[action]] {key}"))
    return ticks


def read_flights(spec: FileSpec, files: list[TablePart], zones: ZonesSeen) -> Flights:
    """Return the rows of the table of actions; `zones` sees whether its times say theirs.

    Raises LogError if a row has no label, a time that is none, or an end that is not after its start. None is ever left
    out: without it, every display would have another set.
    """
    calendar = spec.calendar
    assert calendar is not None
    kinds = kinds_of(CALENDAR.values(), calendar) | spec.time.kinds_of(*calendar.times)

    def check_ends(rows: CheckedRows, table: pl.DataFrame) -> None:
        start, until = _column(table, calendar.start, _EVER), _column(table, calendar.until, _FOR_GOOD)
        if calendar.until is not None:
            rows.add(calendar.until, rows.sound & pl.Series(until <= start),
                     "not after the time when the action starts",
                     "give the first time at which it no longer was eligible")  # fmt: skip

    table = read_sound(
        files, calendar, kinds, CALENDAR.values(), check_ends, time=spec.time, times=calendar.times, zones=zones
    )
    start, until = _column(table, calendar.start, _EVER), _column(table, calendar.until, _FOR_GOOD)
    return Flights(table[calendar.action].to_list(), start, until)


def _column(table: pl.DataFrame, column: str | None, absent: int) -> Ints:
    if column is None:
        return np.full(table.height, absent)
    found: Ints = table[column].fill_null(absent).to_numpy()
    return found


class CalendarSets:
    """The sets that follow the clock: between two changes all displays have the same.

    An action may have several entries among the `flights`.
    """

    def __init__(self, flights: Flights, time: str, action: str) -> None:
        self._time, self._action = time, action
        self._names = list(dict.fromkeys(flights.label))
        self._number = {label: i for i, label in enumerate(self._names)}
        self._of = np.array([self._number[label] for label in flights.label], np.int64)
        # Part p of the clock is before change p.
        self._changes = np.unique(np.concatenate([flights.start, flights.until]))
        self._from, self._until = self._part(flights.start), self._part(flights.until)
        self._order = np.lexsort((self._from, self._of))
        self._codes = np.zeros(0, np.int64)

    def _part(self, time: Ints) -> Ints:
        return np.searchsorted(self._changes, time, side="right").astype(np.int64)

    def check(self, rows: CheckedRows, frame: pl.DataFrame) -> pl.DataFrame:
        """Report displays of an action that has no entry, or was not eligible then."""
        of = local_codes(frame[self._action], self._number)
        part = self._part(frame[self._time].fill_null(0).to_numpy())
        rows.add(
            self._action, rows.sound & pl.Series(of < 0), "no entry says when this action was eligible",
            f"give it one, without times if it always was; entries are of {', '.join(map(repr, self._names[:SHOWN]))}",
        )  # fmt: skip
        then = np.zeros(frame.height, np.bool_)
        for number in np.unique(of[of >= 0]).tolist():
            mine, flights = np.flatnonzero(of == number), np.flatnonzero(self._of == number)
            then[mine] = ((part[mine, None] >= self._from[flights]) & (part[mine, None] < self._until[flights])).any(
                axis=1
            )
        said = frame.select(pl.format("{} at {}", pl.col(self._action).cast(pl.String), self._time)).to_series()
        rows.add(
            self._action, rows.sound & pl.Series(~then), "the action that was shown is not eligible at that time",
            "correct when it starts and ends, or quarantine the row", values=said,
        )  # fmt: skip
        return frame.with_columns(pl.Series(SET, part))

    def codes(self, frame: pl.DataFrame, labels: Labels) -> pl.Series:
        """Return the part of the clock of each display."""
        self._codes = labels.codes(pl.Series(self._names, dtype=pl.String)).astype(np.int64)
        return frame[SET]

    def offered(self, sets: pl.Series) -> npt.NDArray[np.integer]:
        """Return the codes of the labels that some displays have in their sets, each once."""
        return np.unique(np.concatenate([self._eligible(part) for part in sets.unique().to_list()]))

    def kept(self, sets: pl.Series, new_action: npt.NDArray[np.int32], n_actions: int) -> KeptMembers:
        """Return the eligible actions of displays of the spool among those that are kept."""
        part, of = np.unique(sets.to_numpy(), return_inverse=True)
        held = [self._eligible(p) for p in part.tolist()]
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(h) for h in held], dtype=np.int64)])
        code = np.concatenate([*held, np.zeros(0, np.int64)])
        return KeptMembers(kept_members(Members(first, code), new_action, n_actions).bits[of], None)

    def _eligible(self, part: int) -> Ints:
        return self._codes[np.unique(self._of[(self._from <= part) & (part < self._until)])]
