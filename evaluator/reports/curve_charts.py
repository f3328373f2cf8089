"""Charts along the rounds or the time: values, regrets, the actions shown, and the shares that windows cut off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import numpy.typing as npt

from evaluator.comparisons.variants import checkpoints
from evaluator.errors import LogError
from evaluator.estimates.confidence import Interval
from evaluator.log import Log
from evaluator.log.times import dated, time_words
from evaluator.replays.plan import of_conversions
from evaluator.replays.result import ReplayResult
from evaluator.reports.chart_parts import (
    CORRECTED,
    GREY,
    LINES,
    MOST_LABELS,
    Frame,
    LineEnd,
    WindowMark,
    colours_of,
    delay_axis,
    drawable,
    drawn_names,
    finished,
    frame,
    label_layers,
    window_layers,
)
from evaluator.reports.document import Spec
from evaluator.reports.numbers import interval_text
from evaluator.units import ROUND, SECONDS

if TYPE_CHECKING:
    from evaluator.comparisons.result import Comparison
    from evaluator.simulations.result import Simulation

# Share of the rounds left out: means of so few rounds scatter and would stretch the axis.
_FIRST_SHARE = 0.05
_WIDTH, _HEIGHT = 640, 220
# Variants whose actions over time a page shows.
_MOST_SHOWN = 4
# Most marks with a tooltip: of a line, and of a chart.
_MARKS, _ALL_MARKS = 40, 400
# With more bands than these, bands hide each other.
_MOST_BANDS = 4
# Points of a curve of a simulation, which is smooth: a mean over runs.
_POINTS = 60
Row = dict[str, Any]
Floats = npt.NDArray[np.float64]
_WINDOW_HEIGHT = 200
# Windows more than this many times as long as the longest delay are left out of the chart.
_BEYOND = 3.0
_PARTS = 25
_NAMED = 6
_OTHERS = "others"
_AREA_HEIGHT = 180
_OF_LOG_PARTS = 30
_OF_LOG_HEIGHT = 200
_DAY = 86_400.0
_MS = 1000.0


def replay_chart(result: ReplayResult) -> Spec | None:
    """Return the mean reward of the rounds so far, a line a repeat, up to the realised value with its interval."""
    if not result.rounds:
        return None
    policy, logger = drawable(result.title), "logging policy"
    repeat, reward = (result.trajectory[name].to_numpy() for name in ("repeat", "reward"))
    values: list[Row] = []
    for r in np.unique(repeat):
        rewards = reward[repeat == r]
        at = checkpoints(len(rewards))
        at = at[at >= _FIRST_SHARE * len(rewards)]
        means = np.cumsum(rewards)[at - 1] / at
        values += [
            {"round": int(t), "mean": float(m), "repeat": int(r), "of": policy} for t, m in zip(at, means, strict=True)
        ]
    value, logged = result.value, result.logging_value.estimate
    ends = [
        LineEnd(f"{policy} {_number(value)}", result.rounds, value.estimate, CORRECTED),
        LineEnd(f"{logger} {_number(result.logging_value)}", result.rounds, logged, GREY),
    ]
    known = [row["mean"] for row in values] + [value.low, value.high, value.estimate, logged]
    longest = float(max(row["round"] for row in values))
    axes = frame((0.0, longest), known, [end.name for end in ends], width=_WIDTH, height=_HEIGHT)
    x = axes.axis_x("round:Q", title="round", format=",d", tickCount=8)
    y = axes.axis_y("mean:Q", title="mean reward of the rounds so far")
    lines = alt.Chart(alt.InlineData(values)).mark_line(strokeWidth=1.5, color=CORRECTED)
    level = alt.Chart(alt.InlineData([{"mean": logged}])).mark_rule(color=GREY, strokeDash=[4, 3])
    end = {"round": result.rounds, "low": value.low, "high": value.high}
    interval = alt.Chart(alt.InlineData([end])).mark_rule(color=CORRECTED, strokeWidth=3, opacity=0.5)
    layers = [
        level.encode(y=y),
        *([interval.encode(x=x, y=axes.axis_y("low:Q"), y2="high:Q")] if np.isfinite(value.low) else []),
        lines.encode(x=x, y=y, detail="repeat:N"),
        _mark_points(values, "mean", axes),
        *label_layers(ends, axes),
    ]
    return finished(
        alt.layer(*layers),
        "Mean reward per round",
        f"at the end the realised value with its {value.level:.0%} interval",
        height=axes.height,
        width=axes.width,
    )


def comparison_chart(comparison: Comparison) -> Spec | None:
    """Return the regret of every variant, with bands that hold at all rounds at once where the variants are few.

    None where no regret is known.
    """
    lived = [i for i, curve in enumerate(comparison.curves) if len(curve.rounds)]
    names = drawn_names(comparison.results)
    values = [
        {"round": int(t), "regret": float(regret), "low": _known(low), "high": _known(high), "of": names[i]}
        for i in lived
        for t, regret, low, high in zip(
            comparison.curves[i].rounds, *vars(comparison.curves[i].regret).values(), strict=True
        )
        if np.isfinite(regret)
    ]
    if not values:
        return None
    level = comparison.results[0].value.level
    bands = len(lived) <= _MOST_BANDS
    subtitle = f"with {level:.0%} bands that hold at all rounds at once" if bands else ""
    return _curves(values, [names[i] for i in lived], "Regret against the best fixed action", subtitle, bands=bands)


def simulation_chart(simulation: Simulation) -> Spec:
    """Return the regret of every policy, with its lower bound, with bands of one standard error for few policies."""
    regrets = [(curve.regret, curve.regret_se) for curve in simulation.curves]
    return _simulated(simulation, regrets, simulation.lower_bound, "Regret", "conversions that come sooner or later")


def observed_chart(simulation: Simulation) -> Spec:
    """Return the regret observed within the window by each round, drawn as in `simulation_chart`."""
    regrets = [(curve.observed, curve.observed_se) for curve in simulation.curves]
    return _simulated(
        simulation, regrets, simulation.observed_lower_bound, "Regret observed so far", "those within the window"
    )


def _simulated(
    simulation: Simulation, regrets: Sequence[tuple[Floats, Floats]], bound: Floats | None, title: str, what: str
) -> Spec:
    names = [drawable(curve.policy) for curve in simulation.curves]
    some = np.unique(np.linspace(0, len(simulation.rounds) - 1, min(_POINTS, len(simulation.rounds))).astype(np.int64))
    at = simulation.rounds[some]
    values = [
        {"round": int(t), "regret": float(mean), "low": float(mean - se), "high": float(mean + se), "of": name}
        for name, (regret, error) in zip(names, regrets, strict=True)
        for t, mean, se in zip(at, regret[some], np.nan_to_num(error)[some], strict=True)
    ]
    pairs = [] if bound is None else zip(at, bound[some], strict=True)
    floor = [{"round": int(t), "regret": float(b)} for t, b in pairs]
    subtitle = f"{what}; mean over the runs, with one standard error"
    return _curves(values, names, title, subtitle, bands=len(names) <= _MOST_BANDS, bound=floor)


def _curves(
    values: Sequence[Row], names: Sequence[str], title: str, subtitle: str, *, bands: bool, bound: Sequence[Row] = ()
) -> Spec:
    """Return the curves of regret along the rounds, one for each name, and their lower bound."""
    colours = {name: LINES[i % len(LINES)] for i, name in enumerate(names)}
    labelled = len(names) <= MOST_LABELS
    last = {row["of"]: row for row in values}
    ends = [LineEnd(name, row["round"], row["regret"], colours[name]) for name, row in last.items()]
    if bound:
        ends.append(LineEnd("lower bound", bound[-1]["round"], bound[-1]["regret"], GREY))
    ys = [row[end] for row in values for end in ("regret", *(("low", "high") if bands else ())) if row[end] is not None]
    rounds = [row["round"] for row in values]
    written = [end.name for end in ends] if labelled else [""]
    axes = frame(
        (float(min(rounds)), float(max(rounds))), ys + [row["regret"] for row in bound], written,
        width=_WIDTH, height=_HEIGHT,
    )  # fmt: skip
    legend = alt.Legend(orient="top", symbolType="stroke", symbolOpacity=1, labelLimit=0, columns=2)
    colour = alt.Color("of:N", title=None, sort=names, legend=None if labelled else legend,
                       scale=alt.Scale(domain=list(colours), range=list(colours.values())))  # fmt: skip
    base = alt.Chart(alt.InlineData(values)).encode(
        x=axes.axis_x("round:Q", title="round", format=",d", tickCount=8), color=colour
    )
    layers = [base.mark_area(opacity=0.15).encode(y=axes.axis_y("low:Q"), y2="high:Q")] if bands else []
    layers.append(base.mark_line(strokeWidth=1.5).encode(y=axes.axis_y("regret:Q", title="regret")))
    if bound:
        line = alt.Chart(alt.InlineData(bound)).mark_line(color=GREY, strokeDash=[4, 3])
        layers.append(line.encode(x=axes.axis_x("round:Q"), y=axes.axis_y("regret:Q")))
    layers += [_mark_points(values, "regret", axes), *(label_layers(ends, axes) if labelled else [])]
    return finished(alt.layer(*layers), title, subtitle, height=axes.height, width=axes.width)


def _number(interval: Interval) -> str:
    """Return an estimate in as many digits as its interval supports; an empty text where the estimate is not known."""
    if not np.isfinite(interval.estimate):
        return ""
    return interval_text(interval.estimate, interval.low, interval.high, sign=False).partition(" ")[0]


def _mark_points(values: Sequence[Row], name: str, axes: Frame) -> Any:
    """Return invisible marks, a few on each line, whose tooltips show the numbers."""
    lines: dict[tuple[str, int], list[Row]] = {}
    for row in values:
        lines.setdefault((row["of"], row.get("repeat", 0)), []).append(row)
    most = max(2, min(_MARKS, _ALL_MARKS // max(len(lines), 1)))
    few = [
        {"round": line[i]["round"], name: line[i][name], "told": _told(line[i], name)}
        for line in lines.values()
        for i in np.unique(np.linspace(0, len(line) - 1, min(most, len(line))).astype(np.int64))
    ]
    marks = alt.Chart(alt.InlineData(few)).mark_point(filled=True, size=160, opacity=0)
    return marks.encode(x=axes.axis_x("round:Q"), y=axes.axis_y(f"{name}:Q"), description="told:N")


def _told(row: Row, name: str) -> str:
    ends = "" if row.get("low") is None else f" [{row['low']:.4g}, {row['high']:.4g}]"
    return f"{row['of']}, round {row['round']:,}: {name} {row[name]:.4g}{ends}"


def _known(end: float) -> float | None:
    """Return an end of a band for JSON; None, where the end is not known, leaves a gap in the band."""
    return float(end) if np.isfinite(end) else None


def window_chart(results: Sequence[ReplayResult]) -> Spec | None:
    """Return the delay CDF of the log with the windows of its replays; None without windows or delays.

    The chart shows the windows in the unit of the first one, because each replay knows the CDF in its own unit only.
    """
    plans = [result.plan for result in results if result.plan["window_rounds"] is not None]
    if not plans:
        return None
    plan = plans[0]
    in_time = plan["window_ticks"] is not None
    steps = [(delay, share) for delay, share in plan["delay_steps"] if delay > 0]
    if not steps:
        return None
    seconds = SECONDS[plan["tick"]] if in_time and plan["tick"] != ROUND else None
    scale = seconds or 1.0
    marks = dict.fromkeys(
        WindowMark(other["window_ticks" if in_time else "window_rounds"] * scale, other["tau_window"], _name(other))
        for other in plans
        if (other["window_ticks"] is not None) == in_time and other["delay_steps"] == plan["delay_steps"]
    )
    first, last = steps[0][0] * scale, steps[-1][0] * scale
    drawn = [mark for mark in marks if mark.at <= _BEYOND * last]
    low = min([first, *(mark.at / 1.5 for mark in drawn)])
    high = max([last, *(mark.at for mark in drawn)])
    at_zero = next((share for delay, share in plan["delay_steps"] if delay == 0), 0.0)
    points = [
        *([(low, at_zero)] if low < first else []),
        *((delay * scale, share) for delay, share in steps),
        (high, steps[-1][1]),
    ]
    values: list[Row] = [{"delay": delay, "share": share} for delay, share in points]
    share = alt.Y("share:Q", stack=None, axis=alt.Axis(format="%", title="share of conversions come"),
                  scale=alt.Scale(domain=[0, 1]))  # fmt: skip
    line = alt.Chart(alt.InlineData(values)).encode(x=delay_axis(seconds, values, high), y=share)
    windows, width = window_layers(drawn, low, high, plan["conversions"], height=_WINDOW_HEIGHT)
    layers = [
        line.mark_area(color=CORRECTED, interpolate="step-after", opacity=0.15),
        line.mark_line(color=CORRECTED, interpolate="step-after"),
        *windows,
    ]
    subtitle = [f"shares {of_conversions(plan['followed'])}"] if plan["followed"] else []
    if at_zero >= 5e-4:
        subtitle.append(f"{at_zero:.1%} come at once, left of the axis")
    subtitle += [f"{mark.name} lies beyond the longest delay" for mark in marks if mark not in drawn]
    return finished(alt.layer(*layers), "Conversions come by a delay, and what the window cuts off", subtitle,
                    height=_WINDOW_HEIGHT, width=width)  # fmt: skip


def _name(plan: dict[str, Any]) -> str:
    return (
        f"window {plan['window'].partition(', ')[0]}"
        if plan["window_ticks"]
        else f"window {plan['window_rounds']:,} rounds"
    )


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
                    height=_AREA_HEIGHT)  # fmt: skip


def action_charts(comparison: Comparison) -> dict[str, Spec]:
    """Return the shares of the actions of the first variants, by the names of their charts."""
    drawn = zip(comparison.results, drawn_names(comparison.results), strict=True)
    charts = {f"actions {i}": action_chart(*of) for i, of in enumerate(islice(drawn, _MOST_SHOWN), start=1)}
    return {name: chart for name, chart in charts.items() if chart is not None}


def log_chart(log: Log) -> Spec | None:
    """Return the displays of each action in each part of a log's time; None if the log spans no time.

    Cost: two passes over the times, or one and a scan for the last one (`Log.take`).
    """
    try:
        log.checked()
    except LogError:
        return None
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
