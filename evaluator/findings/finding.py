"""A finding: a warning, an assumption or a note that a result carries, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from evaluator.results.json_documents import JsonPart, Numbers, Text

Severity = Literal["fail", "warn", "assumption", "note"]


@dataclass(frozen=True, kw_only=True)
class Finding(JsonPart):
    """A warning, an assumption or a note that a reader must know before using a result.

    Parameters
    ----------
    code
        Code of the finding's kind in the catalogue: ``few-rounds``.
    severity
        ``fail`` (do not use the numbers until it is repaired), ``warn`` (read it before you trust the numbers),
        ``assumption`` (the numbers depend on it) or ``note`` (the log's own remark about itself).
    what
        Sentence or clause that says what was found.
    remedy
        Sentence that says what to do about it; empty where nothing needs to be done.
    about
        Name of the policy, action, column, outcome or line that the finding is about; empty for the whole result.
    numbers
        Numbers that the sentence quotes, by name.
    """

    code: str
    severity: Severity
    what: Text
    remedy: str = ""
    about: str = ""
    numbers: Numbers = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.what} {self.remedy}" if self.remedy else self.what


def having(findings: Iterable[Finding], *severities: Severity) -> tuple[Finding, ...]:
    """Return the findings of these severities, in their order."""
    return tuple(finding for finding in findings if finding.severity in severities)


def warnings_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings to read before the numbers: failures and warnings."""
    return having(findings, "fail", "warn")


def assumptions_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the assumptions that the numbers depend on, and the log's own notes."""
    return having(findings, "assumption", "note")


class WithFindings:
    """Base of results that have findings: it gives them as sentences."""

    __slots__ = ()
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences to read before the numbers."""
        return tuple(map(str, warnings_of(self.findings)))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences that say what the numbers depend on, and the log's own notes."""
        return tuple(map(str, assumptions_of(self.findings)))
