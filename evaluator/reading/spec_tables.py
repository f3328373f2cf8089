"""The tables of a spec: which there are, where they lie, and how they are read as one source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from evaluator.errors import EvaluatorError, UsageError
from evaluator.reading.adapter import read_tables
from evaluator.reading.canonical import Reading
from evaluator.reading.options import ReadingOptions
from evaluator.reading.sources.databases import Databases
from evaluator.reading.sources.files import SourceFile, Staging, find_files, find_objects, staging
from evaluator.reading.sources.lakes import lake_paths, open_delta, open_iceberg
from evaluator.reading.sources.part import TablePart, unchanged
from evaluator.reading.sources.queries import ask
from evaluator.reading.spec import FileSpec
from evaluator.reading.spec_sections import Table
from evaluator.store_addresses import is_address

DISPLAYS, SETS = "source", ("calendar", "candidates")


def read_file_spec(
    spec: FileSpec,
    where: Path,
    asked: ReadingOptions,
    *,
    into: Path | None,
    contexts: bool,
    advance: Callable[[int], None],
    jobs: int = 1,
) -> Reading:
    """Return the log in the tables of the spec that the file `where` holds.

    `into` is an existing folder that gets the canonical form of the log. Its displays then never are in memory;
    conversions, rows left out and one-hot labels are. None keeps all in memory. With `contexts`, context vectors become
    part of the log; they are checked in any case. `advance` is called with the number of rows read since the last call,
    and `jobs` threads write the displays in parts (`into`). UsageError where it asks for what files do not have, or for
    the answer of a database without `into`.
    """
    if asked.seed is not None:
        raise UsageError(
            f"seed={asked.seed}, but {spec.name} is read from files.", remedy="seed goes with synthetic datasets."
        )
    if asked.sampling_rate is not None:
        spec = spec.model_copy(update={"log": spec.log.model_copy(update={"sampling_rate": asked.sampling_rate})})
    _refuse_queries(spec, where, asked, written=into is not None)
    with staging(into) as place:
        with Databases() if queries(spec) else nullcontext() as databases:
            parts = {}
            for name, of in spec_tables(spec).items():
                # What is read in place of the displays' table is so for others that lie there, too.
                override = asked.path if of.table.place == spec.source.place else None
                parts[name] = find_parts(of, where.parent, staging=place, databases=databases, override=override)
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


def _refuse_queries(spec: FileSpec, where: Path, asked: ReadingOptions, *, written: bool) -> None:
    """Refuse a log that a database answers with unless it is written: the next answer may be another one."""
    asking = queries(spec)
    if asking and not written:
        raise UsageError(
            f"{where}: [{asking[0]}] is a query, whose rows may be others the next time: only `convert`, `validate` "
            "and `show` read it.",
            remedy=f"convert it first: evaluate datasets convert {quote(str(where))} {quote(spec.name)}-log.",
        )
    if asking and asked.path is not None and spec.source.files is None:
        raise UsageError(
            f"`path` names other files than the spec, where [source] of {spec.name} is a query.", remedy="leave it out."
        )


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
    of: SpecTable, folder: Path, *, staging: Staging, databases: Databases | None, override: str | Path | None = None
) -> list[TablePart]:
    """Return the parts of a table, in the order of their rows.

    Paths are relative to `folder`; an `override`, path, glob or folder to read instead, is relative to the working
    folder, or the address of objects. What cannot be read in place is copied to `staging`. Raises SourceError if there
    is no such table, or if it cannot be reached.
    """
    table = of.table
    if override is None and table.delta is not None:
        return [open_delta(table, folder, key=of.key)]
    if override is None and table.iceberg is not None:
        return [open_iceberg(table, folder, key=of.key)]
    if table.database is not None:
        assert databases is not None
        return [ask(table, of.section, key=of.key, staging=staging, databases=databases)]
    named = str(override) if override is not None else table.files or ""
    if is_address(named):
        return find_objects(table, named, staging)
    return [*find_files(table, folder, override=override)]


class SpecTable(NamedTuple):
    """A table of a spec.

    The object store of a `table` is that of the displays unless it has one; its `key` are the columns that identify a
    row, as far as the spec tells; `section` is the name of its section.
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
            found[name] = SpecTable(of.source, (*of.source.joined, *of.key), f"{name}.source")
    for name, policy in ({} if spec.target is None else spec.target.named).items():
        if policy.source is not None:
            section = f"target.{name}.source"
            found[section] = SpecTable(policy.source, (policy.source.display,), section)
    if spec.calendar is not None:
        found["calendar"] = SpecTable(spec.calendar, (spec.calendar.action,), "calendar")
    if spec.candidates is not None:
        key = (spec.candidates.display, spec.candidates.action)
        found["candidates"] = SpecTable(spec.candidates, key, "candidates")
    return {name: of._replace(table=_with_storage(of.table, spec.source)) for name, of in found.items()}


def _with_storage(table: Table, displays: Table) -> Table:
    return table if table.storage is not None else table.model_copy(update={"storage": displays.storage})
