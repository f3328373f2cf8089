"""Print a table of the docs from the registry that it is of: ``python -m tests.packaging.tables policies``."""

from __future__ import annotations

import sys
from collections.abc import Callable

from evaluator.checks import registry as checks
from evaluator.datasets import names
from evaluator.datasets.resolve import dataset_spec
from evaluator.datasets.spec import ScenarioSpec
from evaluator.delays import law_names
from evaluator.policies import registry as policies


def datasets() -> list[str]:
    """Return the bundled datasets as a Markdown table, without the scenarios that share the folder of `synthetic`."""
    rows = ["| dataset | holds | licence |", "|---|---|---|"]
    for name in names():
        spec = dataset_spec(name)
        if spec is not None and (name in ("promotions", "synthetic") or not isinstance(spec, ScenarioSpec)):
            rows.append(f"| `{spec.name}` | {spec.title} | {spec.licence} |")
    return rows


TABLES: dict[str, Callable[[], list[str]]] = {
    "policies": policies.table,
    "checks": checks.table,
    "delays": law_names.table,
    "datasets": datasets,
}


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in TABLES:
        sys.exit(f"Name one table: {', '.join(TABLES)}.")
    print(*TABLES[sys.argv[1]](), sep="\n")
