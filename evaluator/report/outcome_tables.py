"""Outcomes that no policy sees, and guardrails on them, as replays and comparisons show them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from evaluator.replays.guardrails import GuardrailAnswer
from evaluator.replays.result import ReplayResult
from evaluator.report.document import Column, Layout, Section, Wordable, column, grid, lines, paragraph, run, section
from evaluator.report.numbers import interval_cells

ABOUT = "Events that no policy was told of, per round, of the displays followed for as long as such an event may take."
_STYLES = {"holds": "green", "broken": "bold red", "cannot tell": "yellow"}


def guardrails(results: Sequence[ReplayResult], layout: Layout) -> Section:
    """Return the answer to each guardrail, line by line where there are several results, and how it was answered."""
    first = results[0].guardrails[0]
    level = f"{100 * first.interval.level:.4g} %"
    columns = [
        *_line_column(results),
        column("guardrail"),
        column("answer"),
        column("estimate", "number"),
        column("interval" if layout.full else f"{level} interval", "number"),
        column("n", "number"),
    ]
    rows: list[tuple[Wordable, ...]] = [
        (*_line(results, i), one.guardrail, run(one.answer, _STYLES[one.answer]), *_answer_cells(one))
        for i, result in enumerate(results, start=1)
        for one in result.guardrails
    ]
    times = f" times {len(results)} lines" if len(results) > 1 else ""
    about = (
        f"Stated before the run, answered by {level} intervals: the run's level, adjusted "
        f"for {len(results[0].guardrails)} guardrail{'s' * (len(results[0].guardrails) > 1)}{times}, so that any wrong "
        f"answer has a probability of {100 * (1 - results[0].value.level):.3g} % at the most."
    )
    shown = [paragraph(about, style="dim")] if layout.full else []
    return section("Guardrails", *shown, grid(columns, rows), id="guardrails")


def _answer_cells(one: GuardrailAnswer) -> tuple[str, str, str]:
    of = one.interval
    if one.quantity == "relative uplift":
        ends = f"[{of.low:+.3g}, {of.high:+.3g}]" if math.isinf(of.high) else f"[{of.low:+.2%}, {of.high:+.2%}]"
        return f"{of.estimate:+.2%}", ends, f"{of.n:,}"
    return (*interval_cells(of, sign=one.quantity == "uplift"), f"{of.n:,}")


def outcomes(results: Sequence[ReplayResult], layout: Layout, *, but: Collection[str] = ()) -> Section:
    """Return value and uplift of each outcome but some, line by line where there are several results.

    Parameters
    ----------
    results
        Results of the lines.
    layout
        Room that the table has: an interval stands under its estimate where there is little.
    but
        Names of outcomes that are left out.
    """
    level = f"{results[0].value.level:.0%}"
    stacked = not layout.wide
    columns = [*_line_column(results), column("", bold=True)]
    for name in ("per round", "uplift over the logging policy"):
        if stacked:
            columns.append(column(lines(name.removesuffix(" the logging policy"), level), "number"))
        else:
            columns += [column(name, "number", folds=True), column(level, "number")]
    columns.append(column("n", "number"))
    rows = []
    for i, result in enumerate(results, start=1):
        for one in result.outcomes:
            if one.outcome not in but:
                pairs = [interval_cells(one.value), interval_cells(one.uplift)]
                cells: list[Wordable] = [lines(*pair) for pair in pairs]
                if not stacked:
                    cells = [cell for pair in pairs for cell in pair]
                rows.append((*_line(results, i), one.outcome, *cells, f"{one.value.n:,}"))
    about = [paragraph(ABOUT, style="dim")] if layout.full else []
    return section("Other outcomes", *about, grid(columns, rows))


def _line_column(results: Sequence[ReplayResult]) -> list[Column]:
    return [column("", "number", folds=True)] if len(results) > 1 else []


def _line(results: Sequence[ReplayResult], number: int) -> list[str]:
    return [str(number)] if len(results) > 1 else []
