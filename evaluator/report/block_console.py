"""The terminal's report as blocks: the same sentences and cells, to be laid out by the page that shows them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, cast

from rich.console import Group
from rich.padding import Padding
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from evaluator.report.blocks import (
    Block,
    Bullets,
    Colour,
    Grid,
    Lights,
    Paragraph,
    Run,
    Section,
    Standing,
    VerdictBlock,
    Words,
)
from evaluator.report.console import ReportConsole
from evaluator.report.shown_lights import ShownLights
from evaluator.report.shown_verdict import ShownVerdict
from evaluator.visible import visible

_COLOURS = ("green", "yellow", "red", "cyan")
_BULLET = "-"
# As wide as reports lay out their full tables.
_WIDTH = 120


class BlockConsole(ReportConsole):
    """A console whose lines become blocks.

    What follows a line break in bold is a title, under which the next things stand until a blank line.

    Parameters
    ----------
    folded
        Titles of the parts that are shown on a click only.
    """

    def __init__(self, folded: frozenset[str] = frozenset()) -> None:
        super().__init__(file=io.StringIO(), width=_WIDTH, force_terminal=False)
        self._folded = folded
        self._sections = [Section()]

    def print(self, *objects: Any, style: Any = None, **options: Any) -> None:
        """Take what is printed."""
        if not objects:
            self._sections.append(Section())
        for printed in objects:
            self._take(printed, str(style or ""))

    def sections(self) -> list[Section]:
        """Return what was printed, in pieces: first what stands above all titles, then one a title."""
        return [section for section in self._sections if section.title or section.blocks]

    def _take(self, printed: Any, style: str = "") -> None:
        if isinstance(printed, Group) and printed.renderables and _is_title(printed.renderables[0]):
            self._take(printed.renderables[0])
            for below in printed.renderables[1:]:
                self._take(below)
        elif _is_title(printed):
            self._sections.append(Section(self._words(printed), folded=printed.plain.strip() in self._folded))
        else:
            self._sections[-1].blocks.extend(self._blocks(printed, style))

    def _blocks(self, printed: Any, style: str = "") -> list[Block]:
        match printed:
            case str() | Text():
                return [Paragraph(self._words(printed, style))]
            case Padding():
                return self._blocks(printed.renderable, style)
            case Group():
                return [block for part in printed.renderables for block in self._blocks(part, style)]
            case ShownVerdict():
                return [VerdictBlock(printed.verdict)]
            case ShownLights():
                return [Lights(printed.lights())]
            case Table():
                return [self._list(printed) if _is_list(printed) else self._table(printed)]
        raise TypeError(f"A report prints a {type(printed).__name__}, which has no block yet.")

    def _list(self, table: Table) -> Bullets:
        column = table.columns[1]
        return Bullets(tuple(self._words(cell, str(column.style)) for cell in column.cells))

    def _table(self, table: Table) -> Grid:
        return Grid(
            caption=self._words(table.title) if isinstance(table.title, str | Text) else (),
            head=tuple(self._words(of.header) for of in table.columns) if table.show_header else (),
            rows=tuple(zip(*(self._cells(of) for of in table.columns), strict=True)),
            standing=tuple(_standing(of) for of in table.columns),
        )

    def _cells(self, column: Column) -> Iterator[Words]:
        for cell in column.cells:
            yield self._words(cell, str(column.style))

    def _words(self, cell: Any, style: str = "") -> Words:
        text = Text(visible(cell), end="") if isinstance(cell, str) else cell.copy()
        # The line break before a title is the terminal's way to leave room.
        text = text[len(text.plain) - len(text.plain.lstrip("\n")) :]
        text.end = ""
        whole = Style.parse(style)
        return tuple(
            # Of a text in one style, rich gives its pieces none.
            _run(
                "\n".join(map(visible, segment.text.split("\n"))),
                whole + (segment.style or Style.parse(str(text.style))),
            )
            for segment in text.render(self)
            if segment.text
        )


def _is_title(printed: Any) -> bool:
    return isinstance(printed, Text) and printed.plain.startswith("\n")


def _is_list(table: Table) -> bool:
    return not table.show_header and set(table.columns[0].cells) == {_BULLET}


def _standing(column: Column) -> Standing:
    if column.justify == "right":
        return "number"
    return "whole" if column.no_wrap else ""


def _run(words: str, style: Style) -> Run:
    colour = style.color.name if style.color is not None and style.color.name in _COLOURS else ""
    return Run(words, bool(style.bold), bool(style.dim), cast(Colour, colour))


def _seen(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))
