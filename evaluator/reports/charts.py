"""The charts of every result, by name, as Vega-Lite specifications with their data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from evaluator.audits.result import Audit
from evaluator.checks.run import CheckReport
from evaluator.comparisons.result import Comparison
from evaluator.delays.study.result import DelayStudy
from evaluator.errors import LogError, UnknownNameError, nearest
from evaluator.log import Log
from evaluator.replays.result import ReplayResult
from evaluator.reports.document import Spec
from evaluator.simulations.result import Simulation

if TYPE_CHECKING:
    import altair as alt

# Variants whose actions over time a page shows.
_MOST_SHOWN = 4
# Small pictures of pages, which no file holds.
SMALL = frozenset({"arrival", "change"})
# Parts that only a whole chart has: Altair refuses to join charts that have them.
_OF_A_WHOLE = frozenset({"$schema", "config", "datasets"})
# Draws a chart; None where there is nothing to draw.
Draw = Callable[[], Spec | None]


def charts_of(result: object) -> dict[str, Spec]:
    """Return the charts of a result or a log, the most telling one first; an empty dict for a result without charts."""
    return {name: chart for name, draw in _charts(result).items() if (chart := draw()) is not None}


def first_chart(result: object) -> dict[str, Spec]:
    """Return the most telling chart alone, by its name, where there is one."""
    drawn = ((name, draw()) for name, draw in _charts(result).items())
    return next(({name: chart} for name, chart in drawn if chart is not None), {})


def _charts(result: object) -> Mapping[str, Draw]:
    match result:
        case ReplayResult():
            from evaluator.reports.answer_charts import earned_chart, learned_chart, uplifts_chart
            from evaluator.reports.curve_charts import action_chart, replay_chart, window_chart
            from evaluator.reports.interval_charts import acceptance_chart, group_charts, guardrail_chart

            return {
                "replay": lambda: replay_chart(result) if result.rounds else None,
                "guardrails": lambda: guardrail_chart([result]),
                "actions": lambda: action_chart(result),
                "window": lambda: window_chart([result]),
                **{name: partial(dict, chart) for name, chart in group_charts(result).items()},
                "acceptance": lambda: acceptance_chart([result]),
                "earned": lambda: earned_chart(result) if result.rounds else None,
                "seen": lambda: learned_chart(result),
                "gainers": lambda: uplifts_chart(result),
            }
        case Comparison():
            from evaluator.reports.chart_parts import drawn_names
            from evaluator.reports.curve_charts import action_chart, comparison_chart, window_chart
            from evaluator.reports.interval_charts import (
                acceptance_chart,
                difference_chart,
                guardrail_chart,
                segment_charts,
            )
            from evaluator.reports.small_charts import decision_chart, gain_chart, gainers_chart, seen_chart

            first = list(zip(result.results, drawn_names(result.results), strict=True))[:_MOST_SHOWN]
            return {
                "comparison": lambda: comparison_chart(result),
                "differences": lambda: difference_chart(result),
                "windows": lambda: window_chart(result.results),
                "acceptance": lambda: acceptance_chart(result.results),
                "guardrails": lambda: guardrail_chart(result.results),
                **{name: partial(dict, chart) for name, chart in segment_charts(result).items()},
                **{f"actions {i}": partial(action_chart, *of) for i, of in enumerate(first, start=1)},
                "decision": lambda: decision_chart(result),
                "gainers": lambda: gainers_chart(result),
                "gain": lambda: gain_chart(result),
                "seen": lambda: seen_chart(result),
            }
        case Audit():
            from evaluator.reports.answer_charts import bias_chart, told_chart
            from evaluator.reports.interval_charts import audit_chart, detectable_chart

            return {
                "audit": lambda: audit_chart(result),
                "detectable": lambda: detectable_chart(result),
                "bias": lambda: bias_chart(result),
                "told": lambda: told_chart(result),
            }
        case CheckReport():
            from evaluator.reports.answer_charts import left_chart, tests_chart

            return {"left": lambda: left_chart(result), "tests": lambda: tests_chart(result)}
        case Simulation():
            from evaluator.reports.curve_charts import observed_chart, simulation_chart

            return {"simulation": lambda: simulation_chart(result), "observed": lambda: observed_chart(result)}
        case DelayStudy():
            from evaluator.reports.answer_charts import arrival_chart, change_chart
            from evaluator.reports.delay_charts import (
                calibration_chart,
                cdf_chart,
                density_chart,
                groups_chart,
                rates_chart,
            )

            # There are no charts of delays if all delays are 0.
            of_delays: dict[str, Draw] = {
                "cdf": lambda: cdf_chart(result),
                "density": lambda: density_chart(result),
                "groups": lambda: groups_chart(result),
                "arrival": lambda: arrival_chart(result),
            }
            return {
                **(of_delays if result.drawable else {}),
                "rates": lambda: rates_chart(result),
                "calibration": lambda: calibration_chart(result),
                "change": lambda: change_chart(result),
            }
        case Log():
            from evaluator.reports.curve_charts import log_chart

            try:
                result.checked()
            except LogError:
                return {}
            return {"log": lambda: log_chart(result)}
        case {"log": {"top_actions": _} as log}:
            from evaluator.reports.answer_charts import shown_chart

            return {"shown": lambda: shown_chart(log)}
    return {}


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
