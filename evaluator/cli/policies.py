"""The policies that can be replayed."""

from __future__ import annotations

from typing import Annotated

from evaluator.cli import options as o
from evaluator.cli.command_parameters import argument, option
from evaluator.cli.help import App
from evaluator.cli.options import open_log
from evaluator.options.declaration import Option
from evaluator.options.shared import DATASET, WHICH_LOG

# Width from which the list of policies has a column of sources.
_WITH_SOURCES = 120

app = App(help=__doc__, no_args_is_help=True)


@app.command("list", epilog="Example: evaluate policies list")
def list_command(as_json: o.AsJson = False, debug: o.Debug = False) -> None:
    """List every policy: what it reads and where it comes from."""
    from evaluator.policies.base import PolicyList
    from evaluator.policies.registry import describe, names

    listed = PolicyList(tuple(describe(name) for name in names()))
    if as_json:
        o.print_json(listed.to_dict())
        return
    from rich.table import Table

    console = o.stdout()
    # Narrow terminals have no room for the sources, which `policies show` prints.
    sources = console.width >= _WITH_SOURCES
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("policy", "reads", "what it does", *(["source"] if sources else [])):
        table.add_column(column, no_wrap=column == "policy", overflow="fold")
    for policy in listed.policies:
        reads = ", ".join([*(["contexts"] if policy.contextual else []), *policy.needs])
        table.add_row(policy.name, reads, policy.summary, *([policy.paper] if sources else []))
    console.print(table)
    o.note("evaluate policies show NAME prints a policy's parameters and its source.")


@app.command("show", epilog="Example: evaluate policies show otflinucb")
def show_command(
    name: Annotated[str, argument(o.NAME.but(help="Its name, as in `evaluate policies list`."), completes="policy")],
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Show a policy's parameters with their ranges and defaults."""
    from evaluator.policies.registry import describe

    policy = describe(name)
    if as_json:
        o.print_json(policy.to_dict())
        return
    from rich.table import Table
    from rich.text import Text

    console = o.stdout()
    console.print(Text.assemble((policy.name, "bold"), f"  {policy.summary}"))
    for word in ("paper", "note"):
        if text := getattr(policy, word):
            console.print(f"{word}: {text}")
    if not policy.parameters:
        console.print("It has no parameters.")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("parameter", "default", "type", "range", "meaning"):
        table.add_column(column)
    for row in policy.parameters:
        table.add_row(row.name, str(row.default), row.type, row.range, row.help)
    console.print(table)


@app.command("compile", epilog="Examples: evaluate policies compile   |   evaluate policies compile otflinucb -d shop")
def compile_command(
    names: Annotated[
        list[str] | None,
        argument(
            Option(default=None, help="Their names, as in `evaluate policies list`. Default: all."), completes="policy"
        ),
    ] = None,
    dataset: Annotated[str | None, option("dataset", DATASET.but(question=WHICH_LOG))] = None,
    debug: o.Debug = False,
) -> None:
    """Compile policies into the cache, so that their first replay of such a log need not: for container images.

    Loops are compiled for the kinds of numbers that a log holds and, up to 8, for the length of its vectors.
    """
    from evaluator.arguments import as_description
    from evaluator.errors import EvaluatorError
    from evaluator.policies.base import Need
    from evaluator.policies.registry import POLICIES
    from evaluator.replays.options import ReplayOptions
    from evaluator.replays.planning import plan_replay
    from evaluator.replays.run import compile_loops

    log = open_log(dataset, {}).log
    plans = []
    for name in names or POLICIES:
        try:
            policy = as_description(name)
            # A policy that needs a window is compiled once for every window.
            window = 1 if Need.WINDOW in policy.needs else None
            plans.append(plan_replay(log, policy, ReplayOptions(window=window)))
        except EvaluatorError as error:
            if names:
                raise
            o.note(f"Left out: {error}")
    with o.progress("policies", {"Compiling": None}, compiles=True):
        done = compile_loops(plans)
    o.say(f"Compiled for {', '.join(done)}." if done else "All is compiled already.")
