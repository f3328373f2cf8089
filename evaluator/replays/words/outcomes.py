"""What is to be read before the numbers of outcomes that no policy sees."""

from __future__ import annotations

from evaluator.findings.codes import OUTCOME_FOLLOW_UP_UNKNOWN, OUTCOME_MAXIMUM_UNKNOWN, OUTCOME_NOT_FOLLOWED
from evaluator.findings.finding import Finding
from evaluator.replays.plan import ReplayPlan
from evaluator.units import ticks_words


def said_of_outcome(name: str, plan: ReplayPlan) -> list[Finding]:
    """Return the warnings on an outcome, by the plan whose rewards are its events."""
    meta, said = plan.log.meta, []
    if not len(plan.rounds):
        long = plan.window.describe(plan.clock) if meta.attribution_window is None else ticks_words(
            meta.attribution_window, meta.tick_seconds
        )  # fmt: skip
        said.append(
            OUTCOME_NOT_FOLLOWED.found(
                f"Outcome {name}: no replayed display was followed for {long}, so nothing is known of it.", about=name
            )
        )
    elif not plan.maturity.known:
        said.append(
            OUTCOME_FOLLOW_UP_UNKNOWN.found(
                f"Outcome {name}: nothing says how long after a display such an event may come, and the log stops "
                "looking: young displays count with what was seen of them, too little.",
                "Name its attribution_window.",
                about=name,
            )
        )
    if not plan.bounded:
        said.append(
            OUTCOME_MAXIMUM_UNKNOWN.found(
                f"Outcome {name}: the largest value of a display seen, {plan.rewards.largest:g}, is taken as the "
                "largest "
                "possible, which nobody knows: where larger ones are, its intervals, and what guardrails say by "
                "them, hold less often than they say.",
                "Name its value_max in the spec.",
                about=name,
                largest=plan.rewards.largest,
            )
        )
    return said
