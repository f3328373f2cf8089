"""The command ``evaluate explain``: what the codes of findings mean."""

from __future__ import annotations

from typing import Annotated

from evaluator.cli import options as o
from evaluator.cli.command_parameters import argument
from evaluator.options.declaration import Option

EXAMPLES = "Examples: evaluate explain few-rounds   |   evaluate explain"
_CODE = Option(default=None, help="Code of a finding, as reports and --json name it; without it, all are listed.")


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
