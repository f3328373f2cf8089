"""Sections that all reports share: findings with their codes, and a list of what only the full form prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaluator.findings.codes import CODES
from evaluator.findings.finding import Finding
from evaluator.reports.document import Section, Wordable, Words, listed, paragraph, section, words

TRUST = "Read before trusting the numbers"
# Sections of all candidates, of what to do next, and of the line that names what the short form leaves out.
CANDIDATES, NEXT, OMITTED = "candidates", "next", "omitted"
# Largest number of warnings that the short form prints in full.
_WARNINGS = 3
# Largest number of rows of a table in the short form.
FEW_ROWS = 8


def coded(findings: Sequence[Finding]) -> list[Words]:
    """Return the sentences of findings, each with the code that `evaluate explain` takes.

    A note of the log is shown unchanged: names of options in it are the log's own words.

    >>> [[run.text for run in words] for words in coded([CODES["no-wear-out"].found("users do not tire")])]
    [['users do not tire', ' [no-wear-out]']]
    """
    return [
        tuple(replace(run, verbatim=finding.severity == "note") for run in words(str(finding), f" [{finding.code}]"))
        for finding in findings
    ]


def interval_assumptions(findings: Sequence[Finding]) -> list[Words]:
    """Return the assumptions of an interval that not every replay makes."""
    return coded([finding for finding in findings if CODES[finding.code].of_intervals])


def cut_sentences(sentences: Sequence[Wordable], most: int = _WARNINGS) -> list[Wordable]:
    """Return all sentences if there are few; otherwise the first few and the number of the others.

    >>> cut_sentences(["one", "two", "three", "four", "five"])
    ['one', 'two', 'three', '2 more: --full prints them']
    """
    if len(sentences) <= most:
        return list(sentences)
    return [*sentences[:most], f"{len(sentences) - most:,} more: --full prints them"]


def warnings_section(sentences: Sequence[Wordable], *, full: bool) -> list[Section]:
    """Return the section of warnings, as a list that is empty if there are no warnings."""
    printed = list(sentences) if full else cut_sentences(sentences)
    return [listed(TRUST, printed, colour="yellow", id="warnings")] if printed else []


def name_omitted(*parts: str) -> Section:
    """Return the line that names what only the full form prints; empty parts are left out.

    >>> name_omitted("the law", "", "2 assumptions").blocks[0].words[0].text
    '--full prints the rest: the law, 2 assumptions.'
    """
    return section("", paragraph(f"--full prints the rest: {', '.join(filter(None, parts))}.", style="dim"), id=OMITTED)


def counted(number: int, what: str) -> str:
    """Return a count with its noun; empty for 0.

    >>> counted(1, "assumption"), counted(3, "assumption"), counted(0, "assumption")
    ('1 assumption', '3 assumptions', '')
    """
    return f"{number:,} {what}{'s' * (number > 1)}" if number else ""
