"""Print a table of the docs from the registry that it is of: ``python -m tests.packaging.tables policies``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from evaluator.checks import registry as checks
from evaluator.datasets import names
from evaluator.delays import law_names
from evaluator.policies.registry import POLICIES, describe
from evaluator.reading.resolve import dataset_spec
from evaluator.reading.spec import ScenarioSpec


def datasets() -> list[str]:
    """Return the bundled datasets as a Markdown table, without the scenarios that share the folder of `synthetic`."""
    rows = ["| dataset | holds | licence |", "|---|---|---|"]
    for name in names():
        spec = dataset_spec(name)
        if spec is not None and (name in ("promotions", "synthetic") or not isinstance(spec, ScenarioSpec)):
            rows.append(f"| `{spec.name}` | {spec.title} | {spec.licence} |")
    return rows


def policy_table() -> list[str]:
    """Return the table of the package's policies in Markdown: contexts read, what each does about delays, source."""
    rows = ["| policy | reads contexts | what it does about delays | source |", "|---|---|---|---|"]
    for said in map(describe, POLICIES):
        source = _citation(said.paper)
        reads = "yes" if said.contextual else "no"
        rows.append(f"| `{said.name}` | {reads} | {said.delays} | {source + ' ' if source else ''}|")
    return rows


def _citation(paper: str) -> str:
    """Return the first work that a policy's `paper` names, as tables cite it.

    ``Auer, Cesa-Bianchi, Fischer 2002, Figure 1`` is cited as ``Auer et al. 2002``.
    """
    if "heuristic" in paper:
        return "heuristic"
    work = re.match(r"(?P<authors>\D+) (?P<year>\d{4})", paper)
    if work is None:
        return paper
    authors = work["authors"].split(", ")
    return f"{', '.join(authors) if len(authors) < 3 else f'{authors[0]} et al.'} {work['year']}"


TABLES: dict[str, Callable[[], list[str]]] = {
    "policies": policy_table,
    "checks": checks.table,
    "delays": law_names.table,
    "datasets": datasets,
}


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in TABLES:
        sys.exit(f"Name one table: {', '.join(TABLES)}.")
    print(*TABLES[sys.argv[1]](), sep="\n")
