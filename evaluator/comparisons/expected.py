"""What one of two policies is expected to earn more than the other: from common resampled logs, or by weights.

Policies that learn are replayed on resampled logs. For others nothing is replayed: the probabilities of a fixed action,
of random play, of columns of the log, and of the logging policy itself are known at every display, whatever was
revealed before. So all displays that can be judged count, and not only those that a replay matches
(`evaluator.estimates.weighted_difference`). Memory: 8 bytes a display and policy.

*Uplift* is a difference in the words of who decides: as a share of what the baseline earns, per month, with a live
test. With the difference D and the value B > 0 of the baseline, a share r is in the interval of the uplift where 0 is
in that of D - r B. So a rule of r per cent is met where the interval of D - r B lies above 0.

*Expected values* have the interval of D - r B from the same resampled logs as that of D: exact, as both are paired
(Fieller. Some problems in interval estimation. Journal of the Royal Statistical Society B 16(2), 1954).

*Other differences* come with no such pairs. There B is anywhere in its own interval: D - r B lies above 0 where the
lower end of D lies above r times the upper end of B. Nine tenths of the error are left to D and one to B, so that both
hold together: conservative, as much as B is unknown.

*The chance of a loss* is Phi(-D / s) by the normal law, where s is the half of the interval below D over its normal
quantile: what is believed of "the variant earns less" by someone who held all differences for equally likely before.
Intervals that hold at any time are longer than normal ones, and their chance is too large.

*A live test* shows D beyond the rule's limit l with a power of 80 % after N displays of both arms,

    N = (z + z_.8)² (v_A / q + v_B / (1 - q)) / (D - l)²,

q the share of the traffic that the variant serves, v the variances of what the log's displays earned in both replays,
by clusters where there are any, and z the normal quantile of the level. The variant serves displays enough for 25
rewards, at least, and one that learns as many rounds as its replay lived: sooner it has not earned D.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluator.comparisons.variants import first_rounds
from evaluator.estimates.confidence import Interval
from evaluator.estimates.standard_errors import NEEDED, clustered_error
from evaluator.estimates.weighted import Codes, Floats
from evaluator.estimates.weighted_difference import Influence, PairedValues, influence, paired_values
from evaluator.log.column import Column, read_users
from evaluator.log.schema import to_numpy
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.final import display_weights
from evaluator.replays.values.resampled import LOGGED, ResampledValues, expected_differences
from evaluator.replays.values.rewards import eventual_rewards
from evaluator.results.json_documents import AboveZero, Count, PositiveShare, Share, Text

# Resampled logs on which two replays must have earned differently: the spread of fewer is known to a quarter at best.
FEWEST_DIFFERENT = 10
# Share of the log that a replay is to have read where eligible actions change with time, to be compared with all of it.
_WHOLE = 0.9
FIRST_PART = (
    "what is eligible changes with time, and the logging policy's value is of the whole calendar, the other's of its "
    "first part"
)
# Part of the error that is left to the baseline's value.
_OF_BASELINE = 0.1
# Shares beyond this are none: the baseline's value is not told from 0.
_MOST = 1e6
_Z80 = 0.8416212335729143
_MONTH_DAYS = 365.25 / 12
_THOUSAND = 1_000.0
# Shares of the traffic for a live test: the smallest is taken that shows the difference in so many days.
_SHARES, _DAYS = (0.05, 0.1, 0.2, 0.5), 14.0
# Conversions that are in where nothing else says how long to wait for them.
_IN = 0.95


class ExpectedDifference(NamedTuple):
    """A difference of expected values with its interval, from the spread over resampled logs; else None, and why.

    `p` is the P-value of "no difference", two-sided, by the same law; nan where there is none.
    """

    interval: Interval | None
    p: float
    why_not: str


def at_horizon(
    plan: ReplayPlan, result: ReplayResult, rounds: int, resampled: ResampledValues | None = None
) -> ReplayResult:
    """Return a result as it was after so many rounds, as far as differences of expected values read it.

    The logging policy's is of all its rounds. Where no value of these rounds is given, those of resampled logs stay
    only if the result is of so many rounds.
    """
    if resampled is not None:
        result = replace(result, resampled=tuple(resampled.values.tolist()), clusters=resampled.clusters)
    if result.plan["sampler"] == LOGGED or result.rounds == rounds:
        return result
    read = tuple(round(of * rounds / max(result.rounds, 1)) for of in result.read)
    if resampled is None:
        return replace(result, rounds=rounds, read=read, resampled=())
    lived = first_rounds(plan, result, rounds)
    value = replace(
        result.value,
        estimate=float(np.mean([of.mean() for of in lived.rewards])),
        n=len(np.unique(np.concatenate(lived.displays))),
    )
    return replace(result, value=value, rounds=rounds, read=read)


def expected_difference(
    variant: ReplayResult, reference: ReplayResult, *, level: float | None = None
) -> ExpectedDifference:
    """Return what a variant is expected to earn per round beyond a reference, at a level, None for the replays' own.

    Both are of one number of rounds (`at_horizon`), unless one is the logging policy, which learns in no round. None
    without a bootstrap, and where the two earned alike on all but a few resampled logs: a spread of 0 would be read as
    a difference known to be 0, and says only that it was not seen.
    """
    from scipy.special import stdtr, stdtrit

    if not (variant.resampled and reference.resampled):
        return ExpectedDifference(None, math.nan, "")
    gaps = np.subtract(variant.resampled, reference.resampled)
    size = max(float(np.abs([variant.resampled, reference.resampled]).max()), 1e-300)
    different = int((np.abs(gaps) > 1e-12 * size).sum())
    if different < FEWEST_DIFFERENT:
        return ExpectedDifference(
            None,
            math.nan,
            f"the two earned differently on {different:,} of {len(gaps):,} resampled logs only: how far their expected "
            "values differ is not known from so few",
        )
    (_, interval) = expected_differences([reference, variant], level=level)
    freedom = len(gaps) - 1
    half = (interval.high - interval.low) / 2
    t = abs(interval.estimate) / half * float(stdtrit(freedom, 0.5 + interval.level / 2))
    return ExpectedDifference(interval, float(2.0 * stdtr(freedom, -t)), "")


def why_not_expected(plans: Sequence[ReplayPlan], results: Sequence[ReplayResult]) -> str:
    """Return why two values are not comparable though both are expected ones; empty if they may be.

    The logging policy's is of the whole log, and the other's of what it read for its rounds.
    """
    sets = plans[0].sets
    logged = [plan.sampler == LOGGED for plan in plans]
    if sets is None or sets.moving < 0 or logged.count(True) != 1:
        return ""
    other = logged.index(False)
    read = min(results[other].read, default=0) / max(len(plans[other].rounds), 1)
    return "" if read >= _WHOLE else FIRST_PART


class WeightedPairs:
    """What displays say of the differences of policies that do not learn, each policy's weights read once.

    By users, where options name their column or the log keeps one whose name says so: displays of one user hang
    together, though no option says it. Costs a scan of the log for each policy that is asked for.
    """

    def __init__(self, plans: Sequence[ReplayPlan]) -> None:
        self._plans = plans
        self._rewards: dict[object, Floats] = {}
        self._weights: dict[int, Floats | None] = {}
        self._influences: dict[int, Influence] = {}

    def weighable(self, i: int, j: int) -> bool:
        """Whether the difference of two variants can be weighted: neither learns, and their rewards are the same."""
        a, b = self._plans[i], self._plans[j]
        return _weighable(a) and _weighable(b) and reward_cut(a) == reward_cut(b)

    def values(self, i: int, j: int) -> PairedValues:
        """Return what all displays that can be judged say of variant i less variant j, which are `weighable`."""
        return paired_values(self._reward(i), self._influence(i), self._influence(j), clusters=self._code(i))

    def in_groups(self, i: int, j: int, split: Column) -> tuple[PairedValues, ...]:
        """Return the same of the displays of each group of a column alone; nothing where they are not `weighable`."""
        if not self.weighable(i, j):
            return ()
        reward, code, found = self._reward(i), self._code(i), []
        for group in range(len(split.labels)):
            of = np.flatnonzero(split.code[: len(reward)] == group)
            own = None if code is None else code[of]
            weights = [None if w is None else w[of] for w in map(self._kept_weight, (i, j))]
            x, y = (influence(reward[of], weight, clusters=own) for weight in weights)
            found.append(paired_values(reward[of], x, y, clusters=own))
        return tuple(found)

    @cached_property
    def _clusters(self) -> Column | None:
        return self._plans[0].clusters or read_users(self._plans[0].log, None)

    def _code(self, variant: int) -> Codes | None:
        used = self._plans[variant].maturity.used
        return None if self._clusters is None else self._clusters.code[:used]

    def _reward(self, variant: int) -> Floats:
        plan = self._plans[variant]
        cut, used = reward_cut(plan), plan.maturity.used
        if cut not in self._rewards:
            self._rewards[cut] = eventual_rewards(plan, used=used).taken(np.arange(used))
        return self._rewards[cut]

    def _kept_weight(self, variant: int) -> Floats | None:
        if variant not in self._weights:
            self._weights[variant] = _weight(self._plans[variant])
        return self._weights[variant]

    def _influence(self, variant: int) -> Influence:
        if variant not in self._influences:
            weight = _weight(self._plans[variant])
            of = influence(self._reward(variant), weight, clusters=self._code(variant))
            self._influences[variant] = of
        return self._influences[variant]


def _weight(plan: ReplayPlan) -> Floats | None:
    """Return the weight of each display that can be judged; None for the logging policy."""
    return None if plan.sampler == "logged" else display_weights(plan)


def may_decide(policies: Sequence[Any], draws: int | None) -> bool:
    """Whether a comparison can come to a verdict, for which its log is checked, and is to say who saw a display.

    The number of resampled logs is `draws`; None stands for as many as the verdict needs.
    """
    frozen = any(not getattr(policy, "learns", True) and policy.name != "logging" for policy in policies)
    return frozen or draws != 0


def _weighable(plan: ReplayPlan) -> bool:
    """Whether every display that can be judged has a weight under the policy, and the displays are the traffic's.

    Where units keep their action, that of a later display depends on the first one's context, and not on its own.
    """
    p = plan.propensities
    if plan.kept is not None and plan.policy.contextual:
        return False
    return not plan.policy.learns and plan.options.reward == "eventual" and p.rule is not None and not p.tilted


def reward_cut(plan: ReplayPlan) -> object:
    """Return what cuts the rewards of a variant: equal for two whose values can be compared."""
    cut_by_window = plan.options.reward == "observed" or plan.rewards_end_with_window
    return plan.window.cut if cut_by_window else None


@dataclass(frozen=True)
class LiveTest:
    """A live test that would show the difference to the baseline beyond the rule's limit, with a power of 80 %.

    Parameters
    ----------
    share
        Share of the traffic that the variant serves; the baseline serves the rest.
    displays, days
        Number of displays that both serve, and days of traffic that bring them; None where the log has no dates.
    displays_at_low, days_at_low
        Displays and days if only the lower end of the difference's interval is true; None where that end does not
        exceed the limit.
    days_after
        Days until the conversions of the last displays are in; None where the log has no dates.
    stop
        Clause that says where it is ended early.
    """

    share: PositiveShare
    displays: Count
    days: float | None
    displays_at_low: Count | None
    days_at_low: float | None
    days_after: float | None
    stop: Text


@dataclass(frozen=True)
class Uplift:
    """A difference to the baseline in the words of who decides.

    Parameters
    ----------
    share
        Difference as a share of the baseline's value, with its interval; None where that value may be 0 or less.
    unit
        What `amount` is of: a month where the log has dates, else a thousand displays.
    displays
        Number of displays in that unit: of a month, those that the log's mean traffic brings, at the traffic share that
        the replay was asked for.
    amount
        Difference in reward in that unit, with its interval.
    chance_of_loss
        Chance that the variant earns less than the baseline, by a normal law around the difference; None where the
        interval has no length.
    cost_of_waiting
        Reward that another month with the baseline costs: the month's difference, 0 where that is below 0; None where
        the log has no dates.
    live_test
        Live test that would show the difference; None where it does not exceed the rule's limit.
    """

    share: Interval | None
    unit: Literal["month", "thousand displays"]
    displays: AboveZero
    amount: Interval
    chance_of_loss: Share | None
    cost_of_waiting: float | None
    live_test: LiveTest | None


def find_uplift(
    plan: ReplayPlan,
    variant: ReplayResult,
    baseline: ReplayResult,
    difference: Interval,
    share: Interval | None,
    *,
    limit: float,
) -> Uplift:
    """Return a difference in the words of who decides.

    The difference is the one that decides, its share of the baseline's value beside it; the limit is per round.
    """
    daily = _displays_a_day(plan)
    traffic = None if daily is None else daily * plan.options.traffic_share
    displays = _THOUSAND if traffic is None else traffic * _MONTH_DAYS
    amount = replace(
        difference, estimate=displays * difference.estimate, low=displays * difference.low,
        high=displays * difference.high,
    )  # fmt: skip
    return Uplift(
        share=share,
        unit="thousand displays" if traffic is None else "month",
        displays=displays,
        amount=amount,
        chance_of_loss=_chance_of_loss(difference),
        cost_of_waiting=None if traffic is None else max(amount.estimate, 0.0),
        live_test=_live_test(plan, variant, baseline, difference, limit=limit, daily=daily),
    )


def _displays_a_day(plan: ReplayPlan) -> float | None:
    """Return how many displays the whole traffic has a day; None where the log has no dates, or one alone."""
    clock = plan.clock
    if clock.tick_seconds is None or not math.isfinite(clock.rate):
        return None
    return clock.rate * 86_400.0 / clock.tick_seconds / clock.sampling_rate


def _chance_of_loss(of: Interval) -> float | None:
    from scipy.special import ndtr, ndtri

    error = (of.estimate - of.low) / float(ndtri(0.5 + of.level / 2.0))
    return float(ndtr(-of.estimate / error)) if error > 0.0 and math.isfinite(error) else None


def _live_test(
    plan: ReplayPlan,
    variant: ReplayResult,
    baseline: ReplayResult,
    difference: Interval,
    *,
    limit: float,
    daily: float | None,
) -> LiveTest | None:
    from scipy.special import ndtri

    earned = [to_numpy(result.trajectory["reward"]).astype(np.float64) for result in (variant, baseline)]
    rewarded = int(np.count_nonzero(earned[0]))
    if not (difference.estimate > limit and rewarded and len(earned[1])):
        return None
    variances = [_variance(plan, *of) for of in zip((variant, baseline), earned, strict=True)]
    z = float(ndtri(0.5 + plan.options.level / 2.0)) + _Z80
    least = max(NEEDED * len(earned[0]) / rewarded, variant.rounds if plan.policy.learns else 0)

    def displays(share: float, gap: float) -> int:
        needed = (z / gap) ** 2 * (variances[0] / share + variances[1] / (1.0 - share))
        return math.ceil(max(needed, least / share))

    def days(number: int | None) -> float | None:
        return None if daily is None or number is None else number / daily

    most = min(plan.options.traffic_share, _SHARES[-1])
    shares = [share for share in _SHARES if share < most] + [most]
    gap, low = difference.estimate - limit, difference.low - limit
    quick = [share for share in shares if (days(displays(share, gap)) or math.inf) <= _DAYS]
    share = quick[0] if quick else most
    number, at_low = displays(share, gap), displays(share, low) if low > 0.0 else None
    stop = "where the interval of the live difference, one that holds at any time, lies below 0"
    stop += ", or a guardrail is broken" if plan.options.guardrails else ""
    return LiveTest(share, number, days(number), at_low, days(at_low), _days_after(plan), stop)


def _variance(plan: ReplayPlan, result: ReplayResult, reward: NDArray[np.float64]) -> float:
    """Return the variance of a display's reward; where displays hang together, as large as it is for their mean."""
    if plan.clusters is None:
        return float(reward.var())
    code = plan.clusters.code[to_numpy(result.trajectory["display_id"]) - plan.before]
    error = clustered_error(reward, code)
    return 0.0 if math.isnan(error) else error**2 * len(reward)


def _days_after(plan: ReplayPlan) -> float | None:
    """Return the days until conversions are in: the attribution window, or the window, else of most conversions."""
    clock, ticks = plan.clock, plan.log.meta.attribution_window
    if clock.tick_seconds is None:
        return None
    if ticks is None:
        ticks = plan.window.ticks
    if ticks is not None:
        return ticks * clock.tick_seconds / 86_400.0
    delay = plan.rounds.delay
    return clock.days(float(np.quantile(delay, _IN))) if len(delay) else 0.0


def share_of_baseline(
    difference: Callable[[float], Interval | None], baseline: Interval, *, level: float
) -> Interval | None:
    """Return a difference as a share of the baseline's value; None where that value is not told to lie above 0.

    The function returns the difference to the baseline with its interval at a level.

    >>> known, value = Interval(0.1, 0.05, 0.15, 100, 0.95, "known"), Interval(0.5, 0.5, 0.5, 100, 0.95, "known")
    >>> found = share_of_baseline(lambda level: known, value, level=0.95)
    >>> round(found.low, 3), round(found.estimate, 3), round(found.high, 3)
    (0.1, 0.2, 0.3)
    """
    error = 1.0 - level
    of, value = difference(1.0 - (1.0 - _OF_BASELINE) * error), _at_error(baseline, _OF_BASELINE * error)
    if of is None or not value.low > 0.0:
        return None
    low = of.low / (value.high if of.low > 0.0 else value.low)
    high = of.high / (value.low if of.high > 0.0 else value.high)
    return Interval(of.estimate / value.estimate, low, high, of.n, level, f"{of.kind}, by the baseline's interval")


def _at_error(of: Interval, error: float) -> Interval:
    """Return an interval that fails less often than one that is there, at this error at most.

    Half-widths grow with the logarithm of the error no faster than in proportion: those of the normal law, and of
    mixtures, whose boundaries are concave in it.
    """
    wider = max(math.log(2.0 / error) / math.log(2.0 / (1.0 - of.level)), 1.0)
    low, high = (of.estimate + wider * (end - of.estimate) for end in (of.low, of.high))
    return replace(of, low=low, high=high, level=1.0 - error)


def expected_share(variant: ReplayResult, baseline: ReplayResult, *, level: float) -> Interval | None:
    """Return the difference of two expected values as a share of the baseline's; None where that may be 0 or less.

    Both replays have an expected difference (`evaluator.comparisons.expected`); its interval holds at the level.
    """
    from scipy.optimize import brentq

    def beyond(share: float) -> Interval:
        return expected_differences([baseline, variant], level=level, times=1.0 + share)[1]

    value = baseline.value.estimate
    if not (value > 0.0 and beyond(_MOST).high < 0.0 < beyond(-_MOST).low):
        return None
    found = beyond(0.0)
    estimate = found.estimate / value
    low = brentq(lambda share: beyond(share).low, -_MOST, estimate)
    high = brentq(lambda share: beyond(share).high, estimate, _MOST)
    return replace(found, estimate=estimate, low=low, high=high)
