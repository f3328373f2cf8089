"""``[time]`` of a drafted spec: what unit the columns of times are in, and how their dates are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from evaluator.datasets.cells import Kind, parse
from evaluator.datasets.column_profile import Look
from evaluator.datasets.draft_lines import Line
from evaluator.datasets.time_guesses import Guess
from evaluator.datasets.zones import EPOCH, read_instants, why_no_zone
from evaluator.errors import UsageError
from evaluator.units import SECONDS, format_duration

_UNITS = ("s", "ms", "us", "ns", "min", "h", "d", "round")


@dataclass(frozen=True)
class WrittenTimes:
    """How the times of a log are written.

    Parameters
    ----------
    tick
        Unit of the times.
    forms
        How dates are written, by column; ISO 8601 where none is named.
    lines
        Lines of ``[time]``.
    missing
        Keys that could not be decided.
    """

    tick: str
    forms: dict[str, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def kind(self) -> Kind:
        """Kind of the cells."""
        return "datetime" if self.tick == "datetime" else "int"

    def form(self, column: str) -> str | None:
        """Return how the dates of a column are written."""
        return self.forms.get(column)


def written_times(shown: Look | None, clock: Look | None, choose: Callable[..., Any]) -> WrittenTimes | None:
    """Return how the times of displays and conversions are written, and of which zone; None without a column of times.

    Parameters
    ----------
    shown, clock
        Columns of the times of displays and conversions; None where conversions have none.
    choose
        Function that decides on a key: its name, the question, guess, choices, the reason.
    """
    if shown is None:
        return None
    looks = [shown, *([] if clock is None or clock.is_flag or not clock.present.is_not_null().any() else [clock])]
    found = _written(looks, choose)
    return _in_zones(found, looks, choose) if found.tick == "datetime" else found


def _in_zones(found: WrittenTimes, looks: list[Look], choose: Callable[..., Any]) -> WrittenTimes:
    """Return how times are written, with the zone of times that name none where other times name theirs."""
    naive = [look for look in looks if not _is_aware(look, found.form(look.name))]
    if not naive or len(naive) == len(looks):
        return found
    (look,), (other,) = naive, [look for look in looks if look not in naive]
    why = f"they say no zone, and those of {other.name!r} do"
    zone, said = choose("time.timezone", f"Of which zone are the times of {look.name!r} (UTC, Europe/Berlin, ...)?",
                        None, None, why)  # fmt: skip
    if zone is not None and (refused := why_no_zone(zone)):
        raise UsageError(f"time.timezone: {zone!r} {refused}.", remedy="write UTC, or such as Europe/Berlin.")
    example = {look.name: zone or "Europe/Berlin"}
    if zone is not None:
        return replace(found, lines=[*found.lines, Line("timezone", example, said)])
    line = Line("timezone", example, f"please check: which zone? {why}", live=False)
    return replace(found, lines=[*found.lines, line], missing=[*found.missing, "time.timezone"])


def _is_aware(look: Look, form: str | None) -> bool:
    """Whether the times of a column say their zone, as far as its first ones tell."""
    if look.cells.dtype.is_temporal():
        return getattr(look.cells.dtype, "time_zone", None) is not None
    aware = read_instants(look.present.drop_nulls(), form).aware
    return aware if isinstance(aware, bool) else bool(aware.all())


def _written(looks: list[Look], choose: Callable[..., Any]) -> WrittenTimes:
    shown = looks[0]
    shared = [guess for guess in shown.moments if all(guess in look.moments for look in looks)]
    if shared:
        found = shared[0]
        firsts = {guess.first: guess for guess in reversed(shared)}
        if found.first and len(firsts) > 1 and "" not in firsts:
            return _day_or_month(looks, firsts, choose)
        return _of(found, looks)
    each = [_as_dates(look) for look in looks]
    if all(guess is not None for guess in each):
        forms = {look.name: guess.form for look, guess in zip(looks, each, strict=True) if guess and guess.form}
        said = "guessed: the columns are written in different ways"
        return WrittenTimes("datetime", forms, [Line("unit", "datetime"), Line("format", forms, said)])
    named = next((unit for unit in _UNITS if unit in shown.words), "s")
    ends = "" if shown.numbers is None else " from {:,.0f} to {:,.0f}".format(*shown.ends)
    why = f"whole numbers{ends} that are no dates; their unit decides every duration"
    unit, said = choose("time.unit", f"What unit are the times of {shown.name!r} in?", named, _UNITS, why)
    return WrittenTimes(unit or named, {}, [Line("unit", unit or named, said)])


def _of(guess: Guess, looks: list[Look]) -> WrittenTimes:
    example = next(iter(looks[0].present.drop_nulls()), "")
    line = Line("unit", guess.unit, f"guessed: from times such as {example}")
    if guess.form is None:
        return WrittenTimes(guess.unit, {}, [line])
    forms = {look.name: guess.form for look in looks}
    return WrittenTimes(guess.unit, forms, [line, Line("format", guess.form, "guessed: it reads every cell")])


def _day_or_month(looks: list[Look], firsts: dict[str, Guess], choose: Callable[..., Any]) -> WrittenTimes:
    example = next(iter(looks[0].present.drop_nulls()), "")
    why = f"dates such as {example} fit {' and '.join(firsts)} first: ask who wrote them"
    first, said = choose("time.format", "What comes first in the dates?", None, tuple(firsts), why)
    unit = Line("unit", "datetime")
    if first is not None:
        forms = {look.name: str(firsts[first].form) for look in looks}
        return WrittenTimes("datetime", forms, [unit, Line("format", str(firsts[first].form), said)])
    ways = [
        Line("format", str(guess.form), f"please check: if {name} come first", live=False)
        for name, guess in firsts.items()
    ]
    return WrittenTimes("datetime", {}, [unit, *ways], ["time.format"])


def _as_dates(look: Look) -> Guess | None:
    """Return how a column is written where others are in another way."""
    for guess in look.moments:
        if guess.unit == "datetime":
            return guess
        if guess.unit == "s":
            return Guess("datetime", EPOCH)
    return None


def first_unsorted(time: Look) -> int | None:
    """Return the number of the first row that is earlier than the one above it, where that can be told."""
    numbers = time.numbers
    if numbers is None:
        cells = time.cells if time.cells.dtype.is_temporal() else None
        if cells is None and time.moments:
            cells = parse(time.text, "datetime", [str(n) for n in time.none], time.moments[0].form).values
        numbers = None if cells is None else cells.to_physical()
    if numbers is None:
        return None
    found = (numbers.diff() < 0).fill_null(False).arg_true()
    return int(found[0]) + 1 if len(found) else None


def longest_delay(times: WrittenTimes, shown: Look, clock: Look, ids: tuple[pl.Series, pl.Series] | None) -> str:
    """Return a sentence about the longest delay in a sample; it is empty where no delay is seen.

    Parameters
    ----------
    times
        How times are written.
    shown, clock
        Columns of the times of displays, and of the times or delays of conversions.
    ids
        Ids of the displays in their own table and in that of the conversions; None where these are one.
    """
    if clock.says_delay:
        delay = None if clock.numbers is None else clock.numbers.filter(clock.present.is_not_null())
    else:
        displays, came = (
            parse(look.text, times.kind, [str(none) for none in look.none], times.form(look.name)).values
            for look in (shown, clock)
        )
        if ids is None:
            delay = came - displays
        else:
            of = pl.DataFrame({"id": ids[0], "shown": displays})
            both = pl.DataFrame({"id": ids[1], "came": came}).join(of, on="id")
            delay = both["came"] - both["shown"]
    longest = None if delay is None else delay.max()
    if longest is None:
        return ""
    unit = "us" if times.tick == "datetime" else times.tick
    if unit not in SECONDS:
        return f"; the longest seen is {float(longest):g} {unit}s"  # type: ignore[arg-type]
    return f"; the longest seen is {format_duration(float(longest) * SECONDS[unit])}"  # type: ignore[arg-type]


def clock_why(look: Look, times: list[Look], delays: list[Look]) -> str:
    """Return why a column is taken for that of when conversions came."""
    if look in times:
        share = float(look.present.is_not_null().mean() or 0)  # type: ignore[arg-type]
        return f"times on {share:.1%} of its rows"
    return "a delay, in ticks of the times" if look in delays else "0 and 1"


def narrows(flag: Look, clock: Look) -> bool:
    """Whether rows that have a time of conversion did not convert, says a flag; and all that did have one."""
    if flag.numbers is None or flag.numbers.null_count():
        return False
    timed, says = clock.present.is_not_null(), flag.numbers == 1
    return bool((timed & ~says).any()) and not bool((says & ~timed).any())
