"""The conversions of a log as plain arrays of delays, read in one pass that keeps no displays."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import DataError
from evaluator.log.column import read_values
from evaluator.log.contract import Log
from evaluator.log.schema import WEIGHT, to_numpy
from evaluator.log.times import (
    DAY,
    TENTH,
    TENTHS,
    Periods,
    TrafficCount,
    has_days,
    part_of,
    stamp_of,
    tenths,
    ticks_a_day,
)
from evaluator.units import SECONDS, Tick

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DelayRows:
    """Delays of conversions, one row each, and how long each display was followed.

    Parameters
    ----------
    name, tick
        Name of the log or file, and unit of all times: ns, us, ms, s, min, h, d, or round.
    delay, limit
        Delay of each conversion, and the longest that could have been seen of it, in ticks, shape (n,), int64; no
        limits where nothing was cut off.
    group, by
        Group of each conversion, shape (n,), str, and name of what the groups are of; None and empty without groups.
    displays
        Number of displays; None where only conversions are known. Of a log with display weights, the displays of the
        traffic for which its conversions are all there are.
    rate
        Displays of the whole traffic per tick; nan where unknown.
    periods
        Displays and conversions period by period, for drift; None where the displays have no times.
    deduplicated, shared
        Number of conversion rows dropped for another of the same conversion; whether one conversion may be several
        rows.
    left_out
        Sentence on the rows that were left out, empty where none were.
    stamp
        Ticks of which all times are whole multiples: what the time stamps tell apart, in whatever unit they are
        written.
    """

    name: str
    tick: Tick
    delay: Ints
    limit: Ints | None
    group: npt.NDArray[Any] | None
    by: str
    displays: int | None = None
    rate: float = float("nan")
    periods: Periods | None = None
    deduplicated: int = 0
    shared: bool = False
    left_out: str = ""
    stamp: int = 1

    @property
    def tick_seconds(self) -> float | None:
        """Seconds in a tick; None for rounds."""
        return SECONDS.get(self.tick)


def delay_rows(log: Log, *, by: str | None = "action") -> DelayRows:
    """Return the delays of a log's conversions with the limits that the log's end and attribution window set.

    A conversion is seen if its delay is at most min(observed_until - shown_at, attribution_window). Groups are made by
    the ``action``, or by a column that the log keeps (``keep`` of `evaluator.datasets.load`), crossed or not; displays
    without a value are the group ``(missing)``. One pass over the times, and one over the column of the groups; memory
    grows with the conversions only.

    Raises DataError where the log has no conversions, or some got into it more likely than others, and ParameterError
    where it keeps no such column.

    >>> from evaluator import load
    >>> rows = delay_rows(load("synthetic", limit=1000))
    >>> rows.delay[:3], rows.limit, rows.displays
    (array([ 1, 49, 52]), None, 1000)
    """
    meta = log.meta
    display = to_numpy(log.conversions["display_id"]).astype(np.int64, copy=False)
    columns = read_values(log, [] if by is None else [by], display)
    if not len(display):
        raise DataError(f"Log {meta.name!r} has no conversions, so there are no delays.", remedy="check the spec.")
    shown_at = np.empty(len(display), np.int64)
    day = ticks_a_day(meta)
    by_day: dict[int, float] = {}
    edges = tenths(len(log))
    by_part: npt.NDArray[np.float64] = np.diff(edges).astype(np.float64)
    start = end = stamp = 0
    traffic, weighted = TrafficCount(log.schema), WEIGHT in log.schema.names
    span, weight_of = (0, len(log) - 1), np.ones(len(display))
    if weighted:
        by_part[:] = 0.0
    for first, batch in log.batches(list(dict.fromkeys(["time", *traffic.columns, *[WEIGHT] * weighted]))):
        time, weight = batch["time"], batch.get(WEIGHT)
        if traffic.columns:
            number = traffic.read(first, batch, len(time))
            span = (int(number[0]) if first == 0 else span[0]), int(number[-1])
        at = display[slice(*np.searchsorted(display, [first, first + len(time)]))] - first
        shown_at[np.searchsorted(display, first) :][: len(at)] = time[at]
        if weight is not None:
            weight_of[np.searchsorted(display, first) :][: len(at)] = weight[at]
            part = part_of(edges, np.arange(first, first + len(time)))
            by_part += np.bincount(part, weight, minlength=TENTHS)
        start, end = (int(time[0]) if first == 0 else start), int(time[-1])
        if stamp != 1:
            stamp = int(np.gcd.reduce(time - start, initial=stamp))
        if day is not None:
            days, counts = np.unique(time // day, return_counts=True)
            if weight is not None:
                counts = np.add.reduceat(weight, np.cumsum(counts) - counts)
            for one, count in zip(days.tolist(), counts.tolist(), strict=True):
                by_day[one] = by_day.get(one, 0) + count
    if weight_of.min() < weight_of.max():
        raise DataError(
            f"Log {meta.name!r} keeps conversions with display weights from {weight_of.min():.3g} to "
            f"{weight_of.max():.3g}: their delays are not those of the traffic.",
            remedy="study the delays of a log that keeps all conversions alike.",
        )
    per = float(weight_of[0])
    delay = to_numpy(log.conversions["time"]).astype(np.int64, copy=False) - shown_at
    limit = delay_limits(meta.observed_until, meta.attribution_window, shown_at)
    if day is not None and has_days(max(by_day) - min(by_day) + 1):
        origin = min(by_day)
        shown = np.zeros(max(by_day) - origin + 1, np.int64)
        for one, count in by_day.items():
            shown[one - origin] = round(count / per)
        periods = Periods(DAY, shown_at // day - origin, shown, day, origin)
    else:
        shown = np.rint(by_part / per).astype(np.int64)
        periods = Periods(TENTH, part_of(edges, display), shown)
    deduplicated = int(meta.counts.get("conversion_rows_deduplicated", 0))
    return DelayRows(
        name=meta.name,
        tick=meta.tick,
        delay=delay,
        limit=limit,
        group=np.array(columns[0].labels, object)[columns[0].code] if columns else None,
        by=columns[0].by if columns else "",
        displays=round(float(by_part.sum()) / per),
        rate=(span[1] - span[0]) / (end - start) / meta.sampling_rate if end > start else float("nan"),
        periods=periods,
        deduplicated=deduplicated,
        shared=not deduplicated and meta.counts.get("conversions_shared", 0) > 0,
        left_out=meta.left_out,
        stamp=stamp_of(delay, known=stamp),
    )


def delay_limits(until: int | None, window: int | None, shown_at: Ints) -> Ints | None:
    """Return the longest delay (ticks) that would have been seen of displays shown at these times, shape (n,).

    None where every display was followed to its end: nothing says until when, or for how long after a display.
    """
    if until is None:
        return None if window is None else np.full(len(shown_at), window, np.int64)
    return until - shown_at if window is None else np.minimum(until - shown_at, window)


def delays_hash(rows: DelayRows) -> str:
    """Return the SHA-256, in hex, of delays, limits and groups, and of what their time stamps tell apart.

    >>> import numpy as np
    >>> rows = DelayRows("file", "s", np.arange(3), None, None, "")
    >>> delays_hash(rows) == delays_hash(DelayRows("other", "s", np.arange(3), None, None, ""))
    True
    """
    digest = hashlib.sha256(f"{len(rows.delay)} {rows.stamp}".encode())
    for name, values in (("delay", rows.delay), ("limit", rows.limit)):
        digest.update(f"\n{name}: {values is not None}\n".encode())
        if values is not None:
            digest.update(np.ascontiguousarray(values, np.int64).data)
    digest.update(f"\ngroup: {rows.group is not None}\n".encode())
    if rows.group is not None:
        labels = pa.array(rows.group.astype(object, copy=False), pa.string()).dictionary_encode()
        digest.update(json.dumps(labels.dictionary.to_pylist()).encode())
        digest.update(np.ascontiguousarray(labels.indices.to_numpy(zero_copy_only=False), np.int32).data)
    return digest.hexdigest()
