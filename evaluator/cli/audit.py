"""The command ``evaluate audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from evaluator.audits.options import AuditOptions
from evaluator.cli import options as o
from evaluator.cli.command_parameters import options_of
from evaluator.cli.options import one_log, open_log, origin, reading_options, reads_log
from evaluator.cli.output import finish, kept_output, this_command, write_result

EXAMPLES = (
    "Examples: evaluate audit -p otflinucb -p linucb -p random --window 2000 --twins 50   |   evaluate audit "
    "-d shop/spec.toml -p delayed-klucb -p ucb1 --window 7d --twins 50 --jobs 2 --out audit1"
)


@reads_log
@options_of(AuditOptions, to="auditing")
def audit_command(
    reading: dict[str, Any],
    auditing: dict[str, Any],
    policies: o.Policies,
    log: o.Log = None,
    dataset: o.Dataset = None,
    full: o.Full = False,
    as_json: o.AsJson = False,
    out: Annotated[
        Path | None, o.kept_out_option("twins, live runs, result, report and manifest", "audit", example="a1")
    ] = None,
    cluster: o.Cluster = None,
    debug: o.Debug = False,
) -> None:
    """Say what a replay can tell on a log like yours, by twins of it whose truth is known.

    Fits a truth to the log, draws logs like it, replays the policies on each and plays them live on the same truth.
    Prints the answer, bias, coverage of the intervals, and the smallest difference between policies that such a log
    shows. --full says how to read all that, and what the twins are.
    """
    from evaluator.arguments import as_descriptions
    from evaluator.audits.run import run_audit, steps
    from evaluator.comparisons.log_places import place_of
    from evaluator.log.column import LIKE_USERS
    from evaluator.outputs.kept_folder import KeptJobs

    asked = AuditOptions(**auditing)
    descriptions = as_descriptions(policies)
    named = one_log(log, dataset)
    with kept_output(out) as (folder, save), o.workers(cluster) as executor:
        store = None if folder is None else KeptJobs(folder, o.note)
        source = open_log(named, reading, [LIKE_USERS])
        # The fingerprint covers the whole log: with and without workers, results have the same keys.
        read = reading_options(reading, [LIKE_USERS])
        place = None if executor is None and store is None else place_of(source.log, named, read)
        with o.progress(
            "twins and runs",
            {"Replaying twins": asked.twins, "Playing live": steps(len(descriptions), asked) - asked.twins},
            compiles=cluster is None,
        ) as advance:
            audit = run_audit(
                source.log, descriptions, asked, advance=advance, kept=store, executor=executor, place=place
            )
        save(write_result, audit, source=origin(source, reading), command=this_command())
    finish(audit, out, full=full, as_json=as_json)
