"""From a spec to its log: its tables are found, wherever they lie, and read as one source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from evaluator.datasets.adapter import Reading, read_tables
from evaluator.datasets.options import ReadingOptions
from evaluator.datasets.sources.databases import Databases
from evaluator.datasets.sources.delta_table import open_delta
from evaluator.datasets.sources.files import SourceFile, find_files
from evaluator.datasets.sources.iceberg_table import open_iceberg
from evaluator.datasets.sources.lakes import lake_paths
from evaluator.datasets.sources.objects import Staging, find_objects, staging
from evaluator.datasets.sources.part import TablePart, unchanged
from evaluator.datasets.sources.queries import ask
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spec_sections import Table
from evaluator.errors import EvaluatorError
from evaluator.store_addresses import is_address

DISPLAYS, SETS = "source", ("calendar", "candidates")


def read_spec_tables(
    spec: FileSpec,
    folder: Path,
    asked: ReadingOptions,
    *,
    into: Path | None,
    contexts: bool,
    advance: Callable[[int], None],
    jobs: int = 1,
) -> Reading:
    """Return the log in the tables of a spec.

    Parameters
    ----------
    spec, folder
        Spec of the dataset, and the folder that holds it.
    asked
        Options of the reading; `seed` and `sampling_rate` are none of files.
    into
        Existing folder that gets the canonical form of the log. Its displays then never are in memory; conversions,
        rows left out and one-hot labels are. None keeps all in memory.
    contexts
        Whether context vectors become part of the log; they are checked in any case.
    advance
        Function called with the number of rows read since the last call.
    jobs
        Number of threads that read displays of many files, and write them in parts (`into`).
    """
    with staging(into) as place:
        with Databases() as databases:
            parts = {
                name: _parts(of, spec, folder, place, databases, override=asked.path)
                for name, of in spec_tables(spec).items()
            }
        whole = [part for of in parts.values() for part in of]
        displays = parts.pop(DISPLAYS)
        of_sets = next((parts.pop(name) for name in SETS if name in parts), [])
        try:
            with unchanged(whole):
                return read_tables(
                    spec, displays, parts, of_sets, asked, into=into, contexts=contexts, advance=advance,
                    jobs=jobs,
                )  # fmt: skip
        except EvaluatorError as error:
            raise type(error)(_by_name(error.what, whole), remedy=_by_name(error.remedy, whole)) from None


def queries(spec: FileSpec) -> list[str]:
    """Return the names of those tables of a spec that a database answers with, as its sections are called."""
    return [of.section for of in spec_tables(spec).values() if of.table.database is not None]


def _parts(
    of: SpecTable, spec: FileSpec, folder: Path, place: Staging, databases: Databases, *, override: str | Path | None
) -> list[TablePart]:
    """Return the parts of a table; what is read in place of the displays' is so for others that lie there, too."""
    same = of.table.place == spec.source.place
    return find_parts(of, folder, staging=place, databases=databases, override=override if same else None)


def _by_name(message: str, parts: Sequence[TablePart]) -> str:
    """Return a message that calls copies by the name of what they are copies of."""
    for part in parts:
        if isinstance(part, SourceFile) and part.name != str(part.path):
            message = message.replace(str(part.path), part.name)
    return message


def files_read(spec: FileSpec, folder: Path, *, override: str | Path | None = None) -> list[Path]:
    """Return the files and tables on disk that a spec's log is read from; `override` as of `ReadingOptions.path`."""
    found: list[Path] = []
    for of in spec_tables(spec).values():
        given = override if of.table.place == spec.source.place else None
        if of.table.is_on_disk if given is None else not is_address(str(given)):
            found += [file.path for file in find_files(of.table, folder, override=given)]
        else:
            found += lake_paths(of.table, folder)
    return found


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
    """Return the tables of a spec: `DISPLAYS`, those of events (``conversion``, ``outcomes.NAME``), one of `SETS`.

    And those of targets (``target.NAME.source``).
    """
    found: dict[str, SpecTable] = {}
    found[DISPLAYS] = SpecTable(spec.source, tuple(filter(None, [spec.display.id])), DISPLAYS)
    for name, of in spec.events().items():
        if of.source is not None:
            found[name] = SpecTable(of.source, (of.source.display, *of.key), f"{name}.source")
    for name, policy in ({} if spec.target is None else spec.target.named).items():
        if policy.source is not None:
            section = f"target.{name}.source"
            found[section] = SpecTable(policy.source, (policy.source.display,), section)
    if spec.calendar is not None:
        found["calendar"] = SpecTable(spec.calendar, (spec.calendar.action,), "calendar")
    if spec.candidates is not None:
        key = (spec.candidates.display, spec.candidates.action)
        found["candidates"] = SpecTable(spec.candidates, key, "candidates")
    return {name: of._replace(table=_stored(of.table, spec.source)) for name, of in found.items()}


def _stored(table: Table, displays: Table) -> Table:
    return table if table.storage is not None else table.model_copy(update={"storage": displays.storage})
