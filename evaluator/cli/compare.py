"""The command ``evaluate compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evaluator.cli import options as o
from evaluator.cli.command_parameters import option, options_of
from evaluator.cli.options import one_log, open_log, reading_options, reads_log
from evaluator.cli.output import finish, kept_output, save_result
from evaluator.comparisons.options import CompareOptions
from evaluator.options.shared import POLICIES
from evaluator.replays.options import ReplayOptions

if TYPE_CHECKING:
    from evaluator.comparisons.kept import FoundResults, KeptResults
    from evaluator.log import Log
    from evaluator.replays.plan import ReplayPlan

EXAMPLES = (
    "Examples: evaluate compare -p otflinucb:alpha=0.1 -p otflinucb:alpha=1 -p delayed-klucb --windows 500,2000 "
    "--jobs 2   |   evaluate compare --study shop/study.toml --out study1"
)
# Displays that a verdict draws for its resampled logs, beyond which that is said before: minutes.
LONG = 1_000_000_000


@reads_log
@options_of(CompareOptions, to="comparing")
@options_of(ReplayOptions, to="replaying", but=("window", "learn_every", "learn_from", "bootstrap"))
def compare_command(
    context: typer.Context,
    reading: dict[str, Any],
    comparing: dict[str, Any],
    replaying: dict[str, Any],
    policies: Annotated[list[str] | None, option("policies", POLICIES)] = None,
    log: o.Log = None,
    dataset: o.Dataset = None,
    full: o.Full = False,
    as_json: o.AsJson = False,
    out: Annotated[
        Path | None, o.kept_out_option("trajectories, curves, results, report and manifest", "study")
    ] = None,
    cluster: o.Cluster = None,
    fail_on: o.FailOn = None,
    debug: o.Debug = False,
) -> None:
    """Replay several policies, each with several windows, in one scan of the log, and compare them.

    Prints the verdict, what it is worth, the interval of each difference to the baseline, what these rest on, and what
    to do next. --full adds the conditions of the verdict, value and regret of each policy, a ranking that says which
    differences are told from 0, regret curves, and what was assumed.
    """
    from evaluator.arguments import as_description, as_descriptions
    from evaluator.comparisons.conditions import pairs_to_expect
    from evaluator.comparisons.expected import may_decide
    from evaluator.comparisons.kept import KeptResults
    from evaluator.comparisons.log_places import place_of
    from evaluator.comparisons.run import execute_comparison, find_baseline, plan_comparison, with_logging
    from evaluator.comparisons.variant_runs import MOST, VariantRuns, study_on
    from evaluator.log.column import LIKE_USERS
    from evaluator.policies.static import LoggingPolicy

    dataset, codes = one_log(log, dataset), o.codes_of(fail_on)
    with kept_output(out) as (folder, save), o.workers(cluster) as executor:
        asked = CompareOptions(**comparing)
        specs, windows, baseline, rule = policies or [], asked.asked_windows, asked.baseline, asked.rule
        draws, look, schedules = asked.bootstrap, asked.asked_look, asked.schedules
        if asked.study is not None:
            from evaluator.comparisons.study_file import read_study

            study = read_study(asked.study)
            given = _list_given(context)
            dataset = study.dataset if dataset is None else dataset
            reading = {**{name: value for name, value in study.reading.items() if name not in given}, **reading}
            replaying = {**replaying, **{name: value for name, value in study.options.items() if name not in given}}
            specs = specs or list(study.policies)
            windows = study.windows if windows is None else windows
            schedules = study.schedules if schedules is None else schedules
            baseline = study.baseline if baseline is None else baseline
            rule = study.rule if rule is None else rule
            look = study.look if look is None else look
            draws = replaying.pop("bootstrap", None) if draws is None else draws
        descriptions = as_descriptions(specs)
        named = None if baseline is None else as_description(baseline).spec
        store = None if folder is None else KeptResults(folder, [*descriptions, LoggingPolicy()])
        options = ReplayOptions(**{**replaying, **asked.replaying, "bootstrap": draws or 0})
        # Weighted differences are by users; and the log is checked, by what users saw before, too.
        decides = may_decide(descriptions, draws)
        keep = [*options.keeps, LIKE_USERS] if decides else options.keeps
        source = open_log(dataset, reading, keep)
        descriptions = with_logging(source.log, descriptions, named)
        plans = plan_comparison(source.log, descriptions, windows or [None], options, schedules=schedules)
        first = find_baseline(plans, named)
        taken_up = _find_earlier_results(store, plans, source.log)
        where = None
        if executor is not None:
            place = place_of(source.log, dataset, reading_options(reading, keep))
            where = study_on(executor, place, descriptions, windows or [None], options, schedules=schedules)
        pairs = pairs_to_expect(plans, first) if draws is None else ()
        runs = VariantRuns(plans, kept=store, found=taken_up, workers=where, pairs=pairs)
        if pairs and (most := runs.totals["Resampling"]) > LONG:
            o.note(
                f"The verdict on policies that learn takes up to {MOST} resampled logs, {most:,} displays to draw: "
                "as long as so many replays. `bootstrap=0` leaves them out."
            )
        stages = {**runs.totals, "Checking": len(source.log) if decides else 0}
        with o.progress("displays", stages, compiles=cluster is None, last="Comparing") as advance:
            comparison = execute_comparison(
                plans, baseline=first, rule=rule, look=look, log=source.log, runs=runs, advance=advance,
                show_first=o.show_first,
            )  # fmt: skip
        save_result(save, comparison, source, reading)
    finish(comparison, out, full=full, as_json=as_json)
    beside = () if comparison.check is None else comparison.check.findings
    o.fail_on(
        codes,
        [*comparison.findings, *(finding for result in comparison.results for finding in result.findings), *beside],
    )


def _find_earlier_results(store: KeptResults | None, plans: Sequence[ReplayPlan], log: Log) -> FoundResults:
    """Return the results that earlier runs kept, and report which of them are used."""
    from evaluator.comparisons.variant_runs import NOTHING

    if store is None:
        return NOTHING
    earlier = store.find(plans, log)
    if earlier.results:
        o.note(f"Took up {len(earlier.results):,} of {len(plans):,} variants, finished before, from {store.folder}.")
    if parts := earlier.parts:
        o.note(f"Took up parts of {parts:,} more: their replays, or of their resampled ones, from {store.folder}.")
    if earlier.damaged:
        o.note(f"Damaged, so computed anew: {earlier.damaged:,} kept in {store.folder}.")
    if earlier.others:
        o.note(
            f"Answers to another question, so not used: {earlier.others:,} kept in {store.folder}. It was another log, "
            "policy, option, code or version; they go when the study is written."
        )
    return earlier


def _list_given(context: typer.Context) -> set[str]:
    """Return the names of the options that the user gave on the command line."""
    sources = ((name, context.get_parameter_source(name)) for name in context.params)
    return {name for name, source in sources if source is not None and source.name == "COMMANDLINE"}
