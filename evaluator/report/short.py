"""The short form of a report, which fits a screen: what it never leaves out, and how it names what it does."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from evaluator.findings.codes import CODES
from evaluator.findings.finding import Finding

# Warnings that are printed whole.
_WARNINGS = 3
# Rows of a table that are no screen by themselves.
FEW_ROWS = 8


def first_of(sentences: Sequence[str], most: int = _WARNINGS) -> list[str]:
    """Return sentences, or the first few and how many there are more.

    >>> first_of(["one", "two", "three", "four", "five"])
    ['one', 'two', 'three', '2 more: --full prints them']
    """
    if len(sentences) <= most:
        return list(sentences)
    return [*sentences[:most], f"{len(sentences) - most:,} more: --full prints them"]


def coded(findings: Sequence[Finding]) -> list[str]:
    """Return the sentences of findings, each with the code that `evaluate explain` takes.

    >>> coded([CODES["no-wear-out"].found("users do not tire")])
    ['users do not tire [no-wear-out]']
    """
    return [f"{found} [{found.code}]" for found in findings]


def of_intervals(findings: Sequence[Finding]) -> list[str]:
    """Return the assumptions that say on what an interval rests, beyond those of every replay."""
    return coded([found for found in findings if CODES[found.code].of_intervals])


def left_out(*parts: str) -> Text:
    r"""Return the line that names what only the full form prints; empty parts are none.

    >>> left_out("the law", "", "2 assumptions").plain.strip()
    '--full prints the rest: the law, 2 assumptions.'
    """
    return Text(f"\n--full prints the rest: {', '.join(filter(None, parts))}.", style="dim")


def counted(number: int, what: str) -> str:
    """Return a number of things, empty for none.

    >>> counted(1, "assumption"), counted(3, "assumption"), counted(0, "assumption")
    ('1 assumption', '3 assumptions', '')
    """
    return f"{number:,} {what}{'s' * (number > 1)}" if number else ""
