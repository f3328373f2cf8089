"""Charts of a study of delays as pictures and as one HTML page that needs no network."""

from __future__ import annotations

import json
from html import escape

import vl_convert

from evaluator.evaluation.delay_study import DelayStudy
from evaluator.evaluation.delay_words import in_words, words
from evaluator.report.delay_charts import Spec, cdf_chart, density_chart, groups_chart

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:56rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .9rem .2rem 0;text-align:right}"
    "td:first-child,th:first-child{text-align:left}th{border-bottom:1px solid #bbb;font-weight:600}"
    "ul{padding-left:1.2rem}figure{margin:1.5rem 0;overflow-x:auto}"
)
_LIBRARIES = "window.vegaEmbed = vegaEmbed;"
# The page may run what it holds and draw what it draws; it may fetch nothing.
_POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"


def charts_of(study: DelayStudy) -> dict[str, Spec]:
    """Return the charts by name of their files; none if all delays are 0."""
    if not study.drawable:
        return {}
    charts = {"cdf": cdf_chart(study), "density": density_chart(study)}
    groups = groups_chart(study)
    return charts if groups is None else {**charts, "groups": groups}


def png(chart: Spec) -> bytes:
    """Return a chart as a PNG at twice its size."""
    return vl_convert.vegalite_to_png(chart, scale=2)


def page(study: DelayStudy, charts: dict[str, Spec]) -> str:
    """Return the page. Text is escaped; data are JSON in which no tag can end the script."""
    rows = study.rows
    title = f"Delays of conversions in {rows.name}"
    figures = "".join(f'<figure id="{name}"></figure>' for name in charts)
    data = json.dumps(charts).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    draw = (
        f"const charts = {data};\n"
        "for (const [name, chart] of Object.entries(charts))\n"
        "  vegaEmbed('#' + name, chart, {actions: {export: true, source: false, compiled: false, editor: false}});"
    )
    verdict = study.missing.get("laws", "") if study.choice is None else study.choice.verdict
    advice = study.advice
    said = [
        *study.sight,
        f"Law: {verdict}.",
        f"Recommended window: {words(rows, advice.recommended)}, {in_words(rows, advice.reason)}.",
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f"<script>{vl_convert.javascript_bundle(_LIBRARIES)}</script>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"<p>{study.conversions:,} conversions.</p>\n<ul>{''.join(f'<li>{escape(line)}</li>' for line in said)}</ul>\n"
        f"{_quantiles(study)}\n{_windows(study)}\n{figures}\n<script>{draw}</script>\n</body>\n</html>\n"
    )


def _quantiles(study: DelayStudy) -> str:
    head = ["share come", "as seen", "corrected", f"{study.fit.confidence:.0%} interval"]
    of = study.rows
    return _table(
        head,
        [
            [f"{q.level:.0%}", words(of, q.naive), words(of, q.corrected), f"{words(of, q.low)} to {words(of, q.high)}"]
            for q in study.quantiles
        ],
    )


def _windows(study: DelayStudy) -> str:
    lines = []
    for window in study.windows:
        share = window.share
        known = study.rows.limit is None or window.ticks < study.fit.longest
        kept = [f"{share.tau:.1%}", f"{share.low:.1%} to {share.high:.1%}"] if known else ["not shown by the log", ""]
        lines.append([words(study.rows, window.ticks), *kept])
    return _table(["window", "keeps", f"{study.fit.confidence:.0%} interval"], lines)


def _table(head: list[str], lines: list[list[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
    return f"<table><tr>{top}</tr>{body}</table>"
