"""What a replay's rounds brought of outcomes that the policy never saw, and whether guardrails hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import Interval, mean_interval
from evaluator.estimates.contrast import difference, unknown
from evaluator.estimates.repeated import repeated_interval
from evaluator.estimates.sparse import SparseRewards
from evaluator.log.schema import to_numpy
from evaluator.replays.findings.unknown_maximum import with_honest_kind
from evaluator.replays.guardrails import Guardrail, GuardrailAnswer, parse_guardrails, relative
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.subsampled_log import evened
from evaluator.replays.values.outcome_values import OutcomeValue
from evaluator.replays.values.rewards import logged_rewards, reward_bounds

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What the rounds of a replay, and the log, say of an outcome.

    Parameters
    ----------
    plan
        Plan whose rewards are the events of the outcome.
    displays
        Displays of the rounds of each repeat that can be judged, shape (T_r,).
    """

    plan: ReplayPlan
    displays: tuple[Ints, ...]

    @cached_property
    def _logged(self) -> SparseRewards:
        found = logged_rewards(self.plan, rounds=0)
        # A sum of values that keeps the bounds may be beyond them by rounding.
        return replace(found, value=np.clip(found.value, *reward_bounds(self.plan)))

    @cached_property
    def _even(self) -> SparseRewards:
        return evened(self.plan.log, self._logged, self.plan.options.seed)

    @cached_property
    def _lived(self) -> list[npt.NDArray[np.float64]]:
        return [self._logged.taken(displays) for displays in self.displays]

    def value(self, alpha: float) -> Interval:
        shown = self.displays
        different = len(shown[0] if len(shown) == 1 else np.unique(np.concatenate(shown)))
        lower, upper = reward_bounds(self.plan)
        return self._honest(repeated_interval(self._lived, upper=upper, lower=lower, alpha=alpha, displays=different))

    def logging_value(self, alpha: float) -> Interval:
        lower, upper = reward_bounds(self.plan)
        return self._honest(mean_interval(self._even, upper=upper, lower=lower, alpha=alpha))

    def _honest(self, interval: Interval) -> Interval:
        return interval if self.plan.bounded else with_honest_kind(interval)

    def uplift(self, alpha: float) -> Interval:
        found = difference(self.value(alpha / 2), self.logging_value(alpha / 2))
        return unknown(found) if self.plan.off_support else found

    def of(self, guardrail: Guardrail, alpha: float) -> Interval:
        """Return the interval of the quantity that a guardrail limits."""
        if guardrail.quantity == "value":
            return self.value(alpha)
        if guardrail.quantity == "uplift":
            return self.uplift(alpha)
        return relative(self.value(alpha / 2), self.logging_value(alpha / 2))


def with_outcome_values(
    plan: ReplayPlan, result: ReplayResult, displays: Sequence[Ints], *, variants: int = 1
) -> ReplayResult:
    """Return a result with the value of each outcome in its rounds, and the answer to each guardrail of the plan.

    A round counts for an outcome if its display was followed for long enough, which the display's number tells, and no
    event: what was known before the round's outcome.

    Parameters
    ----------
    plan, result
        Plan of the replay, and its result.
    displays
        Displays of the rounds of each repeat, in order, shape (T_r,).
    variants
        Number of replays that are judged together: answers are adjusted for it times the number of guardrails.
    """
    alpha = 1.0 - plan.options.level
    evidence = {
        name: _Evidence(of, tuple(shown[shown < len(of.rounds)] for shown in displays))
        for name, of in plan.outcomes.items()
    }
    values = tuple(
        OutcomeValue(name, of.value(alpha), of.uplift(alpha), of.logging_value(alpha)) for name, of in evidence.items()
    )
    guardrails = _answers(parse_guardrails(plan.options.guardrails), evidence, alpha, variants)
    return replace(result, outcomes=values, guardrails=guardrails)


def judged_together(plans: Sequence[ReplayPlan], results: Sequence[ReplayResult]) -> list[ReplayResult]:
    """Return results of one comparison with answers to guardrails that are adjusted for their number, too."""
    if not plans[0].options.guardrails:
        return list(results)
    return [
        with_outcome_values(plan, result, _displays(plan, result), variants=len(plans))
        for plan, result in zip(plans, results, strict=True)
    ]


def _displays(plan: ReplayPlan, result: ReplayResult) -> list[Ints]:
    """Return the displays of the rounds of each repeat, as the log of the plan numbers them."""
    repeat, display = (to_numpy(result.trajectory[name]) for name in ("repeat", "display_id"))
    return np.split(display - plan.before, np.searchsorted(repeat, np.arange(1, plan.options.repeats)))


def _answers(
    guardrails: Sequence[Guardrail], evidence: Mapping[str, _Evidence], alpha: float, variants: int
) -> tuple[GuardrailAnswer, ...]:
    tests = len(guardrails) * variants
    found = []
    for one in guardrails:
        interval = evidence[one.outcome].of(one, alpha / tests)
        verdict = one.verdict(interval)
        found.append(GuardrailAnswer(one.text, one.outcome, one.quantity, one.limit, verdict, interval, tests))
    return tuple(found)
