"""The canonical folder: the tables of a log in Parquet, and ``meta.json``.

Its format, which versions of it are read and what is verified when: ``docs/reference/formats.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from evaluator.datasets.integrity import check_end, check_rows, check_whole
from evaluator.datasets.log_folders import LogFolder, holds, names_in
from evaluator.datasets.meta_file import (
    ACTIONS,
    CONVERSIONS,
    DISPLAYS,
    FILES,
    META,
    OUTCOMES,
    QUARANTINE,
    SCHEMA_OF_PARTS,
    MetaFile,
    read_meta,
)
from evaluator.datasets.row_breaches import QUARANTINE as BAD_ROWS
from evaluator.datasets.subset import first_displays, only_actions
from evaluator.errors import OutputExistsError, SourceError, UsageError
from evaluator.log import Selection, StoredLog
from evaluator.log.log_files import LogFile
from evaluator.log.parquet import open_parquet, read_whole
from evaluator.log.schema import no_outcomes
from evaluator.outputs.ownership import refuse_foreign
from evaluator.units import is_whole

# What each file has always had; in version 1 there is nothing else to know it by.
_COLUMNS = {
    DISPLAYS: {"display_id", "time", "action"},
    CONVERSIONS: {"display_id", "time", "value"},
    ACTIONS: {"action", "label"},
    OUTCOMES: {"outcome", "display_id", "time", "value"},
    QUARANTINE: set(BAD_ROWS) - {"key"},  # which came later
}

# What is said of a folder of the first version.
UNVERIFIED = "Written by an earlier format without checksums; convert again to have it verify itself."


def is_canonical(folder: LogFolder) -> bool:
    """Whether `folder` looks like a converted log."""
    return holds(folder, META)


def refuse_other(folder: Path) -> None:
    """Raise unless `folder` is a converted log and holds nothing else, so that it may be deleted.

    Raises
    ------
    OutputExistsError
        The folder is of another kind, of a version that is not known, or holds a file that is not as a conversion wrote
        it, by its size and footer, or in version 1 by its columns.
    """
    try:
        found = read_meta(folder)
    except SourceError as error:
        raise OutputExistsError(
            f"Output {folder} exists and is of another kind. {error.what}",
            hint="name another folder, or remove this one.",
        ) from None

    def as_written(path: Path) -> bool:
        if path.name == META:
            return True
        if not found.files:
            return path.name in _COLUMNS and _has_columns(path)
        try:
            check_end(path, found.files[path.name])
        except (KeyError, SourceError):
            return False
        return True

    refuse_foreign(
        folder,
        as_written,
        kind="a converted log as it was written",
        hint="name another folder, or move it elsewhere; if it is a damaged file of the log, remove it yourself.",
    )


def _has_columns(path: Path) -> bool:
    """Whether a file is Parquet with the columns that it always has."""
    try:
        with open_parquet(path) as file:
            return _COLUMNS[path.name] <= set(file.schema_arrow.names)
    except SourceError:
        return False


def open_canonical(
    folder: LogFolder, *, limit: int | None = None, actions: str | Sequence[str] | None = None
) -> StoredLog:
    """Return the log in a canonical folder; its displays stay where they are.

    Parameters
    ----------
    folder
        Folder that a conversion wrote.
    limit
        Number of displays to read, the first ones, with their conversions; None reads all.
    actions
        Choice of actions, ``top:n``, ``used`` or labels, as `evaluator.datasets.load` takes it while reading files;
        None keeps all.

    Raises
    ------
    SourceError
        A file is missing or damaged, or was written in a newer version of the format. Displays are verified as far as
        they are read, by this and by what reads the log later.
    LogError
        The rows break the log contract. Contexts are not read here: a replay checks those that it reads.
    UsageError, UnknownNameError
        The arguments `limit` or `actions` do not fit the log.
    """
    found = read_meta(folder)
    if limit is not None and not is_whole(limit, 1):
        raise UsageError(f"limit={limit}.", hint="give the number of displays to read, at least 1.")
    whole = _opened(folder, found)
    whole.validated(vectors=False)
    log = whole if limit is None or limit >= len(whole) else first_displays(whole, limit)
    log = log if actions is None else only_actions(log, actions)
    return log.as_sound_as(whole)


def _opened(folder: LogFolder, found: MetaFile) -> StoredLog:
    """Return the log with all of its files verified but for the pages of the displays."""
    if found.version >= SCHEMA_OF_PARTS:
        displays = {name for name in names_in(folder) if name.startswith("displays")}
        _refuse_others(folder, displays.difference(found.files))
    for name, file in found.files.items():
        if name != QUARANTINE:
            check = check_end if name in found.displays else check_whole
            check(folder / name, file)
    conversions, actions = read_whole(folder / CONVERSIONS), read_whole(folder / ACTIONS)
    paths = [folder / name for name in found.displays]
    rows = {path.name: _rows(path) for path in paths}
    # A log with outcomes may hold none of their events.
    outcomes = read_whole(folder / OUTCOMES) if OUTCOMES in found.files else no_outcomes()
    tables = {CONVERSIONS: conversions, ACTIONS: actions, OUTCOMES: outcomes}
    for name, n in (*rows.items(), *((name, table.num_rows) for name, table in tables.items())):
        if name in found.files:
            check_rows(folder / name, n, found.files[name])
    n_displays = sum(rows.values())
    selection = Selection(n_displays, n_displays)
    return StoredLog(paths, selection, conversions=conversions, actions=actions, meta=found.meta, outcomes=outcomes)


def _rows(path: LogFile) -> int:
    with open_parquet(path) as file:
        return int(file.metadata.num_rows)


def verify(folder: LogFolder) -> list[str]:
    """Check every byte of a canonical folder, which `open_canonical` does as far as it reads, and return remarks.

    Returns
    -------
    list of str
        Sentences that the reader must know: that a folder of the first version has no checksums.

    Raises
    ------
    SourceError
        A file is missing or damaged, or does not belong there.
    """
    found = read_meta(folder)
    for name, known in found.files.items():
        check_whole(folder / name, known)
    belong = {*found.files, META} if found.files else set(FILES)
    _refuse_others(folder, names_in(folder) - belong)
    return remarks(folder)


def _refuse_others(folder: LogFolder, names: Collection[str]) -> None:
    if names:
        more = f" ({len(names) - 1} more)" if len(names) > 1 else ""
        raise SourceError(f"{folder}: {min(names)} is no file of a converted log{more}.", hint="move it elsewhere.")


def remarks(folder: LogFolder) -> list[str]:
    """Return what the reader of a canonical folder must know of its format."""
    return [UNVERIFIED] if read_meta(folder).version == 1 else []
