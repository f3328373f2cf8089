"""``evaluate replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evaluator.cli import options as o
from evaluator.cli.reading import LOG, open_log, reads_log

EXAMPLES = (
    "Examples: evaluate replay --policy otflinucb --window 2000   |   evaluate replay -d criteo_attribution "
    "--path log.tsv.gz --actions top:10 -p delayed-klucb --window 7d --propensity estimate"
)
_REPLAY, _ESTIMATE, _OUTPUT = "Replay", "Estimates", "Output"


@reads_log
def replay_command(
    reading: dict[str, Any],
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
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            "-d",
            rich_help_panel=LOG,
            help="Bundled name, a spec.toml, or a converted folder: --dataset my/spec.toml. Default: synthetic.",
        ),
    ] = None,
    clock: Annotated[
        str,
        typer.Option(
            "--clock",
            rich_help_panel=_REPLAY,
            help="traffic: a round is one display of live traffic. wall: the log's pace, faster than live.",
        ),
    ] = "traffic",
    traffic_share: Annotated[
        float,
        typer.Option(
            "--traffic-share", rich_help_panel=_REPLAY, help="Share of the traffic the policy will serve: 0.1"
        ),
    ] = 1.0,
    sampler: Annotated[
        str | None,
        typer.Option(
            "--sampler",
            rich_help_panel=_REPLAY,
            help="rejection, keep or queue. Default: the most efficient one that is unbiased here.",
        ),
    ] = None,
    propensity: Annotated[
        str | None,
        typer.Option(
            "--propensity",
            rich_help_panel=_REPLAY,
            help="column, uniform, estimate (frequencies) or estimate:context. Default: the log's own.",
        ),
    ] = None,
    accept_quantile: Annotated[
        float,
        typer.Option(
            "--accept-quantile",
            rich_help_panel=_REPLAY,
            help="Accept by this quantile of the propensities instead of the smallest: more rounds, some bias: 0.05",
        ),
    ] = 0.0,
    horizon: Annotated[
        int | None,
        typer.Option("--horizon", rich_help_panel=_REPLAY, help="Stop after this many rounds: --horizon 3000"),
    ] = None,
    delays: Annotated[
        str,
        typer.Option(
            "--delays",
            rich_help_panel=_REPLAY,
            help="Delay CDF for policies that need one: log (fitted to it), or geometric:500, fixed:30 in rounds.",
        ),
    ] = "log",
    seed: Annotated[
        int, typer.Option("--seed", rich_help_panel=_REPLAY, help="Seed of policy and sampler: --seed 7")
    ] = 0,
    repeats: Annotated[
        int,
        typer.Option("--repeats", rich_help_panel=_REPLAY, help="Replays with independent streams: --repeats 20"),
    ] = 1,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", rich_help_panel=_REPLAY, help="Threads for repeats: --jobs 2")
    ] = 1,
    reward: Annotated[
        str,
        typer.Option(
            "--reward",
            rich_help_panel=_ESTIMATE,
            help="eventual: all conversions of a display. observed: those revealed by the last round.",
        ),
    ] = "eventual",
    immature: Annotated[
        str,
        typer.Option(
            "--immature",
            rich_help_panel=_ESTIMATE,
            help="Displays too young at the end of the log: drop, or correct by the delay CDF.",
        ),
    ] = "drop",
    level: Annotated[
        float, typer.Option("--level", rich_help_panel=_ESTIMATE, help="Level of the intervals: --level 0.9")
    ] = 0.95,
    as_json: o.AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            rich_help_panel=_OUTPUT,
            help="New folder for trajectory, result and manifest: --out run1",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", rich_help_panel=_OUTPUT, help="Print every choice the replay would make, and stop."),
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

    if out is not None:
        from evaluator.atomic import refuse_existing

        refuse_existing(out)
    description = as_description(policy)
    chosen = ReplayOptions(
        window=window, horizon=horizon, clock=clock, traffic_share=traffic_share, sampler=sampler,  # type: ignore[arg-type]
        propensity=propensity, accept_quantile=accept_quantile, delays=delays, reward=reward,  # type: ignore[arg-type]
        immature=immature, seed=seed, repeats=repeats, jobs=jobs, level=level,  # type: ignore[arg-type]
    )  # fmt: skip
    source = open_log(dataset, reading)
    plan = plan_replay(source.log, description, chosen)
    if dry_run:
        o.print_json({"schema": "evaluate.plan/1", **plan.to_dict()})
        return
    with o.progress("displays", len(plan.rounds) * repeats) as advance:
        result = execute(plan, advance=advance)
    if as_json:
        o.print_json(result.to_dict())
    else:
        from evaluator.report.terminal import print_result

        print_result(o.stdout(), result)
    if out is not None:
        from evaluator.report.files import write_result

        meta = source.log.meta
        origin = {"dataset": meta.name, "fingerprint": meta.fingerprint, "reading": reading}
        write_result(out, result, source=origin, quarantine=source.quarantine)
        o.note(f"Wrote {out}/trajectory.parquet, result.json and manifest.json.")
