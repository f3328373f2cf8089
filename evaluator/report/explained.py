"""The catalogue of findings on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.findings.catalogue import COMMANDS, Entry
from evaluator.report.console import ReportConsole


def print_entry(console: ReportConsole, entry: Entry) -> None:
    """Print what a code means."""
    console.print(Text.assemble((entry.code, "bold"), f": {entry.title}"))
    parts = {
        "What it means": entry.means,
        "How it is found": entry.how,
        "What it does to the numbers": entry.effect,
        "What to do": entry.remedy,
    }
    for title, said in parts.items():
        console.print(Text(f"\n{title}", style="bold"))
        console.print(Padding(said.strip(), (0, 0, 0, 2), expand=False))
    for title, code in {
        "An example that has it": entry.example,
        "An example that has it no more": entry.mended,
    }.items():
        if code:
            console.print(Text(f"\n{title}", style="bold"))
            console.print(Padding(Text(code.strip()), (0, 0, 0, 2), expand=False))


def print_list(console: ReportConsole, entries: Sequence[Entry]) -> None:
    """Print every code with its title, by the command whose results have it."""
    for command in COMMANDS:
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column()
        for entry in entries:
            if entry.command == command:
                table.add_row(entry.code, entry.title)
        console.print(Text(f"\n{command}", style="bold"))
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
