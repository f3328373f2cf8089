"""A report as data: sections of sentences, lists and tables, whose words every page escapes anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field

from evaluator.checks.result import Verdict as CheckVerdict
from evaluator.comparisons.verdict import Verdict

Of = TypeVar("Of")
# Read from a file, they end at the first that is wrong: millions of errors would take memory without end.
Many = Annotated[tuple[Of, ...], Field(fail_fast=True)]
_MOST_LINES, _MOST_CONDITIONS = 10_000, 100
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


Words = Many[Run]


@dataclass(frozen=True)
class Paragraph:
    """A sentence, or some."""

    words: Words
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: Many[Words]
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
    head: Many[Words]
    rows: Many[Many[Words]]
    standing: Many[Standing]
    kind: Literal["grid"] = "grid"

    def __post_init__(self) -> None:
        """Refuse rows of several lengths: no page could lay them out."""
        if {len(row) for row in (*self.rows, *((self.head,) if self.head else ()))} - {len(self.standing)}:
            raise ValueError("A row of a table has not as many cells as the table has columns.")


def _of_some_lines(verdict: object) -> object:
    """Return a verdict, or what a file has for one, unless it is on more lines than any comparison."""
    match verdict:
        case {"candidates": [*lines], "settle": [*settle]}:
            conditions = [len(of["conditions"]) for of in lines if isinstance(of, dict) and "conditions" in of]
            if max(len(lines), len(settle)) > _MOST_LINES or max(conditions, default=0) > _MOST_CONDITIONS:
                raise ValueError("The verdict is on more lines than any comparison.")
    return verdict


@dataclass(frozen=True)
class VerdictBlock:
    """Ship, wait or don't, with a link to each part of the page that it rests on."""

    verdict: Annotated[Verdict, BeforeValidator(_of_some_lines)]
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

    lights: Many[Light]
    kind: Literal["lights"] = "lights"


Block = Paragraph | Bullets | Grid | VerdictBlock | Lights
_Told = Annotated[Block, Field(discriminator="kind")]


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
    blocks: Annotated[list[_Told], Field(fail_fast=True)] = field(default_factory=list)
    folded: bool = False

    @property
    def name(self) -> str:
        """Return the title without its style."""
        return "".join(run.text for run in self.title).strip()
