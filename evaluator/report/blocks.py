"""A report as data: sections of sentences, lists and tables, whose words every page escapes anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from evaluator.checks.finding import Verdict as CheckVerdict
from evaluator.comparisons.verdict import Verdict

Colour = Literal["", "green", "yellow", "red", "cyan"]
# How the cells of a column stand: left, right as numbers do, or never broken over lines.
Standing = Literal["", "number", "whole"]


@dataclass(frozen=True)
class Run:
    """Some words in one style; a line break in them is one of the page.

    Parameters
    ----------
    text
        Words, as data: nothing of them is markup.
    bold, dim, colour
        Style of the words.
    """

    text: str
    bold: bool = False
    dim: bool = False
    colour: Colour = ""


Words = tuple[Run, ...]


@dataclass(frozen=True)
class Paragraph:
    """A sentence, or some."""

    words: Words
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[Words, ...]
    kind: Literal["bullets"] = "bullets"


@dataclass(frozen=True)
class Grid:
    """A table, whose first column names the rows.

    Parameters
    ----------
    caption
        Words above it; none for no caption.
    head
        Names of the columns; none where they have none.
    rows
        Cells of each row.
    standing
        Standing of each column.
    kind
        Kind of the block, as files name it.
    """

    caption: Words
    head: tuple[Words, ...]
    rows: tuple[tuple[Words, ...], ...]
    standing: tuple[Standing, ...]
    kind: Literal["grid"] = "grid"


@dataclass(frozen=True)
class VerdictBlock:
    """Ship, wait or don't, with a link to each part of the page that it rests on."""

    verdict: Verdict
    kind: Literal["verdict"] = "verdict"


@dataclass(frozen=True)
class Light:
    """What one check of a log found.

    Parameters
    ----------
    verdict
        Verdict of the check.
    name, number
        Name of the check, and the number that decides, in words.
    means, do
        Sentences on what it means and on what to do; empty where nothing is said.
    """

    verdict: CheckVerdict
    name: str
    number: str
    means: str
    do: str


@dataclass(frozen=True)
class Lights:
    """Checks of a log, in the order to be shown."""

    lights: tuple[Light, ...]
    kind: Literal["lights"] = "lights"


Block = Paragraph | Bullets | Grid | VerdictBlock | Lights


@dataclass(frozen=True)
class Section:
    """What stands under one title.

    Parameters
    ----------
    title
        Words of the title; none for what stands under no title of its own.
    blocks
        Blocks in their order.
    folded
        Whether it explains or repeats, so that a page shows it on a click.
    """

    title: Words = ()
    blocks: list[Block] = field(default_factory=list)
    folded: bool = False

    @property
    def name(self) -> str:
        """Return the title without its style."""
        return "".join(run.text for run in self.title).strip()
