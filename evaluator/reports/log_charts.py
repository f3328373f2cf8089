"""What a log showed as time went on."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from evaluator.log import Log
from evaluator.log.times import dated, time_words
from evaluator.reports.action_charts import colours_of
from evaluator.reports.delay_charts import Spec, drawable, finished

_PARTS = 30
_NAMED = 6
_OTHERS = "others"
_HEIGHT = 200
_DAY = 86_400.0
_MS = 1000.0


def log_chart(log: Log) -> Spec | None:
    """Return the displays of each action in each part of a log's time; None of a log without displays, or in no time.

    Cost: two passes over the times, or one and a scan for the last one (`Log.take`).
    """
    if not len(log):
        return None
    first, last = log.time_range()
    if first == last:
        return None
    parts = min(_PARTS, last - first)
    width = (last - first) / parts
    counts = np.zeros((parts, log.n_actions), np.int64)
    for _, batch in log.batches(["time", "action"]):
        part = np.minimum(((batch["time"] - first) / width).astype(np.int64), parts - 1)
        np.add.at(counts, (part, batch["action"]), 1)
    shown = np.flatnonzero(counts.sum(axis=0))
    # Those that matter at any time, not on average alone.
    order = shown[np.argsort(-counts[:, shown].max(axis=0), kind="stable")]
    named = order[:_NAMED] if len(order) > _NAMED + 1 else order
    labels = log.labels
    columns = {drawable(labels[i]): counts[:, i] for i in named}
    rest = np.setdiff1d(order, named)
    if len(rest):
        columns[_OTHERS] = counts[:, rest].sum(axis=1)
    at, axis, scale = _times(log, first, last, first + width * np.arange(parts + 1))
    ticks = log.meta.tick_seconds
    spans = [f"{time_words(first + width * i, ticks, start=first)}" for i in range(parts)]
    tops = np.cumsum(list(columns.values()), axis=0)
    values: list[dict[str, Any]] = [
        {"from": at[i], "to": at[i + 1], "low": int(top[i] - own[i]), "high": int(top[i]), "of": name,
         "told": f"{name}: {own[i]:,} displays from {spans[i]} on"}
        for (name, own), top in zip(columns.items(), tops, strict=True)
        for i in range(parts)
    ]  # fmt: skip
    of = alt.Color("of:N", title=None, sort=list(columns), legend=alt.Legend(orient="right", labelLimit=160),
                   scale=alt.Scale(domain=list(columns), range=colours_of(named, log.n_actions, others=len(rest) > 0)),
                   )  # fmt: skip
    kind = "from:T" if isinstance(scale.type, str) else "from:Q"
    chart = (
        alt.Chart(alt.InlineData(values))
        .mark_rect(strokeWidth=0)
        .encode(
            x=alt.X(kind, axis=axis, scale=scale),
            x2="to",
            y=alt.Y("low:Q", stack=None, axis=alt.Axis(title="displays")),
            y2="high:Q",
            color=of,
            description="told:N",
        )
    )
    return finished(chart, f"What {drawable(log.meta.name)} showed",
                    f"displays of each action, {parts} parts of its time", height=_HEIGHT)  # fmt: skip


def _times(log: Log, first: int, last: int, edges: Any) -> tuple[list[float], alt.Axis, alt.Scale]:
    """Return edges of parts of a log's time as a chart has them, with axis and scale: dates, days, or rounds."""
    ticks = log.meta.tick_seconds
    if ticks is None:
        return edges.tolist(), alt.Axis(title="round", format=",d"), alt.Scale(nice=False, zero=False)
    if dated(first, ticks) and dated(last, ticks):
        axis = alt.Axis(title="time of the display", format="%Y-%m-%d", labelOverlap=True, tickCount=6)
        return (_MS * ticks * edges).tolist(), axis, alt.Scale(type="utc", nice=False)
    days = (edges - first) * ticks / _DAY
    return days.tolist(), alt.Axis(title="days since the first display"), alt.Scale(nice=False)
