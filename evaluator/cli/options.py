"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.datasets import Reading

debug = False

LOG = "Log"


def _set_debug(wanted: bool) -> bool:
    global debug
    debug = debug or wanted
    return wanted


Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show the traceback of an error.", callback=_set_debug, is_eager=True),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON (versioned schema) instead of a table.")]
Dataset = Annotated[
    str | None,
    typer.Option(
        "--dataset", "-d", rich_help_panel=LOG,
        help="Bundled name, a spec.toml, or a converted folder: --dataset my/spec.toml. Default: synthetic.",
    ),
]  # fmt: skip
Source = Annotated[
    str | None,
    typer.Option(
        "--path",
        rich_help_panel=LOG,
        help="Data file, glob or folder in place of the spec's: --path log.tsv.gz",
    ),
]
Actions = Annotated[
    str | None,
    typer.Option(
        "--actions", rich_help_panel=LOG,
        help="Keep these actions and drop the displays of the rest: --actions top:10, or labels: --actions a,b,c",
    ),
]  # fmt: skip
Features = Annotated[
    str | None,
    typer.Option(
        "--features", rich_help_panel=LOG,
        help="Context columns and their encoding: --features cat1,cat2:hash=32, hash=32 (width only), or none.",
    ),
]  # fmt: skip
Deduplicate = Annotated[
    str | None,
    typer.Option(
        "--deduplicate", rich_help_panel=LOG,
        help="Which display gets a conversion logged on several: last_click, first_click, all, share.",
    ),
]  # fmt: skip
AttributedOnly = Annotated[
    bool | None,
    typer.Option(
        "--attributed-only/--all-conversions", rich_help_panel=LOG,
        help="Count only conversions the log attributes to a display. Default: as the spec says.",
    ),
]  # fmt: skip
Limit = Annotated[
    int | None,
    typer.Option("--limit", rich_help_panel=LOG, min=1, help="Read only the first displays: --limit 100000"),
]
Sort = Annotated[bool, typer.Option("--sort", rich_help_panel=LOG, help="Sort a log that is not in time order.")]
OnError = Annotated[
    str,
    typer.Option(
        "--on-error", rich_help_panel=LOG,
        help="Bad rows: stop with their numbers, or quarantine them (left out and counted): --on-error quarantine",
    ),
]  # fmt: skip


def open_log(
    dataset: str | None,
    *,
    path: str | None,
    actions: str | None,
    features: str | None,
    deduplicate: str | None,
    attributed_only: bool | None,
    limit: int | None,
    sort: bool,
    on_error: str,
) -> Reading:
    """Read the log these options name, saying so when none was named, and how many rows were left out."""
    from evaluator.datasets import read

    if dataset is None:
        note("No --dataset named: using the bundled synthetic log.")
    options: dict[str, Any] = {
        "path": path, "actions": actions, "features": features, "deduplicate": deduplicate,
        "attributed_only": attributed_only, "limit": limit, "sort": sort or None, "on_error": on_error,
    }  # fmt: skip
    reading = read(dataset or "synthetic", **options)
    if reading.quarantine.num_rows:
        note(f"{reading.quarantine.num_rows:,} bad rows were left out; --out writes them to quarantine.parquet.")
    return reading


def note(sentence: str) -> None:
    """Say something beside the result, on stderr."""
    typer.echo(sentence, err=True)


def stdout() -> Console:
    """Return the console of the result: coloured on a terminal, plain and unwrapped at 100 columns in a pipe."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


def print_json(value: Any) -> None:
    """Print JSON to stdout."""
    import json

    typer.echo(json.dumps(value, indent=2))
