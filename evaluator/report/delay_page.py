"""Charts of a study of delays as one HTML page that needs no network."""

from __future__ import annotations

import html
import json

import vl_convert

from evaluator.delays.study.result import DelayStudy
from evaluator.delays.study.words import between, words
from evaluator.report.command_words import in_command_words
from evaluator.report.delay_charts import Spec, cdf_chart, density_chart, groups_chart
from evaluator.report.delay_sentences import drift_said, groups_said, joint_said, spikes_said, tail_said
from evaluator.report.rate_charts import calibration_chart, rates_chart
from evaluator.visible import visible

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
    """Return the charts by name of their files; none of delays if all are 0."""
    charts: dict[str, Spec | None] = {}
    if study.drawable:
        charts = {"cdf": cdf_chart(study), "density": density_chart(study), "groups": groups_chart(study)}
    charts |= {"rates": rates_chart(study), "calibration": calibration_chart(study)}
    return {name: chart for name, chart in charts.items() if chart is not None}


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
        f"Law: {'; '.join((verdict, *spikes_said(study)))}.",
        f"Recommended window: {words(rows, advice.recommended)}, {advice.reason}.",
        f"Tail index: {tail_said(study)}.",
    ]
    if rows.group is not None:
        said.append(f"Delays by {rows.by}: {groups_said(study)}.")
    if rows.periods is not None:
        said.append(f"Drift by {rows.periods.name}: {drift_said(study)}.")
    if study.joint is not None:
        said.append(f"Conversion rate on context: {'; '.join(joint_said(study, study.joint))}.")
    elif "joint" in study.missing:
        said.append(f"Conversion rate on context: withheld: {study.missing['joint']}")
    items = "".join(f"<li>{_escaped(line)}</li>" for line in said)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{_escaped(title)}</title>\n<style>{_STYLE}</style>\n"
        f"<script>{vl_convert.javascript_bundle(_LIBRARIES)}</script>\n</head>\n<body>\n<h1>{_escaped(title)}</h1>\n"
        f"<p>{study.conversions:,} conversions.</p>\n<ul>{items}</ul>\n"
        f"{_quantiles(study)}\n{_windows(study)}\n{_rates(study)}\n{figures}\n<script>{draw}</script>\n</body>\n</html>\n"
    )


def _escaped(text: str) -> str:
    return html.escape(in_command_words(visible(text)))


def _quantiles(study: DelayStudy) -> str:
    head = ["share come", "as seen", "corrected", f"{study.fit.confidence:.0%} interval"]
    of = study.rows
    return _table(
        head,
        [
            [f"{q.level:.0%}", words(of, q.naive), words(of, q.corrected), between(of, q.low, q.high)]
            for q in study.quantiles
        ],
    )


def _windows(study: DelayStudy) -> str:
    lines = []
    for window in study.windows:
        share = window.share
        kept = [f"{share.tau:.1%}", f"{share.low:.1%} to {share.high:.1%}"]
        if study.rows.limit is not None and share.window >= share.longest:
            kept = ["all that the log can see" if share.identified else "beyond what the log shows", ""]
        lines.append([window.label(study.rows), *kept])
    return _table(["window", "keeps", f"{study.fit.confidence:.0%} interval"], lines)


def _rates(study: DelayStudy) -> str:
    if study.joint is None:
        return ""
    lines = [
        [name, f"{rate.displays:,}", f"{rate.naive:.3%}", f"{rate.corrected:.3%}", f"{rate.low:.3%} to {rate.high:.3%}"]
        for name, rate in (("all", study.joint.rate), ("immature", study.joint.immature))
        if rate.displays
    ]
    return _table(["displays", "", "converted", "corrected on context", f"{study.options.level:.0%} interval"], lines)


def _table(head: list[str], lines: list[list[str]]) -> str:
    top = "".join(f"<th>{_escaped(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{_escaped(cell)}</td>' for cell in line)}</tr>" for line in lines)
    return f"<table><tr>{top}</tr>{body}</table>"
