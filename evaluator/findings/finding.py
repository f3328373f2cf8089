"""One thing that a reader must know of a result: what was found, and what helps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from evaluator.results.json_documents import JsonPart, Numbers, Text

Severity = Literal["fail", "warn", "assumption", "note"]


@dataclass(frozen=True, kw_only=True)
class Finding(JsonPart):
    """One thing that a reader must know of a result.

    Parameters
    ----------
    code
        Name of its kind in the catalogue (`evaluator.findings.codes`): ``few-rounds``.
    severity
        ``fail`` (believe no number before it is repaired), ``warn`` (read it before you trust the numbers),
        ``assumption`` (the numbers rest on it) or ``note`` (what the log says of itself).
    what
        Sentence or clause that says what was found.
    remedy
        Sentence that says what to do about it; empty where nothing is to be done.
    about
        Name of the policy, action, column, outcome or line that it is about; empty for the whole result.
    numbers
        Numbers of the sentence, by name.
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
    """Return what to read before the numbers."""
    return having(findings, "fail", "warn")


def assumptions_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return what the numbers rest on, and the log's own notes."""
    return having(findings, "assumption", "note")


class WithFindings:
    """What a result of `findings` says in sentences."""

    __slots__ = ()
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences to read before the numbers."""
        return tuple(map(str, warnings_of(self.findings)))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences that the numbers rest on, and the log's own notes."""
        return tuple(map(str, assumptions_of(self.findings)))
