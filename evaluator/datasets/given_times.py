"""Times that a spec itself names, as the log counts them."""

from __future__ import annotations

import polars as pl

from evaluator.datasets.cells import parse
from evaluator.datasets.spec import FileSpec
from evaluator.errors import SpecError


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
    of = spec.display.time
    found = parse(pl.Series([text]), "datetime", [], spec.time.format_of(of), zone=spec.time.zone_of(of)).values[0]
    return None if found is None else int(found)


def no_such_time(spec: FileSpec, key: str, given: object, *others: str) -> SpecError:
    """Return the refusal of what a key names as a time, which may take other words too."""
    dates = spec.time.unit == "datetime"
    said = "a date as those of display.time" if dates else f"a whole number, in {spec.time.unit}"
    words = "".join(f"{word!r} or " for word in others)
    return SpecError(f"{spec.name}: `$.{key}`: got {given!r}.", hint=f"write {words}{said}.")
