"""From a spec to its log: its tables are found, wherever they lie, and read as one source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from evaluator.datasets.adapter import Reading, WorkersOn, read_tables
from evaluator.datasets.options import ReadingOptions
from evaluator.datasets.sources.databases import Databases
from evaluator.datasets.sources.files import SourceFile, find_files
from evaluator.datasets.sources.lakes import lake_paths
from evaluator.datasets.sources.local_copies import Staging, staging
from evaluator.datasets.sources.part import TablePart, unchanged
from evaluator.datasets.sources.places import find_parts
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spec_tables import DISPLAYS, SETS, SpecTable, spec_tables
from evaluator.datasets.spool import SPOOL
from evaluator.datasets.stretches.at_once import ONE_PASS, AtOnce
from evaluator.datasets.stretches.joined_intake import StretchesInThreads
from evaluator.datasets.stretches.part_jobs import PartsOnWorkers
from evaluator.errors import EvaluatorError
from evaluator.store_addresses import is_address


def read_spec_tables(
    spec: FileSpec,
    folder: Path,
    asked: ReadingOptions,
    *,
    into: Path | None,
    contexts: bool,
    advance: Callable[[int], None],
    at_once: AtOnce = ONE_PASS,
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
    at_once
        Who reads displays of many files, and writes them in parts (`into`).
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
                    at_once=at_once, workers=_workers(at_once),
                )  # fmt: skip
        except EvaluatorError as error:
            raise type(error)(_by_name(error.what, whole), hint=_by_name(error.hint, whole)) from None


def _workers(at_once: AtOnce) -> WorkersOn | None:
    executor, jobs = at_once.executor, at_once.jobs
    if executor is not None:
        return lambda plan, new_spool, into: PartsOnWorkers(plan, jobs, new_spool, executor, into / SPOOL)
    return None if jobs == 1 else lambda plan, new_spool, into: StretchesInThreads(plan, jobs, new_spool)


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
