"""Verdicts on a page that also knows a check or an audit of the same log: what these say goes into them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluator.comparisons.log_conditions import with_audit, with_checks
from evaluator.comparisons.verdict import Verdict
from evaluator.errors import SourceError
from evaluator.report.blocks import Block, Section, VerdictBlock
from evaluator.report.chapter import Chapter

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
        (chapter.reproduce.get(_FINGERPRINT), _KNOWN[chapter.kind], _read(folder / _RESULT))
        for folder, chapter in zip(folders, chapters, strict=True)
        if chapter.kind in _KNOWN
    ]

    def decided(chapter: Chapter) -> Chapter:
        of = chapter.reproduce.get(_FINGERPRINT)
        own = [(add, found) for fingerprint, add, found in known if fingerprint == of is not None]
        return replace(chapter, sections=tuple(_decided(section, own) for section in chapter.sections))

    return [decided(chapter) if chapter.kind == "compare" else chapter for chapter in chapters]


def _decided(
    section: Section, known: Sequence[tuple[Callable[[Verdict, Mapping[str, Any]], Verdict], Mapping[str, Any]]]
) -> Section:
    def block_of(block: Block) -> Block:
        if not isinstance(block, VerdictBlock):
            return block
        verdict = block.verdict
        for add, found in known:
            verdict = add(verdict, found)
        return VerdictBlock(verdict)

    return replace(section, blocks=[block_of(block) for block in section.blocks])


def _read(path: Path) -> dict[str, Any]:
    again = "run the command again with --out."
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"{path}: cannot be read ({error}).", hint=again) from None
    if not isinstance(found, dict) or not {"checks", "policies"} & found.keys():
        raise SourceError(f"{path}: not as a command wrote it.", hint=again)
    return found
