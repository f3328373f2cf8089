"""The tables that a spec names, each with the columns that tell one of its rows from the others."""

from __future__ import annotations

from typing import NamedTuple

from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spec_sections import Table

DISPLAYS, SETS = "source", ("calendar", "candidates")


class SpecTable(NamedTuple):
    """A table of a spec.

    Parameters
    ----------
    table
        Section that says where it lies and how it is read, its object store that of the displays unless it has one.
    key
        Columns that identify a row, as far as the spec tells.
    section
        Name of the section.
    """

    table: Table
    key: tuple[str, ...]
    section: str


def spec_tables(spec: FileSpec) -> dict[str, SpecTable]:
    """Return the tables of a spec: `DISPLAYS`, those of events (``conversion``, ``outcomes.NAME``), one of `SETS`."""
    found: dict[str, SpecTable] = {}
    found[DISPLAYS] = SpecTable(spec.source, tuple(filter(None, [spec.display.id])), DISPLAYS)
    for name, of in spec.events().items():
        if of.source is not None:
            found[name] = SpecTable(of.source, (of.source.display, *of.key), f"{name}.source")
    if spec.calendar is not None:
        found["calendar"] = SpecTable(spec.calendar, (spec.calendar.action,), "calendar")
    if spec.candidates is not None:
        key = (spec.candidates.display, spec.candidates.action)
        found["candidates"] = SpecTable(spec.candidates, key, "candidates")
    return {name: of._replace(table=_stored(of.table, spec.source)) for name, of in found.items()}


def _stored(table: Table, displays: Table) -> Table:
    return table if table.storage is not None else table.model_copy(update={"storage": displays.storage})
