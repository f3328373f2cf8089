"""The console of what is printed as text; it loads rich alone, for lists that have no report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from evaluator.escape import escape


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
