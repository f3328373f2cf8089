"""Which kind of place a table of a spec lies in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluator.datasets.sources.databases import Databases
from evaluator.datasets.sources.delta_table import open_delta
from evaluator.datasets.sources.files import find_files
from evaluator.datasets.sources.iceberg_table import open_iceberg
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.sources.queries import ask
from evaluator.datasets.sources.staging import Staging
from evaluator.datasets.spec_sections import Table


def find_parts(
    table: Table,
    folder: Path,
    *,
    section: str,
    key: Sequence[str],
    staging: Staging,
    databases: Databases,
    override: str | Path | None = None,
) -> list[TablePart]:
    """Return the parts of a table, in the order of their rows.

    Parameters
    ----------
    table
        Section of the spec that says where it lies.
    folder
        Folder that paths are relative to.
    section
        Name of that section.
    key
        Columns that identify a row, in messages about rows that are in no file.
    staging
        Folder of copies of what cannot be read in place.
    databases
        Connections to databases that are open.
    override
        Path, glob or folder to read instead, relative to the working folder; None reads what the spec names.

    Raises
    ------
    SourceError
        There is no such table, or it cannot be reached.
    """
    if override is None and table.delta is not None:
        return [open_delta(table, folder, key=key)]
    if override is None and table.iceberg is not None:
        return [open_iceberg(table, folder, key=key)]
    if table.database is not None:
        return [ask(table, section, key=key, staging=staging, databases=databases)]
    return [*find_files(table, folder, override=override)]
