"""The terminal's report as HTML: the same sentences and cells, laid out by the page that shows them."""

from __future__ import annotations

import html
import io
from collections.abc import Iterator
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from evaluator.report.console import ReportConsole
from evaluator.visible import visible

# Seen on light and dark backgrounds alike: about as far from white as from black.
COLOURS = {"green": "#1f8a45", "yellow": "#a86a00", "red": "#d5433f", "cyan": "#1c86a5"}
_BULLET = "-"
# As wide as reports lay out their full tables.
_WIDTH = 120


class HtmlConsole(ReportConsole):
    """A console whose lines become HTML; every text is escaped, and no character of it steers anything.

    What follows a line break in bold is a title, under which the next things stand until a blank line.

    Parameters
    ----------
    folded
        Titles of the parts that are shown on a click only.
    """

    has_picture = True

    def __init__(self, folded: frozenset[str] = frozenset()) -> None:
        super().__init__(file=io.StringIO(), width=_WIDTH, force_terminal=False)
        self._folded = folded
        # Each section's title, None for none, and its blocks.
        self._sections: list[tuple[Text | None, list[str]]] = [(None, [])]

    def print(self, *objects: Any, style: Any = None, **options: Any) -> None:
        """Take what is printed."""
        if not objects:
            self._sections.append((None, []))
        for printed in objects:
            self._take(printed, str(style or ""))

    def sections(self) -> list[str]:
        """Return what was printed, in pieces: first what stands above all titles, then one a title."""
        return [self._section(title, blocks) for title, blocks in self._sections if title or blocks]

    def _take(self, printed: Any, style: str = "") -> None:
        if isinstance(printed, Group) and printed.renderables and _is_title(printed.renderables[0]):
            self._take(printed.renderables[0])
            for below in printed.renderables[1:]:
                self._take(below)
        elif _is_title(printed):
            self._sections.append((printed, []))
        else:
            self._sections[-1][1].append(self._block(printed, style))

    def _section(self, title: Text | None, blocks: list[str]) -> str:
        body = "".join(blocks)
        if title is None:
            return body
        words = self._inline(title)
        if title.plain.strip() in self._folded:
            return f"<details><summary>{words}</summary>{body}</details>"
        return f'<p class="title">{words}</p>{body}'

    def _block(self, printed: Any, style: str = "") -> str:
        match printed:
            case str() | Text():
                return f"<p>{self._inline(printed, style)}</p>"
            case Padding():
                return self._block(printed.renderable, style)
            case Group():
                return "".join(self._block(part, style) for part in printed.renderables)
            case Table():
                return self._list(printed) if _is_list(printed) else self._table(printed)
        raise TypeError(f"A report prints a {type(printed).__name__}, which has no HTML yet.")

    def _list(self, table: Table) -> str:
        column = table.columns[1]
        items = "".join(f"<li>{self._inline(cell, str(column.style))}</li>" for cell in column.cells)
        return f"<ul>{items}</ul>"

    def _table(self, table: Table) -> str:
        head = ""
        if table.show_header:
            cells = "".join(f'<th scope="col"{_aligned(of)}>{self._inline(of.header)}</th>' for of in table.columns)
            head = f"<thead><tr>{cells}</tr></thead>"
        rows = zip(*(self._cells(of, first=i == 0) for i, of in enumerate(table.columns)), strict=True)
        body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
        caption = f"<caption>{self._inline(table.title)}</caption>" if isinstance(table.title, str | Text) else ""
        return f'<div class="wide"><table>{caption}{head}<tbody>{body}</tbody></table></div>'

    def _cells(self, column: Column, *, first: bool) -> Iterator[str]:
        tag, scope = ("th", ' scope="row"') if first else ("td", "")
        for cell in column.cells:
            yield f"<{tag}{scope}{_aligned(column)}>{self._inline(cell, str(column.style))}</{tag}>"

    def _inline(self, cell: Any, style: str = "") -> str:
        text = Text(visible(cell), end="") if isinstance(cell, str) else cell.copy()
        # The line break before a title is the terminal's way to leave room.
        text = text[len(text.plain) - len(text.plain.lstrip("\n")) :]
        text.end = ""
        found = []
        for segment in text.render(self):
            lines = "<br>".join(html.escape(visible(line)) for line in segment.text.split("\n"))
            # Of a text in one style, rich gives its pieces none.
            found.append(_styled(lines, segment.style or Style.parse(str(text.style))))
        return _styled("".join(found), Style.parse(style))


def _is_title(printed: Any) -> bool:
    return isinstance(printed, Text) and printed.plain.startswith("\n")


def _is_list(table: Table) -> bool:
    return not table.show_header and set(table.columns[0].cells) == {_BULLET}


def _aligned(column: Column) -> str:
    if column.justify == "right":
        return ' class="number"'
    return ' class="whole"' if column.no_wrap else ""


def _styled(words: str, style: Style | str | None) -> str:
    if not words or not isinstance(style, Style) or style == Style.null():
        return words
    said = []
    if style.bold:
        said.append("font-weight:600")
    if style.dim:
        said.append("opacity:.75")
    if style.color is not None and style.color.name in COLOURS:
        said.append(f"color:{COLOURS[style.color.name]}")
    return f'<span style="{";".join(said)}">{words}</span>' if said else words
