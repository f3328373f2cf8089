"""Documents as text, on a terminal of any width, in a pipe or in a file.

The short form has at most as many lines as the smallest terminal shows, whatever the result. What does not fit is taken
away in one order for all results: sections that explain, the ends of long sentences, notes in dim print, rows of long
tables, then whole sections from the last one on. The answer, which is the first section, what to do next and each
warning's code stay. The last line names what is left out, and the option that prints it.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.escape import escape
from evaluator.reports import document as doc
from evaluator.reports.console import ReportConsole

if TYPE_CHECKING:
    from evaluator.comparisons.verdict import Verdict

DO = "What to do: "
SETTLE = "What would settle it:"
VERDICT_STYLES = {"ship": "bold green", "wait": "bold yellow", "don't": "bold red"}
CHECK_STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red", "not applicable": "dim"}
# Sign, word and colour of the verdicts; each of the three suffices to tell the verdicts apart.
MARKS = {True: ("✓", "met", "green"), False: ("✗", "not met", "red"), None: ("?", "open", "yellow")}
# Lines of the smallest terminal.
LINES = 24
# Smallest number of characters of a name on one line; the rest of the name may stand on further lines.
_NAME = 12
# Sections that are cut but never left out.
_STAY = (doc.CANDIDATES, "warnings", doc.NEXT)
# Rows that a table keeps at least, and sentences a list.
_FEW = 3
# Characters of the sign and the blank before a sentence of a list, with the indent of its section.
_BULLET = 4


def layout_of(console: Console, *, full: bool = True) -> doc.Layout:
    """Return the layout that fits a console."""
    return doc.Layout(full, console.width, console.options.ascii_only)


def fits(table: doc.Grid, layout: doc.Layout, longest: int) -> bool:
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


def print_document(console: Console, document: doc.Document) -> None:
    """Print a document, with a blank line before each section, and the blocks of a section indented below its title."""
    for i, section in enumerate(document.sections):
        if i:
            console.print()
        if section.title:
            console.print(_text(section.title))
        for block in section.blocks:
            for part in _renderables(block):
                console.print(Padding(part, (0, 0, 0, 2), expand=False) if section.title else part)


def text_of(document: doc.Document, *, width: int = 100) -> str:
    """Return a document as plain text for a file."""
    file = io.StringIO()
    print_document(ReportConsole(file=file, width=width, color_system=None, force_terminal=False), document)
    return file.getvalue()


def _renderables(block: doc.Block) -> Iterator[RenderableType]:
    match block:
        case doc.Paragraph():
            yield _text(block.words)
        case doc.Bullets():
            table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
            table.add_column(no_wrap=True)
            table.add_column()
            for item in block.items:
                table.add_row("-", _text(item))
            yield table
        case doc.Grid():
            yield _table(block)
        case doc.VerdictBlock():
            yield from _verdict(block.verdict)
        case doc.Lights():
            yield from _lights(block)


def _text(words: doc.Words) -> Text:
    return Text.assemble(*((run.text, _style(run.bold, run.dim, run.colour)) for run in words))


def _style(bold: bool, dim: bool, colour: str = "") -> str:
    return " ".join(filter(None, ("bold" if bold else "", "dim" if dim else "", colour)))


def _table(grid: doc.Grid) -> Table:
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
    from evaluator.reports.decision_words import rule_text, stakes

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


def _lights(block: doc.Lights) -> Iterator[RenderableType]:
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
        for light in sorted(block.lights, key=lambda light: light.verdict):
            if light.verdict in ("fail", "warn"):
                lines = [light.what, *([f"{DO}{light.remedy}"] if light.remedy else [])]
                yield Text.assemble("\n", (light.verdict, CHECK_STYLES[light.verdict]), "  ", (light.name, "bold"))
                yield Padding(Group(*lines), (0, 0, 0, 2), expand=False)


def fit_lines(document: doc.Document, console: Console) -> doc.Document:
    """Return a document that prints as at most `LINES` lines, if its answer alone does not need more.

    The document is in its short form; the console is the one that will print it.
    """
    last = next((part for part in document.sections if part.id == doc.OMITTED), None)
    sections = [part for part in document.sections if part is not last]
    heights = [_height(part, console) for part in sections]
    omitted: list[str] = []

    def excess() -> int:
        closing = last if not omitted else _closing(last, omitted, console)
        parts = [*heights, *([] if closing is None else [_height(closing, console)])]
        return sum(parts) + len(parts) - 1 - LINES

    for cut in _CUTS:
        for i in reversed(range(len(sections))):
            too_many = excess()
            if too_many <= 0:
                break
            if i == 0 and cut in (_fold, _fold_explaining):
                continue
            new = cut(sections[i], too_many, console)
            if new is sections[i]:
                continue
            if cut in _NAMED and (name := _short_name(sections[i])) not in omitted:
                omitted.insert(0, name)
            if new is None:
                del sections[i], heights[i]
            else:
                sections[i], heights[i] = new, _height(new, console)
    closing = last if not omitted else _closing(last, omitted, console)
    return replace(document, sections=(*sections, *([] if closing is None else [closing])))


def _height(part: doc.Section, console: Console) -> int:
    """Return the number of lines of a section."""
    return _lines_at(console.width, part)


@lru_cache(maxsize=32)  # a table of thousands of rows is printed once, not at every cut elsewhere
def _lines_at(width: int, part: doc.Section) -> int:
    file = io.StringIO()
    plain = ReportConsole(file=file, width=width, color_system=None, force_terminal=False)
    print_document(plain, doc.Document("", "", (part,)))
    return file.getvalue().count("\n")


def _fold_explaining(part: doc.Section, too_many: int, console: Console) -> doc.Section | None:
    return None if part.folded else part


def _shorten_sentences(part: doc.Section, too_many: int, console: Console) -> doc.Section:
    """Leave of sentences of a list what fits a line, the longest ones first; their codes stay."""
    room, wanted = console.width - _BULLET, _height(part, console) - too_many
    long = [item for block in part.blocks if isinstance(block, doc.Bullets) for item in block.items]
    for item in sorted(long, key=lambda item: len(_plain(item)), reverse=True):
        if len(_plain(item)) <= room or _height(part, console) <= wanted:
            break
        short = _one_line(item, room)
        blocks = (
            doc.Bullets(tuple(short if one is item else one for one in block.items))
            if isinstance(block, doc.Bullets)
            else block
            for block in part.blocks
        )
        part = replace(part, blocks=tuple(blocks))
    return part


def _one_line(sentence: doc.Words, room: int) -> doc.Words:
    """Return as many of its words as fit a line, and its code, which is its last part in brackets."""
    code = sentence[-1].text if len(sentence) > 1 and sentence[-1].text.startswith(" [") else ""
    said = _plain(sentence[:-1] if code else sentence)
    kept = said[: max(room - len(code) - 3, 0)].rpartition(" ")[0].rstrip(",;: ")
    return replace(sentence[0], text=f"{kept}..."), *(sentence[-1:] if code else ())


def _drop_notes(part: doc.Section, too_many: int, console: Console) -> doc.Section:
    """Leave out paragraphs that are dim from their first to their last word."""

    def is_note(block: doc.Block) -> bool:
        return isinstance(block, doc.Paragraph) and bool(block.words) and all(run.dim for run in block.words)

    return _with_blocks(part, (block for block in part.blocks if not is_note(block)))


def _cut_rows(part: doc.Section, too_many: int, console: Console) -> doc.Section:
    """Cut the longest table as far as needed, and say how many rows are left out."""
    tables = [block for block in part.blocks if isinstance(block, doc.Grid)]
    longest = max(tables, key=lambda table: len(table.rows), default=None)
    if longest is None or len(longest.rows) <= _FEW + 1:
        return part

    def with_rows(kept: int) -> doc.Section:
        more = doc.paragraph(f"{len(longest.rows) - kept:,} more: --full", style="dim")
        short = (replace(longest, rows=longest.rows[:kept]), more)
        blocks = [one for block in part.blocks for one in (short if block is longest else (block,))]
        return replace(part, blocks=tuple(blocks))

    wanted = _height(part, console) - too_many
    most = max(min(len(longest.rows) - 2, wanted), _FEW)  # a row takes a line or more
    kept = bisect_right(range(_FEW, most + 1), wanted, key=lambda kept: _height(with_rows(kept), console))
    return with_rows(max(_FEW + kept - 1, _FEW))


def _fold(part: doc.Section, too_many: int, console: Console) -> doc.Section | None:
    """Leave out the last blocks, as many as needed, each with the words that introduce it."""
    if part.id in _STAY:
        return part
    wanted, blocks = _height(part, console) - too_many, part.blocks
    while blocks and _height(replace(part, blocks=blocks), console) > wanted:
        blocks = blocks[:-1]
        while blocks and isinstance(last := blocks[-1], doc.Paragraph) and _plain(last.words).endswith(":"):
            blocks = blocks[:-1]
    return replace(part, blocks=blocks) if blocks else None


def _cut_sentences(part: doc.Section, too_many: int, console: Console) -> doc.Section:
    """Cut lists: the last sentence then says how many are left out."""

    def cut(block: doc.Bullets) -> doc.Bullets:
        kept = max(len(block.items) - too_many - 1, 1)
        if kept + 1 >= len(block.items):
            return block
        return doc.Bullets((*block.items[:kept], doc.paragraph(f"{len(block.items) - kept:,} more: --full").words))

    return _with_blocks(part, (cut(block) if isinstance(block, doc.Bullets) else block for block in part.blocks))


def _with_blocks(part: doc.Section, blocks: Iterable[doc.Block]) -> doc.Section:
    """Return the section with these blocks; the same section if they are as before."""
    new = tuple(blocks)
    return part if new == part.blocks else replace(part, blocks=new)


def _plain(cell: doc.Words) -> str:
    return "".join(run.text for run in cell)


def _short_name(part: doc.Section) -> str:
    """Return what the last line calls a section: the bold words of its title."""
    name = part.title[0].text.strip() if part.title else "notes"
    return f"{name[:1].lower()}{name[1:]}"


def _closing(last: doc.Section | None, omitted: Sequence[str], console: Console) -> doc.Section:
    """Return the last line, which names what is left out, and no more of it than fits the line."""
    names = list(omitted)
    if last is not None:
        block = last.blocks[0]
        assert isinstance(block, doc.Paragraph)
        names += _plain(block.words).partition(": ")[2].rstrip(".").split(", ")
    while _height(closing := doc.name_omitted(*names), console) > 1 and len(names) > 1:
        names = [*names[:-2], "and more"] if names[-1] == "and more" else [*names[:-1], "and more"]
    return closing


_CUTS = (_fold_explaining, _shorten_sentences, _drop_notes, _cut_rows, _fold, _cut_sentences)
# Those after which the last line names the section; the others leave a sign where they cut.
_NAMED = (_fold_explaining, _drop_notes, _fold)
