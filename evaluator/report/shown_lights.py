"""Checks of a log, as the terminal shows them: a table, and a paragraph on each that is not a pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.checks.result import CheckResult
from evaluator.report.blocks import Light
from evaluator.visible import visible

DO = "What to do: "
STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red", "not applicable": "dim"}
_SHORT = {"not applicable": "-"}
# The worst first.
_ORDER = ("fail", "warn", "pass", "not applicable")


@dataclass(frozen=True)
class ShownLights:
    """Findings to be printed; a page shows them as lights.

    Parameters
    ----------
    findings
        Findings, in the order of a table.
    brief
        Whether to leave what they mean, and what to do, to another report.
    """

    findings: tuple[CheckResult, ...]
    brief: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table and the paragraphs."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=not self.brief)
        for name in ("verdict", "check", "number"):
            table.add_column(name, no_wrap=name != "number")
        for f in self.findings:
            word = Text(_SHORT.get(f.verdict, f.verdict), STYLES[f.verdict])
            said: Text | str = Text(visible(f.what), "dim") if f.verdict == "not applicable" else f.number
            table.add_row(word, f.name, said)
        yield table
        if not self.brief:
            for verdict in ("fail", "warn"):
                yield from (paragraph(f) for f in self.findings if f.verdict == verdict)

    def lights(self) -> tuple[Light, ...]:
        """Return the findings as lights of a page, the worst first."""
        ordered = sorted(self.findings, key=lambda f: _ORDER.index(f.verdict))
        return tuple(
            Light(f.verdict, f.name, f.number, "" if self.brief else f.what, "" if self.brief else f.remedy)
            for f in ordered
        )


def paragraph(f: CheckResult, *, number: bool = False) -> RenderableType:
    """Return what a finding means and what to do, after its name and, if asked for, its number."""
    lines: list[RenderableType] = [f.what]
    if f.remedy:
        lines.append(f"{DO}{f.remedy}")
    return Group(
        Text.assemble(
            "\n", (f.verdict, STYLES[f.verdict]), "  ", (f.name, "bold"), f": {visible(f.number)}" if number else ""
        ),
        Padding(Group(*lines), (0, 0, 0, 2), expand=False),
    )
