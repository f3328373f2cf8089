"""The commands ``evaluate report`` and ``evaluate explain``: what results say, and what their codes mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from evaluator.cli import options as o
from evaluator.cli.command_parameters import argument
from evaluator.cli.output import new_file
from evaluator.options.declaration import Option

EXAMPLES = "Examples: evaluate report run1   |   evaluate report run1 study1 audit1 -o decision.html"
EXPLAIN_EXAMPLES = "Examples: evaluate explain few-rounds   |   evaluate explain"
_CODE = Option(default=None, help="Code of a finding, as reports and --json name it; without it, all are listed.")
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


def explain_command(
    code: Annotated[str | None, argument(_CODE, completes="finding")] = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Explain a warning, an assumption or a check by its code.

    Prints what it means, how it is found, what it does to the numbers, what to do, and an example that has it.
    """
    from evaluator.findings.catalogue import Catalogue, catalogue, explain

    entries = list(catalogue().values()) if code is None else [explain(code)]
    if as_json:
        o.print_json(Catalogue(tuple(entries)).to_dict())
        return
    from evaluator.reports.documents import entry_document, list_document

    o.show_document(list_document(entries) if code is None else entry_document(entries[0]))
