"""The difference of two replays of a twin, as a comparison gives it, and what is true of what they showed."""

from __future__ import annotations

from typing import NamedTuple

from evaluator.audits.shown_displays import ShownDisplays
from evaluator.comparisons.realised import RealisedEvidence, in_order, weigh
from evaluator.estimates.confidence import Interval
from evaluator.replays.values.rewards import reward_bounds


class MeasuredDifference(NamedTuple):
    """A difference with its interval, the number it is to hold, and what it was made of; None without rounds."""

    interval: Interval
    true: float
    evidence: RealisedEvidence | None

    @property
    def held(self) -> bool:
        """Whether the interval holds the number."""
        return self.interval.low <= self.true <= self.interval.high


def measure(a: ShownDisplays, b: ShownDisplays, rounds: int) -> MeasuredDifference:
    """Return the difference of two values after the common rounds, whose number no outcome moves."""
    alpha = 1.0 - a.plan.options.level
    (low_a, high_a), (low_b, high_b) = reward_bounds(a.plan), reward_bounds(b.plan)
    lower, upper = min(low_a, low_b), max(high_a, high_b)
    if not rounds:
        return MeasuredDifference(
            Interval(float("nan"), lower - upper, upper - lower, 0, 1.0 - alpha, "no rounds"), float("nan"), None
        )
    evidence = weigh(
        a.displays,
        a.rewards,
        b.displays,
        b.rewards,
        rounds=rounds,
        lower=lower,
        upper=upper,
        ordered=in_order(a.plan, b.plan),
        shared=not a.claim.observed,
    )
    true = a.realised_at_common - b.realised_at_common
    return MeasuredDifference(evidence.interval(alpha), true, evidence)
