"""``evaluate compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evaluator.cli import options as o
from evaluator.cli.reading import Dataset, open_log, reads_log
from evaluator.cli.replaying import OUTPUT, replays, write_out

EXAMPLES = (
    "Example: evaluate compare -p otflinucb:alpha=0.1 -p otflinucb:alpha=1 -p delayed-klucb --windows 500,2000 --jobs 2"
)


@reads_log
@replays
def compare_command(
    reading: dict[str, Any],
    replaying: dict[str, Any],
    policy: Annotated[
        list[str],
        typer.Option("--policy", "-p", help="As in replay; once for each policy: -p otflinucb:alpha=0.1 -p ucb1"),
    ],
    windows: Annotated[
        str | None,
        typer.Option("--windows", "-w", help="Cut-offs, each as in replay, or none: --windows 500,2000,7d,none"),
    ] = None,
    dataset: Dataset = None,
    as_json: o.AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", rich_help_panel=OUTPUT, help="New folder for trajectories, results and manifest: --out run1"
        ),
    ] = None,
    debug: o.Debug = False,
) -> None:
    """Replay several policies, each with several windows, in one scan of the log.

    Prints one line a policy and window; every number is the one that replay gives for it alone.
    """
    from evaluator.api import as_description
    from evaluator.evaluation.comparison import execute_comparison, plan_comparison
    from evaluator.evaluation.options import ReplayOptions

    if out is not None:
        from evaluator.atomic import refuse_existing

        refuse_existing(out)
    descriptions = [as_description(spec) for spec in policy]
    asked = [None if text.strip() == "none" else text.strip() for text in (windows or "none").split(",")]
    source = open_log(dataset, reading)
    plans = plan_comparison(source.log, descriptions, asked, ReplayOptions(**replaying))
    replays = 1 + plans[0].options.bootstrap
    with o.progress("displays", replays * max(len(plan.rounds) for plan in plans), compiles=True) as advance:
        found = execute_comparison(plans, advance=advance)
    if as_json:
        o.print_json(found.to_dict())
    else:
        from evaluator.report.comparison import print_comparison

        print_comparison(o.stdout(), found)
    if out is not None:
        write_out(out, found, source, reading)
