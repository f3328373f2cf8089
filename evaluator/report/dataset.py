"""Facts of a dataset on the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evaluator.report.numbers import count_text
from evaluator.units import ROUND, SECONDS, format_duration


def print_facts(console: Console, facts: dict[str, Any]) -> None:
    """Print what `evaluator.datasets.show` found."""
    spec, log = facts["spec"], facts["log"]
    console.print(f"[bold]{escape(facts['name'])}[/bold]" + (f"  {escape(spec['title'])}" if spec else ""))
    if spec:
        _rows(console, [("licence", spec["licence"]), ("homepage", spec.get("homepage", ""))])
    if log is None:
        console.print(f"\nThe spec alone: {escape(facts['missing'])}")
        return
    tick = log["tick"]
    rows = [
        ("displays", f"{log['displays']:,}"),
        ("conversions", f"{log['conversions']:,} ({log['conversions_per_display']:.4g} per display)"),
        ("reward per display", f"{log['reward_per_display']:.6g}"),
        ("actions", f"{log['actions']:,}"),
        ("time", f"{log['time_range'][0]:,} to {log['time_range'][1]:,} {_ticks(log['time_range'], tick)}"),
        (
            "followed until",
            "every display to its end" if log["observed_until"] is None else f"{log['observed_until']:,}",
        ),
        (
            "attribution window",
            "none" if log["attribution_window"] is None else _delay(log["attribution_window"], tick),
        ),
        ("propensities", log["propensity"]),
        ("context dimensions", str(log["context_dimensions"] or "none")),
        ("delays", ", ".join(f"{q} {_delay(v, tick)}" for q, v in log["delay_quantiles"].items()) or "no conversions"),
        ("fingerprint", log["fingerprint"][:16]),
    ]
    _rows(console, [*rows, *((name.replace("_", " "), count_text(value)) for name, value in log["counts"].items())])
    table = Table(
        "action", "displays", "conversions", box=None, pad_edge=False, padding=(0, 2, 0, 0), title="most shown"
    )
    for row in log["top_actions"]:
        table.add_row(escape(row["label"]), f"{row['displays']:,}", f"{row['conversions']:,}")
    console.print(table)
    for note in log["notes"]:
        console.print(f"- {escape(note)}")


def _rows(console: Console, rows: list[tuple[str, str]]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, words in rows:
        if words:
            table.add_row(name, escape(words))
    console.print(table)


def _ticks(span: list[int], tick: str) -> str:
    if tick == ROUND:
        return "rounds"
    return f"{tick} ({format_duration((span[1] - span[0]) * SECONDS[tick])})"


def _delay(ticks: float, tick: str) -> str:
    return f"{ticks:,.0f} rounds" if tick == ROUND else format_duration(ticks * SECONDS[tick])
