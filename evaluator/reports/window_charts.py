"""How late the conversions of a replayed log come, and what the window cuts off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from evaluator.replays.conversion_share import of_conversions
from evaluator.replays.result import ReplayResult
from evaluator.reports.chart_parts import WindowMark, window_layers
from evaluator.reports.delay_charts import CORRECTED, Spec, delay_axis, finished
from evaluator.units import ROUND, SECONDS

_HEIGHT = 200
# A window so many times as long as the longest delay lies off the axis.
_BEYOND = 3.0
Row = dict[str, Any]


def window_chart(results: Sequence[ReplayResult]) -> Spec | None:
    """Return the delay CDF of the log with the windows of its replays; None where none has one, or nothing is late.

    Windows of one unit are drawn, that of the first; each replay knows the CDF in the unit of its window.
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
        WindowMark(of["window_ticks" if in_time else "window_rounds"] * scale, of["tau_window"], _name(of))
        for of in plans
        if (of["window_ticks"] is not None) == in_time and of["delay_steps"] == plan["delay_steps"]
    )
    first, last = steps[0][0] * scale, steps[-1][0] * scale
    shown = [mark for mark in marks if mark.at <= _BEYOND * last]
    low = min([first, *(mark.at / 1.5 for mark in shown)])
    high = max([last, *(mark.at for mark in shown)])
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
    windows, width = window_layers(shown, low, high, plan["conversions"], height=_HEIGHT)
    layers = [
        line.mark_area(color=CORRECTED, interpolate="step-after", opacity=0.15),
        line.mark_line(color=CORRECTED, interpolate="step-after"),
        *windows,
    ]
    said = [f"shares {of_conversions(plan['followed'])}"] if plan["followed"] else []
    if at_zero >= 5e-4:
        said.append(f"{at_zero:.1%} come at once, left of the axis")
    said += [f"{mark.name} lies beyond the longest delay" for mark in marks if mark not in shown]
    return finished(alt.layer(*layers), "Conversions come by a delay, and what the window cuts off", said,
                    height=_HEIGHT, width=width)  # fmt: skip


def _name(plan: dict[str, Any]) -> str:
    return (
        f"window {plan['window'].partition(', ')[0]}"
        if plan["window_ticks"]
        else f"window {plan['window_rounds']:,} rounds"
    )
