"""A result as a notebook shows it: the terminal's report in HTML, with a picture; no script, nothing from elsewhere."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Mapping
from typing import Any

from evaluator.audits.result import Audit
from evaluator.checks.run import CheckReport
from evaluator.comparisons.result import Comparison
from evaluator.delays.study.result import DelayStudy
from evaluator.errors import LogError
from evaluator.log import Log
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.report.html_console import HtmlConsole
from evaluator.report.pictures import svg_pictures
from evaluator.simulations.result import Simulation
from evaluator.visible import visible

# What explains or repeats: a click away.
FOLDED = frozenset({"How", "Log", "Assumptions", "How to read this", "Twins", "Assumptions of the replays"})
_OWN = "evaluate-report"
_STYLE = f"""<style>
.{_OWN} {{max-width:62rem;line-height:1.45;font-variant-numeric:tabular-nums}}
.{_OWN} p, .{_OWN} ul {{margin:.3rem 0;max-width:48rem}}
.{_OWN} ul {{padding-left:1.2rem}}
.{_OWN} .title, .{_OWN} summary {{margin:.8rem 0 .2rem;font-weight:600}}
.{_OWN} summary {{cursor:pointer}}
.{_OWN} .wide, .{_OWN} figure {{overflow-x:auto;margin:.3rem 0}}
.{_OWN} table {{border-collapse:collapse;border:0;margin:0;font-size:.93em}}
.{_OWN} th, .{_OWN} td {{padding:.15rem 1rem .15rem 0;border:0;text-align:left;vertical-align:top;font-weight:normal;
white-space:normal;max-width:44rem}}
.{_OWN} .number {{text-align:right}}
.{_OWN} thead th, .{_OWN} .number, .{_OWN} .whole {{white-space:nowrap}}
.{_OWN} thead th {{border-bottom:1px solid rgba(128,128,128,.5)}}
.{_OWN} svg {{width:100%;min-width:30rem;max-width:44rem;height:auto;display:block}}
</style>"""
# Words and lines that the drawing library makes black follow the page's own colour.
_BLACK = re.compile(r'"(?:#000|#000000|black)"')
_SPACES = re.compile(r' xmlns(?::xlink)?="[^"]*"')
_NAMES = re.compile(r'\bid="([^"]+)"')


def as_html(result: object) -> str:
    """Return a result, a plan or a log, as HTML.

    Raises
    ------
    TypeError
        The object is none of these.
    """
    console = HtmlConsole(FOLDED)
    charts = _print(console, result)
    head, *rest = console.sections()
    figures = "".join(_figure(picture) for picture in svg_pictures(charts).values())
    return f'{_STYLE}<div class="{_OWN}">{head}{figures}{"".join(rest)}</div>'


def _print(console: HtmlConsole, result: object) -> Mapping[str, dict[str, Any]]:
    """Print a result's report, and return its charts."""
    match result:
        case ReplayResult():
            from evaluator.report.curve_charts import replay_chart
            from evaluator.report.terminal import print_result

            print_result(console, result)
            return {"replay": replay_chart(result)} if result.rounds else {}
        case ReplayPlan():
            from evaluator.report.choices import print_plan

            print_plan(console, result)
            return {}
        case Comparison():
            from evaluator.report.comparison import print_comparison
            from evaluator.report.curve_charts import comparison_chart

            print_comparison(console, result)
            return {"comparison": comparison_chart(result)}
        case Audit():
            from evaluator.report.audit import print_audit
            from evaluator.report.curve_charts import audit_chart

            print_audit(console, result)
            return {"audit": audit_chart(result)}
        case Simulation():
            from evaluator.report.curve_charts import simulation_chart
            from evaluator.report.simulation import print_simulation

            print_simulation(console, result)
            return {"simulation": simulation_chart(result)}
        case DelayStudy():
            from evaluator.report.delay_charts import cdf_chart
            from evaluator.report.delays import print_study

            print_study(console, result)
            return {"cdf": cdf_chart(result)} if result.drawable else {}
        case CheckReport():
            from evaluator.report.check import print_check

            print_check(console, result)
            return {}
        case Log():
            _print_log(console, result)
            return {}
    raise TypeError(f"A {type(result).__name__} has no report.")


def _print_log(console: HtmlConsole, log: Log) -> None:
    """Print what `evaluate datasets show` says of a log; of one that breaks its contract, what is wrong."""
    from evaluator.datasets.summary import log_facts
    from evaluator.report.dataset import print_facts

    try:
        log.checked()
    except LogError as error:
        console.print(repr(log))
        console.print(str(error), style="bold yellow")
        return
    if len(log):
        print_facts(console, {"name": log.meta.name, "spec": None, "log": log_facts(log)})
    else:
        console.print(repr(log))


def _figure(picture: str) -> str:
    """Return an SVG as part of a page: in the page's colour, its own names apart from those of other pictures."""
    own = hashlib.sha256(picture.encode()).hexdigest()[:8]
    for name in dict.fromkeys(_NAMES.findall(picture)):
        for before, after in (('id="', '"'), ("url(#", ")"), ('href="#', '"')):
            picture = picture.replace(f"{before}{name}{after}", f"{before}{own}-{name}{after}")
    picture = _SPACES.sub("", _BLACK.sub('"currentColor"', picture))
    return f'<figure role="img" aria-label="{html.escape(visible(_title(picture)))}">{picture}</figure>'


def _title(picture: str) -> str:
    found = re.search(r'role-title-text"[^>]*><text[^>]*>([^<]*)<', picture)
    return html.unescape(found[1]) if found else "chart"
