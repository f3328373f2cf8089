"""How much more one of two replays earned than the other, at the common horizon, with interval and p-value.

Where nobody knows how much a display can earn at most (`evaluator.replays.findings.run`), what decides is judged twice:
with the largest reward seen as the largest possible, and with the largest that is plausible. Where both come to the
same, the unknown maximum is an assumption beside the verdict; else the verdict waits.

*The plausible maximum* is what a tail fitted to the rewards exceeds once in 100 logs of this size: of the largest tenth
of them, 20 at least, the excesses over the next one follow a generalised Pareto law, fitted by probability-weighted
moments (Hosking, Wallis. Parameter and quantile estimation for the generalized Pareto distribution. Technometrics
29(3), 1987). It is no less than the largest seen, and no more than ten times that, which stands for it, too, where
rewards are too few to fit a tail. So with refunds for the smallest. With the error of the fit, of 2,000 rewards one log
in 12 (exponential rewards) to 80 (lognormal ones) has a larger one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.comparisons.expected import WeightedPairs, reward_cut
from evaluator.comparisons.variants import FirstRounds
from evaluator.estimates.confidence import ANYTIME, Interval, crossing_boundary, mixture_rho, with_honest_kind
from evaluator.estimates.paired import (
    PAIRED,
    UNPAIRED,
    Contrast,
    RewardSums,
    SumsOfFirst,
    contrast,
    difference_of_sums,
    discordant,
    mean_sums,
    p_values,
    sums_of,
)
from evaluator.estimates.weighted_difference import PairedValues, WeightedDifference
from evaluator.log.schema import consecutive
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.values.rewards import eventual_rewards, reward_bounds
from evaluator.results.json_documents import Count, ShareOrNull
from evaluator.threads import in_threads

# Over pairs of fewer rounds threads wait for each other: with 1,000 two take up to twice as long as one
# (``python -m tests.bench compare``).
_THREADS_FROM = 5_000
_OBSERVED = "unpaired: rewards are those observed by the horizon"
_OF_LOG = "unpaired: the logging policy's value is of all displays that the other read"
# Largest rewards that a tail is fitted to: so many at least, and this share of all.
_FEWEST, _SHARE = 20, 0.1
# Logs of this size among which one has a larger reward than is plausible.
_LOGS = 100
# No reward is plausible that is so many times the largest seen.
_MOST = 10.0
# What makes each bound known.
_TO_KNOW = {"largest": "`reward_max`, or a cap of the rewards (`cap`)", "smallest": "`reward_min`"}
Pair = tuple[int, int]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Sums of some rewards in order, shape (n,), within bounds: as of `sums_of`.
Sums = Callable[..., RewardSums]
IN_ORDER = f"one sum in the order of the log, {ANYTIME}"
IN_ORDERS = "one sum in the order of each repeat, at its end (Howard et al. 2021; Vovk, Wang 2021)"
SAME = "both runs showed the same displays: 0 by definition, nothing was measured"


@dataclass(frozen=True)
class Difference:
    """Difference of two variants' mean rewards over the common horizon.

    Parameters
    ----------
    variant, reference
        Numbers of the variants, from 0; the reference's value is subtracted.
    realised
        Difference of the mean expected rewards of what these two runs showed, with its interval; None where there is
        none. It is a fact of the two runs, and says nothing of which policy earns more on average.
    p
        P-value of "these two runs differ by nothing", for this one test; nan where there is no difference.
    why_not
        Reason why there is no realised difference, or what it lacks; empty otherwise.
    expected
        Difference of the expected values of the two policies over logs and seeds, from common resampled logs; None
        where there is none.
    expected_p
        P-value of "the expected values are the same", for this one test; nan where there is none.
    why_not_expected
        Reason why there is no expected difference though there was a bootstrap; empty otherwise.
    weighted
        Difference of what two policies that do not learn would earn, weighted over all displays that can be judged,
        whatever the horizon; None where either learns, or nothing says how to weight the displays.
    """

    variant: Count
    reference: Count
    realised: Interval | None
    p: ShareOrNull
    why_not: str
    expected: Interval | None = None
    expected_p: ShareOrNull = math.nan
    why_not_expected: str = ""
    weighted: WeightedDifference | None = None

    @property
    def of_values(self) -> Interval | None:
        """Difference that a report prints first: weighted, where both do not learn, else realised."""
        return self.realised if self.weighted is None else self.weighted.value

    def turned(self) -> Difference:
        """Return the difference seen from the other side."""
        return replace(
            self,
            variant=self.reference,
            reference=self.variant,
            realised=_turned(self.realised),
            expected=_turned(self.expected),
            weighted=None if self.weighted is None else self.weighted.turned(),
        )


def _turned(of: Interval | None) -> Interval | None:
    """Return the interval of a difference seen from the other side."""
    return None if of is None else replace(of, estimate=0.0 - of.estimate, low=0.0 - of.high, high=0.0 - of.low)


class FoundDifferences(NamedTuple):
    """Differences of pairs, the lower number first, the evidence of realised ones, and what weighted ones rest on."""

    differences: dict[Pair, Difference]
    evidence: dict[Pair, RealisedEvidence]
    weighted: dict[Pair, PairedValues]

    def between(self, i: int, j: int) -> Difference:
        """Return the difference of variant i less variant j."""
        return self.differences[i, j] if i < j else self.differences[j, i].turned()

    def realised_between(self, i: int, j: int, level: float) -> Interval | None:
        """Return the realised difference of i less j at a level; None without evidence."""
        evidence = self.evidence.get((min(i, j), max(i, j)))
        found = None if evidence is None else evidence.interval(1.0 - level)
        return found if i < j else _turned(found)

    def weighted_between(self, i: int, j: int, level: float) -> WeightedDifference | None:
        """Return the weighted difference of i less j at a level; None where either learns."""
        values = self.weighted.get((min(i, j), max(i, j)))
        found = None if values is None else values.difference(level)
        return found if i < j or found is None else found.turned()


def find_differences(
    plans: Sequence[ReplayPlan],
    lived: Sequence[FirstRounds],
    pairs: Iterable[tuple[int, int]],
    *,
    rounds: int,
    fixed: bool,
    jobs: int = 1,
) -> FoundDifferences:
    """Return the realised difference of each pair (variant, reference), each once, and the weighted one of rules.

    The realised one is paired: what both showed cancels, where the same display earns the same in both. Where both
    replays read the log in its order and T is fixed, by one sum along it; else by two (`evaluator.estimates.paired`),
    unpaired where rewards are those observed by the horizon. Where rewards end with the policy's window, and the
    windows differ, there is none. O(T) a pair and repeat. The weighted one, of policies that do not learn:
    `WeightedPairs`.

    T is `rounds`, `fixed` where no outcome moved it. `lived` has the first T rounds of each variant, but all of the
    logging policy's: its first ones are the log's first displays, the other's are from all that it read, and so are
    those that are compared with them.
    """
    pairs = list(dict.fromkeys(pairs))
    weights = WeightedPairs(plans)
    weighted = {pair: weights.values(*pair) for pair in pairs if weights.weighable(*pair)}
    level = plans[0].options.level
    found: dict[tuple[int, int], Difference] = {}
    compared: list[tuple[int, int]] = []
    for pair in pairs:
        shortest = min(len(of) for i in pair for of in lived[i].displays)
        why_not = why_none(plans[pair[0]], plans[pair[1]], min(rounds, shortest))
        if why_not:
            found[pair] = Difference(*pair, None, math.nan, why_not)
        else:
            compared.append(pair)
    if not compared:
        return FoundDifferences(_with_weighted(found, weighted, level), {}, weighted)
    shared = plans[0].options.reward == "eventual"
    bounds = [reward_bounds(plan) for plan in plans]

    @cache
    def summed(i: int, upper: float, lower: float) -> SumsOfFirst:
        return SumsOfFirst(lived[i].rewards[0], upper=upper, lower=lower)

    @cache
    def sums(i: int) -> Sums:
        # Of the logging policy each of the others is compared with first rounds.
        if plans[i].sampler != "logged" or len(lived[i].displays) > 1 or not consecutive(lived[i].displays[0]):
            return sums_of
        return lambda rewards, *, upper, lower: summed(i, upper, lower).of(rewards.size)

    def weighed(pair: tuple[int, int]) -> RealisedEvidence:
        i, j = pair
        a, b = on_displays_of_both(plans[i], lived[i], plans[j], lived[j])
        return weigh(
            a.displays,
            a.rewards,
            b.displays,
            b.rewards,
            rounds=rounds,
            lower=bounds[i].lower,
            upper=bounds[i].upper,
            ordered=fixed and in_order(plans[i], plans[j]),
            shared=shared,
            sums=(sums(i), sums(j)),
        )

    evidence = list(in_threads(weighed, compared, jobs if rounds >= _THREADS_FROM else 1))
    alpha = 1.0 - plans[0].options.level
    for pair, of, p in zip(compared, evidence, p_values_of(evidence, alpha=alpha), strict=True):
        lacks = "" if of.n else SAME
        if of.kind == UNPAIRED:
            lacks = _OBSERVED if not shared else _OF_LOG
        found[pair] = Difference(*pair, of.interval(alpha), float(p), lacks)
    of_runs = dict(zip(compared, evidence, strict=True))
    return FoundDifferences(_with_weighted(found, weighted, level), of_runs, weighted)


def on_displays_of_both(
    plan_a: ReplayPlan, a: FirstRounds, plan_b: ReplayPlan, b: FirstRounds
) -> tuple[FirstRounds, FirstRounds]:
    """Return the rounds of two replays; of the logging policy those of its rounds that are of displays the other read.

    Rewards observed by the horizon are those of the first rounds, and stay.
    """
    if plan_a.options.reward != "eventual" or plan_a.sampler == plan_b.sampler:
        return a, b
    return (_read_by(b, a) if plan_a.sampler == "logged" else a), (_read_by(a, b) if plan_b.sampler == "logged" else b)


def _read_by(other: FirstRounds, logged: FirstRounds) -> FirstRounds:
    read: list[slice | npt.NDArray[np.bool_]] = [
        slice(int(shown.max()) + 1 - int(of[0])) if consecutive(of) else of <= shown.max()
        for of, shown in zip(logged.displays, other.displays, strict=True)
    ]
    pairs = zip(logged.displays, logged.rewards, read, strict=True)
    displays, rewards = zip(*((of[kept], earned[kept]) for of, earned, kept in pairs), strict=True)
    return FirstRounds(displays, rewards)


def _with_weighted(
    found: Mapping[Pair, Difference], weighted: Mapping[Pair, PairedValues], level: float
) -> dict[Pair, Difference]:
    values = {pair: of.difference(level) for pair, of in weighted.items()}
    return {pair: replace(of, weighted=values.get(pair)) for pair, of in found.items()}


def to_widest_window(plans: Sequence[ReplayPlan]) -> list[tuple[int, int]]:
    """Return (variant, its like with the widest window), for variants that differ from it in the window only."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for i, plan in enumerate(plans):
        alike.setdefault((plan.policy.spec, _learns(plan), plan.options.taught_by), []).append(i)
    widest = {spec: max(like, key=lambda j: plans[j].window.rounds) for spec, like in alike.items()}
    pairs = [(i, widest[spec]) for spec, like in alike.items() for i in like if widest[spec] != i]
    return sorted(pairs)


def to_event(plans: Sequence[ReplayPlan]) -> list[tuple[int, int]]:
    """Return (variant, its like that learns at each event), for variants that differ from it in the schedule only."""
    alike = [(plan.policy.spec, plan.window.cut, plan.options.taught_by) for plan in plans]
    events = {alike[i]: i for i, plan in enumerate(plans) if plan.deployment.schedule is None}
    found = [(i, events.get(alike[i])) for i, plan in enumerate(plans) if plan.deployment.schedule is not None]
    return [(i, event) for i, event in found if event is not None]


def _learns(plan: ReplayPlan) -> str:
    return "" if plan.deployment.schedule is None else plan.deployment.schedule.words


def why_none(a: ReplayPlan, b: ReplayPlan, rounds: int) -> str:
    """Return why the realised values of two variants after so many rounds cannot be compared; empty if they can."""
    if rounds < 1:
        return "no rounds"
    followed = [plan for plan in (a, b) if plan.sampler == "logged"]
    observed = a.options.reward == "observed" and len(followed) == 1 and rounds < len(followed[0].rounds)
    if observed and a.sets is not None and a.sets.moving >= 0:
        return (
            "what is eligible changes with time, and the logging policy's first rounds are the log's first displays, "
            "the other's from all of its calendar"
        )
    if a.off_support != b.off_support:
        return (
            "actions were chosen by context: the logging policy is known where it showed one of them, the other is "
            "valued on the traffic"
        )
    if reward_cut(a) == reward_cut(b):
        return ""
    if a.options.reward == "observed":
        return "rewards are those observed within the window, and the windows differ"
    return "rewards end with the window (the log names no attribution window), and the windows differ"


@dataclass(frozen=True)
class RealisedEvidence:
    """What the rewards of two replays' first T rounds say of their difference.

    `sums` is the sum of the differences along the log, or two sums of rewards where the log was not read in its order,
    or T is not fixed; mean over repeats. `n` displays may add to the difference, summed over repeats, of which
    `displays` are different. Each of the `repeats` has T `rounds`; `width` is the largest possible reward of a round
    less the smallest, `kind` the method in reports, and `ratio` the number of rounds of the variant over that of the
    reference: 1, unless either is the logging policy.
    """

    sums: Contrast | tuple[RewardSums, RewardSums]
    n: int
    displays: int
    repeats: int
    rounds: int
    width: float
    kind: str
    ratio: float = 1.0

    def interval(self, alpha: float) -> Interval:
        """Return the difference of the mean rewards with its interval, which fails with probability `alpha` at most."""
        if self.n == 0:
            return Interval(0.0, 0.0, 0.0, 0, 1.0 - alpha, SAME)
        of, share = self.sums, self.width / self.rounds
        if isinstance(of, Contrast):
            radius = of.radius(alpha=alpha)
            low, high = max(of.total - radius, of.least), min(of.total + radius, of.most)
            return Interval(share * of.total, share * low, share * high, self.displays, 1.0 - alpha, self.kind)
        return difference_of_sums(
            *self.sums, rounds=self.rounds, upper=self.width, alpha=alpha, kind=self.kind, displays=self.displays,
            ratio=self.ratio,
        )  # fmt: skip


def radii(evidence: Sequence[RealisedEvidence], alpha: Floats, *, tuned_at: float, more: float = 0.0) -> Floats:
    """Return the difference that a test tells from 0 by the p-values of `p_values_of`, for each of several logs.

    The evidence is on one pair of policies, from n logs that are alike; the test on each has an error, shape (n,), and
    the mixture is tuned for that of one test alone. `more` is the variance that the difference is to have beyond that
    seen, in squared units of the difference.
    """
    share = np.array([of.width / of.rounds for of in evidence])
    extra = more / share**2
    one = isinstance(evidence[0].sums, Contrast)
    v = np.array([[of.sums.variation] if isinstance(of.sums, Contrast) else [s.variation for s in of.sums]
                  for of in evidence])  # fmt: skip
    parts = 2.0 if one else 4.0
    v = np.maximum(v + extra[:, None] / (1 if one else 2), v / 4)
    ends = crossing_boundary(v, threshold=np.log(parts / alpha)[:, None], rho=mixture_rho(tuned_at / parts))
    return np.asarray(share * ends.sum(axis=1))


def p_values_of(evidence: Sequence[RealisedEvidence], *, alpha: float) -> Floats:
    """Return the p-value of "no realised difference" of each; below `alpha` just where its interval leaves 0 out."""
    p = np.ones(len(evidence))
    two = []
    for i, of in enumerate(evidence):
        if isinstance(of.sums, Contrast):
            p[i] = of.sums.p(tuned_at=alpha) if of.n else 1.0
        else:
            two.append((i, of.sums))
    if two:
        a, b = (
            RewardSums(*(np.array([getattr(of[side], name) for _, of in two]) for name in RewardSums._fields))
            for side in (0, 1)
        )
        ratio = np.array([evidence[i].ratio for i, _ in two])
        p[[i for i, _ in two]] = p_values(a, b, alpha=alpha, ratio=ratio)
    return p


def in_order(a: ReplayPlan, b: ReplayPlan) -> bool:
    """Whether both replays decide on each display of the log in turn: all but those that keep a queue."""
    return "queue" not in (a.sampler, b.sampler)


def weigh(
    shown_a: Sequence[Ints],
    rewards_a: Sequence[Floats],
    shown_b: Sequence[Ints],
    rewards_b: Sequence[Floats],
    *,
    rounds: int,
    upper: float,
    lower: float = 0.0,
    ordered: bool,
    shared: bool,
    sums: tuple[Sums, Sums] = (sums_of, sums_of),
) -> RealisedEvidence:
    """Return what two replays' rewards say of their difference.

    Displays and rewards are those of the first T rounds of both, repeat by repeat, shape (T,) each; of the logging
    policy, whose rounds are the log's displays in their order, those of all its rounds. They are `ordered` where both
    decided on one display after the other, in an order that they shared, and T was fixed before any outcome; `shared`
    where a display earns the same in both. `sums` are the functions that sum the rewards of a repeat of each.
    """
    repeats = len(shown_a)
    width = upper - lower
    ratio = len(shown_a[0]) / len(shown_b[0])
    if ratio != 1.0:
        # Its first rounds would be of other days than those of the other, so nothing is paired.
        ordered = shared = False
    different = 0 if repeats == 1 else _different(shown_a, shown_b, shared=shared)
    # What a later round has not revealed yet may be a sale or a refund.
    if ordered and (shared or lower == 0.0):
        one = contrast(shown_a, rewards_a, shown_b, rewards_b, upper=upper, lower=lower, shared=shared)
        kind = f"paired, {IN_ORDER if repeats == 1 else IN_ORDERS}"
        return RealisedEvidence(one, one.n, different or one.n, repeats, rounds, width, kind)
    each = zip(shown_a, rewards_a, shown_b, rewards_b, strict=True)
    pairs = [
        discordant(*of, upper=upper, lower=lower)
        if shared
        else (sums[0](of[1], upper=upper, lower=lower), sums[1](of[3], upper=upper, lower=lower))
        for of in each
    ]
    n = sum(int(s.n) for pair in pairs for s in pair)
    a, b = (mean_sums(side) for side in zip(*pairs, strict=True))
    kind = PAIRED if shared else UNPAIRED
    return RealisedEvidence((a, b), n, different or n, repeats, len(shown_a[0]), width, kind, ratio)


def _different(shown_a: Sequence[Ints], shown_b: Sequence[Ints], *, shared: bool) -> int:
    """Return how many different displays may add to the difference in any repeat."""
    told = [np.setxor1d(a, b) if shared else np.union1d(a, b) for a, b in zip(shown_a, shown_b, strict=True)]
    return len(np.unique(np.concatenate(told)))


def honest_difference(plan: ReplayPlan, found: Difference) -> Difference:
    """Return a difference whose interval claims no more than holds."""
    if plan.bounded or found.realised is None:
        return found
    return replace(found, realised=with_honest_kind(found.realised))


class PlausibleDifferences(NamedTuple):
    """Realised differences to the baseline where displays earn as much, or as little, as is plausible.

    They are of policies that do not learn; with clauses on the bounds that were seen, on those that are plausible, and
    on what makes the bounds known.
    """

    found: FoundDifferences
    seen: str
    bounds: str
    remedy: str


def plausible_differences(
    plans: Sequence[ReplayPlan],
    lived: Sequence[FirstRounds],
    baseline: int,
    *,
    weighted: Container[tuple[int, int]],
    rounds: int,
    fixed: bool,
) -> PlausibleDifferences | None:
    """Return differences to the baseline with plausible bounds of rewards; None where all bounds are known.

    Parameters are those of `find_differences`, and the pairs that have a weighted difference, which decides. O(T) a
    pair.
    """
    open_ = next((plan for plan in plans if not plan.bounded), None)
    if open_ is None:
        return None
    reward = eventual_rewards(open_, used=open_.rounds.used).value
    bounds, seen, plausible = {}, [], []
    for end, sign, word in (("largest", 1.0, "more than"), ("smallest", -1.0, "less than")):
        if end in open_.rewards.ends_seen:
            extreme = max(sign * getattr(open_.rewards, end), 0.0)
            bounds[end] = sign * plausible_maximum(sign * reward, extreme)
            seen.append(f"{word} the {sign * extreme:g} seen")
            by = "ten times the largest seen" if abs(bounds[end]) >= _MOST * extreme else "by a tail fitted to rewards"
            plausible.append(f"{bounds[end]:.3g} ({by})")
    wider = [
        replace(plan, rewards=plan.rewards._replace(
            largest=max(plan.rewards.largest, bounds.get("largest", -math.inf)),
            smallest=min(plan.rewards.smallest, bounds.get("smallest", math.inf)),
        )) for plan in plans
    ]  # fmt: skip
    pairs = [
        (min(i, baseline), max(i, baseline)) for i, plan in enumerate(plans)
        if i != baseline and not (plan.policy.learns or plans[baseline].policy.learns)
    ]  # fmt: skip
    pairs = [pair for pair in pairs if pair not in weighted]
    if not pairs:
        return None
    found = find_differences(wider, lived, pairs, rounds=rounds, fixed=fixed)
    known = ", and ".join(_TO_KNOW[end] for end in bounds)
    return PlausibleDifferences(found, " or ".join(seen), " or ".join(plausible), known)


def plausible_maximum(rewards: npt.NDArray[np.float64], largest: float) -> float:
    """Return the largest reward that is plausible, by the tail of those above 0 that were seen, shape (n,).

    The largest is what a display had at any time.

    >>> even = np.arange(1.0, 1001.0)
    >>> plausible_maximum(even, 1000.0) < 1100, plausible_maximum(even[:10], 10.0)
    (True, 100.0)
    """
    earned = np.sort(rewards[rewards > 0.0])
    many = max(_FEWEST, math.ceil(_SHARE * earned.size))
    if earned.size <= many:
        return _MOST * largest
    above = earned[-many:] - earned[-many - 1]
    mean = float(above.mean())
    # Weighted by the share of the excesses that is larger.
    weighted = float((above * (np.arange(many, 0, -1) - 0.65) / many).mean())
    if not mean > 0.0:
        return largest
    shape = 2.0 - mean / (mean - 2.0 * weighted) if mean > 2.0 * weighted else -math.inf
    if shape == -math.inf:
        return largest
    scale = mean * (1.0 - shape)
    often = _LOGS * many
    excess = scale * (math.log(often) if abs(shape) < 1e-9 else math.expm1(shape * math.log(often)) / shape)
    return float(min(max(earned[-many - 1] + excess, largest), _MOST * largest))
