"""``evaluate check``."""

from __future__ import annotations

from typing import Any

import typer

from evaluator.checks.options import CheckOptions
from evaluator.cli import options as o
from evaluator.cli.lending import takes
from evaluator.cli.reading import open_log, reads_log
from evaluator.errors import UsageError

# The exit code of a log that could be read, and is not fit: scripts tell it from one that could not be.
NOT_FIT = 4

EXAMPLES = (
    "Examples: evaluate check shop-log   |   evaluate check -d criteo_twin --path twin.tsv.gz --actions top:10 "
    "--propensity estimate"
)


@reads_log
@takes(CheckOptions, to="checking")
def check_command(
    reading: dict[str, Any],
    checking: dict[str, Any],
    log: o.Log = None,
    dataset: o.Dataset = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Say whether a log is fit for replay, by testing on it what a replay rests on.

    Each check gives a verdict, its number, what it means for a replay, and what to do. Exit code 4 when a check failed.
    """
    from evaluator.checks.run import check_log
    from evaluator.log.clusters import source_columns

    if log is not None and dataset is not None:
        raise UsageError("LOG and --dataset name two logs.", hint="leave one out.")
    options = CheckOptions(**checking)
    found = check_log(open_log(log or dataset, {**reading, "keep": source_columns(options.cluster_by)}).log, options)
    if as_json:
        o.print_json(found.to_dict())
    else:
        from evaluator.report.check import print_check

        print_check(o.stdout(), found)
    if not found.fit:
        raise typer.Exit(NOT_FIT)
