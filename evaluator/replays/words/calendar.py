"""What time means where the eligible actions change with it."""

from __future__ import annotations

from evaluator.findings.codes import MOVING_SETS
from evaluator.findings.finding import Finding
from evaluator.replays.plan import ReplayPlan


def calendar_warning(plan: ReplayPlan) -> list[Finding]:
    """Return what to read before all else where sets move with time: a replay has two calendars."""
    if plan.sets is None or plan.sets.moving < 0 or not plan.setting.among:
        return []
    action = plan.log.labels[plan.sets.moving]
    share = float(plan.matched.c.min(initial=1.0, where=plan.usable > 0)) * plan.survey.kept * plan.clock.sampling_rate
    if plan.clock.kind == "wall":
        return [
            MOVING_SETS.found(
                f"Eligible actions change with time (action {action} most). The wall clock replays a rollout on a "
                "share of "
                f"{share:.3g} of the traffic over the log's own calendar: actions come and go as they did, and "
                "feedback comes as late, in time, as it did.",
                about=action,
                share=share,
            )
        ]
    return [
        MOVING_SETS.found(
            f"Eligible actions change with time (action {action} most), on the log's calendar, and delays run on the "
            f"traffic's: this replay accepts {share:.3g} of the displays, so it lives through an action's n displays "
            f"in {share:.3g} n rounds, while its feedback comes as many rounds late as at full traffic. No rollout "
            "looks like that, and a policy that must learn about each new action looks worse than it would live.",
            "`clock='wall'` replays a rollout on that share of the traffic, in which both agree.",
            about=action,
            share=share,
        )
    ]
