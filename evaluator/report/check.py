"""A check of a log on the terminal: verdicts first, then a paragraph on each that is not a pass."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.checking.finding import Finding
from evaluator.checking.run import CheckReport

_STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red", "not applicable": "dim"}
_SHORT = {"not applicable": "-"}


def print_check(console: Console, report: CheckReport) -> None:
    """Print whether a log is fit for replay."""
    console.print(Text.assemble(
        (report.dataset, "bold"),
        f": {report.displays:,} displays, {report.conversions:,} conversions, {report.actions:,} actions",
    ))  # fmt: skip
    console.print(f"propensities: {report.propensity} ({report.assumption})", style="dim", markup=False)
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("verdict", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("number")
    for f in report.findings:
        verdict = Text(_SHORT.get(f.verdict, f.verdict), _STYLES[f.verdict])
        said = Text(f.means, "dim") if f.verdict == "not applicable" else Text(f.number)
        table.add_row(verdict, f.name, said)
    console.print(table)
    for f in (*report.having("fail"), *report.having("warn")):
        console.print(_paragraph(f))
    console.print()
    console.print(_summary(report))


def _paragraph(f: Finding) -> RenderableType:
    lines: list[RenderableType] = [Text(f.means)]
    if f.do:
        lines.append(Text(f"What to do: {f.do}"))
    return Group(
        Text.assemble("\n", (f.verdict, _STYLES[f.verdict]), "  ", (f.name, "bold")),
        Padding(Group(*lines), (0, 0, 0, 2), expand=False),
    )


def _summary(report: CheckReport) -> Text:
    failed, warned = len(report.having("fail")), len(report.having("warn"))
    kept = f"The tests raise a false alarm on {report.options.false_alarms:.0%} of clean logs at most."
    checks = f"{failed} failed, {warned} warned"
    if failed:
        return Text(f"Not fit for replay: {checks}. Repair what failed before believing any replay. {kept}")
    if warned:
        return Text(f"Fit for replay, with care: {checks}. {kept}")
    return Text(
        f"Fit for replay: nothing found against it. {kept} What no log shows, no check finds: an unmeasured cause."
    )
