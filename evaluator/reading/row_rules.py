"""The rules that every row of displays must keep, and whether so many broke them that what is left is another log.

Where times could not be read, the repair is what to write under [time] of the spec: whatever fits every cell of their
column, and no choice (`TimeGuesses`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.errors import LogError
from evaluator.input_files import toml_value
from evaluator.log.log_tables import LEFT_OUT
from evaluator.reading.cells import EPOCH, PROBLEMS, Kind, ZonesSeen, comes_twice, instants, unplaced
from evaluator.reading.contexts import Features
from evaluator.reading.frames import UNPARSED, Chunks
from evaluator.reading.json_lines import BROKEN
from evaluator.reading.roles import DISPLAY, FINITE, MISSING, Role
from evaluator.reading.row_breaches import FILE, LINE, ROW, SHOWN, Breaches, CheckedRows
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec import Conversion, FileSpec
from evaluator.reading.spec_sections import Table, Time
from evaluator.reading.text_rows import CELLS
from evaluator.reading.vw.decision_frames import NO_DECISION

RAGGED = ("a row with too few or too many cells", "check source.delimiter and the quotes of such rows")
NO_OBJECT = ("a line that is no JSON object", "repair such lines, or quarantine them")
UNDECIDED = ("a line that is no decision", "repair such lines, or quarantine them")
# Of logs whose rows are left out whatever their outcome, this share at most are said to depend on it (Fisher's exact
# test keeps its level), and fewer are refused: the share left out must be large too.
LEVEL = 1e-3
_ORDERS = {"d": "days", "m": "months", "y": "years", "Y": "years"}
_PARTS = ("dmY", "mdY", "dmy", "mdy", "ymd")
_DATES = (
    *("%" + f"{s}%".join(parts) for s in "./-" for parts in _PARTS),
    "%Y.%m.%d", "%Y%m%d", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
    "%a, %d %b %Y",
)  # fmt: skip
_HOURS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
_JOINTS, _ZONES = (" ", ", ", "T", ":"), ("", " %z")
_MARK = re.compile(r"[-+./,:]")
_DIGIT, _PLAIN_NUMBER = re.compile(r"\d"), re.compile(r"\s*\d+(\.\d*)?\s*")
# Microseconds: guesses are of times that a log may be of, 1990 to 2100; of written years, 1900 to 2100.
_EARLY, _FIRST, _LAST = -2_208_988_800_000_000, 631_152_000_000_000, 4_102_444_800_000_000
_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_SAMPLE = 1_000
ISO_EXAMPLE = "2024-01-31T12:00:00+00:00"


def check_cells(
    rows: CheckedRows, frame: pl.DataFrame, kinds: Mapping[str, Kind], times: TimeGuesses | None = None
) -> pl.Series:
    """Report the rows of another width than the table, and the cells that do not fit the kind of their column.

    `times` looks at the cells of its times that cannot be read, and says how to repair them. Return which rows have
    the width of the table: of others nothing more is known.
    """
    whole = pl.repeat(True, frame.height, dtype=pl.Boolean, eager=True)
    for marks, said in ((CELLS, RAGGED), (BROKEN, NO_OBJECT), (NO_DECISION, UNDECIDED)):
        marked = frame[marks] if marks in frame.columns else None
        rows.add(
            ROW,
            None if marked is None else marked.is_not_null(),
            *said,
            values=frame[LINE] if marked is None else marked,
        )
        whole = whole if marked is None else whole & marked.is_null()
    unfit = {c: frame[UNPARSED + c].set(~whole, None) for c in kinds if UNPARSED + c in frame.columns}
    if times is not None:
        for column in times.columns:
            for found, problem, remedy in times.unplaced(column, unfit.get(column)):
                rows.add(column, found, problem, remedy, values=unfit[column])
                unfit[column] = unfit[column].set(found, None)
            times.see(column, frame[column], unfit[column].drop_nulls() if column in unfit else None)
    for column, kind in kinds.items():
        if kind in PROBLEMS:
            text = unfit.get(column)
            said = PROBLEMS[kind] if times is None or column not in times.columns else times.said(column)
            rows.add(column, None if text is None else text.is_not_null(), *said, values=text)
    return whole


def check_roles(rows: CheckedRows, frame: pl.DataFrame, roles: Iterable[Role], section: object) -> None:
    """Report the cells that break a rule of a role of their column, in rows that have broken none before."""
    for role in roles:
        for column in role.columns(section):
            cells = frame[column].cast(pl.Float64) if role.kind == "float" else frame[column]
            for rule in role.rules:
                rows.add(column, rows.sound & rule.breaks(cells), rule.problem, rule.repair)


def read_sound(
    files: list[TablePart],
    table: Table,
    kinds: Mapping[str, Kind],
    roles: Iterable[Role],
    relate: Callable[[CheckedRows, pl.DataFrame], None],
    *,
    time: Time | None = None,
    times: Sequence[str] = (),
    zones: ZonesSeen | None = None,
) -> pl.DataFrame:
    """Return all rows of a table of which none is ever left out, each sound.

    `relate` reports what several cells break together; `time` says how its `times` are written. Raises LogError,
    which names the rows that break a rule.
    """
    found = Chunks(files, table, kinds, time=time, zones=ZonesSeen() if zones is None else zones).collect()
    breaches = Breaches(files, listed=False)
    rows = breaches.check(found)
    check_cells(rows, found, kinds, None if time is None else TimeGuesses(time, times))
    check_roles(rows, found, roles, table)
    relate(rows, found)
    rows.close()
    breaches.refuse()
    return found


def check_displays(
    rows: CheckedRows, frame: pl.DataFrame, spec: FileSpec, features: Features, repeated: pl.DataFrame
) -> None:
    """Report displays without time or action, with impossible numbers, or listed twice.

    `repeated` are the rows of the chunk whose id an earlier display has: ``row``, and `FILE` and `LINE` of that
    display.
    """
    display = spec.display
    sound = rows.sound
    numbers = {column for role in DISPLAY.values() if role.number is not None for column in role.columns(display)}
    of_roles = {key: [(c, rule) for c in role.columns(display) for rule in role.rules] for key, role in DISPLAY.items()}
    of_features = [(column, rule) for column in features.columns("number") for rule in (MISSING, FINITE)]
    pairs = [*of_roles.pop("time"), *of_roles.pop("action"), *of_features, *chain(*of_roles.values())]
    # What is missing is told first.
    for column, rule in sorted(dict.fromkeys(pairs), key=lambda pair: pair[1] is not MISSING):
        cells = frame[column].cast(pl.Float64) if column in numbers else frame[column]
        rows.add(column, sound & rule.breaks(cells), rule.problem, rule.repair)
    if display.id is not None:
        again = np.zeros(frame.height, dtype=np.bool_)
        again[repeated["row"].to_numpy()] = True
        rows.add(display.id, sound & pl.Series(again), "duplicate display", "keep one row per display",
                 more=rows.as_in(repeated.filter(sound.gather(repeated["row"]))))  # fmt: skip


class TimeOrder:
    """Whether the displays come in the order of their times, chunk by chunk."""

    def __init__(self, files: list[TablePart], time: str, zones: ZonesSeen) -> None:
        self._files, self._time, self._zones = files, time, zones
        self._last: int | None = None
        self._late = 0
        self._first = ""
        self._step = (0, 0)

    def see(self, frame: pl.DataFrame) -> None:
        """Look at the sound rows of a chunk."""
        if frame.height == 0:
            return
        times = frame[self._time].to_numpy()
        before = np.concatenate([times[:1] if self._last is None else [self._last], times[:-1]])
        late = np.flatnonzero(times < before)
        if len(late) and not self._late:
            row = int(late[0])
            file = self._files[frame[FILE][row]]
            (where,) = file.places([frame[LINE][row]])
            self._first = f"{where}: time {times[row]} is earlier than {before[row]} before it"
            self._step = int(before[row]), int(times[row])
        self._late += len(late)
        self._last = int(times[-1])

    @property
    def kept(self) -> bool:
        """Whether no display is earlier than the one before it."""
        return not self._late

    def refuse(self) -> None:
        """Raise LogError if a display is earlier than the one before it."""
        if not self.kept:
            if self._zones.is_naive(self._time) and (zone := comes_twice(*self._step)):
                early, late = (pl.Series([of]).cast(pl.Datetime("us"))[0] for of in self._step)
                raise LogError(
                    f"{self._first.partition(': time ')[0]}: column {self._time!r} goes back from {early} to {late}, "
                    f"in an hour that comes twice in zones such as {zone}, where clocks were put back.",
                    remedy="give times in UTC, or with what they are ahead of it (2024-10-27T02:30:00+01:00), or in a "
                    'column that offset = "..." under [time] names: sorting does not tell the two hours apart. Where '
                    'they are UTC, say so: timezone = "UTC" under [time].',
                )
            raise LogError(
                f"{self._first} ({self._late} such rows).",
                remedy="sort the source, set sort = true in [source], or pass `sort=True`.",
            )


@dataclass
class LeftOut:
    """Displays by whether they stay in the log and whether they converted, as far as their rows say.

    `rows` (2, 2) count displays that were left out and that stay, without a conversion and with one; `unknown` those
    left out that do not say whether they converted.
    """

    rows: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 2), np.int64))
    unknown: int = 0

    def see(self, sound: npt.NDArray[np.bool_], converted: pl.Series) -> None:
        """Count the rows of a chunk: whether they stay, and whether they converted, null where unknown."""
        for stays in (False, True):
            found = converted.filter(pl.Series(sound == stays))
            with_one = int(found.sum())
            without = len(found) - found.null_count() - with_one
            self.rows[int(stays)] += [without, with_one]
            self.unknown += 0 if stays else found.null_count()

    @property
    def left_out(self) -> int:
        """Number of displays left out."""
        return int(self.rows[0].sum()) + self.unknown

    def depends_on_outcome(self) -> bool:
        """Whether displays with a conversion were left out more often, or less, than chance explains."""
        if not self.rows[0].any():
            return False
        return fisher_exact(self.rows) < LEVEL

    def refuse(self, breaches: Breaches, most: float) -> str:
        """Return a sentence on what the outcome has to do with it, empty where nothing.

        Raises LogError if more than the share `most` of the displays were left out; or of those with a conversion, or
        of the others, if that depends on the outcome.
        """
        lost, total = self.left_out, self.left_out + int(self.rows[1].sum())
        refuse_many(lost, total, breaches, most, "rows")
        if not self.depends_on_outcome():
            return ""
        of_each = self.rows.sum(axis=0)
        shares = self.rows[0] / np.maximum(of_each, 1)
        said = (
            f"left out are {self.rows[0, 1]:,} of {of_each[1]:,} rows with a conversion ({_percent(shares[1])}) and "
            f"{self.rows[0, 0]:,} of {of_each[0]:,} others ({_percent(shares[0])}): it depends on the outcome, so that "
            "what is left has another conversion rate"
        )
        if shares.max() > most:
            raise _error(said, breaches, float(shares.max()))
        return f"{said[0].upper()}{said[1:]}."


def fisher_exact(rows: npt.NDArray[np.int64]) -> float:
    """Return the p-value of Fisher's exact test of a table (2, 2), two-sided: the chance of all that are no likelier.

    SciPy's takes as long to load as a million rows to read.

    >>> round(fisher_exact(np.array([[8, 2], [1, 5]])), 6)  # 0.034965 by scipy.stats.fisher_exact
    0.034965
    """
    (a, b), (c, d) = rows.tolist()
    low = max(a - d, 0)
    k = np.arange(low, min(a + b, a + c))
    # Logarithms of the chances of k = low, low + 1, ..., each from the one before it.
    steps = np.log(a + b - k) + np.log(a + c - k) - np.log(k + 1) - np.log(d - a + k + 1)
    chance = np.append(0.0, np.cumsum(steps))
    chance = np.exp(chance - chance.max())
    return float(chance[chance <= chance[a - low] * (1 + 1e-9)].sum() / chance.sum())


def refuse_many(lost: int, total: int, breaches: Breaches, most: float, rows: str) -> None:
    """Raise LogError if more than the share `most` of some rows were left out."""
    if lost > most * total:
        share = lost / total
        said = f"{lost:,} of {total:,} {rows} ({_percent(share)}) break a rule, and {_percent(most)} may be left out"
        raise _error(said, breaches, share)


def left_out_note(tables: Sequence[Breaches], by_outcome: str = "") -> str:
    """Return how many rows were left out and why, the commonest reasons first; empty where none were.

    `by_outcome` says what the outcome has to do with it.
    """
    rows = sum(table.rows for table in tables)
    counts = sorted((item for table in tables for item in table.counts.items()), key=lambda item: -item[1])
    if not rows:
        return ""
    reasons = "; ".join(f"{what} ({count:,})" for what, count in counts[:SHOWN])
    more = f"; and {len(counts) - SHOWN} more reasons" if len(counts) > SHOWN else ""
    return f"{rows:,} rows {LEFT_OUT}: {reasons}{more}. {by_outcome}".rstrip()


def says_converted(frame: pl.DataFrame, conversion: Conversion) -> pl.Series:
    """Return whether each row of a chunk says that its display converted, in whatever way; null where it cannot.

    A cell that cannot be read says so: where nothing happened it would be empty, or 0.
    """
    column = str(conversion.indicator or conversion.time or conversion.delay)
    cells = frame[column]
    said = (cells == 1).fill_null(False) if conversion.indicator is not None else cells.is_not_null()
    if UNPARSED + column in frame.columns:
        said |= frame[UNPARSED + column].is_not_null()
    for marks in (CELLS, BROKEN, NO_DECISION):
        if marks in frame.columns:
            said = said.set(frame[marks].is_not_null() & ~said, None)
    return said


def _error(what: str, breaches: Breaches, share: float) -> LogError:
    enough = math.ceil(share * 100)
    return LogError(
        f"{what[0].upper()}{what[1:]}. {breaches.commonest()}.",
        remedy=f"repair these first; `quarantine_at_most='{enough}%'` allows the loss.",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


class Guess(NamedTuple):
    """A unit of [time], how dates are then written, and what comes first in them where that is a question."""

    unit: str
    form: str | None = None
    first: str = ""


@dataclass
class _Column:
    guesses: list[Guess] | None = None  # None while all cells could be read
    some_read: bool = False


class TimeGuesses:
    """What fits the cells of the columns of times of a table that could not be read, chunk by chunk."""

    def __init__(self, time: Time, columns: Iterable[str]) -> None:
        self._time = time
        self._columns = {column: _Column() for column in columns}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of times."""
        return tuple(self._columns)

    def see(self, column: str, cells: pl.Series, unread: pl.Series | None) -> None:
        """Look at the cells of a chunk, null where none could be read, and at the text of these, if there are any."""
        found = self._columns[column]
        found.some_read |= cells.null_count() < len(cells)
        if unread is not None and len(unread):
            guesses = list(self._all()) if found.guesses is None else found.guesses
            guesses = [guess for guess in guesses if not found.some_read or self._reads_all(guess)]
            found.guesses = _that_fit(guesses, unread.unique(maintain_order=True))

    def unplaced(self, column: str, unread: pl.Series | None) -> list[tuple[pl.Series, str, str]]:
        """Return which cells are times to which their zone gives no moment, as `evaluator.reading.cells.unplaced`."""
        if unread is None:
            return []
        form, zone, offset = (of(column) for of in (self._time.format_of, self._time.zone_of, self._time.offset_of))
        return unplaced(unread, form, zone, offset)

    def said(self, column: str) -> tuple[str, str]:
        """Return what is wrong with the cells that are no times, and the repair: lines of [time] that all cells fit."""
        form = self._time.format_of(column)
        if self._time.unit != "datetime":
            problem = "not a whole number"
        else:
            problem = "not an ISO date and time" if form is None else f"not written as format = {toml_value(form)} says"
        return problem, self._remedy(column)

    def _remedy(self, column: str) -> str:
        said = self._ways(column)
        if "" in said or len(said) == 1:
            lines = said.get("") or next(iter(said.values()))
            return f"write {lines} under [time]" if lines else "take format out of [time]"
        if said:
            ways = ", or ".join(f"{lines} if {first} come first" for first, lines in said.items())
            return (
                f"write under [time] {ways}: every cell fits {'both' if len(said) == 2 else 'all'}, ask who wrote them"
            )
        if self._time.unit != "datetime":
            return "repair the cell, list it in source.none, or quarantine the row"
        form = self._time.format_of(column)
        if form is not None:
            return "repair the cell, list it in source.none, or say in [time] how dates are written"
        return (
            f"write {ISO_EXAMPLE}, list what means none in source.none, or say in [time] how they are written, such as "
            'format = "%d.%m.%Y", or time.unit if they are numbers'
        )

    def _ways(self, column: str) -> dict[str, str]:
        """Return lines of [time] by what then comes first in a date."""
        own = self._columns[column].guesses or []
        if self._columns[column].some_read:
            own = [guess for guess in own if self._reads_all(guess)]
        others = {name: found for name, found in self._columns.items() if name != column}
        shared = [guess for guess in own if all(self._suits(guess, found) for found in others.values())]
        said: dict[str, str] = {}
        for unit, form, first in shared:
            said.setdefault(first, self._lines(unit, form))
        for unit, form, first in own if not shared else ():
            forms = self._forms_of(unit, list(others))
            if forms is not None:
                form = EPOCH if unit == "s" else form
                said.setdefault(first, self._lines("datetime", {column: form, **forms} if form else forms))
        return said

    def _reads_all(self, guess: Guess) -> bool:
        """Whether a guess reads whatever could be read before."""
        return self._time.unit == "s" and guess.form == EPOCH

    def _suits(self, guess: Guess, other: _Column) -> bool:
        return (other.guesses is None or guess in other.guesses) and (not other.some_read or self._reads_all(guess))

    def _forms_of(self, unit: str, others: list[str]) -> dict[str, str] | None:
        """Return how the times of the other columns are written where the unit becomes another one; None if no way."""
        if self._time.unit == "datetime":
            known = {name: self._time.format_of(name) for name in others}
            return {name: form for name, form in known.items() if form} if unit in ("datetime", "s") else None
        return dict.fromkeys(others, EPOCH) if self._time.unit == "s" else None

    def _lines(self, unit: str, form: str | Mapping[str, str] | None) -> str:
        lines = [f"unit = {toml_value(unit)}"] if unit != self._time.unit else []
        if form:
            lines.append(f"format = {toml_value(form)}")
        return " and ".join(lines)

    def _all(self) -> Iterator[Guess]:
        yield Guess("datetime")
        if self._time.unit == "datetime":
            yield from (Guess(unit) for unit in _MICROSECONDS)
        yield Guess("datetime", EPOCH)
        yield from _formats()


@cache
def _formats() -> tuple[Guess, ...]:
    hours = [joint + hour + zone for joint in _JOINTS for hour in _HOURS for zone in _ZONES]
    known = [
        Guess("datetime", date + hour, "" if "b" in date.lower() or "Y%m" in date else _ORDERS[date[1]])
        for date in _DATES
        for hour in ("", *hours)
    ]
    return (*known, Guess("datetime", "%a %b %d %H:%M:%S %Y"))


def guesses_of(text: pl.Series) -> list[Guess]:
    """Return the guesses that every cell of a column fits, of numbers the likeliest first; none of an empty column."""
    cells = text.drop_nulls().unique(maintain_order=True)
    first = cells.head(1).to_list()
    # The shortest date is 1-Jan-24; most columns are told from times by their first cell.
    if not first or len(_DIGIT.findall(first[0])) < 3:
        return []
    if not _PLAIN_NUMBER.fullmatch(first[0]):
        return _that_fit([Guess("datetime"), *_formats()], cells)
    numbers = [*(Guess(unit) for unit in _MICROSECONDS), Guess("datetime", EPOCH), Guess("datetime", "%Y%m%d")]
    return _that_fit(numbers, cells)


def _that_fit(guesses: Iterable[Guess], text: pl.Series) -> list[Guess]:
    """Return the guesses that fit every cell; a few cells rule out most guesses."""
    marks = _MARK.findall(text[0])
    guesses = [guess for guess in guesses if _has_marks(guess.form, marks)]
    for cells in (text.head(1), text.head(_SAMPLE), text):
        guesses = [guess for guess in guesses if _fits(guess, cells)]
    return list(guesses)


def _has_marks(form: str | None, marks: list[str]) -> bool:
    """Whether a cell has the points, dashes and colons of a format, in their order."""
    if form is None or form == EPOCH:
        return True
    zones = ([], ["+"], ["-"], ["+", ":"], ["-", ":"]) if form.endswith("%z") else ([],)
    # Decimals of a second may be missing.
    written = [_MARK.findall(one) for one in {form, form.replace(".%f", "")}]
    return any(marks == own + zone for own in written for zone in zones)


def _fits(guess: Guess, cells: pl.Series) -> bool:
    if guess.unit == "datetime":
        times = instants(cells, guess.form)
        first = _FIRST if guess.form == EPOCH else _EARLY
    else:
        whole = cells.str.strip_chars().str.replace(r"\.0+$", "").cast(pl.Int64, strict=False)
        times, first = whole * _MICROSECONDS[guess.unit], _FIRST
    return bool(times.is_between(first, _LAST).fill_null(False).all())
