"""A comparison on the terminal: one line a variant, then what must be read before trusting the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaluator.estimates.confidence import Interval
from evaluator.evaluation.comparison import Comparison
from evaluator.report.terminal import sentences

HOW_TO_READ = (
    "Each interval holds for its own number. Whether two of them overlap says little about the difference of the two."
)


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print a comparison."""
    first = comparison.results[0]
    console.print(Text.assemble(f"{len(comparison.results)} replays of ", (first.plan["dataset"], "bold")))
    level = f"{first.value.level:.0%}"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", justify="right")
    table.add_column("policy", overflow="fold")
    expects = any(result.expected_value for result in comparison.results)
    of_expected = (f"expected value, {level}",) if expects else ()
    for column in ("window", "rounds", "value", level, *of_expected, "regret", level, "uplift", level):
        table.add_column(column, justify="right", overflow="fold")
    for i, result in enumerate(comparison.results, start=1):
        window = result.plan["window_rounds"]
        table.add_row(
            str(i),
            Text(result.plan["policy"]),
            "none" if window is None else f"{window:,}",
            f"{result.rounds:,}",
            *_cells(result.value),
            *(_cells(i)[1] for i in [result.expected_value] if i is not None),
            *_cells(result.regret),
            *_cells(result.uplift),
        )
    console.print(table)
    console.print(Text(HOW_TO_READ))
    warnings = _together([result.warnings for result in comparison.results])
    if warnings:
        console.print(sentences("Read before trusting the numbers", warnings, style="yellow"))
    console.print(sentences("Assumptions", _together([result.assumptions for result in comparison.results])))


def _together(said: Sequence[Sequence[str]]) -> list[str]:
    """Return every sentence once, with the lines it is about unless these are all."""
    about: dict[str, list[int]] = {}
    for i, lines in enumerate(said, start=1):
        for line in lines:
            about.setdefault(line, []).append(i)
    return [line if len(of) == len(said) else f"{line} (line {', '.join(map(str, of))})" for line, of in about.items()]


def _cells(interval: Interval) -> tuple[str, Text]:
    return f"{interval.estimate:.4g}", Text(f"[{interval.low:.4g}, {interval.high:.4g}]")
