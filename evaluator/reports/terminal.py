"""Documents as text, on a terminal of any width, in a pipe or in a file."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from evaluator.comparisons.expected import LiveTest
from evaluator.comparisons.verdict import Verdict, level_text, percent
from evaluator.escape import escape
from evaluator.estimates.confidence import Interval
from evaluator.reports.document import (
    Block,
    Bullets,
    Document,
    Grid,
    Layout,
    Light,
    Lights,
    Paragraph,
    VerdictBlock,
    Words,
)
from evaluator.reports.numbers import interval_text

DO = "What to do: "
SETTLE = "What would settle it:"
VERDICT_STYLES = {"ship": "bold green", "wait": "bold yellow", "don't": "bold red"}
CHECK_STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red", "not applicable": "dim"}
# Smallest number of characters of a name on one line; the rest of the name may stand on further lines.
_NAME = 12
# Sign, word and colour of the verdicts; each of the three suffices to tell the verdicts apart.
MARKS = {True: ("✓", "met", "green"), False: ("✗", "not met", "red"), None: ("?", "open", "yellow")}


class ReportConsole(Console):
    """A console that prints text as data: it reads no markup in it, and no character controls the terminal.

    A string is one line, also in the cell of a table: its line breaks are written as escapes.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text that is shown for a string."""
        return super().render_str(escape(text), **{**options, "markup": False, "emoji": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments to print: no line ends in blanks, and characters of `rich.text.Text` are escaped, too."""
        blanks: list[Segment] = []
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
                continue
            *whole, last = segment.text.split("\n")
            for line in whole:
                if text := escape(line).rstrip(" "):
                    yield from (*blanks, segment._replace(text=text))
                blanks.clear()
                yield segment._replace(text="\n")
            text = escape(last)
            if kept := text.rstrip(" "):
                yield from (*blanks, segment._replace(text=kept))
                blanks.clear()
            if len(kept) < len(text):
                blanks.append(segment._replace(text=text[len(kept) :]))
        yield from blanks


def layout_of(console: Console, *, full: bool = True) -> Layout:
    """Return the layout that fits a console."""
    return Layout(full, console.width, console.options.ascii_only)


def fits(table: Grid, layout: Layout, longest: int) -> bool:
    """Return whether there is room for the numbers of a table, and for its names after they are broken over lines.

    The table has one column of names; the longest name has so many characters.
    """
    widths = []
    for i, heading in enumerate(table.columns):
        cells = ([heading.name] if table.headed else []) + [row[i] for row in table.rows]
        each = [cell_len(line) for cell in cells for line in "".join(part.text for part in cell).split("\n")]
        widths.append(max(each, default=0))
    whole = sum(widths) + table.gap * (len(widths) - 1)
    return whole - max(longest - _NAME, 0) <= layout.width


def print_document(console: Console, document: Document) -> None:
    """Print a document, with a blank line before each section, and the blocks of a section indented below its title."""
    for i, section in enumerate(document.sections):
        if i:
            console.print()
        if section.title:
            console.print(_text(section.title))
        for block in section.blocks:
            for part in _renderables(block):
                console.print(Padding(part, (0, 0, 0, 2), expand=False) if section.title else part)


def text_of(document: Document, *, width: int = 100) -> str:
    """Return a document as plain text for a file."""
    file = io.StringIO()
    print_document(ReportConsole(file=file, width=width, color_system=None, force_terminal=False), document)
    return file.getvalue()


def _renderables(block: Block) -> Iterator[RenderableType]:
    match block:
        case Paragraph():
            yield _text(block.words)
        case Bullets():
            table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
            table.add_column(no_wrap=True)
            table.add_column()
            for item in block.items:
                table.add_row("-", _text(item))
            yield table
        case Grid():
            yield _table(block)
        case VerdictBlock():
            yield from _verdict(block.verdict)
        case Lights():
            yield from _lights(block)


def _text(words: Words) -> Text:
    return Text.assemble(*((run.text, _style(run.bold, run.dim, run.colour)) for run in words))


def _style(bold: bool, dim: bool, colour: str = "") -> str:
    return " ".join(filter(None, ("bold" if bold else "", "dim" if dim else "", colour)))


def _table(grid: Grid) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, grid.gap, 0, 0), show_header=grid.headed)
    if grid.caption:
        table.title = _text(grid.caption)
        table.title_justify = "left"
    for column in grid.columns:
        table.add_column(
            _text(column.name),
            justify="right" if column.standing == "number" else "left",
            no_wrap=not column.folds,
            overflow="fold",
            style=_style(column.bold, column.dim),
        )
    for row in grid.rows:
        table.add_row(*map(_text, row))
    return table


def _verdict(verdict: Verdict) -> Iterator[RenderableType]:
    """Yield the conditions of the rule, what would settle them, and the rule; the sentences above say the rest."""
    for line in stakes(verdict):
        yield Text(escape(line))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for name in ("condition", "state"):
        table.add_column(name, no_wrap=True)
    table.add_column("found")
    for condition in verdict.conditions:
        mark, word, colour = MARKS[condition.met]
        table.add_row(condition.name, Text(f"{mark} {word}", style=colour), condition.what)
    yield Padding(table, (0, 0, 0, 2), expand=False)
    if verdict.settle:
        yield Text(SETTLE)
        for line in verdict.settle:
            yield Padding(f"- {line}", (0, 0, 0, 2), expand=False)
    yield Text(escape(rule_text(verdict)), style="dim")


def stakes(verdict: Verdict) -> list[str]:
    """Return what the variant of a headline would change, a live test of it, and who loses; no unsound numbers."""
    candidate, uplift = verdict.candidate, verdict.candidate.uplift
    harm = [candidate.harm_text] if candidate.harm_text else []
    if uplift is None or not candidate.sound:
        return harm
    a_month = uplift.unit == "month"
    amount = _interval(uplift.amount)
    per = f"{amount} a month of {uplift.displays:,.0f} displays" if a_month else f"{amount} per 1,000 displays"
    share = "" if uplift.share is None else f"{_interval(uplift.share, percent=True)} of what it earns; "
    lines = [f"Beyond {verdict.name_of(verdict.baseline)}: {share}{per}."]
    if uplift.chance_of_loss is not None:
        costs = ""
        if verdict.decision == "ship" and uplift.cost_of_waiting is not None:
            costs = f" Waiting another month costs about {amount.partition(' ')[0].lstrip('+')}."
        lines.append(f"Chance that it earns less: {chance_text(uplift.chance_of_loss)}.{costs}")
    if uplift.live_test is not None and verdict.decision != "don't":
        lines.append(_live_test(uplift.live_test))
    return [*lines, *harm]


def _interval(of: Interval, *, percent: bool = False) -> str:
    return interval_text(of.estimate, of.low, of.high, percent=percent)


def _live_test(test: LiveTest) -> str:
    """Return a live test in words: how much traffic for how long, and when to stop it."""

    def last(displays: int, days: float | None) -> str:
        return f"{displays:,} displays" if days is None else days_text(days)

    long = last(test.displays, test.days) + ("" if test.days is None else f" ({test.displays:,} displays)")
    low, at_low = test.displays_at_low, ""
    if low is not None and low > test.displays:
        at_low = f", {last(low, test.days_at_low)} if only the lower end is true"
    after = f" The last conversions are in {days_text(test.days_after)} later." if test.days_after else ""
    return (
        f"Live test: {test.share:.0%} of the traffic for {long} shows the difference with a power of 80 %{at_low}."
        f"{after} Stop it {test.stop}."
    )


def days_text(days: float) -> str:
    """Return a number of days in words, rounded up."""
    return "less than a day" if days < 1.0 else f"{math.ceil(days):,} day{'s' * (days > 1.0)}"


def chance_text(chance: float) -> str:
    """Return a chance in per cent, with bounds for one that is close to 0 or 1."""
    if chance < 0.001:
        return "under 0.1%"
    return "over 99.9%" if chance > 0.999 else f"{chance:.{1 if min(chance, 1.0 - chance) < 0.1 else 0}%}"


def rule_text(verdict: Verdict, *, others: bool = True) -> str:
    """Return the rule in words and, if wanted, its result for the other lines."""
    together = f", {len(verdict.candidates)} candidates together" if len(verdict.candidates) > 1 else ""
    rest = [
        f"{verdict.name_of(one.line)}: {one.decision}"
        for one in verdict.candidates
        if one.line.variant != verdict.variant
    ]
    looks, level = "", percent(verdict.level)
    if verdict.candidate.target == "realised":
        looks = ", at any number of looks" if verdict.candidate.uplift is not None else ""
    elif verdict.look is not None:
        looks, level = f": {level} over all {verdict.look.planned:,} looks", level_text(verdict.interval_level)
        level += f", {verdict.look}"
    elif verdict.candidate.uplift is not None:
        looks = ", good for one look"
    return f"Rule: {verdict.rule.text} at {level}{together}{looks}." + (
        f" {', '.join(rest)}." if rest and others else ""
    )


def _lights(block: Lights) -> Iterator[RenderableType]:
    """Yield a table of all checks, and a paragraph on each check that failed or warned."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=not block.brief)
    for name in ("verdict", "check", "number"):
        table.add_column(name, no_wrap=name != "number")
    for light in block.lights:
        untested = light.verdict == "not applicable"
        word = Text("-" if untested else light.verdict, CHECK_STYLES[light.verdict])
        table.add_row(word, light.name, Text(escape(light.what), "dim") if untested else light.number)
    yield table
    if not block.brief:
        for verdict in ("fail", "warn"):
            yield from (_light(light) for light in block.lights if light.verdict == verdict)


def _light(light: Light) -> RenderableType:
    lines: list[RenderableType] = [light.what]
    if light.remedy:
        lines.append(f"{DO}{light.remedy}")
    return Group(
        Text.assemble("\n", (light.verdict, CHECK_STYLES[light.verdict]), "  ", (light.name, "bold")),
        Padding(Group(*lines), (0, 0, 0, 2), expand=False),
    )
