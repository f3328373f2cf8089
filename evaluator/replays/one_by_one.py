"""Replays that are run together and estimated one by one, where no more than one result is to be in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from evaluator.replays.one_scan import Lane, replay_all
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.references import References
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import estimate_repeat, shown_columns, summarise_repeats
from evaluator.replays.words.unknown_maximum import with_honest_kinds

# Makes the result of a replay that has been run.
Estimate = Callable[[], ReplayResult]


def execute_each(plans: Sequence[ReplayPlan]) -> list[tuple[tuple[int, ...], Estimate]]:
    """Run plans on one log in one scan of it; return the rounds of each plan's repeats, and what estimates it.

    What the rounds of a plan showed is looked up when it is estimated, which takes some 80 bytes a round, and a pass
    over a few columns. Results are those of `evaluator.replays.run.execute_all` without what weighs displays, values
    other outcomes or splits into groups, and without resampled logs.
    """
    lanes = iter(replay_all(plans))
    references = References()
    found: list[tuple[tuple[int, ...], Estimate]] = []
    for plan in plans:
        own = [next(lanes) for _ in range(plan.options.repeats)]
        rounds = tuple(len(lane.replayed.displays) for lane in own)
        found.append((rounds, partial(_estimated, plan, own, references)))
    return found


def _estimated(plan: ReplayPlan, lanes: Sequence[Lane], references: References) -> ReplayResult:
    columns = shown_columns([plan], lanes)
    repeats = [
        estimate_repeat(lane, lane.replayed, plan.log.take(lane.replayed.displays, columns), references)
        for lane in lanes
    ]
    return with_honest_kinds(plan, summarise_repeats(plan, repeats, references))
