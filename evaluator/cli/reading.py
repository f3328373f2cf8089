"""Options of every command that reads a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evaluator.cli.lending import lends
from evaluator.cli.options import note

if TYPE_CHECKING:
    from evaluator.datasets import Reading

LOG = "Log"

Dataset = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        "-d",
        rich_help_panel=LOG,
        help="Bundled name, a spec.toml, or a converted folder: --dataset my/spec.toml. Default: synthetic.",
    ),
]


def _reading(
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            rich_help_panel=LOG,
            help="Data file, glob or folder in place of the spec's: --path log.tsv.gz",
        ),
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option(
            "--actions",
            rich_help_panel=LOG,
            help="Keep these actions and drop the displays of the rest: --actions top:10, used (with usable "
            "displays), or labels: --actions a,b,c",
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            rich_help_panel=LOG,
            help="Context columns and their encoding: --features cat1,cat2:hash=32, hash=32 (width only), or none.",
        ),
    ] = None,
    deduplicate: Annotated[
        str | None,
        typer.Option(
            "--deduplicate",
            rich_help_panel=LOG,
            help="Which display gets a conversion logged on several: last_click, first_click, all, share.",
        ),
    ] = None,
    attributed_only: Annotated[
        bool | None,
        typer.Option(
            "--attributed-only/--all-conversions",
            rich_help_panel=LOG,
            help="Count only conversions the log attributes to a display. Default: as the spec says.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", rich_help_panel=LOG, min=1, help="Read only the first displays: --limit 100000"),
    ] = None,
    sampling_rate: Annotated[
        float | None,
        typer.Option(
            "--sampling-rate",
            rich_help_panel=LOG,
            help="Share of the traffic that the log holds, where it is a sample: --sampling-rate 0.1",
        ),
    ] = None,
    sort: Annotated[
        bool, typer.Option("--sort", rich_help_panel=LOG, help="Sort a log that is not in time order.")
    ] = False,
    attribution_window: Annotated[
        str | None,
        typer.Option(
            "--attribution-window",
            rich_help_panel=LOG,
            help="Cut conversions later than this after their display, whatever the spec says: --attribution-window 8h",
        ),
    ] = None,
    on_error: Annotated[
        str,
        typer.Option(
            "--on-error",
            rich_help_panel=LOG,
            help="Bad rows: stop with their numbers, or quarantine them (left out and counted): --on-error quarantine",
        ),
    ] = "stop",
) -> None:
    """Lend its parameters to every command that `reads_log`."""  # fmt: skip


reads_log = lends(_reading, to="reading", given_only=True)


def open_log(dataset: str | None, reading: Mapping[str, Any], keep: Sequence[str] = ()) -> Reading:
    """Read the named log, keeping some columns, saying so when none was named, and how many rows were left out."""
    from evaluator.datasets import read

    if dataset is None:
        note("No --dataset named: using the bundled synthetic log.")
    done = read(dataset or "synthetic", **{**reading, **({"keep": list(keep)} if keep else {})})
    if done.quarantine.num_rows:
        note(f"{done.quarantine.num_rows:,} bad rows were left out; --out writes them to quarantine.parquet.")
    return done
