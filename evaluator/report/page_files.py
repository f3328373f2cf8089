"""The page of a result, ``report.html``, and ``chapter.json``, from which pages of several results are made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator.report.chapter import write_chapter
from evaluator.report.chapters import Report, chapter_of
from evaluator.report.log_dates import log_dates
from evaluator.report.manifest import MANIFEST, versions, write_text
from evaluator.report.page import PAGE, page_of


def write_page(folder: Path, found: Report, *, command: str, source: Mapping[str, Any] | None = None) -> None:
    """Write the page of a result, and the chapter that it is of other pages.

    Parameters
    ----------
    folder
        Folder of the result.
    found
        Report of the result, as of `evaluator.report.chapters.report_of`.
    command
        Command that gave it; empty for none.
    source
        Facts about where its log came from.
    """
    facts = {"command": command, **{name: str((source or {}).get(name) or "") for name in ("dataset", "fingerprint")}}
    facts["dates of the log"] = str(log_dates((source or {}).get("log")) or "")
    facts["versions"] = ", ".join(f"{name} {number}" for name, number in versions().items())
    facts["manifest"] = f"{MANIFEST}, beside this page: every option, and the checksum of every file"
    chapter = chapter_of(found, {name: fact for name, fact in facts.items() if fact})
    write_chapter(folder, chapter)
    write_text(folder / PAGE, page_of([chapter]))
