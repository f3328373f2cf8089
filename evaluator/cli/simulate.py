"""``evaluate simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from evaluator.cli import options as o
from evaluator.cli.lending import offered, takes
from evaluator.cli.output import new_folder
from evaluator.options.declaration import Option
from evaluator.simulations.options import SimulateOptions

EXAMPLES = (
    "Example: evaluate simulate --scenario vernade2017-low -p delayed-klucb -p ucb1 --runs 100. "
    "`evaluate datasets list` shows the scenarios: those of kind synthetic."
)


@takes(SimulateOptions, to="simulating")
def simulate_command(
    simulating: dict[str, Any],
    scenario: Annotated[
        str,
        offered(
            "scenario",
            Option(
                default=None,
                help=r"Bundled name, or a spec.toml with \[scenario]",
                example="my/spec.toml",
                flags=("-s",),
            ),
        ),
    ],
    policies: o.Policies,
    as_json: o.AsJson = False,
    out: Annotated[
        Path | None,
        offered("out", o.OUT.but(help="New folder for curves, result, report and manifest", panel="")),
    ] = None,
    debug: o.Debug = False,
) -> None:
    """Let policies play live in a scenario whose truth is known.

    Prints each policy's regret at a tenth, a quarter, half and all of the horizon, with standard errors over the runs.
    """
    from evaluator.arguments import as_descriptions
    from evaluator.report.result_files import write_simulation
    from evaluator.simulations import simulate
    from evaluator.simulations.scenarios import load_problem

    asked = SimulateOptions(**simulating)
    descriptions = as_descriptions(policies)
    with new_folder(out) as save:
        problem = load_problem(scenario)
        with o.progress("runs", asked.runs * len(descriptions), compiles=True) as advance:
            found = simulate(problem, descriptions, asked, advance=advance)
        save(write_simulation, found, options=asked)
    if as_json:
        o.print_json(found.to_dict())
    else:
        from evaluator.report.simulation import print_simulation

        print_simulation(o.stdout(), found)
    if out is not None:
        o.note(f"Wrote {out}/curves.parquet, result.json, report.txt and manifest.json.")
