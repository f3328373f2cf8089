"""The document of any result: one function for each kind of result builds it; text, HTML and notebooks render it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module

from rich.console import Console

from evaluator.comparisons.verdict import Verdict
from evaluator.findings.catalogue import COMMANDS, Entry
from evaluator.reports.chapter import Chapter
from evaluator.reports.command_words import use_command_words
from evaluator.reports.document import (
    Block,
    Bullets,
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
from evaluator.reports.screen import fit_lines
from evaluator.reports.terminal import layout_of, print_document

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


def document_of(result: object, layout: Layout = FULL) -> Document:
    """Return the document of a result, a plan or a log, with options named as in Python.

    Parameters
    ----------
    result
        Result, plan or log that a function of `evaluator` returned.
    layout
        Room for the document, and whether it contains everything.

    Raises
    ------
    TypeError
        The object is neither a result nor a plan nor a log.
    """
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
