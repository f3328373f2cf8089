"""The command ``evaluate replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from evaluator.cli import options as o
from evaluator.cli.command_parameters import only, option, options_of
from evaluator.cli.options import one_log, open_log, reading_options, reads_log
from evaluator.cli.output import finish, kept_output, new_file, refuse_one_place, save_result
from evaluator.options.declaration import Option
from evaluator.options.shared import KEPT, OUTPUT, POLICY
from evaluator.replays.options import ReplayOptions

EXAMPLES = (
    "Examples: evaluate replay --policy otflinucb --window 2000   |   "
    "evaluate replay -d shop/spec.toml -p linucb -w 7d --reward-max 20 --out run1"
)


@reads_log
@options_of(ReplayOptions, to="replaying")
def replay_command(
    reading: dict[str, Any],
    replaying: dict[str, Any],
    policy: Annotated[list[str], option("policy", POLICY)],
    log: o.Log = None,
    dataset: o.Dataset = None,
    full: o.Full = False,
    as_json: o.AsJson = False,
    out: Annotated[
        Path | None, o.kept_out_option("page, trajectory, result, report and manifest", "--bootstrap")
    ] = None,
    cluster: o.Cluster = None,
    save_policy: Annotated[
        Path | None,
        option(
            "save_policy",
            Option(
                default=None,
                help="New file for what the policy has learned (of the first repeat)",
                example="learned.npz",
                panel=OUTPUT,
            ),
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        option(
            "dry_run",
            Option(
                default=False, help="Print every choice the replay would make, and stop", panel=OUTPUT, question=KEPT
            ),
        ),
    ] = False,
    fail_on: o.FailOn = None,
    debug: o.Debug = False,
) -> None:
    """Replay a policy on a log: what it would have earned, with delayed and censored feedback.

    Prints value, regret against the best fixed action and uplift over the logging policy, each with an interval that
    holds at any stopping time, and warnings. --full adds how it was replayed, actions, and what all of it rests on.
    """
    from evaluator.arguments import as_description
    from evaluator.policies.registry import split_specs
    from evaluator.replays.learned.file import fill_file, refuse_unsavable
    from evaluator.replays.plan import PlanDocument
    from evaluator.replays.planning import plan_replay
    from evaluator.replays.run import execute

    codes = o.codes_of(fail_on)
    specs = [spec for words in policy for spec in split_specs(words)]
    description = as_description(only("policy", POLICY, specs))
    if save_policy is not None:
        refuse_unsavable(description)
    refuse_one_place(out=out, save_policy=save_policy)
    named, chosen = one_log(log, dataset), ReplayOptions(**replaying)
    if dry_run:
        plan = plan_replay(open_log(named, reading, chosen.keeps).log, description, chosen)
        o.print_json({"schema": PlanDocument.schema, **plan.to_dict()})
        return
    if cluster is not None:
        from evaluator.comparisons.variant_runs import refuse_nothing_to_spread

        refuse_nothing_to_spread(chosen)
    with (
        kept_output(out, keeps=chosen.bootstrap > 0) as (folder, save),
        new_file(save_policy) as save_learned,
        o.workers(cluster) as executor,
    ):
        store = None
        if folder is not None:
            from evaluator.comparisons.kept import KeptResults

            store = KeptResults(folder, [description])
        source = open_log(named, reading, chosen.keeps)
        plan = plan_replay(source.log, description, chosen)
        with o.progress(
            "displays",
            {"Replaying": len(plan.rounds), "Resampling": len(plan.rounds) * chosen.bootstrap},
            compiles=cluster is None,
        ) as advance:
            if chosen.bootstrap:
                from evaluator.comparisons.log_places import place_of
                from evaluator.comparisons.variant_runs import execute_in_jobs

                place = (
                    None if executor is None else place_of(source.log, named, reading_options(reading, chosen.keeps))
                )
                result = execute_in_jobs(
                    plan, source.log, kept=store, executor=executor, place=place, advance=advance, say=o.note,
                    show_first=o.show_first,
                )  # fmt: skip
            else:
                result = execute(plan, advance=advance)
        save_result(save, result, source, reading)
        if save_policy is not None and result.learned is not None:
            save_learned(fill_file, result.learned.content())
    finish(result, out, full=full, as_json=as_json)
    if save_policy is not None:
        o.note(f"Wrote {save_policy}: evaluator.load_policy reads it.")
    o.fail_on(codes, result.findings)
