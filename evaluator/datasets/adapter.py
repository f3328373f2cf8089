"""From the files of a spec to a `Log`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.datasets.actions import ActionIndex, index_actions
from evaluator.datasets.breaches import FILE, LINE, Breaches, check_on_error
from evaluator.datasets.conversions import Rules, conversion_kinds, converted_rows, deduplicated
from evaluator.datasets.features import Features, build_context, choose_features
from evaluator.datasets.files import SourceFile, find_files, fingerprint
from evaluator.datasets.metadata import log_meta
from evaluator.datasets.scan import Kind, read_columns
from evaluator.datasets.spec import Deduplicate, FileSpec
from evaluator.errors import LogError, UsageError
from evaluator.log import Log
from evaluator.log.contract import fixed_size_lists

# Two roles may share a column: the stricter kind is read, the other derived from it.
_STRICTNESS: tuple[Kind, ...] = ("category", "text", "float", "int", "datetime")


@dataclass(frozen=True)
class Reading:
    """A log and what was left out of it.

    Parameters
    ----------
    log
        The log.
    quarantine
        One line per breach of a row left out: file, line (row for Parquet and IPC), column, value, problem.
    """

    log: Log
    quarantine: pa.Table


def read_files(
    spec: FileSpec,
    folder: Path,
    *,
    path: str | Path | None = None,
    actions: str | Sequence[str] | None = None,
    features: str | None = None,
    deduplicate: Deduplicate | None = None,
    attributed_only: bool | None = None,
    limit: int | None = None,
    sort: bool | None = None,
    on_error: str = "stop",
) -> Reading:
    """Return the log in the files of a spec; parameters as in `evaluator.datasets.load`, `folder` holds the spec."""
    check_on_error(on_error)
    rules = _rules(spec, deduplicate, attributed_only)
    sort = spec.source.sort if sort is None else sort
    if limit is not None and limit < 1:
        raise UsageError(f"limit={limit}.", hint="give the number of displays to read, at least 1.")
    wanted = choose_features(spec, features)
    own = spec.conversion.source is None
    files = find_files(spec.source, folder, override=path)
    breaches = Breaches(files)
    kinds = _display_kinds(spec, wanted)
    if own:
        kinds = _merged(kinds, conversion_kinds(spec, attributed_only=rules.attributed_only))
    # Sorting needs every row before the first n are known.
    frame = read_columns(files, spec.source, kinds, limit=None if sort else limit, breaches=breaches)
    if sort:
        frame, breaches = _sorted(frame, spec.display.time, limit, breaches)
    _check_displays(frame, spec, wanted, breaches)
    times = frame[spec.display.time]
    position = pl.int_range(frame.height, dtype=pl.Int64, eager=True)
    counts: dict[str, float] = {"rows_read": frame.height}
    all_files, conversion_breaches = files, breaches
    if own:
        shown = pl.DataFrame({"display": position, "shown": times})
        converted = converted_rows(frame, shown, spec.conversion, breaches)
    else:
        converted, conversion_breaches, second, skipped = _second_table(spec, folder, frame, rules, limit)
        all_files = [*files, *second]
        counts |= skipped
    if on_error == "stop":
        breaches.refuse()
        if not own:
            conversion_breaches.refuse()
    left_out = breaches.rows()
    sound = ~breaches.mask(frame.height).to_numpy()
    counts["quarantined"] = len(left_out) + (0 if own else len(conversion_breaches.rows()))
    before = converted.height
    converted = converted.filter(pl.Series(sound[converted["display"].to_numpy()]))
    counts["conversion_rows_of_quarantined"] = before - converted.height
    rewards, counted = deduplicated(converted, rules)
    counts |= counted

    frame = frame.filter(pl.Series(sound))
    number = np.cumsum(sound) - 1  # row read -> sound row
    kept = index_actions(frame[spec.display.action], actions)
    shown_kept = kept.index >= 0
    counts["displays_dropped_by_actions"] = int((~shown_kept).sum())
    counts["kept_share"] = float(shown_kept.mean()) if len(shown_kept) else 0.0
    _check_order(frame, spec, files)
    display_id = np.where(shown_kept, np.cumsum(shown_kept) - 1, -1)
    last_seen = int(max(_latest(frame[spec.display.time]), _latest(converted["time"])))

    frame = frame.filter(pl.Series(shown_kept))
    conversions = _conversion_table(rewards, display_id[number[rewards["display"].to_numpy()]])
    counts |= {"displays": frame.height, "conversions": conversions.num_rows}
    log = Log(
        displays=_display_table(frame, spec, kept, wanted),
        conversions=conversions,
        actions=pa.table(
            {"action": pa.array(range(len(kept.labels)), pa.int32()), "label": pa.array(kept.labels, pa.string())}
        ),
        meta=log_meta(
            spec, counts=counts, fingerprint=fingerprint(all_files), last_seen=last_seen, filtered=actions is not None
        ),
    )
    tables = [breaches.table()] if own else [breaches.table(), conversion_breaches.table()]
    return Reading(log.validated(), pl.concat(tables).to_arrow())


def _rules(spec: FileSpec, deduplicate: Deduplicate | None, attributed_only: bool | None) -> Rules:
    rule = deduplicate or spec.conversion.deduplicate
    known = ("last_click", "first_click", "all", "share")
    if rule not in known:
        raise UsageError(f"deduplicate={rule!r}.", hint=f"choose one of {', '.join(known)}.")
    if rule != "all" and not spec.conversion.key:
        raise UsageError(f"deduplicate={rule!r}, but {spec.name} has no key.", hint="set conversion.key in the spec.")
    only = spec.conversion.attributed_only if attributed_only is None else attributed_only
    if only and spec.conversion.attributed is None:
        raise UsageError(
            f"attributed_only, but {spec.name} has no attribution.", hint="set conversion.attributed in the spec."
        )
    return Rules(rule, only)


def _display_kinds(spec: FileSpec, features: Features) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {c: "float" if kind == "number" else "category" for c, kind in features.kinds.items()}
    roles: list[tuple[str | None, Kind]] = [
        (spec.display.time, "datetime" if spec.time.unit == "datetime" else "int"),
        (spec.display.action, "category"),
        (spec.display.propensity, "float"),
        (spec.display.id, "text"),
    ]
    for column, kind in roles:
        if column is not None:
            kinds = _merged(kinds, {column: kind})
    return kinds


def _merged(one: Mapping[str, Kind], other: Mapping[str, Kind]) -> dict[str, Kind]:
    out = dict(one)
    for column, kind in other.items():
        out[column] = max(out.get(column, kind), kind, key=_STRICTNESS.index)
    return out


def _sorted(frame: pl.DataFrame, time: str, limit: int | None, breaches: Breaches) -> tuple[pl.DataFrame, Breaches]:
    """Sort by time, ties in file order; rows in breach keep their rows in the report."""
    last = np.iinfo(np.int64).max
    order = np.argsort(frame[time].fill_null(last).to_numpy(), kind="stable")[:limit]
    return frame.select(pl.all().gather(pl.Series(order))), breaches.moved(order)


def _check_displays(frame: pl.DataFrame, spec: FileSpec, features: Features, breaches: Breaches) -> None:
    if frame.height == 0:
        raise LogError(
            f"{breaches.files[0].path}: the log is empty, no rows below the header.", hint="check the export."
        )
    display = spec.display
    sound = ~breaches.mask(frame.height)
    numbers = [c for c, kind in features.kinds.items() if kind == "number"]
    for column in dict.fromkeys([display.time, display.action, *numbers]):
        breaches.add(frame, column, sound & frame[column].is_null(), "missing", "fill the cell, or quarantine the row")
    for column in numbers:
        values = frame[column].cast(pl.Float64)
        breaches.add(frame, column, sound & ~values.is_finite().fill_null(True), "not finite", "fill the cell")
    if display.propensity is not None:
        p = frame[display.propensity].cast(pl.Float64)
        for bad, problem in (
            (p.is_null() | p.is_nan(), "propensity missing or nan"),
            (p == 0, "propensity 0 although the action was shown"),
            (p < 0, "negative propensity"),
            ((p > 1) & p.is_not_nan(), "propensity above 1"),
        ):
            breaches.add(frame, display.propensity, sound & bad, problem,
                         "give the probability with which the logger showed the action")  # fmt: skip
    if display.id is not None:
        ids = frame[display.id]
        breaches.add(frame, display.id, sound & ids.is_null(), "missing", "give every display an id")
        breaches.add(frame, display.id, sound & ids.is_not_null() & ~ids.is_first_distinct(), "duplicate display",
                     "keep one row per display")  # fmt: skip


def _check_order(frame: pl.DataFrame, spec: FileSpec, files: list[SourceFile]) -> None:
    late = (frame[spec.display.time].diff() < 0).fill_null(False).arg_true()
    if len(late) == 0:
        return
    row = int(late[0])
    file = files[frame[FILE][row]]
    raise LogError(
        f"{file.path} {'line' if file.is_text else 'row'} {frame[LINE][row]}: time {frame[spec.display.time][row]} is "
        f"earlier than {frame[spec.display.time][row - 1]} before it ({len(late)} such rows).",
        hint="sort the source, set sort = true in [source], or pass sort=True.",
    )


def _second_table(
    spec: FileSpec, folder: Path, displays: pl.DataFrame, rules: Rules, limit: int | None
) -> tuple[pl.DataFrame, Breaches, list[SourceFile], dict[str, float]]:
    where = spec.conversion.source
    if where is None or spec.display.id is None:
        raise AssertionError("the spec was checked")
    source = where.table()
    files = find_files(source, folder)
    breaches = Breaches(files)
    kinds = _merged(conversion_kinds(spec, attributed_only=rules.attributed_only), {where.display: "text"})
    table = read_columns(files, source, kinds, limit=None, breaches=breaches)
    ids = displays.select(
        pl.col(spec.display.id).cast(pl.String).alias("id"),
        pl.int_range(pl.len(), dtype=pl.Int64).alias("display"),
        pl.col(spec.display.time).alias("shown"),
    ).unique("id", keep="first", maintain_order=True)
    shown = table.select(pl.col(where.display).cast(pl.String).alias("id")).join(
        ids, on="id", how="left", maintain_order="left"
    )
    lost = shown["display"].is_null()
    skipped: dict[str, float] = {}
    if limit is None:
        breaches.add(table, where.display, lost, "conversion without display", "check conversion.source.display")
    else:
        skipped["conversion_rows_beyond_limit"] = int(lost.sum())
    rows = converted_rows(table, shown.drop("id"), spec.conversion, breaches)
    return rows.filter(pl.col("display").is_not_null()), breaches, files, skipped


def _display_table(frame: pl.DataFrame, spec: FileSpec, kept: ActionIndex, features: Features) -> pa.Table:
    n = frame.height
    if spec.display.propensity is not None:
        propensity = pa.array(frame[spec.display.propensity].cast(pl.Float64).to_numpy(), pa.float64())
    elif spec.display.propensity_kind == "uniform":
        propensity = pa.array(np.full(n, 1 / max(len(kept.labels), 1)), pa.float64())
    else:
        propensity = pa.nulls(n, pa.float64())
    columns = {
        "display_id": pa.array(np.arange(n), pa.int64()),
        "time": pa.array(frame[spec.display.time].to_numpy(), pa.int64()),
        "action": pa.array(kept.index[kept.index >= 0], pa.int32()),
        "propensity": propensity,
    }
    context = build_context(frame, features)
    if context is not None:
        columns["context"] = fixed_size_lists(context)
    return pa.table(columns)


def _conversion_table(rewards: pl.DataFrame, display_id: npt.NDArray[np.int64]) -> pa.Table:
    table = (
        rewards.select(pl.Series("display_id", display_id, dtype=pl.Int64), "time", "value")
        .filter(pl.col("display_id") >= 0)
        .sort("display_id", "time", maintain_order=True)
    )
    return pa.table(
        {
            "display_id": pa.array(table["display_id"].to_numpy(), pa.int64()),
            "time": pa.array(table["time"].to_numpy(), pa.int64()),
            "value": pa.array(table["value"].to_numpy(), pa.float64()),
        }
    )


def _latest(times: pl.Series) -> int:
    return int(times.to_numpy().max()) if len(times) else 0
