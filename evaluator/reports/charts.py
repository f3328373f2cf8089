"""The charts of every result, by name, as Vega-Lite specifications with their data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from evaluator.errors import UnknownNameError, nearest
from evaluator.reports.document import Spec

if TYPE_CHECKING:
    import altair as alt

# Small pictures of pages, which no file holds.
SMALL = frozenset({"arrival", "change"})
# Parts that only a whole chart has: Altair refuses to join charts that have them.
_OF_A_WHOLE = frozenset({"$schema", "config", "datasets"})
# The module and the function that draw the charts of each kind of result, the most telling one first. Modules are
# imported when a chart is drawn. A function without a name draws several charts, each with its own.
_CHARTS: dict[str, list[tuple[str, str]]] = {
    "ReplayResult": [
        ("replay", "curve_charts.replay_chart"),
        ("guardrails", "interval_charts.guardrail_chart"),
        ("actions", "curve_charts.action_chart"),
        ("window", "curve_charts.window_chart"),
        ("", "interval_charts.group_charts"),
        ("acceptance", "interval_charts.acceptance_chart"),
        ("earned", "answer_charts.earned_chart"),
        ("seen", "answer_charts.learned_chart"),
        ("gainers", "answer_charts.uplifts_chart"),
    ],
    "Comparison": [
        ("comparison", "curve_charts.comparison_chart"),
        ("differences", "interval_charts.difference_chart"),
        ("windows", "curve_charts.window_chart"),
        ("acceptance", "interval_charts.acceptance_chart"),
        ("guardrails", "interval_charts.guardrail_chart"),
        ("", "interval_charts.segment_charts"),
        ("", "curve_charts.action_charts"),
        ("decision", "small_charts.decision_chart"),
        ("gainers", "small_charts.gainers_chart"),
        ("gain", "small_charts.gain_chart"),
        ("seen", "small_charts.seen_chart"),
    ],
    "Audit": [
        ("audit", "interval_charts.audit_chart"),
        ("detectable", "interval_charts.detectable_chart"),
        ("bias", "answer_charts.bias_chart"),
        ("told", "answer_charts.told_chart"),
    ],
    "CheckReport": [("left", "answer_charts.left_chart"), ("tests", "answer_charts.tests_chart")],
    "Simulation": [("simulation", "curve_charts.simulation_chart"), ("observed", "curve_charts.observed_chart")],
    "DelayStudy": [
        ("cdf", "delay_charts.cdf_chart"),
        ("density", "delay_charts.density_chart"),
        ("groups", "delay_charts.groups_chart"),
        ("arrival", "answer_charts.arrival_chart"),
        ("rates", "delay_charts.rates_chart"),
        ("calibration", "delay_charts.calibration_chart"),
        ("change", "answer_charts.change_chart"),
    ],
    "Log": [("log", "curve_charts.log_chart")],
    "dict": [("shown", "answer_charts.shown_chart")],
}
# Charts of all replays of a result; and charts that there are not if all delays are 0.
_OF_REPLAYS = ("guardrails", "window", "windows", "acceptance")
_OF_DELAYS = ("cdf", "density", "groups", "arrival")


def charts_of(result: object) -> dict[str, Spec]:
    """Return the charts of a result or a log, the most telling one first; an empty dict for a result without charts."""
    return dict(_drawn(result))


def first_chart(result: object) -> dict[str, Spec]:
    """Return the most telling chart alone, by its name, where there is one."""
    return dict(islice(_drawn(result), 1))


def _drawn(result: Any) -> Iterator[tuple[str, Spec]]:
    """Yield each chart of a result that has something to draw, with its name."""
    kind = next((kind.__name__ for kind in type(result).__mro__ if kind.__name__ in _CHARTS), "")
    for name, where in _CHARTS.get(kind, ()):
        if kind == "DelayStudy" and name in _OF_DELAYS and not result.drawable:
            continue
        module, _, function = where.partition(".")
        draw = getattr(import_module(f"evaluator.reports.{module}"), function)
        found = draw(getattr(result, "results", [result]) if name in _OF_REPLAYS else result)
        if not name:
            yield from found.items()
        elif found is not None:
            yield name, found


def chart_of(result: object, name: str | None) -> alt.Chart:
    """Return a chart of a result by its name, the most telling one for None; UnknownNameError if there is none."""
    import altair as alt

    charts = charts_of(result)
    wanted = next(iter(charts), "") if name is None else name
    if wanted not in charts:
        subject = f"This {type(result).__name__}"
        if not charts:
            raise UnknownNameError(f"{subject} has no chart.", remedy="its tables say all that it holds.")
        raise UnknownNameError(f"{subject} has no chart {wanted!r}.", remedy=nearest(wanted, charts))
    spec = charts[wanted]
    parts = {
        part: _inline_data(value, spec.get("datasets", {})) for part, value in spec.items() if part not in _OF_A_WHOLE
    }
    chart: alt.Chart = alt.Chart.from_dict(parts)
    return chart


def _inline_data(part: Any, data: Mapping[str, Any]) -> Any:
    """Return a part of a chart with its data inline instead of named, without the invisible marks for tooltips."""
    if isinstance(part, list):
        return [_inline_data(one, data) for one in part if not _is_unseen(one)]
    if not isinstance(part, dict):
        return part
    if set(part) == {"name"} and part["name"] in data:
        return {"values": data[part["name"]]}
    return {name: _inline_data(value, data) for name, value in part.items()}


def _is_unseen(part: Any) -> bool:
    """Whether a part of a chart holds invisible marks."""
    mark = part.get("mark") if isinstance(part, dict) else None
    return isinstance(mark, dict) and mark.get("opacity") == 0
