"""What kind of number a replay's values are, and how far they carry: the first lines of its report."""

from __future__ import annotations

from evaluator.replays.plan import ReplayPlan


def meaning(plan: ReplayPlan, rounds: int, live_days: float | None) -> tuple[str, ...]:
    """Return what the values of a replay are, and what they are not, in sentences.

    A replay is one run of a policy on one log. While a policy learns, what it earns in one run may be far from what it
    earns on average: one that settles on an action early settles on another one in the next run. The realised
    intervals hold for the run that was replayed, and only for that.

    Parameters
    ----------
    plan
        Plan of the replay.
    rounds
        Number of rounds T of the replay.
    live_days
        Days of live traffic that these rounds stand for; None where the log does not count time.
    """
    if not rounds:
        return ()
    runs = "this run" if plan.options.repeats == 1 else f"these {plan.options.repeats} runs"
    if not plan.policy.learns:
        kind = "The policy does not learn, so the realised values here are also its average ones."
    elif plan.options.bootstrap:
        kind = (
            f"Realised values are what {runs} of the policy earned, and hold for no other; the expected value is the "
            "average over logs and seeds, with an approximate interval."
        )
    else:
        kind = (
            f"Realised values are what {runs} of the policy earned; on another log, or with another seed, its value "
            "may lie outside these intervals (`bootstrap=200` estimates the average)."
        )
    live = "" if live_days is None else f", {live_days:.3g} days of live traffic"
    what = "while it learns" if plan.policy.learns else "as it is"
    return (
        kind,
        f"They are for its first {rounds:,} rounds{live}, {what}, on traffic, actions and rates like the log's.",
    )
