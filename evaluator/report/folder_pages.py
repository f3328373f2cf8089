"""One page of the folders that commands wrote: what ``evaluate report`` makes, and its twin in Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluator.errors import ParameterError
from evaluator.report.chapter import read_chapter
from evaluator.report.html import page_of
from evaluator.report.known_log import with_known
from evaluator.report.over_time import in_order_of_time


def report_runs(folders: Sequence[str | Path]) -> str:
    """Return one self-contained page of HTML on results that commands wrote with ``--out``, a chapter each.

    Where several ask the same of logs of different dates (one command, policies, windows and options), how value,
    difference and checks moved stands first, and they follow in the order of these dates.

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
    """Return the page of `report_runs`, and a line on each run that is in no order though others of its kind are."""
    places = [Path(folder) for folder in folders]
    if not places:
        raise ParameterError("No folder is named.", hint="name those that commands wrote with --out.")
    found = in_order_of_time(places, with_known(places, [read_chapter(folder) for folder in places]))
    return page_of(found.chapters), found.left
