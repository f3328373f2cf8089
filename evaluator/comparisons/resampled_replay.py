"""One replay whose resampled logs are jobs: the bootstrap of `replay`, kept as it comes or computed by workers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace

from evaluator.comparisons.kept import KeptResults
from evaluator.comparisons.log_places import LogPlace
from evaluator.comparisons.variant_jobs import study_on
from evaluator.comparisons.variant_runs import NOTHING, VariantRuns
from evaluator.errors import UsageError
from evaluator.log import Log
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute

Advance = Callable[[int], None]


def refuse_nothing_to_spread(options: ReplayOptions) -> None:
    """Raise UsageError where workers were asked for and there is no bootstrap: one replay is one job."""
    if not options.bootstrap:
        raise UsageError(
            "Workers have nothing to do: a replay without a bootstrap stays on one core, round by round.",
            remedy="ask for resampled logs, `bootstrap=200`, or leave the workers out.",
        )


def execute_in_jobs(
    plan: ReplayPlan,
    log: Log,
    *,
    kept: KeptResults | None = None,
    executor: Executor | None = None,
    place: LogPlace | None = None,
    advance: Advance = lambda displays: None,
    say: Callable[[str], None] = lambda sentence: None,
) -> ReplayResult:
    """Replay a plan here, and then what it asks of resampled logs in jobs; the same to the bit as `execute`.

    Parameters
    ----------
    plan
        Plan of a replay with a bootstrap.
    log
        Log that was planned for, as it was read.
    kept
        Folder in which jobs are kept as they are finished, and looked for; None for none.
    executor, place
        Executor whose workers compute the jobs, and place at which they find the log; None for threads of this
        process.
    advance
        Function called with the number of displays read since the last call.
    say
        Function that is told in a sentence what was found.

    Raises
    ------
    NoRoundsError
        As `evaluator.replays.run.execute`.
    UsageError
        The policy has no name by which workers could load it.
    """
    workers = None
    if executor is not None and place is not None:
        workers = study_on(executor, place, [plan.policy], [plan.options.window], plan.options)
    found = NOTHING if kept is None else kept.find([plan], log)
    if kept is not None and 0 in found.draws:
        logs = f"{len(found.draws[0]):,} of {plan.options.bootstrap:,} resampled logs"
        say(f"Took up the replays of {logs}, finished before, from {kept.folder}.")
    # It is replayed anew whatever was kept: what a policy learned is not written.
    bare = execute(plan, advance=advance, resampled=False)
    runs = VariantRuns([plan], kept=kept, found=replace(found, results={}, bare={0: bare}), workers=workers)
    return runs.run(advance)[0]
