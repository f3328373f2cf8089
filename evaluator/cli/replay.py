"""``evaluate replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evaluator.cli import options as o
from evaluator.cli.reading import Dataset, open_log, reads_log
from evaluator.cli.replaying import OUTPUT, replays, write_out

EXAMPLES = (
    "Examples: evaluate replay --policy otflinucb --window 2000   |   evaluate replay -d criteo_attribution "
    "--path log.tsv.gz --actions top:10 -p delayed-klucb --window 7d --propensity estimate"
)


@reads_log
@replays
def replay_command(
    reading: dict[str, Any],
    replaying: dict[str, Any],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            help="name[:parameter=value,...], or path/to/mine.py:Class: -p otflinucb:alpha=0.1",
        ),
    ],
    window: Annotated[
        str | None,
        typer.Option("--window", "-w", help="Cut-off of the system: rounds (2000) or a duration (7d). Default: none."),
    ] = None,
    dataset: Dataset = None,
    as_json: o.AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            rich_help_panel=OUTPUT,
            help="New folder for trajectory, result and manifest: --out run1",
        ),
    ] = None,
    save_policy: Annotated[
        Path | None,
        typer.Option(
            "--save-policy",
            rich_help_panel=OUTPUT,
            help="New file for what the policy has learned (of the first repeat): --save-policy learned.npz",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", rich_help_panel=OUTPUT, help="Print every choice the replay would make, and stop."),
    ] = False,
    debug: o.Debug = False,
) -> None:
    """Replay a policy on a log: what it would have earned, with delayed and censored feedback.

    Prints value, regret against the best fixed action and uplift over the logging policy, each with an interval that
    holds at any stopping time, and what they rest on.
    """
    from evaluator.api import as_description
    from evaluator.evaluation.execute import execute
    from evaluator.evaluation.options import ReplayOptions
    from evaluator.evaluation.plan import plan_replay
    from evaluator.outputs.whole import refuse_existing, refuse_outputs
    from evaluator.replayer.policy_file import refuse_unsavable

    if out is not None:
        refuse_existing(out)
    description = as_description(policy)
    if save_policy is not None:
        refuse_unsavable(description)
        refuse_outputs([save_policy])
    chosen = ReplayOptions(window=window, **replaying)
    source = open_log(dataset, reading, chosen.keeps)
    plan = plan_replay(source.log, description, chosen)
    if dry_run:
        o.print_json({"schema": "evaluate.plan/1", **plan.to_dict()})
        return
    with o.progress("displays", len(plan.rounds) * (1 + chosen.bootstrap), compiles=True) as advance:
        result = execute(plan, advance=advance)
    if as_json:
        o.print_json(result.to_dict())
    else:
        from evaluator.report.terminal import print_result

        print_result(o.stdout(), result)
    if out is not None:
        write_out(out, result, source, reading)
    if save_policy is not None and result.learned is not None:
        result.learned.save(save_policy)
        o.note(f"Wrote {save_policy}: evaluator.load_policy reads it.")
