"""The command ``evaluate simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from evaluator.cli import options as o
from evaluator.cli.command_parameters import argument, option, options_of
from evaluator.cli.options import one_place
from evaluator.cli.output import finish, kept_output, this_command, write_result
from evaluator.errors import UsageError
from evaluator.options.declaration import Option
from evaluator.options.shared import TRIED
from evaluator.simulations.options import SimulateOptions

EXAMPLES = (
    "Example: evaluate simulate vernade2017-low -p delayed-klucb -p ucb1 --runs 100. "
    "`evaluate datasets list` shows the scenarios: those of kind synthetic."
)


NAME = o.NAME.but(help=r"Bundled name, or a spec.toml with \[scenario]; as --scenario.", question=TRIED)
SCENARIO = Option(
    default=None, help=r"Bundled name, or a spec.toml with \[scenario]", example="my/spec.toml", flags=("-s",)
)


@options_of(SimulateOptions, to="simulating")
@o.at_work
def simulate_command(
    simulating: dict[str, Any],
    policies: o.Policies,
    name: Annotated[str | None, argument(NAME, completes="scenario")] = None,
    scenario: Annotated[str | None, option("scenario", SCENARIO)] = None,
    full: o.Full = False,
    as_json: o.AsJson = False,
    out: Annotated[
        Path | None, o.kept_out_option("curves, result, report and manifest", "simulation", panel="")
    ] = None,
    cluster: o.SimulateCluster = None,
    debug: o.Debug = False,
) -> None:
    """Let policies play live in a scenario whose truth is known.

    Prints each policy's regret at a tenth, a quarter, half and all of the horizon, with standard errors over the runs;
    where that is too wide for the terminal, after all of it, and the rest with --full.
    """
    from evaluator.arguments import as_descriptions
    from evaluator.outputs.kept_folder import KeptJobs
    from evaluator.simulations import simulate
    from evaluator.worlds.world import load_problem

    named = one_place(("NAME", name), ("--scenario", scenario), "scenarios")
    if named is None:
        raise UsageError(
            "evaluate simulate needs a scenario.",
            remedy="name it by its place: evaluate simulate vernade2017-low -p ucb1; evaluate datasets list shows "
            "them, those of kind synthetic.",
        )
    asked = SimulateOptions(**simulating)
    descriptions = as_descriptions(policies)
    with kept_output(out) as (folder, save):
        store = None if folder is None else KeptJobs(folder, o.note)
        problem = load_problem(named)
        with (
            o.workers(cluster) as executor,
            o.progress("runs", {"Simulating": asked.runs * len(descriptions)}, compiles=cluster is None) as advance,
        ):
            simulation = simulate(
                problem, descriptions, asked, advance=advance, kept=store, executor=executor, scenario=named
            )
        save(write_result, simulation, options=asked, command=this_command())
    finish(simulation, out, full=full, as_json=as_json)
