"""Which of several replays are ahead of which, all pairs tested together: in these runs, or as expected values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from evaluator.comparisons.differences import Difference
from evaluator.estimates.confidence import Interval
from evaluator.estimates.simultaneous import holm
from evaluator.replays.findings.run import outside_seen
from evaluator.results.json_documents import Count, Level, Share, in_document, in_place_of, omitted

# Above so many variants (780 pairs) only their differences to the baseline are tested.
ALL_PAIRS_UP_TO = 40

Target = Literal["realised", "expected", "weighted"]
OF_THESE_RUNS = (
    "This is of what these runs happened to show, not of the policies: one that locks in early may win here and lose "
    "on average. `bootstrap=200` ranks expected values; `repeats` or other seeds show how far a policy's luck goes."
)
# What makes each bound known.
_TO_KNOW = {"largest": "name it (`reward_max`) or cap rewards (`cap`)", "smallest": "name it (`reward_min`)"}


@dataclass(frozen=True)
class TestedDifference:
    """A difference among several tested together: told from 0 if `adjusted` (Holm) is at most 1 - level."""

    difference: Difference
    adjusted: float
    apart: bool


@dataclass(frozen=True, kw_only=True)
class ListedTest(Difference):
    """A difference among several tested together, as a document has it.

    Parameters
    ----------
    p_adjusted
        P-value adjusted by Holm's method for all tests, of the ranking's target.
    apart
        Whether it is told from 0, all tests at once.
    """

    p_adjusted: Share
    apart: bool


@dataclass(frozen=True)
class Ranking:
    """Variants by their value at the common horizon, and which of them are ahead of which.

    Parameters
    ----------
    target
        Quantity that the tests are about. ``realised``: the mean expected reward of what these runs showed, which
        differs from seed to seed. ``expected``: the mean over logs and seeds of what the policies earn, where a
        bootstrap was run. ``weighted``: what policies that do not learn would earn, where all are such.
    groups
        Variants, from 0, the highest value first: those whose rewards are cut alike stand in one group, and no two
        groups are compared. Variants without rounds are in none.
    values
        Value of each variant at the common horizon, in their own order; nan where it has none.
    ahead_of
        Numbers of the variants that each variant, in their own order, is ahead of by a difference told from 0.
    tests
        All the differences that were tested.
    all_pairs
        Whether all pairs were tested; False where, to bound the cost, only differences to the baseline were.
    level
        Probability with which, of all the tests at once, no difference is told from 0 that is 0 or has the other sign.
    rests_on
        Which bounds of a display's reward, ``largest`` and ``smallest``, are only what was seen, so that the tests rest
        on nothing beyond them being possible; none where both are known.
    """

    target: Target
    groups: tuple[tuple[Count, ...], ...]
    values: tuple[float, ...]
    ahead_of: tuple[tuple[Count, ...], ...]
    tests: tuple[TestedDifference, ...]
    all_pairs: Annotated[bool, *omitted]
    level: Level
    rests_on: Annotated[tuple[str, ...], *omitted] = ()

    @in_place_of("tests")
    def _listed(self, tests: tuple[TestedDifference, ...]) -> tuple[ListedTest, ...]:
        return tuple(ListedTest(**vars(of.difference), p_adjusted=of.adjusted, apart=of.apart) for of in tests)

    @in_document
    @property
    def tested(self) -> Literal["all pairs", "differences to the baseline"]:
        """Which differences were tested."""
        return "all pairs" if self.all_pairs else "differences to the baseline"

    @in_document
    @property
    def conclusion(self) -> str:
        """What the ranking says, and of what."""
        if not self.tests:
            return "No two variants can be compared."
        apart = sum(test.apart for test in self.tests)
        what = "differences" if self.all_pairs else "differences to the baseline"
        count = f"{apart:,} of {len(self.tests):,} {what}" if apart else f"none of {len(self.tests):,} {what}"
        at_once = f"told from 0 at {percent(self.level)}, all tests at once"
        if self.target == "weighted":
            return f"Of the values weighted over all displays, {count} {'is' if apart < 2 else 'are'} {at_once}."
        if self.target == "expected":
            return f"Of the expected values, {count} {'is' if apart < 2 else 'are'} {at_once} (bootstrap)."
        if self.rests_on:
            return (
                f"In these runs, {count} would be {at_once}, if no display could earn {outside_seen(self.rests_on)}: "
                f"{' and '.join(_TO_KNOW[end] for end in self.rests_on)} to know. {OF_THESE_RUNS}"
            )
        return f"In these runs, {count} {'is' if apart < 2 else 'are'} {at_once}. {OF_THESE_RUNS}"


def percent(level: float) -> str:
    """Return a level as people write it.

    >>> percent(0.95), percent(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * level:.6g} %"


def ranked_pairs(variants: int, baseline: int) -> list[tuple[int, int]]:
    """Return the pairs that a ranking tests: all, or each variant with the baseline where they are too many."""
    if variants <= ALL_PAIRS_UP_TO:
        return [(i, j) for j in range(variants) for i in range(j)]
    return [(min(i, baseline), max(i, baseline)) for i in range(variants) if i != baseline]


def rank(
    values: Sequence[float],
    cuts: Sequence[object],
    differences: Mapping[tuple[int, int], Difference],
    baseline: int,
    *,
    level: float,
) -> Ranking:
    """Return the ranking of variants, from the differences of all `ranked_pairs`.

    Of the weighted values where no policy learns; else of the expected values where any two have a difference of these.
    A pair without one is then not told apart. Values are those at the common horizon, nan where there is none; `cuts`
    are equal where rewards are cut alike, so that values can be compared.
    """
    pairs = ranked_pairs(len(values), baseline)
    known = [differences[pair] for pair in pairs]
    weighted = bool(known) and all(of.weighted is not None for of in known)
    tested = [of for of in known if weighted or of.realised is not None]
    target: Target = "weighted" if weighted else "realised"
    if not weighted and any(of.expected is not None for of in tested):
        target = "expected"
    found = [_found(of, target) for of in tested]
    adjusted = holm([p for _, p in found])
    tests = tuple(
        TestedDifference(of, float(p), bool(p <= 1.0 - level)) for of, p in zip(tested, adjusted, strict=True)
    )
    ahead: list[list[int]] = [[] for _ in values]
    for test, (interval, _) in zip(tests, found, strict=True):
        if test.apart and interval is not None:
            of = test.difference
            winner, loser = (of.variant, of.reference) if interval.estimate > 0 else (of.reference, of.variant)
            ahead[winner].append(loser)
    return Ranking(
        target,
        _groups(values, cuts),
        tuple(values),
        tuple(tuple(sorted(losers)) for losers in ahead),
        tests,
        len(values) <= ALL_PAIRS_UP_TO,
        level,
    )


def _found(of: Difference, target: Target) -> tuple[Interval | None, float]:
    if target == "weighted" and of.weighted is not None:
        return (of.weighted.value, of.weighted.p) if of.weighted.given else (None, 1.0)
    if target == "realised":
        return of.realised, of.p
    return of.expected, 1.0 if of.expected is None else of.expected_p


def _groups(values: Sequence[float], cuts: Sequence[object]) -> tuple[tuple[int, ...], ...]:
    groups: dict[object, list[int]] = {}
    for i, (value, cut) in enumerate(zip(values, cuts, strict=True)):
        if not math.isnan(value):
            groups.setdefault(cut, []).append(i)
    return tuple(tuple(sorted(group, key=lambda i: -values[i])) for group in groups.values())
