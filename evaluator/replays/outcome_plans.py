"""How a replay values events of other kinds than its rewards: each kind as rewards are, by its own window and end.

The plan of an outcome is that of the replay with the events in the place of the conversions. It is never replayed: the
rounds are those of the policy, which saw the conversions alone. From it follow which rounds can be judged, what they
brought, and how much they can at most, by the same rules as for rewards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from evaluator.errors import DataError
from evaluator.findings.codes import ordered
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.maturity import Maturity, judge_maturity
from evaluator.replays.rounds.reward_range import reward_range
from evaluator.replays.rounds.stream import LogRounds
from evaluator.replays.rounds.survey import Survey
from evaluator.replays.words.outcomes import said_of_outcome


def with_outcomes(plan: ReplayPlan, surveys: Mapping[str, Survey]) -> ReplayPlan:
    """Return a plan that values outcomes, too, and warns where that is hard.

    Parameters
    ----------
    plan
        Plan of the replay.
    surveys
        Survey, by name of the outcome, of the log whose conversions are its events.
    """
    plans = {name: _valued(plan, survey) for name, survey in surveys.items()}
    said = [line for name, of in plans.items() for line in said_of_outcome(name, of)]
    return replace(plan, outcomes=plans, findings=ordered((*plan.findings, *said)))


def _valued(plan: ReplayPlan, survey: Survey) -> ReplayPlan:
    # What was seen by the horizon is what a policy was told by then, and it is told no events of outcomes.
    options = replace(plan.options, reward="eventual")
    maturity = _maturity(plan, survey)
    used = min(plan.rounds.used, maturity.used)
    delay = plan.window.revealed(survey, plan.clock)
    return replace(
        plan, survey=survey, options=options, maturity=maturity, rounds=LogRounds(survey.log, used, None, delay),
        rewards=reward_range(survey, used), capped=None, outcomes={}, findings=(),
    )  # fmt: skip


def _maturity(plan: ReplayPlan, survey: Survey) -> Maturity:
    """Return which displays can be judged by the events: none, where none was followed for long enough."""
    for rule in dict.fromkeys((plan.options.immature, "drop")):
        try:
            return judge_maturity(survey, plan.window, plan.clock, rule)
        except DataError:  # nothing to fit delays to; or no display was followed for long enough
            continue
    return Maturity(0, len(survey.log), None, True)
