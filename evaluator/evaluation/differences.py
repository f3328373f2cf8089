"""Which of several replays earned more than which: differences at the common horizon, and a ranking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from evaluator.estimates.combine import average
from evaluator.estimates.confidence import Interval
from evaluator.estimates.multiplicity import holm
from evaluator.estimates.paired import PAIRED, UNPAIRED, Sums, difference_of_sums, discordant, p_values, sums_of
from evaluator.evaluation.horizon import FirstRounds
from evaluator.evaluation.plan import Plan
from evaluator.evaluation.rewards import reward_bound

# Above so many variants (780 pairs) only their differences to the baseline are tested.
ALL_PAIRS_UP_TO = 40


@dataclass(frozen=True)
class Difference:
    """Difference of two variants' mean rewards over the common horizon.

    Parameters
    ----------
    variant, reference
        Numbers of the variants, from 0; the reference's value is subtracted.
    realised
        Of these two runs; None where there is none.
    expected
        Of the expected values, from common resampled logs; None without a bootstrap, or where the two replays ended
        after different numbers of rounds.
    p
        Anytime-valid p-value of "no difference", for this one test; nan where there is no difference.
    why_not
        Why there is none, or none that is paired; empty otherwise.
    """

    variant: int
    reference: int
    realised: Interval | None
    p: float
    why_not: str
    expected: Interval | None = None

    def turned(self) -> Difference:
        """Return the difference seen from the other side."""
        return replace(
            self,
            variant=self.reference,
            reference=self.variant,
            realised=_turned(self.realised),
            expected=_turned(self.expected),
        )


def _turned(of: Interval | None) -> Interval | None:
    return None if of is None else replace(of, estimate=0.0 - of.estimate, low=0.0 - of.high, high=0.0 - of.low)


@dataclass(frozen=True)
class Tested:
    """A difference among several tested together: real if `adjusted` (Holm) is at most 1 - level."""

    difference: Difference
    adjusted: float
    real: bool


@dataclass(frozen=True)
class Ranking:
    """Variants by their value at the common horizon, and which differences are real.

    Parameters
    ----------
    order
        Variants, from 0, the highest value first.
    better_than
        Of each variant, in their own order, those that it is really better than.
    tests
        All that were made.
    all_pairs
        False when only differences to the baseline were tested, to bound the cost.
    level
        With this probability no difference is called real that is not.
    """

    order: tuple[int, ...]
    better_than: tuple[tuple[int, ...], ...]
    tests: tuple[Tested, ...]
    all_pairs: bool
    level: float

    @property
    def conclusion(self) -> str:
        """What the ranking says, in a sentence."""
        real = sum(test.real for test in self.tests)
        what = "differences" if self.all_pairs else "differences to the baseline"
        if not self.tests:
            return "No two variants can be compared."
        if not real:
            return f"No difference is real at {percent(self.level)}."
        return f"{real:,} of {len(self.tests):,} {what} are real at {percent(self.level)}, all of them at once."


def percent(level: float) -> str:
    """Return a level as people write it.

    >>> percent(0.95), percent(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * level:.6g} %"


def find_differences(
    plans: Sequence[Plan],
    lived: Sequence[FirstRounds],
    pairs: Iterable[tuple[int, int]],
    *,
    rounds: int,
    jobs: int = 1,
) -> dict[tuple[int, int], Difference]:
    """Return the difference of each pair (variant, reference), each once.

    Paired, as `evaluator.estimates.paired` says, where the same display earns the same in both. Where rewards are those
    observed by the horizon it need not: the difference is that of the two values then, with both their intervals.
    Where rewards end with the policy's window, and the windows differ, there is none. O(T) a pair and repeat.

    Parameters
    ----------
    plans
        Of the variants.
    lived
        Their first rounds.
    pairs
        Which to compare.
    rounds
        T.
    jobs
        Threads; no result depends on it.
    """
    found: dict[tuple[int, int], Difference] = {}
    compared: list[tuple[int, int]] = []
    for pair in dict.fromkeys(pairs):
        shortest = min(len(of) for i in pair for of in lived[i].displays)
        why_not = _why_none(plans[pair[0]], plans[pair[1]], min(rounds, shortest))
        if why_not:
            found[pair] = Difference(*pair, None, float("nan"), why_not)
        else:
            compared.append(pair)
    if not compared:
        return found
    options = plans[0].options
    alpha = 1.0 - options.level
    paired = options.reward == "eventual"
    upper = [reward_bound(plan) for plan in plans]

    def sums(pair: tuple[int, int]) -> list[tuple[Sums, Sums]]:
        i, j = pair
        each = zip(lived[i].displays, lived[i].rewards, lived[j].displays, lived[j].rewards, strict=True)
        return [
            discordant(*of_repeat, displays=len(plans[i].log), upper=upper[i])
            if paired
            else (sums_of(of_repeat[1], upper=upper[i]), sums_of(of_repeat[3], upper=upper[i]))
            for of_repeat in each
        ]

    with ThreadPoolExecutor(jobs) as pool:
        of_pairs = list(pool.map(sums, compared))
    a, b = (
        Sums(*(np.array([[getattr(of[r][side], name) for of in of_pairs] for r in range(options.repeats)])
               for name in Sums._fields))
        for side in (0, 1)
    )  # fmt: skip
    for pair, of_pair, p in zip(compared, of_pairs, p_values(a, b, alpha=alpha), strict=True):
        kind, why_not = (PAIRED, "") if paired else (UNPAIRED, "unpaired: rewards are those observed by the horizon")
        realised = average(
            [
                difference_of_sums(
                    *of_repeat, rounds=rounds, upper=upper[pair[0]], alpha=alpha / options.repeats, kind=kind
                )
                for of_repeat in of_pair
            ]
        )
        found[pair] = Difference(*pair, realised, float(p), why_not)
    return found


def ranked_pairs(variants: int, baseline: int) -> list[tuple[int, int]]:
    """Return the pairs that a ranking tests: all, or each variant with the baseline where they are too many."""
    if variants <= ALL_PAIRS_UP_TO:
        return [(i, j) for j in range(variants) for i in range(j)]
    return [(min(i, baseline), max(i, baseline)) for i in range(variants) if i != baseline]


def rank(
    values: Sequence[float], differences: Mapping[tuple[int, int], Difference], baseline: int, *, level: float
) -> Ranking:
    """Return the ranking of variants by their values, from the differences of all `ranked_pairs`."""
    pairs = ranked_pairs(len(values), baseline)
    tested = [differences[pair] for pair in pairs if differences[pair].realised is not None]
    adjusted = holm([difference.p for difference in tested])
    tests = tuple(
        Tested(difference, float(p), bool(p <= 1.0 - level)) for difference, p in zip(tested, adjusted, strict=True)
    )
    better: list[list[int]] = [[] for _ in values]
    for test in tests:
        of = test.difference
        if test.real and of.realised is not None:
            winner, loser = (of.variant, of.reference) if of.realised.estimate > 0 else (of.reference, of.variant)
            better[winner].append(loser)
    order = sorted(range(len(values)), key=lambda i: -values[i] if values[i] == values[i] else float("inf"))
    return Ranking(tuple(order), tuple(tuple(sorted(b)) for b in better), tests, len(values) <= ALL_PAIRS_UP_TO, level)


def to_widest_window(plans: Sequence[Plan]) -> list[tuple[int, int]]:
    """Return (variant, its like with the widest window), for variants that differ from it in the window only."""
    pairs = []
    for i, plan in enumerate(plans):
        like = [j for j, other in enumerate(plans) if other.policy.spec == plan.policy.spec]
        widest = max(like, key=lambda j: plans[j].window.rounds)
        if widest != i:
            pairs.append((i, widest))
    return pairs


def _why_none(a: Plan, b: Plan, rounds: int) -> str:
    if rounds < 1:
        return "no rounds"
    if a.window.cut == b.window.cut:
        return ""
    if a.options.reward == "observed":
        return "rewards are those observed within the window, and the windows differ"
    if a.rewards_end_with_window or b.rewards_end_with_window:
        return "rewards end with the window (the log names no attribution window), and the windows differ"
    return ""
