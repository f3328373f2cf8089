"""The canonical folder, read and written: the tables of a log in Parquet, and ``meta.json``, which knows every file.

Its format, which versions of it are read and what is verified when: ``docs/reference/formats.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluator.errors import OutputExistsError, SourceError, UsageError
from evaluator.log import Log, LogMeta, Selection, StoredLog, find_breaches
from evaluator.log.eligible import SetCodes, any_eligible, packed, sizes
from evaluator.log.fingerprint import BLOCKS, BlockHashes, fingerprint_of, stored_hash
from evaluator.log.log_files import LogFile, damaged, open_parquet, read_whole
from evaluator.log.log_tables import CONVERSION, OUTCOME, GatheredEvents, code_kinds, mark_kind, merge_events
from evaluator.log.schema import (
    ACTION_SET,
    BATCH,
    ELIGIBLE,
    KIND,
    OWN_COLUMNS,
    WEIGHT,
    fixed_size_lists,
    is_number,
    is_uneven,
    to_numpy,
    uneven_lists,
)
from evaluator.log.stored import RowFacts
from evaluator.outputs.atomic import refuse_foreign
from evaluator.reading.kept_actions import USED, ShownActions, choose_actions, kept_propensities
from evaluator.reading.log_folders import (
    ACTIONS,
    CONVERSIONS,
    DISPLAYS,
    EVENTS,
    FILES,
    META,
    OUTCOMES,
    QUARANTINE,
    QUARANTINED,
    SCHEMA_OF_KINDS,
    SCHEMA_OF_PARTS,
    LogFolder,
    MetaFile,
    check_end,
    check_rows,
    check_whole,
    display_files,
    holds,
    names_in,
    read_meta,
    write_meta,
)
from evaluator.units import is_whole

# What each file has always had; in version 1 there is nothing else to know it by.
_COLUMNS = {
    DISPLAYS: {"display_id", "time", "action"},
    EVENTS: {"display_id", "time", "value"},
    CONVERSIONS: {"display_id", "time", "value"},
    ACTIONS: {"action", "label"},
    OUTCOMES: {"outcome", "display_id", "time", "value"},
    QUARANTINE: set(QUARANTINED) - {"key"},  # which came later
}

# What is said of a folder of the first version.
UNVERIFIED = "Written by an earlier format without checksums; convert again to have it verify itself."
ROWS_PER_GROUP = 65_536
# Columns that hardly move from row to row: as differences they take half of the file's time and space.
RISING = ("display_id", "time", "position")
WRITTEN = {"compression": "zstd", "write_page_checksum": True}


_NO_ROWS = pa.table({name: pa.array([], pa.int64() if name == "line" else pa.large_string()) for name in QUARANTINED})


@dataclass(frozen=True)
class Reading:
    """A log, and the rows that were left out of it.

    Parameters
    ----------
    log
        The log that was read.
    quarantine
        Breaches of the rows left out, one a line: file, line (row for Parquet and IPC), column, value, problem.
    """

    log: Log
    quarantine: pa.Table = field(default_factory=lambda: _NO_ROWS)


def is_canonical(folder: LogFolder) -> bool:
    """Whether `folder` looks like a converted log."""
    return holds(folder, META)


def refuse_other(folder: Path) -> None:
    """Raise unless `folder` is a converted log and holds nothing else, so that it may be deleted.

    Raises OutputExistsError if the folder is of another kind, of a version that is not known, or holds a file that is
    not as a conversion wrote it, by its size and footer, or in version 1 by its columns.
    """
    try:
        found = read_meta(folder)
    except SourceError as error:
        raise OutputExistsError(
            f"Output {folder} exists and is of another kind. {error.what}",
            remedy="name another folder, or remove this one.",
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
        remedy="name another folder, or move it elsewhere; if it is a damaged file of the log, remove it yourself.",
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

    `limit` takes the first displays with their events, `actions` some actions as `evaluator.datasets.load` does while
    reading files. Raises SourceError if a file is missing, damaged or of a newer version, where displays are verified
    as far as they are read, by this and by what reads the log later; LogError if rows break the log contract, where a
    replay checks the contexts that it reads; UsageError or UnknownNameError if the arguments do not fit the log.
    """
    found = read_meta(folder)
    if limit is not None and not is_whole(limit, 1):
        raise UsageError(f"limit={limit}.", remedy="give the number of displays to read, at least 1.")
    # Of rows that are known to be sound those that stay are read alone.
    later = found.facts is not None and actions is not None
    whole = _opened(folder, found, events=not later)
    whole = whole.validated(vectors=False) if found.facts is None else whole.known_sound()
    log = whole if limit is None or limit >= len(whole) else first_displays(whole, limit)
    if actions is not None:
        parts = _event_parts(folder / EVENTS) if later else iter([log.events])
        log = only_actions(log, actions, parts, found.files[EVENTS].rows if later else log.events.num_rows)
    return log.as_sound_as(whole)


def _opened(folder: LogFolder, found: MetaFile, *, events: bool) -> StoredLog:
    """Return the log with all of its files verified but for the pages of the displays, and without events if so asked.

    Those events are the pages of a file that is verified all the same.
    """
    if found.version >= SCHEMA_OF_PARTS:
        displays = {name for name in names_in(folder) if name.startswith("displays")}
        _refuse_others(folder, displays.difference(found.files))
    for name, file in found.files.items():
        if name != QUARANTINE:
            check = check_end if name in found.displays else check_whole
            check(folder / name, file)
    earlier = (CONVERSIONS, *[OUTCOMES] * (OUTCOMES in found.files))
    known, whole = [EVENTS] if found.version >= SCHEMA_OF_KINDS else earlier, found.facts is None
    tables = {name: read_whole(folder / name) for name in (*(known if whole else ()), ACTIONS)}
    paths = [folder / name for name in found.displays]
    rows = {path.name: _rows(path) for path in paths}
    read = {name: table.num_rows for name, table in tables.items()}
    read |= {} if whole else {EVENTS: _rows(folder / EVENTS)}
    for name, n in (*rows.items(), *read.items()):
        if name in found.files:
            check_rows(folder / name, n, found.files[name])
    if not whole:
        tables[EVENTS] = _read_events(folder / EVENTS, read[EVENTS]) if events else _no_events(folder / EVENTS)
    n_displays = sum(rows.values())
    selection, actions, facts = Selection(n_displays, n_displays), tables[ACTIONS], found.facts
    if facts is not None and (sum(facts.shown), len(facts.shown)) != (n_displays, actions.num_rows):
        raise damaged(folder / META, "its facts are those of other rows")
    return StoredLog(paths, selection, events=_events(tables), actions=actions, meta=found.meta, facts=facts)


def _read_events(path: LogFile, rows: int) -> pa.Table:
    """Return the events of a file without missing cells: read whole, they would take twice the memory."""
    gathered = GatheredEvents(_no_events(path).schema, rows)
    for part in _event_parts(path):
        gathered.add(part)
    return gathered.table()


def _no_events(path: LogFile) -> pa.Table:
    """Return none of the events of a file."""
    with open_parquet(path) as file:
        return _coded(file.schema_arrow.empty_table())


def _event_parts(path: LogFile) -> Iterator[pa.Table]:
    """Yield the events of a file, some at a time; errors as `open_parquet`."""
    with open_parquet(path, None) as file:
        for batch in file.iter_batches(BATCH):
            part = pa.Table.from_batches([batch])
            part.validate(full=True)  # text that is none
            yield _coded(part)


def _coded(events: pa.Table) -> pa.Table:
    return code_kinds(events) if KIND in events.column_names else events


def _events(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the events in the tables of a folder, of which earlier versions had conversions and others apart."""
    if EVENTS in tables:
        return _coded(tables[EVENTS])
    conversions, others = tables[CONVERSIONS], tables.get(OUTCOMES)
    return conversions if others is None else merge_events(conversions, code_kinds(others, OUTCOME))


def _rows(path: LogFile) -> int:
    with open_parquet(path) as file:
        return int(file.metadata.num_rows)


def verify(folder: LogFolder) -> list[str]:
    """Check every byte of a canonical folder, which `open_canonical` does as far as it reads, and return remarks.

    A folder of the first version has no checksums, which is such a remark. Raises SourceError if a file is missing or
    damaged, or does not belong there.
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
        raise SourceError(f"{folder}: {min(names)} is no file of a converted log{more}.", remedy="move it elsewhere.")


def remarks(folder: LogFolder) -> list[str]:
    """Return what the reader of a canonical folder must know of its format."""
    return [UNVERIFIED] if read_meta(folder).version == 1 else []


def first_displays(log: StoredLog, n: int) -> StoredLog:
    """Return the first `n` displays and their events."""
    events = log.events.slice(0, int(np.searchsorted(to_numpy(log.events["display_id"]), n, side="left")))
    return log.changed(selection=replace(log.selection, rows=n, kept=n), events=events)


def only_actions(log: StoredLog, wanted: str | Sequence[str], events: Iterator[pa.Table], most: int) -> StoredLog:
    """Return the displays of some actions, as `evaluator.datasets.load` does while reading files.

    The `events` of the log, `most` of them, come some at a time in their order; of those that go nothing is kept.
    Delays still count the displays of all actions: the log has the column ``position``. Propensities become those of
    the fewer actions where `evaluator.reading.kept_actions.kept_propensities` knows them. Errors of the choice are as
    of `evaluator.reading.kept_actions.choose_actions`.
    """
    meta = log.meta
    logged = meta.propensity in ("logged", "estimated")
    seen = ShownActions(log.n_actions)
    judged = np.zeros(log.n_actions, np.int64)
    until = None if meta.observed_until is None else meta.observed_until - (meta.attribution_window or 0)
    columns = ["action", "time", *["propensity"] * logged, *[WEIGHT] * (WEIGHT in log.schema.names)]
    known = log.facts is not None and sum(log.facts.shown) == len(log) and len(columns) == 2 and wanted != USED
    if known and log.facts is not None:
        seen.shown += np.array(log.facts.shown)
        seen.weight += seen.shown
    for _, batch in () if known else log.batches(columns):
        action = batch["action"]
        seen.read(action, batch.get("propensity"), batch.get(WEIGHT))
        mature = action if until is None else action[: np.searchsorted(batch["time"], until, side="right")]
        judged += np.bincount(mature, minlength=log.n_actions)
    shown = seen.shown
    old = np.array(choose_actions(log.labels, judged if wanted == USED else shown, wanted))
    new_action = np.full(log.n_actions, -1, np.int32)
    new_action[old] = np.arange(len(old), dtype=np.int32)
    kept = int(shown[old].sum())
    found = kept_propensities(log.meta.propensity, seen, old, choosable=_choosable(log, old))
    stay, before, begins = _renumbered(log, new_action, events, GatheredEvents(log.events.schema, most))
    selection = replace(log.selection, kept=kept, new_action=new_action, propensity=found.of_action)
    selection.begins.append(begins)
    conversions = int(mark_kind(stay, CONVERSION).sum())
    counts = {
        **log.meta.counts,
        "displays_dropped_by_actions": len(log) - kept,
        "share_of_displays_kept": kept / len(log),
        "conversions_dropped_by_actions": before - conversions,
        "displays": kept,
        "conversions": conversions,
    }
    return log.changed(
        selection=selection,
        events=stay,
        actions=log.actions.take(pa.array(old)).set_column(0, "action", pa.array(np.arange(len(old), dtype=np.int32))),
        meta=replace(
            log.meta,
            counts=counts,
            propensity=found.kind,
            notes=(*log.meta.notes, *found.notes),
            kept_share=log.meta.kept_share * found.kept_share,
        ),
    )


def _choosable(log: StoredLog, actions: npt.NDArray[np.integer]) -> float | None:
    """Return the weight of the displays at which an action of these is eligible, or None if displays have no sets.

    Displays that are themselves left of a choice of actions stand for others with such sets: 1/p of the one that was
    shown is |E| on average, however often the logger showed one of the set.
    """
    if ELIGIBLE not in log.schema.names:
        return None
    share, total = log.meta.kept_share, 0.0
    reads = [ELIGIBLE, *[WEIGHT] * (WEIGHT in log.schema.names), *["propensity"] * (share < 1.0)]
    for _, batch in log.batches(reads, coded=True):
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        of = np.where(any_eligible(sets, actions), batch.get(WEIGHT, 1.0), 0.0)
        total += float((of if share == 1.0 else of * share / (batch["propensity"] * sizes(sets))).sum())
    return total


def _renumbered(
    log: StoredLog, new_action: npt.NDArray[np.int32], events: Iterator[pa.Table], gathered: GatheredEvents
) -> tuple[pa.Table, int, npt.NDArray[np.int64]]:
    """Return the events of the kept displays, with the numbers these have among themselves.

    And the number of conversions of all the displays, and `StoredLog.begins`.
    """
    rows, _ = log.begins
    before, conversions, stays = 0, 0, new_action >= 0
    begins: list[npt.NDArray[np.int64]] = []
    waiting = next(events, None)
    for first, batch in log.batches(["action"]):
        kept = stays[batch["action"]]
        # Of each display how many stay up to it, itself among them.
        count = np.cumsum(kept, dtype=np.int32)
        more = True
        while more and waiting is not None:
            of = to_numpy(waiting["display_id"])
            high = int(np.searchsorted(of, first + len(kept)))
            passing, at, more = waiting.slice(0, high), of[:high] - first, high == len(of)
            mine = np.flatnonzero(kept[at])
            gathered.add(passing, mine, before - 1 + count[at[mine]].astype(np.int64))
            conversions += int(mark_kind(passing, CONVERSION).sum())
            waiting = next(events, None) if more else waiting.slice(high)
        here = rows[slice(*np.searchsorted(rows, [first, first + len(kept)]))] - first
        begins.append(before + count[here].astype(np.int64) - kept[here])
        before += int(count[-1])
    after = np.full(len(rows) - sum(map(len, begins)), before)
    return gathered.table(), conversions, np.stack([rows, np.concatenate([*begins, after])])


class DisplayWriter:
    """``displays.parquet`` in row groups of `ROWS_PER_GROUP` displays, whatever the batches it is given.

    A `name` is given where the file holds only a part of the displays.
    """

    def __init__(self, folder: Path, schema: pa.Schema, name: str = DISPLAYS) -> None:
        self._path, self._schema = folder / name, schema
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._hashes = BlockHashes()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is None:
            self._write(pa.concat_tables([self._schema.empty_table(), *self._waiting]))
            self._opened(self._schema.empty_table()).add_key_value_metadata({BLOCKS: " ".join(self._hashes.found())})
        if self._writer is not None:
            self._writer.close()

    def add(self, displays: pa.Table) -> None:
        """Write some displays."""
        self._hashes.add(displays)
        self._waiting.append(displays)
        self._rows += displays.num_rows
        if self._rows < ROWS_PER_GROUP:
            return
        table = pa.concat_tables(self._waiting)
        full = self._rows - self._rows % ROWS_PER_GROUP
        self._write(table.slice(0, full))
        self._waiting, self._rows = [table.slice(full)], self._rows - full

    def _write(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self._opened(rows).write_table(rows, row_group_size=ROWS_PER_GROUP)

    def _opened(self, rows: pa.Table) -> pq.ParquetWriter:
        """Return the writer, opened for displays that begin with these rows."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, self._schema, **_written(rows))
        return self._writer


def _written(rows: pa.Table) -> dict[str, Any]:
    """Return how displays or events that begin with these rows are written.

    Numbers most of which differ have no dictionary: it takes time and space. What nobody asks for by its least and
    greatest value, the numbers of vectors, has no statistics.
    """
    delta = {name: "DELTA_BINARY_PACKED" for name in RISING if name in rows.schema.names}
    first = rows.slice(0, ROWS_PER_GROUP)
    numbers = [field.name for field in rows.schema if is_number(field.type) and field.name not in delta]
    plain = [name for name in numbers if 2 * pc.count_distinct(first[name]).as_py() > first.num_rows]
    leaves = {field.name: _leaf(field) for field in rows.schema}
    others = [path for path in leaves.values() if path not in (*delta, *plain)]
    counted = [path for name, path in leaves.items() if path == name]
    return {**WRITTEN, "use_dictionary": others, "column_encoding": delta, "write_statistics": counted}


def _leaf(field: pa.Field) -> str:
    """Return the path of a column's values inside the file."""
    path, kind = str(field.name), field.type
    while pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        path, kind = f"{path}.list.element", kind.value_type
    return path


def displays_table(
    columns: Mapping[str, Any], *, first: int = 0, labels: Mapping[str, pa.Array] = MappingProxyType({})
) -> pa.Table:
    """Return displays as the contract has them.

    `columns` are NumPy of shape (n,), (n, p) or (n, K, d), or Arrow; `first` is the number of the first display in the
    log; `labels` are those of code 0, 1, ... of each column of codes, where -1 is none.
    """
    n = len(columns["time"])
    table = {
        "display_id": pa.array(np.arange(first, first + n), pa.int64()),
        "time": pa.array(columns["time"], pa.int64()),
        "action": pa.array(columns["action"], pa.int32()),
        "propensity": pa.nulls(n, pa.float64()),
    }
    for name, array in columns.items():
        if name in labels:
            table[name] = labels[name].take(pa.array(array, mask=array < 0))
        elif isinstance(array, pa.Array | pa.ChunkedArray):
            table[name] = array
        elif name == ELIGIBLE:
            table[name] = packed(array)
        elif array.dtype == object:
            table[name] = pa.array(array, pa.string())
        elif name not in table or name == "propensity":
            table[name] = fixed_size_lists(array)
    return pa.table(table)


def write_rest(
    folder: Path,
    *,
    events: pa.Table,
    actions: pa.Table,
    meta: LogMeta,
    quarantine: pa.Table | None = None,
    fingerprint: str | None = None,
) -> None:
    """Write all but the displays, which are there; the rows left out of the log, if there are any.

    Its metadata get the fingerprint of what is written, unless one is given.
    """
    pq.write_table(events, folder / EVENTS, row_group_size=ROWS_PER_GROUP, **_written(events))
    pq.write_table(actions, folder / ACTIONS, **WRITTEN)
    if quarantine is not None and quarantine.num_rows:
        pq.write_table(quarantine, folder / QUARANTINE, **WRITTEN)
    if fingerprint is None:
        displays, _ = stored_hash([folder / name for name in display_files(folder)])
        fingerprint = fingerprint_of(meta, displays, events, actions)
    meta = replace(meta, fingerprint=fingerprint)
    write_meta(folder, meta, _find_facts(folder, events, actions, meta))


def _find_facts(folder: Path, events: pa.Table, actions: pa.Table, meta: LogMeta) -> RowFacts | None:
    """Return the facts of the rows that were written; None where they break the contract, as who opens them is told."""
    paths = [folder / name for name in display_files(folder)]
    rows = sum(map(_rows, paths))
    log = StoredLog(paths, Selection(rows, rows), events=events, actions=actions, meta=meta)
    if find_breaches(log, vectors=False):
        return None
    shown = np.zeros(log.n_actions, np.int64)
    for _, batch in log.batches(["action"]):
        shown += np.bincount(batch["action"], minlength=len(shown))
    return RowFacts(tuple(shown.tolist()), *log.time_range())


def write_canonical(log: Log, folder: Path, *, fingerprint: str | None = None) -> None:
    """Write the log into the existing, empty `folder`, batch by batch; `fingerprint` as of `write_rest`."""
    absent = {"display_id"} | ({"propensity"} if log.meta.propensity == "absent" else set())
    columns = [name for name in log.schema.names if name not in absent]
    numbers = [name for name in columns if name not in OWN_COLUMNS and is_number(log.schema.field(name).type)]
    uneven = ACTION_SET in columns and is_uneven(log.schema.field(ACTION_SET).type)
    with DisplayWriter(folder, log.schema) as displays:
        kept = zip(*(log.arrays(name) for name in numbers), strict=True) if numbers else repeat(())
        for (first, batch), own in zip(log.batches(columns), kept, strict=False):
            if uneven:
                batch |= {ACTION_SET: uneven_lists(batch[ACTION_SET], sizes(batch[ELIGIBLE]))}
            batch |= {name: column for name, (_, column) in zip(numbers, own, strict=True)}
            displays.add(displays_table(batch, first=first).select(log.schema.names))
    write_rest(folder, events=log.events, actions=log.actions, meta=log.meta, fingerprint=fingerprint)
