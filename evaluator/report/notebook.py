"""A result as a notebook shows it: the terminal's report in HTML, with a picture; no script, nothing from elsewhere."""

from __future__ import annotations

from itertools import islice

from evaluator.report.block_html import section_html
from evaluator.report.chapters import report_of
from evaluator.report.figures import figures

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


def as_html(result: object) -> str:
    """Return a result, a plan or a log, as HTML, with the most telling of its charts.

    Raises
    ------
    TypeError
        The object is none of these.
    """
    found = report_of(result)
    head, *rest = map(section_html, found.sections)
    chart = dict(islice(found.charts.items(), 1))
    return f'{_STYLE}<div class="{_OWN}">{head}{"".join(figures(chart).values())}{"".join(rest)}</div>'
