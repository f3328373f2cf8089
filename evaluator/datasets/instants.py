"""Dates and times written as text: ISO 8601 and its relatives, as a format says, or as seconds since 1970."""

from __future__ import annotations

import re
from typing import NamedTuple

import polars as pl

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

    Parameters
    ----------
    ticks
        Times, int64 in microseconds since 1970, null where a cell says none; those without zone as in UTC.
    aware
        Whether they say their zone, all of them or each.
    """

    ticks: pl.Series
    aware: bool | pl.Series


def instants(text: pl.Series, form: str | None) -> pl.Series:
    """Return the times that cells say, int64 in microseconds since 1970, as `read_instants`."""
    return read_instants(text, form).ticks


def read_instants(text: pl.Series, form: str | None) -> Instants:
    """Return the times that cells say, null where they say none, and whether they say their zone.

    A time without zone is as in UTC, finer ones than a microsecond lose what is finer; a year has four digits (two with
    ``%y``).

    Parameters
    ----------
    text
        Cells of a column of times, as text.
    form
        Format that `why_no_format` approves of; ``"epoch"`` for seconds since 1970, with decimals or without, to the
        nearest microsecond. None: ISO 8601, where seconds may be missing, hours, days and months have one digit,
        dates slashes, and the zone be called UTC.
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
