"""Every result as sections and charts: what a notebook shows of it, and a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from evaluator.audits.result import Audit
from evaluator.checks.run import CheckReport
from evaluator.comparisons.result import Comparison
from evaluator.delays.study.result import DelayStudy
from evaluator.errors import LogError, UnknownNameError, nearest
from evaluator.log import Log
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.report.block_console import BlockConsole
from evaluator.report.blocks import Section
from evaluator.report.chapter import Chapter, Spec
from evaluator.simulations.result import Simulation

if TYPE_CHECKING:
    import altair as alt

# What explains or repeats: a click away.
FOLDED = frozenset({"How", "Log", "Assumptions", "How to read this", "Twins", "Assumptions of the replays"})

# Variants of which a page shows what they did as time went on.
_MOST_SHOWN = 4
# What no chart has that stands beside others: Altair refuses to join those that have it.
_OF_A_WHOLE = frozenset({"$schema", "config", "datasets"})


class Report(NamedTuple):
    """What a result says.

    Parameters
    ----------
    kind, title
        Command that gives it, and a title for it.
    sections
        Sections of the terminal's report.
    charts
        Charts by name, the most telling one first.
    """

    kind: str
    title: str
    sections: list[Section]
    charts: Mapping[str, Spec]


def report_of(result: object) -> Report:
    """Return what a result, a plan or a log says.

    Raises
    ------
    TypeError
        The object is none of these.
    """
    console = BlockConsole(FOLDED)
    kind, title, charts = _print(console, result)
    return Report(kind, title, console.sections(), charts)


def report_of_facts(facts: dict[str, Any]) -> Report:
    """Return what `evaluator.datasets.show` found of a dataset."""
    from evaluator.report.dataset import print_facts

    console = BlockConsole(FOLDED)
    print_facts(console, facts)
    return Report("datasets show", f"The log {facts['name']}", console.sections(), {})


def chapter_of(found: Report, reproduce: Mapping[str, str] | None = None) -> Chapter:
    """Return a report as a chapter of a page."""
    return Chapter(found.kind, found.title, tuple(found.sections), found.charts, reproduce or {})


def chart_of(result: object, name: str | None) -> alt.Chart:
    """Return a chart of a result by its name, the most telling one for None.

    Raises
    ------
    UnknownNameError
        There is no such chart.
    """
    import altair as alt

    charts = report_of(result).charts
    wanted = next(iter(charts), "") if name is None else name
    if wanted not in charts:
        of = f"This {type(result).__name__}"
        if not charts:
            raise UnknownNameError(f"{of} has no chart.", hint="its tables say all that it holds.")
        raise UnknownNameError(f"{of} has no chart {wanted!r}.", hint=nearest(wanted, charts))
    spec = charts[wanted]
    parts = {part: _with_data(of, spec.get("datasets", {})) for part, of in spec.items() if part not in _OF_A_WHOLE}
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
    return {name: _with_data(of, data) for name, of in part.items()}


def _is_unseen(part: Any) -> bool:
    """Whether a part of a chart is marks that nobody sees."""
    mark = part.get("mark") if isinstance(part, dict) else None
    return isinstance(mark, dict) and mark.get("opacity") == 0


def _print(console: BlockConsole, result: object) -> tuple[str, str, dict[str, Spec]]:
    """Print a result's report, and return its kind, its title and its charts."""
    match result:
        case ReplayResult():
            from evaluator.report.acceptance_charts import acceptance_chart
            from evaluator.report.action_charts import action_chart
            from evaluator.report.curve_charts import replay_chart
            from evaluator.report.guardrail_charts import guardrail_chart
            from evaluator.report.interval_charts import group_charts
            from evaluator.report.terminal import print_result
            from evaluator.report.window_charts import window_chart

            print_result(console, result)
            title = f"{result.plan['policy']} replayed on {result.plan['dataset']}"
            curve = replay_chart(result) if result.rounds else None
            charts = {
                "replay": curve,
                "guardrails": guardrail_chart([result]),
                "actions": action_chart(result),
                "window": window_chart([result]),
                **group_charts(result),
                "acceptance": acceptance_chart([result]),
            }
            return "replay", title, _drawn(charts)
        case ReplayPlan():
            from evaluator.report.choices import print_plan

            print_plan(console, result)
            return "plan", "Plan of a replay", {}
        case Comparison():
            from evaluator.report.acceptance_charts import acceptance_chart
            from evaluator.report.action_charts import action_chart
            from evaluator.report.comparison import print_comparison
            from evaluator.report.curve_charts import comparison_chart
            from evaluator.report.guardrail_charts import guardrail_chart
            from evaluator.report.interval_charts import difference_chart, line_name, segment_charts
            from evaluator.report.window_charts import window_chart

            print_comparison(console, result)
            title = f"{len(result.results)} replays of {result.results[0].plan['dataset']}"
            first = enumerate(result.results[:_MOST_SHOWN])
            shown = {f"actions {i + 1}": action_chart(of, line_name(of, i)) for i, of in first}
            two: dict[str, Spec | None] = {
                "comparison": comparison_chart(result),
                "differences": difference_chart(result),
                "windows": window_chart(result.results),
                "acceptance": acceptance_chart(result.results),
            }
            asked = {"guardrails": guardrail_chart(result.results), **segment_charts(result)}
            return "compare", title, _drawn({**two, **asked, **shown})
        case Audit():
            from evaluator.report.audit import print_audit
            from evaluator.report.curve_charts import audit_chart, detectable_chart

            print_audit(console, result)
            two = {"audit": audit_chart(result), "detectable": detectable_chart(result)}
            return "audit", f"Audit on twins of {result.dataset}", _drawn(two)
        case Simulation():
            from evaluator.report.curve_charts import observed_chart, simulation_chart
            from evaluator.report.simulation import print_simulation

            print_simulation(console, result)
            two = {"simulation": simulation_chart(result), "observed": observed_chart(result)}
            return "simulate", f"Simulation of {result.scenario}", _drawn(two)
        case DelayStudy():
            from evaluator.report.delays import print_study
            from evaluator.report.study_charts import charts_of

            print_study(console, result)
            return "delays", f"Delays of conversions in {result.rows.name}", charts_of(result)
        case CheckReport():
            from evaluator.report.check import print_check

            print_check(console, result)
            return "check", f"Checks of {result.dataset}", {}
        case Log():
            sound = _print_log(console, result)
            return "log", result.meta.name, _log_charts(result) if sound else {}
    raise TypeError(f"A {type(result).__name__} has no report.")


def _drawn(charts: Mapping[str, Spec | None]) -> dict[str, Spec]:
    return {name: chart for name, chart in charts.items() if chart is not None}


def _log_charts(log: Log) -> dict[str, Spec]:
    from evaluator.report.log_charts import log_chart

    return _drawn({"log": log_chart(log)})


def _print_log(console: BlockConsole, log: Log) -> bool:
    """Print what `evaluate datasets show` says of a log, or what is wrong with it; return whether it is sound."""
    from evaluator.datasets.summary import log_facts
    from evaluator.report.dataset import print_facts

    try:
        log.checked()
    except LogError as error:
        console.print(repr(log))
        console.print(str(error), style="bold yellow")
        return False
    if len(log):
        print_facts(console, {"name": log.meta.name, "spec": None, "log": log_facts(log)})
    else:
        console.print(repr(log))
    return True
