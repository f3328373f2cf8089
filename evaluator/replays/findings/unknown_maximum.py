"""What a replay may say of its intervals where nobody knows how much a display can earn at most.

The intervals of realised values, regret, uplift and differences hold at any stopping time for rewards in [0, b]. With
the largest reward seen in the place of b they hold no longer: where one display in a thousand earns a thousand times
what others do, the log may not have seen it, and then nothing in the log tells that it could. No interval for a mean
holds without a bound, or an assumption in its place (Bahadur, Savage. The nonexistence of certain statistical
procedures in nonparametric problems. Annals of Mathematical Statistics 27(4), 1956). What can be had: name the bound
(``--reward-max``), or ask for another value, that of capped rewards (``--cap``), whose intervals hold.

What holds of the largest reward holds of the smallest, where refunds may take more than the sales of a display brought.

Where all displays that earn something earn the same, as conversions of value 1 do, the bound is taken as that one
value, and the report says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaluator.estimates.confidence import with_honest_kind
from evaluator.findings.codes import LARGEST_REWARD_SEEN, SMALLEST_REWARD_SEEN
from evaluator.findings.finding import Finding
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult

_BEYOND = {"largest": "more than the largest reward seen", "smallest": "less than the smallest reward seen"}


def outside_seen(ends: Sequence[str]) -> str:
    """Return what no display may earn where these bounds (`RewardRange.ends_seen`) are only what was seen."""
    return " or ".join(_BEYOND[end] for end in ends)


def ends_seen(results: Sequence[ReplayResult]) -> tuple[str, ...]:
    """Return which bounds of a display's reward are only what was seen, in any of the results."""
    return tuple(dict.fromkeys(end for result in results for end in result.plan["reward_bound"]["seen"]))


def with_honest_kinds(plan: ReplayPlan, result: ReplayResult) -> ReplayResult:
    """Return a result whose intervals claim no more than holds."""
    if plan.bounded:
        return result
    money = result.money
    if money is not None:
        named = ("profit", "profit_per_cost")
        money = replace(money, **{name: with_honest_kind(getattr(money, name)) for name in named})
    best = replace(result.best_fixed_action, value=with_honest_kind(result.best_fixed_action.value))
    return replace(
        result,
        value=with_honest_kind(result.value),
        regret=with_honest_kind(result.regret),
        uplift=with_honest_kind(result.uplift),
        logging_value=with_honest_kind(result.logging_value),
        best_fixed_action=best,
        money=money,
    )


def warn_of_bound(plan: ReplayPlan) -> list[Finding]:
    """Return what to read before the numbers of a log that names no largest reward."""
    rewards = plan.rewards
    findings = _warn_of_smallest(plan)
    if rewards.known:
        return findings
    largest = f"The largest reward seen, {rewards.largest:g}, is taken as the largest possible"
    if rewards.alike:
        return [LARGEST_REWARD_SEEN.found(f"{largest}.", largest=rewards.largest), *findings]
    return [
        *findings,
        LARGEST_REWARD_SEEN.found(
            f"{largest}, which nobody knows: where larger ones are possible, and rare, the intervals of realised "
            "values, regret, uplift and differences hold less often than they say, and not at any stopping time.",
            "Name what a display can earn at most (`reward_max`, or reward_max in the spec), or have capped rewards "
            "evaluated, of which they hold (`cap`).",
            largest=rewards.largest,
        ),
    ]


def _warn_of_smallest(plan: ReplayPlan) -> list[Finding]:
    """Say so where refunds might take more than any did."""
    if plan.rewards.smallest_known:
        return []
    return [
        SMALLEST_REWARD_SEEN.found(
            f"The least that a display earns by its conversions, {plan.rewards.smallest:g}, is the least seen: where "
            "refunds may take more, the intervals hold less often than they say.",
            "Name it (`reward_min`, or reward_min in the spec).",
            smallest=plan.rewards.smallest,
        )
    ]
