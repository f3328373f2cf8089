"""The document of any result: one function for each kind of result builds it; text, HTML and notebooks render it.

Its short form has at most as many lines as the smallest terminal shows, whatever the result. What does not fit is taken
away in one order for all results: sections that explain, the ends of long sentences, notes in dim print, rows of long
tables, then whole sections from the last one on. The answer, which is the first section, what to do next and each
warning's code stay. The last line names what is left out, and the option that prints it.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import import_module

from rich.console import Console

from evaluator.comparisons.verdict import Verdict
from evaluator.findings.catalogue import COMMANDS, Entry
from evaluator.reports.command_words import use_command_words
from evaluator.reports.document import (
    Block,
    Bullets,
    Chapter,
    Document,
    Grid,
    Layout,
    Lights,
    Paragraph,
    Section,
    VerdictBlock,
    Words,
    column,
    grid,
    lines,
    paragraph,
    run,
    section,
)
from evaluator.reports.shared_sections import CANDIDATES, NEXT, OMITTED, name_omitted
from evaluator.reports.terminal import ReportConsole, layout_of, print_document

FULL = Layout()
# The module and the function that build the document of each kind of result; modules are imported when needed.
_BUILDERS = {
    "Audit": ("audit", "document"),
    "CheckReport": ("check", "document"),
    "Comparison": ("comparison", "document"),
    "dict": ("dataset", "document"),
    "DelayStudy": ("delays", "document"),
    "Log": ("dataset", "document"),
    "ReplayPlan": ("replay", "plan_document"),
    "ReplayResult": ("replay", "document"),
    "Simulation": ("simulation", "document"),
}
# Lines of the smallest terminal.
LINES = 24
# Sections that are cut but never left out.
_STAY = (CANDIDATES, "warnings", NEXT)
# Rows that a table keeps at least, and sentences a list.
_FEW = 3
# Characters of the sign and the blank before a sentence of a list, with the indent of its section.
_BULLET = 4


def document_of(result: object, layout: Layout = FULL) -> Document:
    """Return the document of a result, a plan or a log, with options named as in Python; TypeError for others."""
    for kind in type(result).__mro__:
        if kind.__name__ in _BUILDERS:
            module, function = _BUILDERS[kind.__name__]
            document: Document = getattr(import_module(f"evaluator.reports.{module}"), function)(result, layout)
            return document
    raise TypeError(f"A {type(result).__name__} has no report.")


def chapter_of(result: object, reproduce: Mapping[str, str] | None = None, *, dates: str = "") -> Chapter:
    """Return a result as a chapter of a page: its document, its charts, and the facts that reproduce it.

    The facts are given by name; the dates are those of its log in words, empty where they are not known.
    """
    # Imported here, because a report on a terminal needs no charts.
    from evaluator.reports.charts import charts_of

    document = document_of(result, Layout(page=True, dates=dates))
    return Chapter(document.kind, document.title, document.sections, charts_of(result), reproduce or {})


def name_command_options(document: Document) -> Document:
    """Return a document in which options have their names of the command line."""
    return replace(document, sections=name_command_options_in_sections(document.sections))


def name_command_options_in_sections(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Return sections in which options have their names of the command line; words from the log stay unchanged."""
    translate = use_command_words

    def of_words(text: Words) -> Words:
        return tuple(part if part.verbatim else replace(part, text=translate(part.text)) for part in text)

    def of_verdict(verdict: Verdict) -> Verdict:
        candidates = tuple(
            replace(
                one,
                conditions=tuple(
                    replace(c, what=translate(c.what), remedy=translate(c.remedy)) for c in one.conditions
                ),
            )
            for one in verdict.candidates
        )
        return replace(
            verdict, headline=translate(verdict.headline), sentence=translate(verdict.sentence),
            settle=tuple(map(translate, verdict.settle)), candidates=candidates,
        )  # fmt: skip

    def of_block(block: Block) -> Block:
        match block:
            case Paragraph():
                return Paragraph(of_words(block.words))
            case Bullets():
                return Bullets(tuple(map(of_words, block.items)))
            case Grid():
                columns = tuple(replace(column, name=of_words(column.name)) for column in block.columns)
                rows = tuple(tuple(map(of_words, row)) for row in block.rows)
                return replace(block, columns=columns, rows=rows, caption=of_words(block.caption))
            case VerdictBlock():
                notes = tuple(map(translate, block.notes))
                return replace(block, verdict=of_verdict(block.verdict), notes=notes)
            case Lights():
                return replace(
                    block,
                    lights=tuple(
                        replace(
                            light,
                            number=translate(light.number),
                            what=translate(light.what),
                            remedy=translate(light.remedy),
                        )
                        for light in block.lights
                    ),
                )

    return tuple(
        replace(part, title=of_words(part.title), fold=of_words(part.fold), blocks=tuple(map(of_block, part.blocks)))
        for part in sections
    )


def show(console: Console, result: object, *, full: bool = True) -> None:
    """Print the report of a result with options named as on the command line: the full report, or one screen."""
    document = name_command_options(document_of(result, layout_of(console, full=full)))
    print_document(console, document if full else fit_lines(document, console))


def entry_document(entry: Entry) -> Document:
    """Return the document that explains a code."""
    examples = {"An example that has it": entry.example, "An example that has it no more": entry.mended}
    sections = (
        section("", paragraph(run(entry.code, "bold"), f": {entry.title}")),
        section("What it means", paragraph(entry.means.strip())),
        section("How it is found", paragraph(entry.how.strip())),
        section("What it does to the numbers", paragraph(entry.effect.strip())),
        section("What to do", paragraph(entry.remedy.strip())),
        *(section(title, paragraph(_python(code))) for title, code in examples.items() if code),
    )
    return Document("explain", entry.code, sections)


def list_document(entries: Sequence[Entry]) -> Document:
    """Return a document that lists every code with its title, by the command whose results have it."""
    sections = (
        section(
            command,
            grid(
                [column("", "whole"), column("")],
                [(entry.code, entry.title) for entry in entries if entry.command == command],
                headed=False,
            ),
        )
        for command in COMMANDS
    )
    return Document("explain", "Codes of findings", tuple(sections))


def _python(code: str) -> Words:
    """Return Python code as words in which options keep their names."""
    return tuple(replace(part, verbatim=True) for part in lines(*code.strip().splitlines()))


def fit_lines(document: Document, console: Console, most: int = LINES) -> Document:
    """Return a document that prints as at most `most` lines, if its answer alone does not need more.

    The document is in its short form; the console is the one that will print it.
    """
    last = next((part for part in document.sections if part.id == OMITTED), None)
    sections = [part for part in document.sections if part is not last]
    heights = [_height(part, console) for part in sections]
    omitted: list[str] = []

    def excess() -> int:
        closing = last if not omitted else _closing(last, omitted, console)
        parts = [*heights, *([] if closing is None else [_height(closing, console)])]
        return sum(parts) + len(parts) - 1 - most

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


def _height(part: Section, console: Console) -> int:
    """Return the number of lines of a section."""
    return _lines_at(console.width, part)


@lru_cache(maxsize=32)  # a table of thousands of rows is printed once, not at every cut elsewhere
def _lines_at(width: int, part: Section) -> int:
    file = io.StringIO()
    plain = ReportConsole(file=file, width=width, color_system=None, force_terminal=False)
    print_document(plain, Document("", "", (part,)))
    return file.getvalue().count("\n")


def _fold_explaining(part: Section, too_many: int, console: Console) -> Section | None:
    return None if part.folded else part


def _fold(part: Section, too_many: int, console: Console) -> Section | None:
    """Leave out the last blocks, as many as needed, each with the words that introduce it."""
    if part.id in _STAY:
        return part
    wanted, blocks = _height(part, console) - too_many, part.blocks
    while blocks and _height(replace(part, blocks=blocks), console) > wanted:
        blocks = blocks[:-1]
        while blocks and isinstance(last := blocks[-1], Paragraph) and _text(last.words).endswith(":"):
            blocks = blocks[:-1]
    return replace(part, blocks=blocks) if blocks else None


def _shorten_sentences(part: Section, too_many: int, console: Console) -> Section:
    """Leave of sentences of a list what fits a line, the longest ones first; their codes stay."""
    room, wanted = console.width - _BULLET, _height(part, console) - too_many
    long = [item for block in part.blocks if isinstance(block, Bullets) for item in block.items]
    for item in sorted(long, key=lambda item: len(_text(item)), reverse=True):
        if len(_text(item)) <= room or _height(part, console) <= wanted:
            break
        blocks = (_with_item(block, item, _one_line(item, room)) for block in part.blocks)
        part = replace(part, blocks=tuple(blocks))
    return part


def _with_item(block: Block, item: Words, short: Words) -> Block:
    return Bullets(tuple(short if one is item else one for one in block.items)) if isinstance(block, Bullets) else block


def _one_line(sentence: Words, room: int) -> Words:
    """Return as many of its words as fit a line, and its code, which is its last part in brackets."""
    code = sentence[-1].text if len(sentence) > 1 and sentence[-1].text.startswith(" [") else ""
    said = _text(sentence[:-1] if code else sentence)
    kept = said[: max(room - len(code) - 3, 0)].rpartition(" ")[0].rstrip(",;: ")
    return replace(sentence[0], text=f"{kept}..."), *(sentence[-1:] if code else ())


def _drop_notes(part: Section, too_many: int, console: Console) -> Section:
    """Leave out paragraphs that are dim from their first to their last word."""

    def is_note(block: Block) -> bool:
        return isinstance(block, Paragraph) and bool(block.words) and all(run.dim for run in block.words)

    return _with_blocks(part, (block for block in part.blocks if not is_note(block)))


def _cut_rows(part: Section, too_many: int, console: Console) -> Section:
    """Cut the longest table as far as needed, and say how many rows are left out."""
    tables = [block for block in part.blocks if isinstance(block, Grid)]
    longest = max(tables, key=lambda table: len(table.rows), default=None)
    if longest is None or len(longest.rows) <= _FEW + 1:
        return part

    def with_rows(kept: int) -> Section:
        more = paragraph(f"{len(longest.rows) - kept:,} more: --full", style="dim")
        short = (replace(longest, rows=longest.rows[:kept]), more)
        blocks = [one for block in part.blocks for one in (short if block is longest else (block,))]
        return replace(part, blocks=tuple(blocks))

    wanted = _height(part, console) - too_many
    most = max(min(len(longest.rows) - 2, wanted), _FEW)  # a row takes a line or more
    kept = bisect_right(range(_FEW, most + 1), wanted, key=lambda kept: _height(with_rows(kept), console))
    return with_rows(max(_FEW + kept - 1, _FEW))


def _cut_sentences(part: Section, too_many: int, console: Console) -> Section:
    """Cut lists: the last sentence then says how many are left out."""

    def cut(block: Bullets) -> Bullets:
        kept = max(len(block.items) - too_many - 1, 1)
        if kept + 1 >= len(block.items):
            return block
        return Bullets((*block.items[:kept], paragraph(f"{len(block.items) - kept:,} more: --full").words))

    return _with_blocks(part, (cut(block) if isinstance(block, Bullets) else block for block in part.blocks))


def _with_blocks(part: Section, blocks: Iterable[Block]) -> Section:
    """Return the section with these blocks; the same section if they are as before."""
    new = tuple(blocks)
    return part if new == part.blocks else replace(part, blocks=new)


def _text(cell: Words) -> str:
    return "".join(run.text for run in cell)


def _short_name(part: Section) -> str:
    """Return what the last line calls a section: the bold words of its title."""
    name = part.title[0].text.strip() if part.title else "notes"
    return f"{name[:1].lower()}{name[1:]}"


def _closing(last: Section | None, omitted: Sequence[str], console: Console) -> Section:
    """Return the last line, which names what is left out, and no more of it than fits the line."""
    names = list(omitted)
    if last is not None:
        block = last.blocks[0]
        assert isinstance(block, Paragraph)
        names += _text(block.words).partition(": ")[2].rstrip(".").split(", ")
    while _height(closing := name_omitted(*names), console) > 1 and len(names) > 1:
        names = [*names[:-2], "and more"] if names[-1] == "and more" else [*names[:-1], "and more"]
    return closing


_CUTS = (_fold_explaining, _shorten_sentences, _drop_notes, _cut_rows, _fold, _cut_sentences)
# Those after which the last line names the section; the others leave a sign where they cut.
_NAMED = (_fold_explaining, _drop_notes, _fold)
