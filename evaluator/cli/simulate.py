"""The command ``evaluate simulate``."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

from evaluator.cli import options as o
from evaluator.cli.executing import SimulateCluster, workers
from evaluator.cli.lending import offered, placed, takes
from evaluator.cli.output import new_folder, this_command, wrote
from evaluator.cli.reading import one_place
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


@takes(SimulateOptions, to="simulating")
@o.at_work
def simulate_command(
    simulating: dict[str, Any],
    policies: o.Policies,
    name: Annotated[str | None, placed(NAME, completes="scenario")] = None,
    scenario: Annotated[str | None, offered("scenario", SCENARIO)] = None,
    full: o.Full = False,
    as_json: o.AsJson = False,
    out: Annotated[
        Path | None,
        offered(
            "out",
            o.OUT.but(
                help="New folder for curves, result, report and manifest; what an interrupted simulation finished is "
                "kept in run1.partial, where the same command goes on",
                panel="",
            ),
        ),
    ] = None,
    cluster: SimulateCluster = None,
    debug: o.Debug = False,
) -> None:
    """Let policies play live in a scenario whose truth is known.

    Prints each policy's regret at a tenth, a quarter, half and all of the horizon, with standard errors over the runs;
    where that is too wide for the terminal, after all of it, and the rest with --full.
    """
    from evaluator.arguments import as_descriptions
    from evaluator.outputs.kept_folder import kept_beside
    from evaluator.outputs.kept_jobs import KeptJobs
    from evaluator.reports.result_files import write_simulation
    from evaluator.simulations import simulate
    from evaluator.worlds.world import load_problem

    named = one_place(("NAME", name), ("--scenario", scenario), "scenarios")
    if named is None:
        raise UsageError(
            "evaluate simulate needs a scenario.",
            remedy="name it by its place: evaluate simulate vernade2017-low -p ucb1; evaluate datasets list shows "
            "them, "
            "those of kind synthetic.",
        )
    asked = SimulateOptions(**simulating)
    descriptions = as_descriptions(policies)
    with nullcontext() if out is None else kept_beside(out) as folder, new_folder(out) as save:
        o.kept_in = folder
        store = None if folder is None else KeptJobs(folder, o.note)
        problem = load_problem(named)
        with (
            workers(cluster) as executor,
            o.progress("runs", {"Simulating": asked.runs * len(descriptions)}, compiles=cluster is None) as advance,
        ):
            simulation = simulate(
                problem, descriptions, asked, advance=advance, kept=store, executor=executor, scenario=named
            )
        save(write_simulation, simulation, options=asked, command=this_command())
    o.show(simulation, full=full, as_json=as_json)
    if out is not None:
        o.note(wrote(out))
