"""Cells of a source as the values their roles ask for; those that do not fit keep their text.

Of times, which zone those without one are of is said by a spec, by a column of offsets, or nowhere, which is UTC.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import polars as pl
import pyarrow as pa

from evaluator.errors import LogError, nearest
from evaluator.input_files import toml_value
from evaluator.log.encoder import value_text
from evaluator.reading.labels import value_texts

Kind = Literal["int", "flag", "float", "text", "category", "datetime", "labels", "offset"]
TYPES: dict[Kind, pl.DataType] = {
    "labels": pl.List(pl.String()), "flag": pl.Int64(),
    "int": pl.Int64(), "float": pl.Float64(), "text": pl.String(), "category": pl.String(), "datetime": pl.Int64(),
    "offset": pl.Int64(),
}  # fmt: skip
PROBLEMS: dict[Kind, tuple[str, str]] = {
    "int": ("not a whole number", "repair the cell, list it in source.none, or quarantine the row"),
    "flag": ("neither 0 nor 1, true nor false", "repair the cell, list it in source.none, or quarantine the row"),
    "float": ("not a number", "repair the cell, list it in source.none, or quarantine the row"),
    "labels": ("not a list of labels", "write a JSON array, or say what parts them: display.eligible_separator"),
    "datetime": ("not an ISO date and time", "write 2024-01-31T12:00:00+00:00"),
    "offset": ("not an offset from UTC", "write the minutes that local time is ahead, such as 120 or -300, or +02:00"),
}
# Kinds of whole numbers, and of all numbers.
WHOLE: tuple[Kind, ...] = ("int", "flag")
NUMBERS: tuple[Kind, ...] = (*WHOLE, "float")
# Two roles may share a column: the stricter kind is read, the other derived from it.
_STRICTNESS: tuple[Kind, ...] = ("category", "text", "float", "flag", "int", "datetime", "labels", "offset")
# Truth values as tables write them, and PostgreSQL: 1 and 0. A value may be one, a time cannot.
TRUTHS = {"true": "1", "false": "0"}
_WORDS: dict[Kind, dict[str, str]] = {"flag": {**TRUTHS, "t": "1", "f": "0"}, "float": TRUTHS}

# The end of the year 262,142, the last one whole.
_LAST_SECOND = 8_210_000_000_000
LISTS = pl.List(pl.String)
_MICROS_A_MINUTE = 60_000_000
_SIGNED = r"^\s*([+-])(\d{2}):?(\d{2})\s*$"
# What looks like these is another zone: MST like PST, EST like CEST, and Etc/GMT+1, an hour behind UTC, like GMT+1.
_SHORT = re.compile(r"^[A-Za-z]{0,5}$|[+-]\s*\d")
# Zones of the world are ahead of UTC, or behind, by quarters of an hour; hours instead of minutes are none.
_BEHIND, _AHEAD, _LEAST, _STEP = -12 * 60, 14 * 60, 60, 15
# Zones named first where a time that comes twice is in some zone.
_KNOWN = ("Europe/Berlin", "Europe/London", "America/New_York", "America/Chicago", "America/Los_Angeles", "Europe/Kyiv")
EPOCH = "epoch"
# What Python and Polars mean the same by.
_CODES = frozenset("YymdbBjHIMSfpzaA%")
_CODE = re.compile(r"%(.?)")
# Year first, so that day and month cannot be mistaken for each other. The first is the quickest, and the most common.
_PLAIN = "%Y-%m-%d %H:%M:%S"
_ISO = (
    _PLAIN, "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%d %H:%M%#z",
)  # fmt: skip
_GREENWICH = ("Z", "UTC", "GMT")
# Polars takes "17" for the year 17, where a year has four digits.
_YEAR_1000, _YEAR_10000 = -30_610_224_000_000_000, 253_402_300_800_000_000
_MICROS = pl.Decimal(38, 6)


class Cells(NamedTuple):
    """A column of values, null where a cell is missing or does not fit, and the text of those that do not fit.

    Of times, too, whether they say their zone, all of them or each, or have one of the spec.
    """

    values: pl.Series
    unparsed: pl.Series | None
    aware: bool | pl.Series = True


def merged_kinds(one: Mapping[str, Kind], other: Mapping[str, Kind]) -> dict[str, Kind]:
    """Return the kind of each column of both."""
    out = dict(one)
    for column, kind in other.items():
        out[column] = max(out.get(column, kind), kind, key=_STRICTNESS.index)
    return out


def parse(
    column: pl.Series,
    kind: Kind,
    missing: list[str],
    form: str | None = None,
    *,
    separator: str | None = None,
    zone: str | pl.Series | None = None,
) -> Cells:
    """Return a column as values of its kind.

    Numbers and times are parsed, the rest is text. Of the values `missing` that mean "none", -1 also stands for -1.0 in
    a column of numbers. Dates are written in the `form` of `evaluator.reading.cells.read_instants`; a `separator`
    stands between the labels of a list, None for JSON arrays; `zone` is that of times that say none, or by how many
    minutes each is ahead of UTC, None for UTC.
    """
    if kind == "labels":
        return Cells(*label_lists(column if column.dtype.is_nested() else _without(_text(column), missing), separator))
    if kind in ("text", "category"):
        if column.dtype == pl.Boolean and kind == "text":
            column = column.cast(pl.Int8)
        return Cells(_without(value_texts(column), [value_text(word) for word in missing]), None)
    if kind == "datetime" and column.dtype.is_temporal():
        # Datetime columns need no parsing; they travel as ticks of us.
        own = getattr(column.dtype, "time_zone", None)
        ticks = column.cast(pl.Datetime("us", own)).cast(pl.Int64)
        if own is not None or zone is None:
            return Cells(ticks, None, own is not None)
        ticks = placed(ticks, False, zone)
        lost = ticks.null_count() > column.null_count()
        return Cells(ticks, _left_over(column.cast(pl.String), ticks) if lost else None)
    if kind not in ("datetime", "offset") and column.dtype != pl.String:
        values = column.cast(TYPES[kind], strict=False)
        if kind in WHOLE and (column.dtype.is_float() or column.dtype.is_decimal()):
            # A cast cuts fractions off without a word.
            values = values.set((values.cast(column.dtype, strict=False) != column).fill_null(False), None)
        lost = values.null_count() > column.null_count()
        return Cells(_without_numbers(values, missing), _left_over(column.cast(pl.String), values) if lost else None)
    text = _without(_text(column), missing)
    aware: bool | pl.Series = True
    if kind == "datetime":
        values, aware = read_instants(text, form)
        if zone is not None and aware is not True:
            values, aware = placed(values, aware, zone), True
    else:
        values = offset_minutes(text) if kind == "offset" else text.cast(TYPES[kind], strict=False)
    if values.null_count() == text.null_count():
        return Cells(_without_numbers(values, missing), None, aware)
    # Only cells that are no value as they stand are read more closely: in most tables few are.
    doubtful = (text.is_not_null() & values.is_null()).arg_true()
    text = text.gather(doubtful)
    stripped = text.str.strip_chars()
    if kind not in ("datetime", "offset"):
        plain = stripped.str.replace(r"\.0+$", "") if kind in WHOLE else stripped
        if kind in _WORDS:
            plain = plain.str.to_lowercase().replace(_WORDS[kind])
        repaired = plain.cast(TYPES[kind], strict=False)
        values = values.scatter(doubtful, repaired)
        text = text.set(repaired.is_not_null(), None)
    text = text.set(stripped == "", None)  # a quoted nothing is nothing
    unparsed = pl.Series(text.name, [None], dtype=pl.String).new_from_index(0, len(values)).scatter(doubtful, text)
    lost = unparsed.null_count() < len(unparsed)
    return Cells(_without_numbers(values, missing), unparsed if lost else None, aware)


def in_calendar(column: pl.Series) -> bool:
    """Return whether all times of a column of times are of a year that can be written: others crash what reads them."""
    unit = getattr(column.dtype, "time_unit", None)
    if not isinstance(column.dtype, pl.Datetime) or unit == "ns" or column.null_count() == len(column):
        return True
    ticks = column.to_physical()
    last = _LAST_SECOND * {"ms": 10**3, "us": 10**6}[str(unit)]
    return bool(-last <= int(ticks.min()) and int(ticks.max()) <= last)  # type: ignore[arg-type]


def _text(column: pl.Series) -> pl.Series:
    return column if column.dtype == pl.String else column.cast(pl.String)


def _left_over(text: pl.Series, values: pl.Series) -> pl.Series | None:
    failed = text.is_not_null() & values.is_null()
    return text.set(~failed, None) if failed.any() else None


def _without(text: pl.Series, missing: list[str]) -> pl.Series:
    for word in missing:
        found = text == word
        text = text.set(found, None) if found.any() else text
    return text


def _without_numbers(values: pl.Series, missing: list[str]) -> pl.Series:
    for word in missing:
        try:
            number = int(word) if values.dtype.is_integer() else float(word)
        except ValueError:
            continue  # a word among numbers was found as text
        found = values == number
        values = values.set(found, None) if found.any() else values
    return values


def label_lists(column: pl.Series, separator: str | None) -> tuple[pl.Series, pl.Series | None]:
    """Return a column as lists of labels, and the text of its cells that hold no list; those cells are null.

    A `separator` stands between the labels of a text; None for JSON arrays.
    """
    if column.dtype.is_nested():
        return _of_values(column.cast(pl.List(column.dtype.inner))), None  # type: ignore[attr-defined]
    if separator is not None:
        return _of_values(column.str.split(separator)), None
    # Sets repeat: each text is read once.
    texts = column.drop_nulls().unique(maintain_order=True)
    found = pl.DataFrame(
        {"text": texts, "labels": pl.Series([label_array(text) for text in texts.to_list()], dtype=LISTS)},
        schema={"text": pl.String, "labels": LISTS},
    )
    lists = column.alias("text").to_frame().join(found, on="text", how="left", maintain_order="left")["labels"]
    failed = column.is_not_null() & lists.is_null()
    return lists.alias(column.name), column.set(~failed, None) if failed.any() else None


def _of_values(lists: pl.Series) -> pl.Series:
    """Return lists of the texts of their values."""
    held = lists.to_arrow()
    cells = pl.Series(held.flatten(), dtype=lists.dtype.inner)  # type: ignore[attr-defined]
    found = value_texts(cells)
    if found is cells:
        return lists
    ends = np.cumsum([0, *held.value_lengths().fill_null(0).to_pylist()])
    rows = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), found.to_arrow(), mask=held.is_null())
    return pl.Series(lists.name, rows)


def label_array(text: str) -> list[str | None] | None:
    """Return the labels of a JSON array, or None if the text is not an array of labels."""
    try:
        found: Any = json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(x is None or isinstance(x, str) for x in found):
        return None
    return [x if x is None else value_text(x) or None for x in found]


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def why_no_zone(zone: str) -> str | None:
    """Return why a text names no time zone, None if it does.

    >>> why_no_zone("Europe/Berlin"), why_no_zone("Europe/Berlun")
    (None, 'is none of the time zone database: did you mean Europe/Berlin?')
    >>> why_no_zone("PST")
    'is none of the time zone database: name a place of that zone, such as Europe/Berlin or America/New_York, or UTC'
    """
    try:
        pl.Series([], dtype=pl.Datetime("us")).dt.replace_time_zone(zone or "none")
    except pl.exceptions.PolarsError:
        if _SHORT.search(zone):
            place = "name a place of that zone, such as Europe/Berlin or America/New_York, or UTC"
            return f"is none of the time zone database: {place}"
        near = nearest(zone, sorted(available_timezones()), listed=["Europe/Berlin", "America/New_York", "UTC"])
        return f"is none of the time zone database: {near.rstrip('.')}"
    return None


def offset_minutes(text: pl.Series) -> pl.Series:
    """Return the minutes that local time is ahead of UTC, int64, null where a cell says none.

    >>> offset_minutes(pl.Series(["120", "-300", "+05:30", "-0800", "Z", "2"])).to_list()
    [120, -300, 330, -480, 0, None]
    """
    signed = text.str.extract_groups(_SIGNED).struct.unnest()
    hours, minutes = (signed.to_series(i).cast(pl.Int64) for i in (1, 2))
    said = (hours * 60 + minutes) * pl.Series([1]).new_from_index(0, len(text)).set(signed.to_series(0) == "-", -1)
    plain = text.str.strip_chars().str.replace(r"\.0+$", "")
    number = plain.set(plain.is_in(["Z", "UTC", "GMT"]), "0").cast(pl.Int64, strict=False)
    found = said.zip_with(said.is_not_null(), number)
    sound = found.is_between(_BEHIND, _AHEAD) & (found % _STEP == 0) & ((found == 0) | (found.abs() >= _LEAST))
    return found.set(~sound, None)


def placed(
    ticks: pl.Series, aware: bool | pl.Series, zone: str | pl.Series, *, twice: Literal["null", "earliest"] = "null"
) -> pl.Series:
    """Return local times as moments, in microseconds since 1970; null where a zone skips them, or has them twice.

    `ticks` are as they would be in UTC; those `aware`, all or each, stay; `zone` is that of the others, or by how many
    minutes each is ahead of UTC; `twice` says what becomes of times that come twice.
    """
    if isinstance(zone, str):
        local = ticks.cast(pl.Datetime("us")).dt.replace_time_zone(zone, ambiguous=twice, non_existent="null")
        moments = local.cast(pl.Int64)
    else:
        moments = ticks - zone * _MICROS_A_MINUTE
    return moments if isinstance(aware, bool) else ticks.zip_with(aware, moments)


def unplaced(
    cells: pl.Series, form: str | None, zone: str | None, offset: str | None
) -> list[tuple[pl.Series, str, str]]:
    """Return which cells are times that their zone, or column of offsets, gives no moment: these, why, and the repair.

    `cells` are the text of cells that were not read; times are written in `form`; `zone` is that of those that say
    none, `offset` a column that says by how much each is ahead of UTC.
    """
    if zone is None and offset is None:
        return []
    ticks, aware = read_instants(cells, form)
    if form is not None and not ticks.is_not_null().any():
        ticks, aware = read_instants(cells, None)  # as the cells of a column of times are turned into text
    naive = ticks.is_not_null() & (~aware if isinstance(aware, pl.Series) else not aware)
    if offset is not None:
        return [(naive, f"a time whose {offset!r} is no offset from UTC", "fill it: minutes, such as 120, or +02:00")]
    assert zone is not None
    again = naive & placed(ticks, False, zone, twice="earliest").is_not_null()
    give = "give times in UTC, or with what they are ahead of it (2024-10-27T02:30:00+01:00)"
    return [
        (again, f"a time that comes twice in {zone}, where clocks were put back",
         f'{give}, or in a column that [time] names as offset = "..."; sorting does not tell the two apart'),
        (naive & ~again, f"a time that {zone} skipped, where clocks were put forward", f"check the zone, or {give}"),
    ]  # fmt: skip


def comes_twice(early: int, late: int) -> str | None:
    """Return a zone in whose hour that comes twice both of two times lie, the second less than an hour back.

    >>> comes_twice(1_729_996_200_000_000, 1_729_995_000_000_000)  # 02:30 and 02:10 of 27 October 2024
    'Europe/Berlin'
    """
    if not 0 < early - late <= 3_600_000_000:
        return None
    try:
        times = [datetime.fromtimestamp(ticks / 1e6, UTC).replace(tzinfo=None) for ticks in (early, late)]
    except (ValueError, OverflowError, OSError):
        return None
    for name in (*_KNOWN, *sorted(available_timezones())):
        zone = ZoneInfo(name)
        if all(_put_back(time, zone) for time in times):
            return name
    return None


def _put_back(time: datetime, zone: ZoneInfo) -> bool:
    first, second = (time.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    return first is not None and second is not None and first - second > timedelta(0)


class Cell(NamedTuple):
    """A cell of a column of times.

    The `order` sorts cells as their files are read, and then by row; `said` is the place of the cell, and its text.
    """

    order: tuple[tuple[tuple[int, str], ...], int]
    said: str


# Of a column, and whether they say their zone, the first of its times.
ZonedCells = Mapping[tuple[str, bool], Cell]


def first_of_each(aware: bool | pl.Series, values: pl.Series) -> list[tuple[bool, int]]:
    """Return the first row whose time names its zone and the first whose time does not, where there are such rows."""
    there = values.is_not_null()
    some = [(aware, there)] if isinstance(aware, bool) else [(False, there & ~aware), (True, there & aware)]
    firsts = [(said, rows.arg_max()) for said, rows in some if rows.any()]
    return [(said, first) for said, first in firsts if first is not None]


@dataclass
class ZonesSeen:
    """The first cells of each column of times that say their zone, and that say none.

    `found` has the first of each, by the column and whether it says its zone.
    """

    found: dict[tuple[str, bool], Cell] = field(default_factory=dict)

    def join(self, found: ZonedCells) -> None:
        """Add what another part of a pass, or another pass, saw."""
        for of, cell in found.items():
            self.found[of] = min(self.found.get(of, cell), cell)

    def is_naive(self, column: str) -> bool:
        """Whether cells of a column were read as UTC for want of a zone."""
        return (column, False) in self.found

    def refuse_mixture(self) -> None:
        """Raise LogError where some times say their zone and others, which would be read as UTC, do not."""
        naive, aware = (next((c for c, said in self.found if said is wanted), None) for wanted in (False, True))
        if naive is None or aware is None:
            return
        # A column that holds both tells the most.
        both = next((c for c, said in self.found if said and self.is_naive(c)), None)
        naive, aware = (naive, aware) if both is None else (both, both)
        where = {said: self.found[column, said].said for column, said in ((naive, False), (aware, True))}
        other = "times that say theirs" if naive == aware else f"column {aware!r} times that say theirs"
        raise LogError(
            f"Column {naive!r} holds times without a zone ({where[False]}), and {other} ({where[True]}): which zone "
            "the former are of is not known.",
            remedy=f"write timezone = {toml_value({naive: 'Europe/Berlin'})} under [time], or whatever zone it is "
            '("UTC" where it is UTC), or name a column of minutes ahead of UTC: offset = "...".',
        )


def why_no_format(form: str) -> str | None:
    """Return why times cannot be read by a format, None if they can.

    >>> why_no_format("%d.%m.%Y"), why_no_format("%H:%M")
    (None, "names no day: it needs %Y, %m and %d, such as '%d.%m.%Y'")
    """
    if form == EPOCH:
        return None
    found = _CODE.findall(form)
    for code in found:
        if code not in _CODES or not code:
            return f"holds '%{code}': take %Y %y %m %d %b %B %j %H %I %M %S %f %p %z %a %A of strptime, or 'epoch'"
    codes = set(found)
    day = codes & set("d") and codes & set("mbB")
    if not codes & set("Yy") or not (day or "j" in codes):
        return "names no day: it needs %Y, %m and %d, such as '%d.%m.%Y'"
    if ("I" in codes) != ("p" in codes):
        return "needs %I and %p together, or %H: an hour of twelve is of the morning or of the evening"
    if codes & set("HI") and "M" not in codes:
        return "names hours without minutes, %M"
    if codes & set("MSfpz") and not codes & set("HI"):
        return "names parts of an hour without the hour, %H"
    if "f" in codes and not re.search(r"%S\.%f", form):
        return "has %f elsewhere than after %S and a point: '%S.%f'"
    return None


class Instants(NamedTuple):
    """Times as they are written.

    `ticks` are int64 in microseconds since 1970, null where a cell says none, those without zone as in UTC; `aware`
    says whether they say their zone, all of them or each.
    """

    ticks: pl.Series
    aware: bool | pl.Series


def instants(text: pl.Series, form: str | None) -> pl.Series:
    """Return the times that cells say, int64 in microseconds since 1970, as `read_instants`."""
    return read_instants(text, form).ticks


def read_instants(text: pl.Series, form: str | None) -> Instants:
    """Return the times that cells say, null where they say none, and whether they say their zone.

    A time without zone is as in UTC, finer ones than a microsecond lose what is finer; a year has four digits (two with
    ``%y``). `form` is a format that `why_no_format` approves of, or ``"epoch"`` for seconds since 1970, with decimals
    or without, to the nearest microsecond. None is ISO 8601, where seconds may be missing, hours, days and months have
    one digit, dates slashes, and the zone be called UTC.
    """
    if form == EPOCH:
        micros = text.str.strip_chars().cast(_MICROS, strict=False).to_physical().cast(pl.Int64, strict=False)
        return Instants(micros, aware=True)
    if form is not None:
        moments = _moments(text.str.strip_chars(), form.replace("%S.%f", "%S%.f"))
        return Instants(moments, aware="%z" in form)
    found = _moments(text, _PLAIN)
    return Instants(found, aware=False) if found.null_count() == text.null_count() else _others(text, found)


def _others(text: pl.Series, found: pl.Series) -> Instants:
    """Return `found` with the cells that the plain form did not read."""
    left = (found.is_null() & text.is_not_null()).arg_true()
    written = plain = text.gather(left).str.strip_chars()
    for zone in _GREENWICH:
        plain = plain.str.strip_suffix(zone)
    greenwich = left.filter(plain.str.len_bytes() < written.str.len_bytes())
    offsets = [greenwich]
    plain = plain.str.strip_chars_end().str.replace("T", " ", literal=True).str.replace_all("/", "-", literal=True)
    # Most columns are written in one form: the one that reads the first cell goes first.
    unread = {form: _moments(plain.head(1), form).null_count() for form in _ISO}
    if all(unread.values()):
        likely = plain.str.contains(r"^\d{4}-")
        left, plain = left.filter(likely), plain.filter(likely)
    for form in sorted(_ISO, key=lambda form: unread[form]):
        moments = _moments(plain, form)
        read = moments.is_not_null()
        if read.any():
            found = found.scatter(left.filter(read), moments.filter(read))
            offsets += [left.filter(read)] if form.endswith("%#z") else []
            left, plain = left.filter(~read), plain.filter(~read)
        if not len(left):
            break
    rows = pl.concat(offsets)
    if not len(rows) or len(rows) == len(text) - text.null_count():
        return Instants(found, aware=bool(len(rows)))
    return Instants(found, pl.Series([False]).new_from_index(0, len(text)).scatter(rows, True))


def _moments(text: pl.Series, form: str) -> pl.Series:
    ticks = text.str.to_datetime(form, time_unit="us", strict=False).cast(pl.Int64)
    sound = ticks.is_between(_YEAR_1000, _YEAR_10000, closed="left")
    return ticks if sound.all() else ticks.set(~sound, None)
