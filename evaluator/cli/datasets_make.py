"""``evaluate datasets make``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from evaluator.cli import options as o
from evaluator.cli.lending import offered, placed, takes
from evaluator.datasets.make_options import MakeOptions
from evaluator.options.shared import DATASET

EXAMPLES = (
    "Example: evaluate datasets make criteo_twin --rows 1000000 --seed 1 -o twin.tsv.gz && "
    "evaluate replay -d criteo_twin --path twin.tsv.gz --actions top:10 -p ucb1 --propensity estimate:context"
)


@takes(MakeOptions, to="making")
def make_command(
    dataset: Annotated[str, placed(DATASET.but(help=r"criteo_twin, or a spec.toml with a \[twin] section."))],
    out: Annotated[
        Path,
        offered(
            "out",
            o.OUT.but(help="New gzipped file; its truth goes beside it", example="twin.tsv.gz", panel=""),
        ),
    ],
    making: dict[str, Any],
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Generate a dataset in the exact format of a real one, with its truth in a file beside it."""
    from evaluator.datasets import make

    asked = MakeOptions(**making)
    with o.progress("rows", asked.rows) as advance:
        made = make(dataset, out, rows=asked.rows, seed=asked.seed, jobs=asked.jobs, advance=advance)
    if as_json:
        files = {"out": str(made.path), "truth": str(made.truth), "table": str(made.table)}
        o.print_json({"schema": "evaluate.twin/1", **files, **made.counts})
        return
    o.say(f"{made.path}: " + ", ".join(f"{k.replace('_', ' ')} {v:,}" for k, v in made.counts.items()))
    o.note(f"Its truth: {made.truth} and {made.table}.")
