"""Rows as a log: in memory, or written to files and read again as a user's own."""

from __future__ import annotations

import csv
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator import load
from evaluator.log import Log, LogMeta
from tests.logs import build_log
from tests.untidy.defects import Rows
from tests.untidy.traffic import Traffic

_UNITS = {1: "s", 60: "min", 3_600: "h", 86_400: "d"}


def as_log(traffic: Traffic, rows: Rows) -> tuple[Log, npt.NDArray[np.int64]]:
    """Return the log, and the number in the traffic of each of its displays, shape (n,).

    Raises
    ------
    EvaluatorError
        The log is refused.
    """
    return _read(traffic, rows) if traffic.untidy.in_files else (_built(traffic, rows), rows.of)


def _built(traffic: Traffic, rows: Rows) -> Log:
    untidy = traffic.untidy
    stamp = untidy.stamp_s
    order = np.lexsort((rows.conversion_time, rows.conversion_of))
    even = 1.0 / traffic.available.sum(axis=1)[rows.of] if untidy.sets else 1.0 / untidy.n_actions
    by_design = np.allclose(rows.propensity, even, rtol=1e-12, atol=0.0)
    log = build_log(
        time=rows.time // stamp,
        action=rows.action,
        propensity=None if by_design else rows.propensity,
        conversion_display=rows.conversion_of[order],
        conversion_time=rows.conversion_time[order] // stamp,
        conversion_value=rows.conversion_value[order],
        n_actions=untidy.n_actions,
        context=_contexts(traffic, rows),
        eligible=traffic.available[rows.of] if untidy.sets else None,
        tick=_UNITS[stamp],
        reward_max=1.0 if untidy.mean_values is None and not untidy.conversions_copied else None,
        observed_until=rows.until // stamp,
        attribution_window=None if untidy.attribution_s is None else -(-untidy.attribution_s // stamp),
        **_sampling(untidy.sampled),
    )
    if untidy.users or untidy.visitors:
        user = pa.array([f"u{u}" for u in traffic.user[rows.of]])
        log = replace(log, displays=log.displays.append_column("user", user))
    return log.validated()


def _contexts(traffic: Traffic, rows: Rows) -> npt.NDArray[np.float64] | None:
    """Return what a contextual policy sees: the context one-hot, or the user's own two numbers; None without."""
    untidy = traffic.untidy
    if untidy.users:
        of_users = np.random.default_rng(untidy.users).random((untidy.users, 2))
        return np.asarray(of_users[traffic.user[rows.of]])
    if untidy.contexts == 1:
        return None
    return np.asarray(np.eye(untidy.contexts)[traffic.context[rows.of]])


def _sampling(rate: float) -> dict[str, Any]:
    """Return the log's sampling rate, where logs can say it."""
    known = any(field.name == "sampling_rate" for field in fields(LogMeta))
    return {"sampling_rate": rate} if rate < 1 and known else {}


def _read(traffic: Traffic, rows: Rows) -> tuple[Log, npt.NDArray[np.int64]]:
    """Write one table, a display a row with its conversion if there is one, and read it."""
    untidy = traffic.untidy
    with TemporaryDirectory() as folder:
        _write(Path(folder), traffic, rows)
        (Path(folder) / "spec.toml").write_text(_spec(traffic), encoding="utf-8")
        log = load(Path(folder) / "spec.toml", keep=["row"])
    row = np.array(log.displays["row"].to_pylist()).astype(np.int64)
    # Actions are numbered in the order of their labels' first rows.
    wanted = [f"a{k}" for k in range(untidy.n_actions)]
    if log.labels != wanted:
        log = _renumbered(log, [wanted.index(label) for label in log.labels])
    return log, rows.of[row]


def _write(folder: Path, traffic: Traffic, rows: Rows) -> None:
    stamp = traffic.untidy.stamp_s
    sold: dict[int, tuple[int, float]] = {}
    for of, when, value in zip(rows.conversion_of, rows.conversion_time, rows.conversion_value, strict=True):
        sold[int(of)] = (int(when) // stamp, float(value))
    with (folder / "log.csv").open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file)
        write.writerow(["row", "shown_at", "banner", "p", "sold_at", "value"])
        for i in range(len(rows.of)):
            when, value = sold.get(i, ("", ""))
            write.writerow(
                [i, int(rows.time[i]) // stamp, f"a{rows.action[i]}", float(rows.propensity[i]), when, value]
            )


def _spec(traffic: Traffic) -> str:
    untidy = traffic.untidy
    window = (
        "" if untidy.attribution_s is None else f"attribution_window = {-(-untidy.attribution_s // untidy.stamp_s)}\n"
    )
    return (
        'name = "untidy"\ntitle = "An untidy log"\nlicence = "none"\n[source]\nfiles = "log.csv"\n'
        f'[time]\nunit = "{_UNITS[untidy.stamp_s]}"\n'
        '[display]\ntime = "shown_at"\naction = "banner"\npropensity = "p"\n'
        f'[conversion]\ntime = "sold_at"\nvalue = "value"\n[log]\n{window}reward_max = 1.0\n'
    )


def _renumbered(log: Log, to: list[int]) -> Log:
    """Return the log with action i called to[i]."""
    action = np.array(to, np.int32)[log.column("action")]
    displays = log.displays.set_column(log.schema.get_field_index("action"), "action", pa.array(action))
    order = np.argsort(to)
    actions = log.actions.take(pa.array(order)).set_column(0, "action", pa.array(np.arange(len(to), dtype=np.int32)))
    return replace(log, displays=displays, actions=actions)
