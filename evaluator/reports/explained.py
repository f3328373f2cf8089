"""The catalogue of findings as documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaluator.findings.catalogue import COMMANDS, Entry
from evaluator.reports.document import Document, Words, column, grid, lines, paragraph, run, section


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
