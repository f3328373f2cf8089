"""Options of every command that replays policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evaluator.cli.lending import lends
from evaluator.cli.output import Save

if TYPE_CHECKING:
    from evaluator.comparisons.result import Comparison
    from evaluator.datasets import Reading
    from evaluator.replays.result import ReplayResult

REPLAY, ESTIMATE, OUTPUT = "Replay", "Estimates", "Output"


def _replaying(
    clock: Annotated[
        str,
        typer.Option(
            "--clock",
            rich_help_panel=REPLAY,
            help="traffic: a round is one display of live traffic. wall: the log's pace, faster than live.",
        ),
    ] = "traffic",
    traffic_share: Annotated[
        float,
        typer.Option(
            "--traffic-share",
            rich_help_panel=REPLAY,
            help="Share of the traffic the policy will serve: 0.1, or 2 for twice what was logged",
        ),
    ] = 1.0,
    sampler: Annotated[
        str | None,
        typer.Option(
            "--sampler",
            rich_help_panel=REPLAY,
            help="rejection, keep or queue. Default: keep for policies without contexts, where the logger is even or "
            "its propensities unknown, else rejection; both are right under drift, queue is not.",
        ),
    ] = None,
    propensity: Annotated[
        str | None,
        typer.Option(
            "--propensity",
            rich_help_panel=REPLAY,
            help="column, uniform, estimate (frequencies) or estimate:context. Default: the log's own.",
        ),
    ] = None,
    accept_quantile: Annotated[
        float,
        typer.Option(
            "--accept-quantile",
            rich_help_panel=REPLAY,
            help="Accept by this quantile of the propensities instead of the smallest: more rounds, some bias: 0.05",
        ),
    ] = 0.0,
    horizon: Annotated[
        int | None,
        typer.Option("--horizon", rich_help_panel=REPLAY, help="Stop after this many rounds: --horizon 3000"),
    ] = None,
    delays: Annotated[
        str,
        typer.Option(
            "--delays",
            rich_help_panel=REPLAY,
            help="Delay CDF for policies that need one: log (fitted to it), a law in rounds (geometric:500, "
            "fixed:30, pareto:0.7...), or a file of evaluate delays: how-late/fit.json",
        ),
    ] = "log",
    delays_from: Annotated[
        str | None,
        typer.Option(
            "--delays-from",
            rich_help_panel=REPLAY,
            help="first:20%: fit delays to what was known by then, and leave those displays out. Default: hindsight.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", rich_help_panel=REPLAY, help="Seed of policy and sampler: --seed 7")
    ] = 0,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats", rich_help_panel=REPLAY, help="Replays of as many orders of the log, averaged: --repeats 20"
        ),
    ] = 1,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", rich_help_panel=REPLAY, help="Threads; no result depends on it: --jobs 2")
    ] = 1,
    reward: Annotated[
        str,
        typer.Option(
            "--reward",
            rich_help_panel=ESTIMATE,
            help="eventual: all conversions of a display. observed: those revealed by the last round.",
        ),
    ] = "eventual",
    immature: Annotated[
        str,
        typer.Option(
            "--immature",
            rich_help_panel=ESTIMATE,
            help="Displays too young at the end of the log: drop; correct, by the delays of their action; or "
            "correct:device, by those of their action and a column of the source.",
        ),
    ] = "drop",
    final: Annotated[
        str | None,
        typer.Option(
            "--final",
            rich_help_panel=ESTIMATE,
            help="last:20%: leave those displays out, and estimate on them the final policy: IPS, SNIPS, DR.",
        ),
    ] = None,
    final_policy: Annotated[
        str,
        typer.Option(
            "--final-policy",
            rich_help_panel=ESTIMATE,
            help="Which final policy: greedy (largest estimated reward), or exploring (bonus and draws included).",
        ),
    ] = "greedy",
    doubly_robust: Annotated[
        bool,
        typer.Option(
            "--doubly-robust",
            rich_help_panel=ESTIMATE,
            help="Estimate the value over all displays read, too, by a model of the rewards: --doubly-robust",
        ),
    ] = False,
    level: Annotated[
        float, typer.Option("--level", rich_help_panel=ESTIMATE, help="Level of the intervals: --level 0.9")
    ] = 0.95,
    bootstrap: Annotated[
        int,
        typer.Option(
            "--bootstrap",
            rich_help_panel=ESTIMATE,
            help="Resampled logs to replay for an interval of the expected value over logs and seeds: --bootstrap 200",
        ),
    ] = 0,
    reward_max: Annotated[
        float | None,
        typer.Option(
            "--reward-max",
            rich_help_panel=ESTIMATE,
            help="What a display can earn at most: --reward-max 500. Default: as the log says, else the largest seen.",
        ),
    ] = None,
    reward_cap: Annotated[
        float | None,
        typer.Option(
            "--reward-cap",
            rich_help_panel=ESTIMATE,
            help="Count at most so much of a display's reward: a value whose intervals hold however large rewards can "
            "be: --reward-cap 100",
        ),
    ] = None,
    cluster_by: Annotated[
        str | None,
        typer.Option(
            "--cluster-by",
            rich_help_panel=ESTIMATE,
            help="Source column whose displays hang together, such as the user, or every:1d (parts of the clock): "
            "expected and weighted values allow for it. Default: displays are independent.",
        ),
    ] = None,
) -> None:
    """Lend its parameters to every command that `replays`."""


replays = lends(_replaying, to="replaying", given_only=False)


def save_result(save: Save, result: ReplayResult | Comparison, source: Reading, reading: Mapping[str, Any]) -> None:
    """Write what a command found on a log to its ``--out``."""
    from evaluator.report.result_files import write_result

    save(write_result, result, source=origin(source, reading), quarantine=source.quarantine)


def origin(source: Reading, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a result came from: the log, and how it was read."""
    meta = source.log.meta
    return {"dataset": meta.name, "fingerprint": meta.fingerprint, "reading": reading}
