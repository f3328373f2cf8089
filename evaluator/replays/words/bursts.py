"""What bursts of traffic do to the replay of a policy that learns."""

from __future__ import annotations

from evaluator.findings.codes import BURSTS
from evaluator.findings.finding import Finding
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.bursts import BURSTY, peak_within_delay
from evaluator.units import format_duration


def bursts_warning(plan: ReplayPlan) -> list[Finding]:
    """Return a warning of traffic whose bursts are as long as the delays, on the traffic clock; none otherwise."""
    delay, ratio = peak_within_delay(plan.survey)
    if plan.clock.kind != "traffic" or plan.sampler == "logged" or not plan.policy.learns or not ratio >= BURSTY:
        return []
    within = format_duration(delay * (plan.log.meta.tick_seconds or 1.0))
    return [
        BURSTS.found(
            f"Traffic comes in bursts: within {within}, in which a good part of the conversions come, up to "
            f"{ratio:.2g} "
            "times as many displays follow one as on average. A replay has a part of each burst's rounds, but delays "
            "of "
            "whole bursts, so that what a policy knows in and between them is not what it would know live: its value "
            "may be off either way by more than its interval.",
            "`clock='wall'` is right for a rollout on the share of the traffic that it names.",
            ratio=ratio,
        )
    ]
