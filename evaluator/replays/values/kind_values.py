"""What the rounds of a replay brought of each kind of events: value, uplift, guardrails, and tables of these.

A kind is revenue, sales, refunds, what displays cost, or an outcome, whether policies are told of it or not. Profit per
cost is revenue over cost, less 1. Its interval is made of those of revenue and of cost, each at half the error: both
hold at once with the level's probability, at any stopping time and while the policy learns, and so does the ratio of
whatever they hold. The delta method and Fieller's would be shorter. Both take rounds for independent, or their sums for
normal, and neither holds for a policy that learns: of its rounds, the ratio that is estimated depends on what was
learned.

*Guardrails* say what must not happen to a kind of events, stated before a replay, and are never answered by an estimate
alone. A guardrail names a limit of the value per display of an outcome, or of `sales`, `refunds`, `revenue` or `cost`,
or of the difference of that to the logging policy's. It is answered by an interval at the run's level, adjusted for the
number m of guardrails that are stated together (Bonferroni): each interval fails with a probability of at most alpha /
m, and so any wrong answer, *holds* or *broken*, is given with a probability of at most alpha, whatever the dependence
of the outcomes. Where the interval holds the limit, nothing can be told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.estimates.confidence import ANYTIME, Interval, SparseRewards, mean_interval, with_honest_kind
from evaluator.estimates.paired import difference, repeated_intervals, unknown
from evaluator.replays.options import Guardrail, Quantity, parse_guardrails
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.values.rewards import References, RewardBounds, evened, reward_bounds
from evaluator.results.json_documents import Finite, Positive
from evaluator.results.tabular import COUNT, NUMBER, TEXT, Columns, table_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
RATIO = f"of the intervals of revenue and of cost, each at half the error: {ANYTIME}"


Verdict = Literal["holds", "broken", "cannot tell"]


@dataclass(frozen=True)
class OutcomeValue:
    """Value of an outcome, or of another kind of events that a guardrail limits, with intervals as those of rewards.

    Parameters
    ----------
    outcome
        Name of the outcome or kind.
    value
        Realised value: mean over the rounds whose display was followed for long enough, its n.
    uplift
        Difference of that to the logging policy's value.
    logging_value
        Mean of the logged displays that were followed for long enough.
    """

    outcome: str
    value: Interval
    uplift: Interval
    logging_value: Interval


@dataclass(frozen=True)
class Money:
    """What a round brought and cost on average, with intervals, each at the level asked for by itself.

    Parameters
    ----------
    revenue
        Mean value of the conversions of a round, refunds taken off.
    cost
        Mean cost of a round.
    profit
        Revenue less cost.
    profit_per_cost
        Profit over cost, of the intervals of revenue and cost, each at half the error; nan where nothing was spent, inf
        where its interval has no end.
    """

    revenue: Interval
    cost: Interval
    profit: Interval
    profit_per_cost: Interval

    def rows(self) -> list[tuple[str, Interval]]:
        """Return what reports print beside the profit, which is the value."""
        return [
            ("revenue per round", self.revenue),
            ("cost per round", self.cost),
            ("profit per cost", self.profit_per_cost),
        ]


@dataclass(frozen=True)
class GuardrailAnswer:
    """Whether a guardrail holds.

    Parameters
    ----------
    guardrail
        Words that state it.
    outcome, quantity, limit
        Outcome, quantity and limit of it, as of `Guardrail`.
    answer
        Verdict: it holds, it is broken, or the log cannot tell.
    interval
        Interval of the quantity by which that was answered, at the adjusted level.
    tests
        Number of answers that the level is adjusted for.
    """

    guardrail: str
    outcome: str
    quantity: Quantity
    limit: Finite
    answer: Verdict
    interval: Interval
    tests: Positive


@dataclass(frozen=True, eq=False)
class KindValue:
    """What the rounds of a replay, and the log, say of a kind of events.

    `lived` is the value of each round, repeat by repeat, shape (T_r,) each; `displays` the number of different displays
    that were shown; `logged` the value of each display of the log that can be judged, None where no uplift is asked
    for. The plan is that of the replay; for what the log says, one whose rewards are the events of the kind.
    """

    plan: ReplayPlan
    lived: Sequence[Floats]
    bounds: RewardBounds
    displays: int
    bounded: bool
    logged: SparseRewards | None = None

    @cached_property
    def _even(self) -> SparseRewards:
        assert self.logged is not None
        return evened(self.plan.log, self.logged, self.plan.options.seed)

    def values(self, *alphas: float) -> list[Interval]:
        """Return the mean of a round, with an interval for each error."""
        lower, upper = self.bounds
        if lower == upper:
            same = "all displays cost the same"
            return [Interval(lower, lower, upper, self.displays, 1.0 - alpha, same) for alpha in alphas]
        found = repeated_intervals(self.lived, upper=upper, lower=lower, alphas=alphas, displays=self.displays)
        return [self._honest(interval) for interval in found]

    def logging_value(self, alpha: float) -> Interval:
        """Return the mean of the log's displays that can be judged."""
        lower, upper = self.bounds
        return self._honest(mean_interval(self._even, upper=upper, lower=lower, alpha=alpha))

    def _honest(self, interval: Interval) -> Interval:
        return interval if self.bounded else with_honest_kind(interval)

    def beside_log(self, value: Interval, alpha: float) -> Interval:
        """Return the difference of the mean of a round, with its interval at half an error, to that of the log."""
        found = difference(value, self.logging_value(alpha / 2))
        return unknown(found) if self.plan.off_support else found

    def limited(self, guardrail: Guardrail, alpha: float) -> Interval:
        """Return the interval of the quantity that a guardrail limits."""
        whole, half = self.values(alpha, alpha / 2)
        if guardrail.quantity == "value":
            return whole
        if guardrail.quantity == "uplift":
            return self.beside_log(half, alpha)
        return relative(half, self.logging_value(alpha / 2))

    def outcome(self, name: str, alpha: float) -> OutcomeValue:
        """Return what the rounds brought, beside the log."""
        whole, half = self.values(alpha, alpha / 2)
        return OutcomeValue(name, whole, self.beside_log(half, alpha), self.logging_value(alpha))


def kind_values(
    plan: ReplayPlan, displays: Sequence[Ints], *, variants: int = 1, references: References | None = None
) -> tuple[tuple[OutcomeValue, ...], tuple[GuardrailAnswer, ...]]:
    """Return the value of each outcome in the rounds of a replay, and the answer to each guardrail of its plan.

    Rounds are given by the displays of each repeat, in order, shape (T_r,). Answers are adjusted for the number of
    guardrails times that of the variants, the replays that are judged together. What the log brought is found once for
    all plans with the same references.
    """
    references = References() if references is None else references
    alpha, asked = 1.0 - plan.options.level, parse_guardrails(plan.options.guardrails)
    kinds = {name: _value_of(of, displays, references) for name, of in plan.outcomes.items()}
    values = tuple(of.outcome(name, alpha) for name, of in kinds.items())
    tests, answers = len(asked) * variants, []
    for one in asked:
        interval = kinds[one.outcome].limited(one, alpha / tests)
        verdict = verdict_on(one, interval)
        answers.append(GuardrailAnswer(one.text, one.outcome, one.quantity, one.limit, verdict, interval, tests))
    return values, tuple(answers)


def _value_of(plan: ReplayPlan, displays: Sequence[Ints], references: References) -> KindValue:
    """Return the value of the events that a plan has for its rewards, in the rounds on these displays.

    A round counts if its display was followed for long enough, which the display's number tells, and no event: what was
    known before the round's outcome.
    """
    used = len(plan.rounds)
    shown = [of if of.max(initial=-1) < used else of[of < used] for of in displays]
    logged, bounds = references.of_kind(plan), reward_bounds(plan)
    different = len(shown[0] if len(shown) == 1 else np.unique(np.concatenate(shown)))
    return KindValue(plan, [logged.taken(of) for of in shown], bounds, different, plan.bounded, logged)


def verdict_on(guardrail: Guardrail, of: Interval) -> Verdict:
    """Return what an interval of the quantity says of a guardrail."""
    low, high = (of.low, of.high) if guardrail.below else (-of.high, -of.low)
    limit = guardrail.limit if guardrail.below else -guardrail.limit
    return "holds" if high < limit else "broken" if low >= limit else "cannot tell"


def relative(value: Interval, logging: Interval) -> Interval:
    """Return the interval of value / logging - 1, of values that are not negative, from theirs at half its error.

    The quotient of two numbers above 0 that each lie in their interval lies between the quotients of the ends; where
    the logging policy's value may be 0, it has no upper end.
    """
    plain = difference(value, logging)
    return Interval(
        estimate=value.estimate / logging.estimate - 1.0 if logging.estimate > 0.0 else math.nan,
        low=value.low / logging.high - 1.0,
        high=value.high / logging.low - 1.0 if logging.low > 0.0 else math.inf,
        n=plain.n,
        level=plain.level,
        kind=plain.kind,
    )


def money_of(
    plan: ReplayPlan, profit: Interval, lived: Sequence[Floats], costs: Sequence[Floats], *, displays: int
) -> Money:
    """Return what the rounds of a replay whose objective is profit brought and cost.

    Profit and cost of each round are given repeat by repeat, shape (T,) each, and the number of different displays
    shown.
    """
    alpha, rewards = 1.0 - plan.options.level, plan.rewards
    bounds = RewardBounds(*rewards.without_costs().weighted(plan.maturity.heaviest))
    # A round's profit is a sum that was rounded.
    earned = [np.clip(x + c, *bounds) for x, c in zip(lived, costs, strict=True)]
    revenue = KindValue(plan, earned, bounds, displays, plan.bounded)
    cost = KindValue(plan, costs, RewardBounds(rewards.least_cost, rewards.most_cost), displays, bounded=True)
    (brought, half_brought), (spent, half_spent) = (of.values(alpha, alpha / 2) for of in (revenue, cost))
    return Money(brought, spent, profit, _per_cost(half_brought, half_spent))


def _per_cost(revenue: Interval, cost: Interval) -> Interval:
    """Return the interval of revenue / cost - 1, at a level of 1 minus both errors."""
    level = revenue.level + cost.level - 1.0
    if not cost.high > 0.0:
        return Interval(math.nan, math.nan, math.nan, revenue.n, level, RATIO)
    # A gain is the smaller the more was spent, a loss the larger the less.
    low = _ratio(revenue.low, cost.high if revenue.low >= 0.0 else cost.low)
    high = _ratio(revenue.high, cost.low if revenue.high >= 0.0 else cost.high)
    return Interval(_ratio(revenue.estimate, cost.estimate) - 1.0, low - 1.0, high - 1.0, revenue.n, level, RATIO)


def _ratio(revenue: float, cost: float) -> float:
    if cost > 0.0:
        return revenue / cost
    return math.nan if revenue == 0.0 or math.isnan(revenue) else math.copysign(math.inf, revenue)


def outcome_table(values: Iterable[OutcomeValue]) -> pa.Table:
    """Return one row an outcome: its values, each with its interval, and the number of rounds behind them."""
    columns: Columns[OutcomeValue] = {
        "outcome": (TEXT, lambda of: of.outcome),
        "value": (None, lambda of: of.value),
        "uplift": (None, lambda of: of.uplift),
        "logging_value": (None, lambda of: of.logging_value),
        "n": (COUNT, lambda of: of.value.n),
        "level": (NUMBER, lambda of: of.value.level),
    }
    return table_of(columns, values)


def guardrail_table(answers: Iterable[GuardrailAnswer]) -> pa.Table:
    """Return one row a guardrail: what it limits, the answer, and the interval that gave it."""
    columns: Columns[GuardrailAnswer] = {
        "guardrail": (TEXT, lambda of: of.guardrail),
        "outcome": (TEXT, lambda of: of.outcome),
        "quantity": (TEXT, lambda of: of.quantity),
        "limit": (NUMBER, lambda of: of.limit),
        "answer": (TEXT, lambda of: of.answer),
        "estimate": (None, lambda of: of.interval),
        "n": (COUNT, lambda of: of.interval.n),
        "level": (NUMBER, lambda of: of.interval.level),
        "tests": (COUNT, lambda of: of.tests),
    }
    return table_of(columns, answers)
