"""Outcomes that no policy sees, and guardrails on them, as replays and comparisons print them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.estimates.confidence import Interval
from evaluator.replays.guardrails import GuardrailAnswer
from evaluator.replays.result import ReplayResult
from evaluator.visible import visible

ABOUT = "Events that no policy was told of, per round, of the displays followed for as long as such an event may take."
_STYLES = {"holds": "green", "broken": "bold red", "cannot tell": "yellow"}


def guardrails(results: Sequence[ReplayResult], *, full: bool = True) -> RenderableType:
    """Return the answer to each guardrail, line by line where there are several results, and how it was answered."""
    table = _table(results)
    for column in ("guardrail", "answer"):
        table.add_column(column, overflow="fold")
    first = results[0].guardrails[0]
    level = f"{100 * first.interval.level:.4g} %"
    for column in ("estimate", "interval" if full else f"{level} interval", "n"):
        table.add_column(column, justify="right", no_wrap=True)
    for i, result in enumerate(results, start=1):
        for one in result.guardrails:
            answer = Text(one.answer, style=_STYLES[one.answer])
            table.add_row(*_line(results, i), visible(one.guardrail), answer, *_of(one))
    lines = f" times {len(results)} lines" if len(results) > 1 else ""
    said = (
        f"Stated before the run, answered by {level} intervals: the run's level, adjusted "
        f"for {len(results[0].guardrails)} guardrail{'s' * (len(results[0].guardrails) > 1)}{lines}, so that any wrong "
        f"answer has a probability of {100 * (1 - results[0].value.level):.3g} % at the most."
    )
    return section("Guardrails", said if full else "", table)


def _of(one: GuardrailAnswer) -> tuple[str, str, str]:
    of = one.interval
    if one.quantity == "relative uplift":
        ends = f"[{of.low:+.3g}, {of.high:+.3g}]" if math.isinf(of.high) else f"[{of.low:+.2%}, {of.high:+.2%}]"
        return f"{of.estimate:+.2%}", ends, f"{of.n:,}"
    sign = "+" if one.quantity == "uplift" else ""
    return f"{of.estimate:{sign}.4g}", f"[{of.low:{sign}.4g}, {of.high:{sign}.4g}]", f"{of.n:,}"


def outcomes(
    results: Sequence[ReplayResult],
    *,
    full: bool = True,
    stacked: bool = False,
    but: Collection[str] = (),
) -> RenderableType:
    """Return value and uplift of each outcome but some, line by line where there are several results.

    Parameters
    ----------
    results
        Results of the lines.
    full
        Whether to say what an outcome is.
    stacked
        Whether an interval stands under its estimate, for narrow terminals.
    but
        Names of outcomes that are left out.
    """
    level = f"{results[0].value.level:.0%}"
    table = _table(results)
    table.add_column("", style="bold", overflow="fold")
    for column in ("per round", "uplift over the logging policy"):
        if stacked:
            table.add_column(
                Text(f"{column.removesuffix(' the logging policy')}\n{level}"), justify="right", no_wrap=True
            )
        else:
            table.add_column(column, justify="right")
            table.add_column(level, justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    for i, result in enumerate(results, start=1):
        for one in result.outcomes:
            if one.outcome not in but:
                cells = [_cells(one.value), _cells(one.uplift)]
                shown = (
                    [Text("\n".join(pair)) for pair in cells] if stacked else [word for pair in cells for word in pair]
                )
                table.add_row(*_line(results, i), visible(one.outcome), *shown, f"{one.value.n:,}")
    return section("Other outcomes", ABOUT if full else "", table)


def _cells(of: Interval) -> tuple[str, str]:
    if math.isnan(of.estimate):
        return "unknown", "none"
    return f"{of.estimate:.4g}", f"[{of.low:.4g}, {of.high:.4g}]"


def _table(results: Sequence[ReplayResult]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    if len(results) > 1:
        table.add_column("", justify="right")
    return table


def _line(results: Sequence[ReplayResult], number: int) -> list[str]:
    return [str(number)] if len(results) > 1 else []


def section(title: str, said: str, table: Table) -> RenderableType:
    """Return a table below its title and, if anything is said of it, what it shows."""
    return Group(
        Text(f"\n{title}", style="bold"),
        *([Padding(Text(said, style="dim"), (0, 0, 0, 2))] if said else []),
        Padding(table, (0, 0, 0, 2), expand=False),
    )
