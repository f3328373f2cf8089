"""What to write under [time] of a spec whose times could not be read: whatever fits every cell, and no choice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import polars as pl

from evaluator.input_files import toml_value
from evaluator.reading.spec_sections import Time
from evaluator.reading.zones import EPOCH, instants, unplaced

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
        """Return which cells are times to which their zone gives no moment, as `evaluator.reading.zones.unplaced`."""
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
