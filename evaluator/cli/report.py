"""The command ``evaluate report``: what results say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from evaluator.cli import options as o
from evaluator.cli.command_parameters import argument
from evaluator.cli.output import new_file
from evaluator.options.declaration import Option

EXAMPLES = "Examples: evaluate report run1   |   evaluate report run1 study1 audit1 -o decision.html"
_PAGE = Path("report.html")
FOLDERS = Option(default=..., help="Folders that commands wrote with --out")


def report_command(
    folders: Annotated[list[Path], argument(FOLDERS)],
    out: Annotated[Path, o.out_option("New file for the page", example="decision.html", default=_PAGE)] = _PAGE,
    debug: o.Debug = False,
) -> None:
    """Make one page of results: a chapter for each folder that a command wrote with --out.

    Where several ask the same of logs of different dates, their joint verdict stands first, with a chart of each policy
    along the dates and what changed. What a check or an audit of the same log found goes into the verdict of a
    comparison. The page is one file that needs no network and runs no script.
    """
    from evaluator.reports.manifest import write_text
    from evaluator.reports.result_files import told_page

    page, left = told_page(folders)
    with new_file(out) as save:
        save(write_text, page)
    for line in left:
        o.note(f"Not in the order of time: {line}")
    o.note(f"Wrote {out}.")
