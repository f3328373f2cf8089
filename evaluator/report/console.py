"""The console of reports, on which text is data."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from evaluator.report.command_words import in_command_words, option_mentions, spoken
from evaluator.visible import visible

T = TypeVar("T")


class ReportConsole(Console):
    """A console to which text is data: no word of it is markup, and no character steers the terminal.

    A string is one line, also in the cell of a table: its line breaks are spelled out. What is laid out over several
    lines is a `rich.text.Text`, into which labels go by `visible`.

    It is also the one place where what a result says of options, in the words of Python, becomes those of the command
    line.

    Parameters
    ----------
    **options
        Keywords of `rich.console.Console`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as it is to be shown."""
        return super().render_str(in_command_words(visible(text)), **{**options, "markup": False, "emoji": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is to be shown; a last look, at what came by way of `rich.text.Text`."""
        if isinstance(renderable, Text):
            renderable = _in_command_words(renderable)
        for segment in super().render(renderable, options):
            if segment.control or segment.text == "\n":
                yield segment
            else:
                yield segment._replace(text="\n".join(map(visible, segment.text.split("\n"))))


def as_text(show: Callable[[ReportConsole, T], None], result: T) -> str:
    """Return a report as plain text, which a file keeps: at most 100 columns wide."""
    file = io.StringIO()
    show(ReportConsole(file=file, width=100, color_system=None, force_terminal=False), result)
    return file.getvalue()


def _in_command_words(text: Text) -> Text:
    """Return a text whose options are named as on the command line: what results say of them speaks Python."""
    mentions = option_mentions(text.plain)
    if not mentions:
        return text
    done, end = text.blank_copy(), 0
    for found in mentions:
        done.append_text(text[end : found.start()])
        done.append(spoken(found))
        end = found.end()
    done.append_text(text[end:])
    return done
