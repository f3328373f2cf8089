"""The charts of every result, by name, as Vega-Lite specifications with their data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluator.audits.result import Audit
from evaluator.comparisons.result import Comparison
from evaluator.delays.study.result import DelayStudy
from evaluator.errors import LogError, UnknownNameError, nearest
from evaluator.log import Log
from evaluator.replays.result import ReplayResult
from evaluator.report.chapter import Spec
from evaluator.simulations.result import Simulation

if TYPE_CHECKING:
    import altair as alt

# Variants of which a page shows what they did as time went on.
_MOST_SHOWN = 4
# What no chart has that stands beside others: Altair refuses to join those that have it.
_OF_A_WHOLE = frozenset({"$schema", "config", "datasets"})


def charts_of(result: object) -> dict[str, Spec]:
    """Return the charts of a result or a log, the most telling one first; none of what has no chart."""
    return {name: chart for name, chart in _charts(result).items() if chart is not None}


def _charts(result: object) -> Mapping[str, Spec | None]:
    match result:
        case ReplayResult():
            from evaluator.report.acceptance_charts import acceptance_chart
            from evaluator.report.action_charts import action_chart
            from evaluator.report.curve_charts import replay_chart
            from evaluator.report.guardrail_charts import guardrail_chart
            from evaluator.report.interval_charts import group_charts
            from evaluator.report.window_charts import window_chart

            return {
                "replay": replay_chart(result) if result.rounds else None,
                "guardrails": guardrail_chart([result]),
                "actions": action_chart(result),
                "window": window_chart([result]),
                **group_charts(result),
                "acceptance": acceptance_chart([result]),
            }
        case Comparison():
            from evaluator.report.acceptance_charts import acceptance_chart
            from evaluator.report.action_charts import action_chart
            from evaluator.report.curve_charts import comparison_chart
            from evaluator.report.guardrail_charts import guardrail_chart
            from evaluator.report.interval_charts import difference_chart, line_name, segment_charts
            from evaluator.report.window_charts import window_chart

            first = enumerate(result.results[:_MOST_SHOWN])
            return {
                "comparison": comparison_chart(result),
                "differences": difference_chart(result),
                "windows": window_chart(result.results),
                "acceptance": acceptance_chart(result.results),
                "guardrails": guardrail_chart(result.results),
                **segment_charts(result),
                **{f"actions {i + 1}": action_chart(replay, line_name(replay, i)) for i, replay in first},
            }
        case Audit():
            from evaluator.report.curve_charts import audit_chart, detectable_chart

            return {"audit": audit_chart(result), "detectable": detectable_chart(result)}
        case Simulation():
            from evaluator.report.curve_charts import observed_chart, simulation_chart

            return {"simulation": simulation_chart(result), "observed": observed_chart(result)}
        case DelayStudy():
            from evaluator.report.study_charts import charts_of as study_charts

            return study_charts(result)
        case Log():
            from evaluator.report.log_charts import log_chart

            try:
                result.checked()
            except LogError:
                return {}
            return {"log": log_chart(result)}
    return {}


def chart_of(result: object, name: str | None) -> alt.Chart:
    """Return a chart of a result by its name, the most telling one for None.

    Raises
    ------
    UnknownNameError
        There is no such chart.
    """
    import altair as alt

    charts = charts_of(result)
    wanted = next(iter(charts), "") if name is None else name
    if wanted not in charts:
        of = f"This {type(result).__name__}"
        if not charts:
            raise UnknownNameError(f"{of} has no chart.", hint="its tables say all that it holds.")
        raise UnknownNameError(f"{of} has no chart {wanted!r}.", hint=nearest(wanted, charts))
    spec = charts[wanted]
    parts = {
        part: _with_data(value, spec.get("datasets", {})) for part, value in spec.items() if part not in _OF_A_WHOLE
    }
    found: alt.Chart = alt.Chart.from_dict(parts)
    return found


def _with_data(part: Any, data: Mapping[str, Any]) -> Any:
    """Return a part of a chart whose data stand in it instead of having a name, without what only pages point at."""
    if isinstance(part, list):
        return [_with_data(one, data) for one in part if not _is_unseen(one)]
    if not isinstance(part, dict):
        return part
    if set(part) == {"name"} and part["name"] in data:
        return {"values": data[part["name"]]}
    return {name: _with_data(value, data) for name, value in part.items()}


def _is_unseen(part: Any) -> bool:
    """Whether a part of a chart is marks that nobody sees."""
    mark = part.get("mark") if isinstance(part, dict) else None
    return isinstance(mark, dict) and mark.get("opacity") == 0
