"""The kinds of events of a spec: its conversions, which are rewards, and other outcomes, which no policy sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from evaluator.datasets.cells import Cells, parse
from evaluator.datasets.options import Deduplicate
from evaluator.datasets.spec import Conversion, FileSpec
from evaluator.datasets.zones import Cell, ZonedCells, first_of_each
from evaluator.errors import SpecError, UsageError

REWARDS = "conversion"
# Errors name a cell of a file, where there is one, before a date of the spec.
_LAST = (((2**63, ""),), 0)


@dataclass(frozen=True, kw_only=True)
class EventKind:
    """Events of one kind, and the rules that make them count.

    Parameters
    ----------
    table
        Name of the spec's table that gives them: ``conversion``, or ``outcomes.NAME``.
    columns
        Columns of that table.
    log_table
        Name of the table that says how long they were followed: ``log``, or their own.
    observed_until, attribution_window
        End of their follow-up, a time in ticks, and longest delay, as the spec says it.
    most, most_key
        Largest sum of one display's values, None where unknown, and the key that says it.
    least
        Smallest sum of one display's values; None where unknown.
    deduplicate, attributed_only
        How rows become events: the spec's rules, or those of the call.
    """

    table: str
    columns: Conversion
    log_table: str
    observed_until: int | Literal["end", "complete"]
    attribution_window: str | int | None
    most: float | None
    most_key: str
    deduplicate: Deduplicate
    attributed_only: bool
    least: float | None = None

    @property
    def outcome(self) -> str:
        """Name of the outcome; empty for the rewards."""
        return "" if self.table == REWARDS else self.table.removeprefix("outcomes.")

    @property
    def word(self) -> str:
        """What messages call one of them."""
        return self.columns.word

    @property
    def clock(self) -> str:
        """Column that says when one came, or that it did."""
        return str(self.columns.time or self.columns.delay or self.columns.indicator)


def event_kinds(spec: FileSpec, deduplicate: Deduplicate | None, attributed_only: bool | None) -> list[EventKind]:
    """Return the kinds of events of a spec, the rewards first, whose rules the call may replace.

    Raises
    ------
    UsageError
        The call asks for a rule of which the spec lacks the columns.
    SpecError
        The spec says until when events were followed, and it is no time.
    """
    c = spec.conversion
    rule = deduplicate or c.deduplicate
    if rule != "all" and not c.key:
        raise UsageError(f"deduplicate={rule!r}, but {spec.name} has no key.", hint="set conversion.key in the spec.")
    only = c.attributed_only if attributed_only is None else attributed_only
    if only and c.attributed is None:
        raise UsageError(
            f"attributed_only, but {spec.name} has no attribution.", hint="set conversion.attributed in the spec."
        )
    rewards = EventKind(
        table=REWARDS, columns=c, log_table="log", observed_until=_until(spec, "log", spec.log.observed_until, c),
        attribution_window=spec.log.attribution_window, most=spec.log.reward_max, most_key="reward_max",
        deduplicate=rule, attributed_only=only, least=spec.log.reward_min,
    )  # fmt: skip
    return [rewards, *(_outcome(spec, name) for name in spec.outcomes)]


def _outcome(spec: FileSpec, name: str) -> EventKind:
    of = spec.outcomes[name]
    most = of.value_max
    if most is None and of.source is None and not isinstance(of.value, str) and of.value > 0:
        most = of.value  # a row of the displays' own table holds one event at the most
    return EventKind(
        table=f"outcomes.{name}",
        columns=of,
        log_table=f"outcomes.{name}",
        observed_until=_until(spec, "log", spec.log.observed_until, of)
        if of.observed_until is None
        else _until(spec, f"outcomes.{name}", of.observed_until, of),
        attribution_window=spec.log.attribution_window if of.attribution_window is None else of.attribution_window,
        most=most,
        most_key="value_max",
        deduplicate=of.deduplicate,
        attributed_only=of.attributed_only,
    )


def _until(spec: FileSpec, table: str, given: int | str, columns: Conversion) -> int | Literal["end", "complete"]:
    """Return until when events were followed: in ticks, where it is a time."""
    if given == "end":
        # What comes with its display needs no more time.
        return "complete" if columns.immediate and spec.log.attribution_window is None else "end"
    if given == "complete":
        return "complete"
    if isinstance(given, int):
        return given
    ticks = ticks_of_date(spec, given)
    if ticks is None:
        raise no_such_time(spec, f"{table}.observed_until", given, "end", "complete")
    return ticks


def ticks_of_date(spec: FileSpec, text: str) -> int | None:
    """Return a date of a spec in ticks of us, written as those of ``display.time``; None if it is none.

    >>> from evaluator.datasets.spec_file import parse_spec
    >>> data = {"name": "shop", "title": "A shop", "licence": "of the shop", "source": {"files": "log.csv"},
    ...         "time": {"unit": "datetime"}, "display": {"time": "t", "action": "ad"}, "conversion": {"time": "sold"}}
    >>> ticks_of_date(parse_spec(data, where="here"), "2024-01-31 12:00")
    1706702400000000
    """
    if spec.time.unit != "datetime":
        return None
    found = _read(spec, text).values[0]
    return None if found is None else int(found)


def zone_of_date(spec: FileSpec, text: str, where: str) -> ZonedCells:
    """Return whether a date of a spec says its zone, as of a cell of ``display.time``, as which it is read.

    Nothing where a column of offsets places those cells: none is the date's.
    """
    of = spec.display.time
    if spec.time.unit != "datetime" or spec.time.offset_of(of) is not None:
        return {}
    cells = _read(spec, text)
    return {(of, said): Cell(_LAST, f"{where}: {text!r}") for said, _ in first_of_each(cells.aware, cells.values)}


def _read(spec: FileSpec, text: str) -> Cells:
    of = spec.display.time
    return parse(pl.Series([text]), "datetime", [], spec.time.format_of(of), zone=spec.time.zone_of(of))


def no_such_time(spec: FileSpec, key: str, given: object, *others: str) -> SpecError:
    """Return the refusal of what a key names as a time, which may take other words too."""
    dates = spec.time.unit == "datetime"
    said = "a date as those of display.time" if dates else f"a whole number, in {spec.time.unit}"
    words = "".join(f"{word!r} or " for word in others)
    return SpecError(f"{spec.name}: `$.{key}`: got {given!r}.", hint=f"write {words}{said}.")
