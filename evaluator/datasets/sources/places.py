"""Which kind of place a table of a spec lies in."""

from __future__ import annotations

from pathlib import Path

from evaluator.datasets.sources.databases import Databases
from evaluator.datasets.sources.delta_table import open_delta
from evaluator.datasets.sources.files import find_files
from evaluator.datasets.sources.iceberg_table import open_iceberg
from evaluator.datasets.sources.local_copies import Staging
from evaluator.datasets.sources.objects import find_objects
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.sources.queries import ask
from evaluator.datasets.spec_tables import SpecTable
from evaluator.store_addresses import is_address


def find_parts(
    of: SpecTable, folder: Path, *, staging: Staging, databases: Databases, override: str | Path | None = None
) -> list[TablePart]:
    """Return the parts of a table, in the order of their rows.

    Parameters
    ----------
    of
        Table of a spec, which says where it lies.
    folder
        Folder that paths are relative to.
    staging
        Folder of copies of what cannot be read in place.
    databases
        Connections to databases that are open.
    override
        Path, glob or folder to read instead, relative to the working folder, or address of objects; None reads what
        the spec names.

    Raises
    ------
    SourceError
        There is no such table, or it cannot be reached.
    """
    table = of.table
    if override is None and table.delta is not None:
        return [open_delta(table, folder, key=of.key)]
    if override is None and table.iceberg is not None:
        return [open_iceberg(table, folder, key=of.key)]
    if table.database is not None:
        return [ask(table, of.section, key=of.key, staging=staging, databases=databases)]
    named = str(override) if override is not None else table.files or ""
    if is_address(named):
        return find_objects(table, named, staging)
    return [*find_files(table, folder, override=override)]
