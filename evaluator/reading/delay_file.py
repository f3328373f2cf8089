"""A bare file of delays, one row a conversion: no displays, no times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.errors import EvaluatorError, ParameterError, SourceError, UsageError, WorkerError
from evaluator.jobs.workers import in_folder, this_folder, this_worker
from evaluator.log.column import BETWEEN, CROSS, label_of_part, parts_of
from evaluator.log.delay_rows import DelayRows, delays_hash
from evaluator.log.times import stamp_of
from evaluator.reading.cells import Kind
from evaluator.reading.frames import UNPARSED, Chunks, column_names
from evaluator.reading.options import UNITS, DelayFileOptions, share_of
from evaluator.reading.row_breaches import Breaches, CheckedRows
from evaluator.reading.row_rules import check_cells, left_out_note, refuse_many
from evaluator.reading.sources.files import find_files
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec_sections import Source
from evaluator.store_addresses import refuse_secret
from evaluator.units import ROUND, SECONDS, duration_ticks, parse_whole

# Names of a column that says, beside durations, whether the event came, and the value of rows that were censored.
_EVENTS = {
    **dict.fromkeys(("event", "events", "observed", "event_observed", "converted", "conversion", "status"), 0),
    **dict.fromkeys(("censored", "is_censored", "cens", "right_censored"), 1),
}
_AS_LOG = (
    "such rows had no conversion for so long: read them as displays of a log, whose spec says indicator = '{}', 1 "
    "where one came, and delay = '{}'"
)


@dataclass(frozen=True)
class DelayReading:
    """Delays, and one line per breach of a row left out: file, line, column, value, problem."""

    rows: DelayRows
    quarantine: pa.Table


def read_delay_file(path: str | Path, asked: DelayFileOptions) -> DelayReading:
    """Read a CSV, TSV, Parquet or IPC file with the delay of one conversion a row.

    Bad rows are those without a delay between 0 and its limit, and censored ones, where a column of 0 and 1 beside the
    delays says whether a conversion came. Raises LogError for such rows, or for more than the
    share that may be left out, with their line numbers; SourceError if the file cannot be read or lacks a column;
    ParameterError or UsageError if the options do not fit the file, or one another.
    """
    by, followed = asked.by, asked.followed
    unit = next((unit for unit in UNITS if unit == (asked.unit or "s")), None)
    if unit is None:
        raise ParameterError(f"`unit` {asked.unit!r} is no unit of time.", remedy=f"one of {', '.join(UNITS)}.")
    refuse_secret(str(path))
    source = Source(files=str(path))
    files: list[TablePart] = [*find_files(source, Path(), override=path)]
    names = column_names(files[0], source)
    groups = () if by is None else parts_of(by, names)
    column = _delay_column(asked.delay_column, names, groups, files[0].name)
    of_row = followed if followed in names else None
    constant = None if followed is None or of_row is not None else _ticks(followed, unit, names)
    kinds: dict[str, Kind] = {column: "int"}
    if {column, of_row} & {*groups}:
        raise UsageError(f"`by='{by}'` is the column of the delays.", remedy="name a column of groups.")
    kinds |= dict.fromkeys(groups, "text")
    if of_row is not None:
        kinds[of_row] = "int"
    events = [name for name in names if name not in kinds and name.strip().lower() in _EVENTS]
    breaches = Breaches(files, listed=asked.on_error == "quarantine")
    read: dict[str, Kind] = {**dict.fromkeys(events, "flag"), **kinds}
    frame = Chunks(files, source, read, optional=frozenset(events)).collect()
    if not frame.height:
        raise SourceError(f"{files[0].name}: no rows.", remedy="check the export.")
    limit = frame[of_row] if of_row else pl.repeat(constant, frame.height, dtype=pl.Int64, eager=True)
    checked = breaches.check(frame)
    check_cells(checked, frame, kinds)
    _check(frame, column, groups, of_row, limit, checked)
    for event in events:
        if UNPARSED + event not in frame.columns:  # other cells than flags are no survival form
            checked.add(event, checked.sound & (frame[event] == _EVENTS[event.strip().lower()]),
                        "a row that is censored, which is no conversion", _AS_LOG.format(event, column))  # fmt: skip
    sound = pl.Series(checked.close())
    if asked.on_error == "stop":
        breaches.refuse()
    refuse_many(breaches.rows, frame.height, breaches, share_of(asked.quarantine_at_most), "rows")
    frame, limit = frame.filter(sound), limit.filter(sound)
    if not frame.height:
        raise SourceError(f"{files[0].name}: no row has a usable delay.", remedy="check `delay_column`.")
    cut = of_row is not None or constant is not None
    rows = DelayRows(
        name=Path(path).name,
        tick=unit,
        delay=frame[column].to_numpy(),
        limit=limit.to_numpy() if cut else None,
        group=_labels(frame, groups) if groups else None,
        by=CROSS.join(groups),
        left_out=left_out_note([breaches]),
        stamp=stamp_of(frame[column].to_numpy()),
    )
    return DelayReading(rows, breaches.table().to_arrow())


def _labels(frame: pl.DataFrame, groups: Sequence[str]) -> npt.NDArray[np.object_]:
    """Return the label of each row's group, shape (n,): of crossed columns, of its pair."""
    if len(groups) == 1:
        return np.array(frame[groups[0]].to_list(), object)
    parts = (map(label_of_part, frame[column].to_list()) for column in groups)
    return np.array([BETWEEN.join(pair) for pair in zip(*parts, strict=True)], object)


def _delay_column(column: str | None, names: list[str], groups: Sequence[str], file: str) -> str:
    others = [name for name in names if name not in groups]
    if column is None and len(others) == 1:
        return others[0]
    if column is None:
        raise UsageError(
            f"{file} has columns {', '.join(names)}.", remedy="say which holds the delays: `delay_column`."
        )
    return column


def _ticks(followed: str, unit: str, names: list[str]) -> int:
    try:
        if ticks := parse_whole(followed):
            return ticks
        if unit != ROUND:
            return round(duration_ticks(followed, SECONDS[unit]))
    except ParameterError:
        pass
    raise ParameterError(
        f"`followed` {followed!r} is neither a time nor a column.",
        remedy=f"a duration (30d), a whole number of {unit}, or one of the columns {', '.join(names)}.",
    )


def _check(
    frame: pl.DataFrame,
    column: str,
    groups: Sequence[str],
    of_row: str | None,
    limit: pl.Series,
    checked: CheckedRows,
) -> None:
    delay = frame[column]
    sound = checked.sound
    remedy = "check which rows converted, or quarantine the row"
    checked.add(column, sound & delay.is_null(), "a conversion without a delay", remedy)
    checked.add(column, sound & (delay < 0), "delay below 0", remedy)
    if of_row is not None:
        checked.add(of_row, sound & limit.is_null(), "missing", "say how long the display was followed")
    checked.add(column, sound & (delay > limit), "delay longer than its display was followed", remedy)
    for by in groups:
        checked.add(by, sound & frame[by].is_null(), "missing", "give every row a group")


@dataclass(frozen=True)
class DelayFilePlace:
    """Where a file of delays lies, how it is read, and what it holds.

    Relative names are looked up in `folder`, the working folder of the command; `content` is the hash of its delays
    (`evaluator.log.delay_rows.delays_hash`).
    """

    file: str
    reading: DelayFileOptions
    folder: str
    content: str

    def opened(self) -> DelayRows:
        """Return the delays, if they are those that were meant.

        Raises WorkerError, which names worker and file, if this worker has no such file, or another one.
        """
        try:
            in_folder(self.folder)
            rows = read_delay_file(self.file, self.reading).rows
        except (EvaluatorError, OSError) as error:
            raise WorkerError(
                f"Worker {this_worker()} cannot open the file of delays: {error}",
                remedy="put it where every worker sees it under the same name, and name that.",
            ) from error
        if delays_hash(rows) != self.content:
            raise WorkerError(
                f"Worker {this_worker()} is refused: it reads other delays under the name {self.file}.",
                remedy="let all workers see the same file, or copy it to each.",
            )
        return rows


def place_of_file(file: Path, reading: DelayFileOptions, rows: DelayRows) -> DelayFilePlace:
    """Return the place of a file of delays that was read so."""
    return DelayFilePlace(str(file), reading, this_folder(), delays_hash(rows))
