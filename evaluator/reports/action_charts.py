"""Charts of actions over time: those that a policy showed, the displays that a replay accepted, and those of a log."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import numpy as np

from evaluator.log import Log
from evaluator.log.times import dated, time_words
from evaluator.replays.result import ReplayResult
from evaluator.reports.chart_parts import CORRECTED, GREY, NAIVE, colours_of, drawable, drawn_names, finished
from evaluator.reports.document import Spec

_PARTS = 25
_NAMED = 6
_OTHERS = "others"
_HEIGHT = 180
_WIDTH, _ROW, _MOST = 460, 24, 24
Row = dict[str, Any]
_OF_LOG_PARTS = 30
_OF_LOG_HEIGHT = 200
_DAY = 86_400.0
_MS = 1000.0


def action_chart(result: ReplayResult, name: str = "") -> Spec | None:
    """Return the share of each action in each part of the rounds; None for too few rounds or a single action.

    It is of the policy of the result, unless a name is given.
    """
    played = np.flatnonzero(np.asarray(result.action_share) > 0)
    if result.rounds < _PARTS or len(played) < 2:
        return None
    action, number = (result.trajectory[name].to_numpy() for name in ("action", "round"))
    edges = np.linspace(0, int(number.max()), _PARTS + 1)
    part = np.clip(np.searchsorted(edges, number, side="left") - 1, 0, _PARTS - 1)
    counts = np.zeros((_PARTS, len(result.action_labels)))
    np.add.at(counts, (part, action), 1.0)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    ends = edges.tolist()
    rows, colour = _stacked(
        shares, played, list(map(str, result.action_labels)), ends,
        lambda share, i: f"{share:.1%} of rounds {edges[i] + 1:,.0f} to {edges[i + 1]:,.0f}",
    )  # fmt: skip
    x = alt.X("from:Q", axis=alt.Axis(title="round", format=",d"), scale=alt.Scale(nice=False))
    y = alt.Y("low:Q", stack=None, axis=alt.Axis(title="share of rounds", format="%"), scale=alt.Scale(domain=[0, 1]))
    chart = _areas(rows).encode(x=x, x2="to:Q", y=y, y2="high:Q", color=colour, description="told:N")
    who = name or drawable(result.title)
    return finished(chart, f"What {who} showed", "share of each action in each twenty-fifth of the rounds",
                    height=_HEIGHT)  # fmt: skip


def _stacked(
    shares: Any, present: Any, labels: Sequence[str], edges: Sequence[float], say: Callable[[Any, int], str]
) -> tuple[list[Row], alt.Color]:
    """Return the area of each action in each part of a time, and their colours; all but the largest are one area.

    Sizes of the areas have shape (parts, K); `say` returns words on an area, from its size and the number of its part.
    """
    # Actions with the largest share at any time, not only on average.
    order = present[np.argsort(-shares[:, present].max(axis=0), kind="stable")]
    named = order[:_NAMED] if len(order) > _NAMED + 1 else order
    columns = {drawable(labels[i]): shares[:, i] for i in named}
    rest = np.setdiff1d(order, named)
    if len(rest):
        columns[_OTHERS] = shares[:, rest].sum(axis=1)
    tops = np.cumsum(list(columns.values()), axis=0)
    rows: list[Row] = [
        {"from": edges[i], "to": edges[i + 1], "low": (top[i] - size[i]).item(), "high": top[i].item(), "of": name,
         "told": f"{name}: {say(size[i], i)}"}
        for (name, size), top in zip(columns.items(), tops, strict=True)
        for i in range(len(shares))
    ]  # fmt: skip
    scale = alt.Scale(domain=list(columns), range=colours_of(named, labels, others=len(rest) > 0))
    legend = alt.Legend(orient="right", labelLimit=160)
    return rows, alt.Color("of:N", title=None, sort=list(columns), scale=scale, legend=legend)


def _areas(rows: Sequence[Row]) -> Any:
    return alt.Chart(alt.InlineData(rows)).mark_rect(strokeWidth=0)


def acceptance_chart(results: Sequence[ReplayResult]) -> Spec | None:
    """Return displays read and accepted, and effective sample size, of each line; None for no or too many lines.

    For a single replay, the chart also shows the displays that value its final policy, and their effective sample size.
    """
    rows = [
        _row(name if len(results) > 1 else "rounds", result)
        for name, result in zip(drawn_names(results), results, strict=True)
        if result.rounds
    ]
    if not 0 < len(rows) <= _MOST:
        return None
    final = results[0].final
    if len(results) == 1 and final is not None:
        worth, n = final.weights.effective_sample_size, final.weights.n
        label = f"{n:,} weighed, worth {worth:,.0f}"
        told = (
            f"final policy: valued on {n:,} displays, which its weights leave an effective sample size of {worth:,.0f}"
        )
        rows.append({"of": "final policy", "read": n, "accepted": 0, "worth": worth, "said": label, "told": told})
    x = alt.X("read:Q", axis=alt.Axis(title="displays", format=",d", tickCount=5), scale=alt.Scale(zero=True))
    y = alt.Y("of:N", sort=[row["of"] for row in rows], axis=alt.Axis(title=None, labelLimit=0))
    base = alt.Chart(alt.InlineData(rows)).encode(y=y)
    chart = alt.layer(
        base.mark_bar(color=GREY, opacity=0.45, height=14).encode(x=x, description="told:N"),
        base.mark_bar(color=CORRECTED, height=14).encode(x="accepted:Q"),
        base.mark_point(color=NAIVE, shape="diamond", filled=True, size=90, opacity=1).encode(x="worth:Q"),
        base.mark_text(align="left", fontSize=11).encode(x=alt.value(_WIDTH + 8), text="said:N"),
    )
    subtitle = "grey: displays read; blue: accepted, a round each; diamond: effective sample size"
    return finished(chart, "What the numbers rest on", subtitle, height=_ROW * len(rows), width=_WIDTH)


def _row(name: str, result: ReplayResult) -> Row:
    """Return the displays of a line, as the mean over its repeats."""
    accepted = result.trajectory.num_rows / int(result.plan["options"]["repeats"])
    read = accepted / result.acceptance_rate
    worth = result.effective_sample_size
    label = f"{accepted:,.0f} of {read:,.0f} ({result.acceptance_rate:.1%}), worth {worth:,.0f}"
    expected = (
        "" if math.isnan(result.acceptance_expected) else f"; {result.acceptance_expected:.1%} were to be expected"
    )
    told = (
        f"{name}: {accepted:,.0f} of {read:,.0f} displays read were accepted ({result.acceptance_rate:.1%}){expected}"
    )
    return {"of": name, "read": read, "accepted": accepted, "worth": worth, "said": label, "told": told}


def log_chart(log: Log) -> Spec | None:
    """Return the displays of each action in each part of a log's time; None if the log spans no time.

    Cost: two passes over the times, or one and a scan for the last one (`Log.take`).
    """
    if not len(log):
        return None
    first, last = log.time_range()
    if first == last:
        return None
    parts = min(_OF_LOG_PARTS, last - first)
    width = (last - first) / parts
    counts = np.zeros((parts, log.n_actions), np.int64)
    for _, batch in log.batches(["time", "action"]):
        part = np.minimum(((batch["time"] - first) / width).astype(np.int64), parts - 1)
        np.add.at(counts, (part, batch["action"]), 1)
    logged = np.flatnonzero(counts.sum(axis=0))
    at, axis, scale = _times(log, first, last, first + width * np.arange(parts + 1))
    ticks = log.meta.tick_seconds
    spans = [f"{time_words(first + width * i, ticks, start=first)}" for i in range(parts)]
    rows, colour = _stacked(
        counts, logged, list(map(str, log.labels)), at, lambda displays, i: f"{displays:,} displays from {spans[i]} on"
    )
    kind = "from:T" if isinstance(scale.type, str) else "from:Q"
    chart = _areas(rows).encode(
        x=alt.X(kind, axis=axis, scale=scale),
        x2="to",
        y=alt.Y("low:Q", stack=None, axis=alt.Axis(title="displays")),
        y2="high:Q",
        color=colour,
        description="told:N",
    )
    return finished(chart, f"What {drawable(log.meta.name)} showed",
                    f"displays of each action, {parts} parts of its time", height=_OF_LOG_HEIGHT)  # fmt: skip


def _times(log: Log, first: int, last: int, edges: Any) -> tuple[list[float], alt.Axis, alt.Scale]:
    """Return the edges of the parts of a log's time as dates, days or rounds, with axis and scale."""
    ticks = log.meta.tick_seconds
    if ticks is None:
        return edges.tolist(), alt.Axis(title="round", format=",d"), alt.Scale(nice=False, zero=False)
    if dated(first, ticks) and dated(last, ticks):
        axis = alt.Axis(title="time of the display", format="%Y-%m-%d", labelOverlap=True, tickCount=6)
        return (_MS * ticks * edges).tolist(), axis, alt.Scale(type="utc", nice=False)
    days = (edges - first) * ticks / _DAY
    return days.tolist(), alt.Axis(title="days since the first display"), alt.Scale(nice=False)
