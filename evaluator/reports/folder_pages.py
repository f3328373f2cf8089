"""One page of the folders that commands wrote, for ``evaluate report`` and for `report_runs` in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluator.comparisons.conditions import with_audit, with_checks
from evaluator.comparisons.verdict import Verdict
from evaluator.errors import ParameterError, SourceError
from evaluator.reports.chapter import Chapter, read_chapter
from evaluator.reports.document import Block, Section, VerdictBlock
from evaluator.reports.html import page_of
from evaluator.reports.manifest import AGAIN, read_json
from evaluator.reports.over_time import order_by_time

_RESULT = "result.json"
_FINGERPRINT = "fingerprint"
_KNOWN: dict[str, Callable[[Verdict, Mapping[str, Any]], Verdict]] = {"check": with_checks, "audit": with_audit}


def report_runs(folders: Sequence[str | Path]) -> str:
    """Return one self-contained HTML page with a chapter for each result that a command wrote with ``--out``.

    Several results may answer the same question (one command, policies, windows and options) on logs of different
    dates. Then the first chapter has their joint verdict, a chart of each policy along the dates and what changed, and
    their chapters follow in the order of the dates.

    Parameters
    ----------
    folders
        Folders of the results.

    Raises
    ------
    SourceError
        A folder holds no result of this version, or is damaged.
    ParameterError
        No folder is named.

    Examples
    --------
    >>> from pathlib import Path
    >>> page = report_runs(["monday", "tuesday"])  # doctest: +SKIP
    >>> Path("watch.html").write_text(page, encoding="utf-8")  # doctest: +SKIP
    """
    return told_page(folders)[0]


def told_page(folders: Sequence[str | Path]) -> tuple[str, list[str]]:
    """Return the page of `report_runs`, and a line on each run that does not fit the order of time of the others."""
    places = [Path(folder) for folder in folders]
    if not places:
        raise ParameterError("No folder is named.", remedy="name those that commands wrote with --out.")
    ordered = order_by_time(places, add_known_results(places, [read_chapter(folder) for folder in places]))
    return page_of(ordered.chapters), ordered.left


def add_known_results(folders: Sequence[Path], chapters: Sequence[Chapter]) -> list[Chapter]:
    """Return the chapters, each verdict completed by the checks and audits of the same log.

    The chapters stand in the order of their folders.

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
        log = chapter.reproduce.get(_FINGERPRINT)
        additions = [add for fingerprint, add in known if fingerprint == log is not None]
        return replace(chapter, sections=tuple(_decided(section, additions) for section in chapter.sections))

    return [decided(chapter) if chapter.kind == "compare" else chapter for chapter in chapters]


def _adding(add: Callable[[Verdict, Mapping[str, Any]], Verdict], path: Path) -> Callable[[Verdict], Verdict]:
    """Return a function that adds the result in a file to a verdict."""
    result = read_json(path)
    if not {"checks", "policies"} & result.keys():
        raise SourceError(f"{path}: not as a command wrote it.", remedy=AGAIN)

    def added(verdict: Verdict) -> Verdict:
        try:
            return add(verdict, result)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise SourceError(f"{path}: not as a command wrote it, at {error}.", remedy=AGAIN) from None

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
