"""The command ``evaluate check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evaluator.checks.options import CheckOptions
from evaluator.cli import options as o
from evaluator.cli.command_parameters import option, options_of
from evaluator.cli.options import one_log, open_log, origin, reads_log
from evaluator.cli.output import finish, new_folder, this_command, write_result
from evaluator.options.shared import KEPT

EXAMPLES = "Examples: evaluate check shop/spec.toml   |   evaluate check shop/spec.toml --cluster-by every:1d"


@reads_log
@options_of(CheckOptions, to="checking")
def check_command(
    reading: dict[str, Any],
    checking: dict[str, Any],
    log: o.Log = None,
    dataset: o.Dataset = None,
    full: o.Full = False,
    as_json: o.AsJson = False,
    out: Annotated[Path | None, o.out_option("New folder for page, findings, result, report and manifest")] = None,
    fail_on: Annotated[list[str] | None, option("fail_on", o.FAIL_ON.but(question=KEPT))] = None,
    debug: o.Debug = False,
) -> None:
    """Say whether a log is fit for replay, by testing on it what a replay rests on.

    Prints what failed and warned, with what it means for a replay and what to do; --full, the number of every check.
    Exit code 4 when a check failed.
    """
    from evaluator.checks.run import check_log
    from evaluator.log.column import LIKE_USERS, source_columns

    options, codes = CheckOptions(**checking), o.codes_of(fail_on)
    with new_folder(out) as save:
        source = open_log(one_log(log, dataset), reading, [*source_columns(options.cluster_by), LIKE_USERS])
        o.doing("Testing the log")
        report = check_log(source.log, options)
        save(write_result, report, source=origin(source, reading), command=this_command())
    finish(report, out, full=full, as_json=as_json)
    if not report.fit:
        raise typer.Exit(o.NOT_FIT)
    o.fail_on(codes, report.findings)
