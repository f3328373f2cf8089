"""Ship, wait or don't, as the terminal shows it: the decision, each condition's state, and what would settle it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.comparisons.ranking import percent
from evaluator.comparisons.verdict import Verdict
from evaluator.report.command_words import in_command_words
from evaluator.visible import visible

STYLES = {"ship": "bold green", "wait": "bold yellow", "don't": "bold red"}
# By sign, word and colour: any one of them tells them apart.
MARKS = {True: ("✓", "met", "green"), False: ("✗", "not met", "red"), None: ("?", "open", "yellow")}
SETTLE = "What would settle it:"


@dataclass(frozen=True)
class ShownVerdict:
    """A verdict to be printed; a page shows it with links to what it rests on.

    Parameters
    ----------
    verdict
        Verdict of a comparison.
    full
        Whether each condition that is met has a line, and the rule says what it comes to for the other lines.
    """

    verdict: Verdict
    full: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield its lines."""
        of = self.verdict
        first, rest = split(of)
        yield Text.assemble((first, STYLES[of.decision]), visible(rest))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        for column in ("condition", "state"):
            table.add_column(column, no_wrap=True)
        table.add_column("found")
        for condition in of.conditions:
            mark, word, colour = MARKS[condition.met]
            if self.full or not condition.met:
                table.add_row(condition.name, Text(f"{mark} {word}", style=colour), condition.said)
        yield Padding(table, (0, 0, 0, 2), expand=False)
        if of.settle:
            yield Text(SETTLE)
            for line in of.settle:
                yield Padding(f"- {line}", (0, 0, 0, 2), expand=False)
        met = ", ".join(condition.name for condition in of.conditions if condition.met)
        also = f" Conditions met: {met}." if met and not self.full else ""
        yield Text(visible(rule_text(of, others=self.full) + also), style="dim")


def split(of: Verdict) -> tuple[str, str]:
    """Return the headline as the words of the decision, which stand out, and the rest."""
    number = len(of.decision)
    return of.headline[:number], of.headline[number:]


def rule_text(of: Verdict, *, others: bool = True) -> str:
    """Return the rule in words and, if wanted, what it says of the other lines."""
    together = f", {len(of.candidates)} lines together" if len(of.candidates) > 1 else ""
    rest = [f"line {one.line.variant + 1}: {one.decision}" for one in of.candidates if one.line.variant != of.variant]
    return f"Rule: {of.rule.text} at {percent(of.level)}{together}." + (
        f" {', '.join(rest)}." if rest and others else ""
    )


def in_words_of_the_command(of: Verdict) -> Verdict:
    """Return a verdict whose options are named as on the command line."""
    said = in_command_words
    candidates = tuple(
        replace(one, conditions=tuple(replace(c, said=said(c.said), settle=said(c.settle)) for c in one.conditions))
        for one in of.candidates
    )
    settle = tuple(map(said, of.settle))
    return replace(
        of, headline=said(of.headline), sentence=said(of.sentence), settle=settle, candidates=candidates
    )  # fmt: skip
