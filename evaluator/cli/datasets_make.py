"""The command ``evaluate datasets make``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from evaluator.cli import options as o
from evaluator.cli.lending import offered, placed, takes
from evaluator.datasets.make_options import MakeOptions
from evaluator.options.shared import DATASET, WHICH_LOG

EXAMPLES = (
    "Examples: evaluate datasets make shop -o my-shop && evaluate replay -d my-shop/spec.toml -p linucb --window 7d | "
    "evaluate datasets make criteo_twin --rows 20000 --seed 1 -o twin.tsv.gz && "
    "evaluate replay -d criteo_twin --path twin.tsv.gz --actions top:10 -p ucb1 --propensity estimate:context"
)

WHAT = r"shop, a small example of files of your own; criteo_twin; or a spec.toml with a \[twin] section."


@takes(MakeOptions, to="making")
def make_command(
    dataset: Annotated[str, placed(DATASET.but(help=WHAT, question=WHICH_LOG), completes="made")],
    out: Annotated[
        Path,
        offered(
            "out",
            o.OUT.but(help="New folder of the shop; new gzipped file of a twin", example="shop", panel=""),
        ),
    ],
    making: dict[str, Any],
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Generate a dataset whose truth is known: a small example shop, or a twin in the exact format of a real file.

    The shop is a folder of tables as CSV, their spec, a study and a file of delays; its README.md says what is true.
    """
    from evaluator.datasets import make

    asked = MakeOptions(**making)
    with o.progress("rows", {"Generating": asked.rows if dataset != "shop" else None}) as advance:
        made = make(dataset, out, rows=asked.rows, seed=asked.seed, jobs=asked.jobs, advance=advance)
    if as_json:
        from evaluator.datasets.facts import MadeShop, MadeTwin

        kind = MadeShop if dataset == "shop" else MadeTwin
        document = kind(out=str(made.path), truth=str(made.truth), table=str(made.table), **made.counts)
        o.print_json(document.to_dict())
        return
    o.say(f"{made.path}: " + ", ".join(f"{k.replace('_', ' ')} {v:,}" for k, v in made.counts.items()))
    o.note(f"Its truth: {made.truth} and {made.table}.")
