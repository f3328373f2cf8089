"""Facts of a dataset on the terminal."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from evaluator.log.times import dated, time_words
from evaluator.report.console import ReportConsole
from evaluator.report.numbers import count_text
from evaluator.report.short import counted, left_out
from evaluator.units import ROUND, SECONDS, format_duration
from evaluator.visible import visible

# Actions that a screen holds.
_ACTIONS = 4


def print_facts(console: ReportConsole, facts: dict[str, Any], *, full: bool = True) -> None:
    """Print what `evaluator.datasets.show` found: all of it, or what fits a screen."""
    spec, log = facts["spec"], facts["log"]
    title = f"  {visible(spec['title'])}" if spec else ""
    console.print(Text.assemble((visible(facts["name"]), "bold"), title))
    if spec:
        _rows(console, [("licence", spec["licence"]), ("homepage", spec.get("homepage", ""))])
    if log is None:
        console.print()
        console.print(f"The spec alone: {facts['missing']}")
        return
    tick = log["tick"]
    rows = [
        ("displays", f"{log['displays']:,}"),
        ("conversions", f"{log['conversions']:,} ({log['conversions_per_display']:.4g} per display)"),
        ("reward per display", f"{log['reward_per_display']:.6g}"),
        ("refunds", _refunds(log["refunds"])),
        ("cost per display", _costs(log["costs"])),
        ("actions", f"{log['actions']:,}"),
        ("time", _span(log["time_range"], tick)),
        ("followed until", _until(log["observed_until"], log["time_range"][1], tick)),
        (
            "attribution window",
            "none" if log["attribution_window"] is None else _delay(log["attribution_window"], tick),
        ),
        ("propensities", log["propensity"]),
        ("context dimensions", str(log["context_dimensions"] or "none")),
        ("numbers about each action", str(log["action_vector_dimensions"] or "")),
        ("columns to group by", ", ".join(log["kept_columns"])),
        ("delays", ", ".join(f"{q} {_delay(v, tick)}" for q, v in log["delay_quantiles"].items()) or "no conversions"),
        *_set_rows(log["eligible"]),
        *((f"outcome {outcome['name']}", _outcome(outcome, log)) for outcome in log["outcomes"]),
        ("fingerprint", log["fingerprint"][:16]),
    ]
    # What the adapter did not have to do is no news.
    counts = {name: value for name, value in log["counts"].items() if full or (value and name not in log)}
    _rows(console, [*rows, *((name.replace("_", " "), count_text(value)) for name, value in counts.items())])
    table = Table(
        "action", "displays", "conversions", box=None, pad_edge=False, padding=(0, 2, 0, 0), title="most shown"
    )
    for row in log["top_actions"][: None if full else _ACTIONS]:
        table.add_row(row["label"], f"{row['displays']:,}", f"{row['conversions']:,}")
    console.print(table)
    truth = facts.get("truth", [])
    shown = truth if full or len(truth) <= 3 else [*truth[:2], truth[-1]]
    if shown:
        console.print(_true_values(shown))
    for note in log["notes"]:
        console.print(f"- {note}")
    if not full:
        said = ["counts that are 0"] if len(counts) < len(log["counts"]) else []
        said += (
            [counted(len(log["top_actions"]) - _ACTIONS, "more action")] if len(log["top_actions"]) > _ACTIONS else []
        )
        said += ["more true values"] if len(shown) < len(truth) else []
        if said:
            console.print(left_out(*said))


def print_validation(console: ReportConsole, report: dict[str, Any]) -> None:
    """Print what `evaluator.datasets.validate` found: the verdict, and every count that is not 0."""
    verdict = "sound" if report["ok"] else "rows were left out"
    console.print(Text.assemble((visible(report["name"]), "bold"), f": {verdict}"))
    counts = ((name.replace("_", " "), count_text(value)) for name, value in report["counts"].items() if value)
    _rows(console, [*counts, *_set_rows(report["eligible"])])


def _set_rows(sets: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return what is said of the eligible actions, as of `evaluator.datasets.summary.set_facts`."""
    if sets is None:
        return []
    smallest, largest, distinct, changes = (sets[name] for name in ("smallest", "largest", "distinct", "changes"))
    size = f"{largest:,}" if smallest == largest else f"{smallest:,} to {largest:,}, {sets['mean']:.4g} on average"
    vary = {
        "never": "the same at every display",
        "with time": f"{distinct:,} sets, which change with time ({changes:,} {'time' if changes == 1 else 'times'})",
        "otherwise": f"{distinct:,} sets, which differ between displays ({changes:,} unlike the one before)",
    }[sets["vary"]]
    rows = [("eligible actions", f"{size}; {vary}")]
    for what in ("never_eligible", "never_logged", "hardly_eligible"):
        found = sets[what]
        if found["count"]:
            more = ", ..." if found["count"] > len(found["labels"]) else ""
            labels = ", ".join(visible(label) for label in found["labels"])
            rows.append((what.replace("_", " "), f"{found['count']:,} ({labels}{more})"))
    return rows


def _rows(console: ReportConsole, rows: list[tuple[str, str]]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, words in rows:
        if words:
            table.add_row(name, words)
    console.print(table)


def _true_values(values: list[dict[str, Any]]) -> Table:
    numbers = ("revenue", "cost", "profit", "unsubscribe")
    table = Table(
        "chooses", *numbers, box=None, pad_edge=False, padding=(0, 2, 0, 0), title="true values a display", min_width=60
    )
    for row in values:
        table.add_row(visible(row["chooses"]), *(f"{row[number]:.4f}" for number in numbers))
    return table


def _refunds(refunds: dict[str, float] | None) -> str:
    if refunds is None:
        return ""
    return (
        f"{refunds['conversions']:,} of the conversions, {refunds['per_display']:.4g} per display; at the least a "
        f"display has earned {refunds['smallest']:.6g}"
    )


def _costs(costs: dict[str, float] | None) -> str:
    return (
        "" if costs is None else f"{costs['per_display']:.4g}, from {costs['smallest']:.4g} to {costs['largest']:.4g}"
    )


def _span(ends: list[int], tick: str) -> str:
    first, last = ends
    if tick == ROUND:
        return f"{first:,} to {last:,} rounds"
    seconds = SECONDS[tick]
    words = f"{first:,} to {last:,} {tick}"
    if dated(first, seconds):
        words = " to ".join(time_words(time, seconds, start=first) for time in ends)
    return f"{words} ({format_duration((last - first) * seconds)})"


def _until(until: int | None, last: int, tick: str) -> str:
    if until is None:
        return "every display to its end"
    if tick == ROUND:
        return f"{until:,}"
    seconds = SECONDS[tick]
    when = time_words(until, seconds, start=until) if dated(until, seconds) else f"{until:,} {tick}"
    return f"{when} ({format_duration((until - last) * seconds)} after the last display)" if until > last else when


def _outcome(outcome: dict[str, Any], log: dict[str, Any]) -> str:
    window, tick = outcome["attribution_window"], log["tick"]
    words = f"{outcome['events']:,} events, {outcome['value_per_display']:.4g} per display"
    words += "" if window is None else f", attribution window {_delay(window, tick)}"
    if outcome["observed_until"] != log["observed_until"]:
        words += f", followed until {_until(outcome['observed_until'], log['time_range'][1], tick)}"
    quantiles = outcome["delay_quantiles"]
    return f"{words}; delays p50 {_delay(quantiles['p50'], tick)}" if quantiles else words


def _delay(ticks: float, tick: str) -> str:
    return f"{ticks:,.0f} rounds" if tick == ROUND else format_duration(ticks * SECONDS[tick])
