"""Eligible actions, of every source: lists in a column, a calendar, or a table with a row for each action.

Each reader checks the rows of a chunk, leaves a small column for each in the spool, and gives back the eligible actions
of some of these once all displays are known.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.errors import SpecError
from evaluator.log.breaches import SUM_TOLERANCE
from evaluator.log.eligible import Bits, bits_of, blocks, width
from evaluator.log.encoder import value_text
from evaluator.reading.cells import Kind, ZonesSeen
from evaluator.reading.event_rows import no_such_time, ticks_of_date, zone_of_date
from evaluator.reading.frames import Chunks
from evaluator.reading.labels import Labels, coded, value_texts
from evaluator.reading.roles import CALENDAR, CANDIDATE, kinds_of
from evaluator.reading.row_breaches import FILE, LINE, SHOWN, Breaches, CheckedRows, side_by_side
from evaluator.reading.row_rules import check_cells, check_roles, read_sound
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec import FileSpec
from evaluator.reading.vw.decision_frames import FORMATS

_REPAIR = CANDIDATE["propensity"].rules[0].repair
Ints = npt.NDArray[np.int64]

# Columns of a chunk that its check adds, and of the spool: what says which set a display has.
SET, SET_PROPENSITY = "display.eligible", "display.eligible.propensity"
NOT_ELIGIBLE = "the action that was shown is not eligible"
_LIST_THEM = "list the actions that could have been shown, or quarantine the row"
# Before and after every time that a log may have.
_EVER, _FOR_GOOD = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Members(NamedTuple):
    """The eligible actions of some displays, one display after the other.

    `first` (n + 1,) are the places of each display's first action, `code` (m,) the codes of the labels, `vectors` (m,
    d) the vectors of the actions, None where they have none.
    """

    first: Ints
    code: npt.NDArray[np.integer]
    vectors: npt.NDArray[np.float32] | None = None


class KeptMembers(NamedTuple):
    """The eligible actions of some displays among those that are kept.

    `bits` (n, width) hold a bit an action; `vectors` (m, d) are in the order of the displays and then of the actions,
    None where they have none.
    """

    bits: Bits
    vectors: npt.NDArray[np.float32] | None


class SetSource(Protocol):
    """What reads the sets of a source."""

    def check(self, rows: CheckedRows, frame: pl.DataFrame) -> pl.DataFrame:
        """Report the rows of a chunk whose set breaks a rule; return the chunk with what `codes` needs of it."""

    def codes(self, frame: pl.DataFrame, labels: Labels) -> pl.Series:
        """Return what the spool keeps of the sets of sound rows, their labels numbered by `labels`."""

    def offered(self, sets: pl.Series) -> npt.NDArray[np.integer]:
        """Return the codes of the labels that some displays of the spool have in their sets, each once."""

    def kept(self, sets: pl.Series, new_action: npt.NDArray[np.int32], n_actions: int) -> KeptMembers:
        """Return the eligible actions of displays of the spool among those that are kept; see `kept_members`."""


def local_codes(column: pl.Series, number: dict[str, int]) -> Ints:
    """Return the number of each row's label, -1 where it is missing or not numbered."""
    labels, code = coded(column)
    found = [number.get(label, -1) for label in labels.to_pylist()]
    codes: Ints = np.array([*found, -1], np.int64)[code]
    return codes


def spread(first: Ints, of: Ints) -> tuple[Ints, Ints]:
    """Return where the parts `of` some ragged rows begin, one after the other, and the places of all of their entries.

    `first` (rows + 1,) are the places of the first entries of all ragged rows, `of` (n,) the rows that are wanted.
    """
    counts = first[of + 1] - first[of]
    begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return begins, np.repeat(first[of] - begins[:-1], counts) + np.arange(begins[-1])


def kept_members(members: Members, new_action: npt.NDArray[np.int32], n_actions: int) -> KeptMembers:
    """Return sets of the kept actions alone.

    `new_action` (codes,) is the index of each code's action among the K that are kept, -1 where it is dropped.
    """
    n = len(members.first) - 1
    display = np.repeat(np.arange(n), np.diff(members.first))
    action = new_action[members.code]
    bits = np.empty((n, width(n_actions)), np.uint8)
    for part in blocks(n, n_actions):
        begin, end = members.first[part.start], members.first[min(part.stop, n)]
        truths = np.zeros((min(part.stop, n) - part.start, n_actions + 1), np.bool_)
        truths[display[begin:end] - part.start, action[begin:end]] = True  # -1, what is dropped, is the last
        bits[part] = bits_of(truths[:, :-1])
    if members.vectors is None:
        return KeptMembers(bits, None)
    order = np.lexsort((action, display))
    return KeptMembers(bits, members.vectors[order[action[order] >= 0]])


class CandidateSets:
    """The sets of a table of candidates, in memory: the displays are joined as they pass by.

    Memory: a label's code, and the features and the propensity if there are any, of each row; an id a display.
    """

    def __init__(self, spec: FileSpec, files: list[TablePart], *, listed: bool) -> None:
        given = spec.candidates
        assert given is not None
        assert spec.display.id is not None
        self._given, self._id, self._action = given, spec.display.id, spec.display.action
        self.breaches = Breaches(files, listed=listed)
        kinds = kinds_of(CANDIDATE.values(), given)
        table = Chunks(files, given, kinds).collect()
        self._refuse_unnamed(files, table)
        if given.format in FORMATS:
            # A decision's actions stand in its line: a second line with its id is a second display, told as such.
            first = pl.col(FILE, LINE).first().over(given.display)
            table = table.filter(pl.all_horizontal(pl.col(FILE, LINE) == first))
        ids = value_texts(table[given.display])
        groups = ids.alias("id").to_frame().unique(maintain_order=True).with_row_index("group")
        group = ids.alias("id").to_frame().join(groups, on="id", how="left", maintain_order="left")["group"]
        self._groups = groups
        labels = Labels()
        label = labels.codes(table[given.action])
        bad = self._check(table, kinds, group.to_numpy(), label)
        self._names = labels.names
        # The rows of a display together, each display's in the order of the labels' numbers.
        order = np.lexsort((label, group.to_numpy()))
        of = group.to_numpy()[order].astype(np.int64)
        self._first = np.searchsorted(of, np.arange(groups.height + 1)).astype(np.int64)
        self._label = label[order].astype(np.int64)
        self._key = of * max(len(self._names), 1) + self._label
        self._broken = np.zeros(groups.height, np.bool_)
        self._broken[group.to_numpy()[bad]] = True
        self._joined = np.zeros(groups.height, np.bool_)
        self._where = table.select(FILE, LINE, given.display)
        self._row_of_group = order[self._first[:-1]]
        p = given.propensity
        self._propensity = None if p is None else table[p].cast(pl.Float64).to_numpy()[order]
        numbers = table.select(pl.col(given.features).cast(pl.Float32)).to_numpy()[order] if given.features else None
        self._vectors: npt.NDArray[np.float32] | None = numbers
        self._codes = np.zeros(0, np.int64)
        self._sample: list[str] = []

    def _refuse_unnamed(self, files: list[TablePart], table: pl.DataFrame) -> None:
        """Raise LogError if a candidate names no display, because the set that it belongs to is unknown."""
        breaches = Breaches(files, listed=False)
        rows = breaches.check(table)
        check_roles(rows, table, [CANDIDATE["display"]], self._given)
        rows.close()
        breaches.refuse()

    def _check(
        self, table: pl.DataFrame, kinds: dict[str, Kind], group: Ints, label: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.bool_]:
        """Report the rows of the table that break a rule; return which do."""
        given, rows = self._given, self.breaches.check(table)
        check_cells(rows, table, kinds)
        check_roles(rows, table, [CANDIDATE["action"]], given)
        again = ~table.select(pl.struct(given.display, given.action).is_first_distinct()).to_series()
        rows.add(given.action, rows.sound & again, "twice among the candidates of a display", "keep one row of each")
        check_roles(rows, table, [CANDIDATE["features"], CANDIDATE["propensity"]], given)
        if given.propensity is not None:
            p = table[given.propensity].cast(pl.Float64)
            self._check_sums(rows, p, group)
        return ~rows.close()

    def _check_sums(self, rows: CheckedRows, p: pl.Series, group: Ints) -> None:
        """Report the first row of each display whose propensities do not sum to 1, if all its rows are sound."""
        sound = rows.sound.to_numpy()
        total = np.bincount(group, p.fill_null(0.0).fill_nan(0.0).to_numpy())
        whole = np.bincount(group, ~sound) == 0
        off = whole & (np.abs(total - 1.0) > SUM_TOLERANCE)
        bad = np.zeros(len(group), np.bool_)
        first = np.unique(group, return_index=True)[1]
        bad[first[off]] = True
        rows.add(
            str(self._given.propensity), pl.Series(bad), "propensities of a display's candidates do not sum to 1",
            "give all actions that could have been shown, and normalise them", values=pl.Series(total[group]),
        )  # fmt: skip

    def check(self, rows: CheckedRows, frame: pl.DataFrame) -> pl.DataFrame:
        """Report displays without candidates, with candidates that break a rule, or whose action is not a candidate."""
        ids = value_texts(frame[self._id]).alias("id").to_frame()
        self._sample = self._sample or ids["id"].drop_nulls().head(SHOWN).to_list()
        found = ids.join(self._groups, on="id", how="left", maintain_order="left")["group"]
        group = found.cast(pl.Int64).fill_null(-1).to_numpy()
        self._joined[group[group >= 0]] = True
        rows.add(self._id, rows.sound & pl.Series(group < 0), "a display without candidates",
                 "give the actions that could have been shown, or quarantine the row"
                 + side_by_side("candidates", self._groups["id"].head(SHOWN)))  # fmt: skip
        if self.breaches.listed and self._broken.any():
            broken = (group >= 0) & self._broken[group]
            rows.add(self._id, rows.sound & pl.Series(broken), "a candidate of this display breaks a rule",
                     "repair its rows in the table of candidates")  # fmt: skip
        label = local_codes(frame[self._action], {name: i for i, name in enumerate(self._names)})
        key = group * max(len(self._names), 1) + label
        place = np.minimum(np.searchsorted(self._key, key), max(len(self._key) - 1, 0))
        held = (group >= 0) & (label >= 0)
        held &= self._key[place] == key if len(self._key) else False
        rows.add(self._action, rows.sound & pl.Series(~held), NOT_ELIGIBLE,
                 "add its row to the candidates, or quarantine the row")  # fmt: skip
        more = [pl.Series(SET, group)]
        if self._propensity is not None:
            p = np.where(held, self._propensity[place], 1.0) if len(self._propensity) else np.ones(len(held))
            rows.add(
                self._action, rows.sound & pl.Series(held & (p == 0)), "propensity 0 although it was shown", _REPAIR
            )
            more.append(pl.Series(SET_PROPENSITY, p))
        return frame.with_columns(more)

    def see_others(self) -> None:
        """Report the candidates of displays that are not there; all displays have been checked."""
        rows = self.breaches.check(self._where)
        bad = np.zeros(self._where.height, np.bool_)
        bad[self._row_of_group[~self._joined]] = True
        remedy = "check candidates.display" + side_by_side("displays", self._sample)
        rows.add(self._given.display, pl.Series(bad), "candidates without display", remedy)
        rows.close()

    def codes(self, frame: pl.DataFrame, labels: Labels) -> pl.Series:
        """Return the number, in this table, of each display."""
        self._codes = labels.codes(pl.Series(self._names, dtype=pl.String)).astype(np.int64)
        return frame[SET]

    def offered(self, sets: pl.Series) -> npt.NDArray[np.integer]:
        """Return the codes of the labels that some displays have in their sets, each once."""
        return self._codes[np.unique(self._label[spread(self._first, sets.to_numpy())[1]])]

    def kept(self, sets: pl.Series, new_action: npt.NDArray[np.int32], n_actions: int) -> KeptMembers:
        """Return the eligible actions of displays of the spool among those that are kept."""
        begins, places = spread(self._first, sets.to_numpy())
        vectors = None if self._vectors is None else self._vectors[places]
        return kept_members(Members(begins, self._codes[self._label[places]], vectors), new_action, n_actions)


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
            (lists.is_null(), "missing", none, _LIST_THEM),
            (lists.list.len() == 0, "no action is eligible", none, _LIST_THEM),
            (gaps, "a label is missing among the eligible actions", none, _LIST_THEM),
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
