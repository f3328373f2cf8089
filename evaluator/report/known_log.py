"""Verdicts on a page that also knows a check or an audit of the same log: what these say goes into them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluator.comparisons.log_conditions import with_audit, with_checks
from evaluator.comparisons.verdict import Verdict
from evaluator.errors import SourceError
from evaluator.report.chapter import Chapter
from evaluator.report.document import Block, Section, VerdictBlock
from evaluator.report.manifest import AGAIN, read_json

_RESULT = "result.json"
_FINGERPRINT = "fingerprint"
_KNOWN: dict[str, Callable[[Verdict, Mapping[str, Any]], Verdict]] = {"check": with_checks, "audit": with_audit}


def with_known(folders: Sequence[Path], chapters: Sequence[Chapter]) -> list[Chapter]:
    """Return the chapters with verdicts that know the checks and audits among them, of the same log each.

    Parameters
    ----------
    folders
        Folders of the results.
    chapters
        Chapter of each.

    Raises
    ------
    SourceError
        The result of a check or of an audit cannot be read.
    """
    known = [
        (chapter.reproduce.get(_FINGERPRINT), _adding(_KNOWN[chapter.kind], folder / _RESULT))
        for folder, chapter in zip(folders, chapters, strict=True)
        if chapter.kind in _KNOWN
    ]

    def decided(chapter: Chapter) -> Chapter:
        of = chapter.reproduce.get(_FINGERPRINT)
        own = [add for fingerprint, add in known if fingerprint == of is not None]
        return replace(chapter, sections=tuple(_decided(section, own) for section in chapter.sections))

    return [decided(chapter) if chapter.kind == "compare" else chapter for chapter in chapters]


def _adding(add: Callable[[Verdict, Mapping[str, Any]], Verdict], path: Path) -> Callable[[Verdict], Verdict]:
    """Return what adds the result in a file to a verdict."""
    found = _read(path)

    def added(verdict: Verdict) -> Verdict:
        try:
            return add(verdict, found)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise SourceError(f"{path}: not as a command wrote it, at {error}.", hint=AGAIN) from None

    return added


def _decided(section: Section, known: Sequence[Callable[[Verdict], Verdict]]) -> Section:
    def block_of(block: Block) -> Block:
        if not isinstance(block, VerdictBlock):
            return block
        verdict = block.verdict
        for add in known:
            verdict = add(verdict)
        return replace(block, verdict=verdict)

    return replace(section, blocks=tuple(map(block_of, section.blocks)))


def _read(path: Path) -> dict[str, Any]:
    found = read_json(path)
    if not {"checks", "policies"} & found.keys():
        raise SourceError(f"{path}: not as a command wrote it.", hint=AGAIN)
    return found
