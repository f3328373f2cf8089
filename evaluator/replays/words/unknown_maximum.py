"""What a replay may say of its intervals where nobody knows how much a display can earn at most.

The intervals of realised values, regret, uplift and differences hold at any stopping time for rewards in [0, b]. With
the largest reward seen in the place of b they hold no longer: where one display in a thousand earns a thousand times
what others do, the log may not have seen it, and then nothing in the log tells that it could. No interval for a mean
holds without a bound, or an assumption in its place (Bahadur, Savage. The nonexistence of certain statistical
procedures in nonparametric problems. Annals of Mathematical Statistics 27(4), 1956). What can be had: name the bound
(``--reward-max``), or ask for another value, that of capped rewards (``--reward-cap``), whose intervals hold.

Where all displays that earn something earn the same, as conversions of value 1 do, the bound is taken as that one
value, and the report says so.
"""

from __future__ import annotations

from dataclasses import replace

from evaluator.estimates.confidence import Interval
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult

UNKNOWN = "empirical Bernstein with the largest reward seen for the largest possible: not valid if more is possible"


def with_honest_kind(interval: Interval) -> Interval:
    """Return an interval, of a replay whose largest reward nobody knows, that claims no more than holds."""
    return replace(interval, kind=UNKNOWN)


def with_honest_kinds(plan: ReplayPlan, result: ReplayResult) -> ReplayResult:
    """Return a result whose intervals claim no more than holds."""
    if plan.bounded:
        return result
    best = replace(result.best_fixed_action, value=with_honest_kind(result.best_fixed_action.value))
    return replace(
        result,
        value=with_honest_kind(result.value),
        regret=with_honest_kind(result.regret),
        uplift=with_honest_kind(result.uplift),
        logging_value=with_honest_kind(result.logging_value),
        best_fixed_action=best,
    )


def said_of_bound(plan: ReplayPlan) -> list[str]:
    """Return what to read before the numbers of a log that names no largest reward."""
    if plan.log.meta.reward_max is not None:
        return []
    largest = f"The largest reward seen, {plan.largest_reward:g}, is taken as the largest possible"
    if plan.bounded:
        return [f"{largest}."]
    return [
        f"{largest}, which nobody knows: where larger ones are possible, and rare, the intervals of realised values, "
        "regret, uplift and differences hold less often than they say, and not at any stopping time. Name what a "
        "display can earn at most (`reward_max`, or reward_max in the spec), or have capped rewards evaluated, of "
        "which they hold (`reward_cap`)."
    ]
