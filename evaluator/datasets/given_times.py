"""Times that a spec itself names, as the log counts them."""

from __future__ import annotations

import polars as pl

from evaluator.datasets.cells import Cells, parse
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.zones import Cell, ZonedCells, first_of_each
from evaluator.errors import SpecError

# Errors name a cell of a file, where there is one, before a date of the spec.
_LAST = (((2**63, ""),), 0)


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
