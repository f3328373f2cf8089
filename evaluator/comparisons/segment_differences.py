"""How much more one of two replays earned than the other in each group of a column, and whether the groups differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import pyarrow as pa

from evaluator.comparisons.differences import IN_ORDER, IN_ORDERS, SAME, in_order, on_displays_of_both, why_none
from evaluator.comparisons.expected import WeightedPairs
from evaluator.comparisons.variants import FirstRounds
from evaluator.comparisons.verdict import Harm, Look, Target, level_at
from evaluator.estimates.confidence import Interval, with_honest_kind
from evaluator.estimates.paired import UNPAIRED, Contrast, RewardSums, contrast_of, shown_alone
from evaluator.estimates.simultaneous import difference_in_group, simultaneous_interval
from evaluator.estimates.weighted_difference import WeightedDifference
from evaluator.log.column import Column
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.values.rewards import RewardBounds, reward_bounds
from evaluator.replays.values.segments import (
    AT_ONCE,
    GroupTest,
    different_displays,
    group_sums,
    test_of,
    tested_together,
)
from evaluator.results.json_documents import Count
from evaluator.results.tabular import COUNT, FLAG, NUMBER, TEXT, VARIANT, Columns, table_of


@dataclass(frozen=True)
class GroupDifference:
    """Difference of two variants' mean rewards in one group.

    Parameters
    ----------
    label
        Name of the group.
    realised
        Mean reward of the variant's rounds with displays of the group less that of the reference's, up to the common
        horizon; n is the number of different displays of the group that were shown by one of them alone, or by any of
        them where the interval is unpaired.
    weighted
        Difference of what two policies that do not learn would earn on displays of the group, weighted over all that
        can be judged; None where either learns, or nothing says how to weight the displays. Its interval is good for
        one look, or for the one that was planned.
    """

    label: str
    realised: Interval
    weighted: WeightedDifference | None = None

    @property
    def of_values(self) -> Interval:
        """Difference that a report prints: weighted, where both do not learn, else realised."""
        return self.realised if self.weighted is None else self.weighted.value


@dataclass(frozen=True)
class SegmentDifferences:
    """Difference of a variant to its reference in the groups of one column.

    Parameters
    ----------
    variant, reference
        Numbers of the variants, from 0; the reference's value is subtracted.
    column
        Column that splits the displays.
    groups
        Groups, the pooled ones last; none where the two cannot be compared. The level of their intervals is that of all
        groups, columns and variants of the comparison at once.
    pooled
        Number of groups in the last one; 0 where all are named.
    test
        Test of "the realised difference is the same in all named groups".
    why_not
        Reason why there are no differences; empty otherwise.
    """

    variant: Count
    reference: Count
    column: str
    groups: tuple[GroupDifference, ...]
    pooled: Count
    test: GroupTest
    why_not: str


def harmed_groups(found: Iterable[SegmentDifferences], plans: Sequence[ReplayPlan]) -> dict[int, tuple[Harm, ...]]:
    """Return, by variant, the groups for which it is told to be worse than the baseline: all groups hold at once.

    Nothing is told of groups with too few rewards, of money whose upper end rests on too few, of displays that nobody
    followed long enough, or of what runs earned where nobody knows how much a display can earn.
    """
    harmed: dict[int, tuple[Harm, ...]] = {}
    for of in found:
        plan = plans[of.variant]
        for group in of.groups if plan.maturity.known else ():
            weighted = group.weighted
            told = plan.bounded if weighted is None else not weighted.withheld and weighted.high_known
            if told and group.of_values.high < 0.0:
                target: Target = "realised" if weighted is None else "weighted"
                harm = Harm(of.column, group.label, group.of_values, target)
                harmed[of.variant] = (*harmed.get(of.variant, ()), harm)
    return harmed


def segment_differences(
    plans: Sequence[ReplayPlan],
    lived: Sequence[FirstRounds],
    *,
    baseline: int,
    rounds: int,
    fixed: bool,
    look: Look | None = None,
) -> tuple[SegmentDifferences, ...]:
    """Return the difference of every other variant to the baseline in every group, column by column.

    Rounds are those of `find_differences`; weighted differences have the level of the look, None for one alone.
    """
    splits, level = plans[0].splits, plans[0].options.level
    others = [i for i in range(len(plans)) if i != baseline]
    total = len(others) * sum(len(split.labels) for split in splits)
    weights = WeightedPairs(plans)
    found = []
    for split in splits:
        for i in others:
            shortest = min(len(of) for j in (i, baseline) for of in lived[j].displays)
            none = why_none(plans[i], plans[baseline], min(rounds, shortest))
            about = (i, baseline, split.by)
            if none:
                nothing = GroupTest(0, math.nan, math.nan, differ=False)
                found.append(SegmentDifferences(*about, (), split.pooled, nothing, none))
                continue
            a, b = on_displays_of_both(plans[i], lived[i], plans[baseline], lived[baseline])
            ordered = fixed and in_order(plans[i], plans[baseline]) and len(a.displays[0]) == len(b.displays[0])
            groups, test = _in_groups(plans[i], a, b, split, total=total, ordered=ordered)
            own = level_at(look, "weighted", level)
            weighted = [
                _at_once(of.difference(1.0 - (1.0 - own) / total), own, total)
                for of in weights.in_groups(i, baseline, split)
            ]
            groups = tuple(replace(one, weighted=of) for one, of in zip_longest(groups, weighted))
            found.append(SegmentDifferences(*about, groups, split.pooled, test, ""))
    tests = tested_together([one.test for one in found], alpha=1.0 - level)
    return tuple(replace(one, test=test) for one, test in zip(found, tests, strict=True))


def _at_once(of: WeightedDifference, level: float, total: int) -> WeightedDifference:
    return replace(of, value=replace(of.value, level=level, kind=AT_ONCE.format(kind=of.value.kind, total=total)))


def _in_groups(
    plan: ReplayPlan, a: FirstRounds, b: FirstRounds, split: Column, *, total: int, ordered: bool
) -> tuple[tuple[GroupDifference, ...], GroupTest]:
    bounds, level = reward_bounds(plan), plan.options.level
    width = bounds.upper - bounds.lower
    if ordered:
        sides: Sequence[Contrast | None] = _sides(split, a, b, bounds)
        # Displays that one of the two replays alone showed, in any repeat.
        n = different_displays(split, [np.setxor1d(x, y) for x, y in zip(a.displays, b.displays, strict=True)])
        kind = f"paired, {IN_ORDER if len(a.displays) == 1 else IN_ORDERS}"
    else:
        sides = [None] * len(split.labels)
        n = different_displays(split, [np.unique(np.concatenate([*a.displays, *b.displays]))])
        kind = UNPAIRED
    sums: list[list[RewardSums]] = [group_sums(split, of.displays, of.rewards, bounds) for of in (a, b)]
    evidence = [
        difference_in_group(x, y, side, lower_in_widths=bounds.lower / width)
        for x, y, side in zip(*sums, sides, strict=True)
    ]
    groups = []
    for label, of, side, count in zip(split.labels, evidence, sides, n, strict=True):
        same = side is not None and side.n == 0 and not math.isnan(of[0].total)
        made = simultaneous_interval(
            of, alpha=(1.0 - level) / total, width=width, level=level, n=count,
            kind=SAME if same else AT_ONCE.format(kind=kind, total=total),
        )  # fmt: skip
        groups.append(GroupDifference(label, made if plan.bounded or same else with_honest_kind(made)))
    return tuple(groups), test_of(split, evidence, level=level)


def _sides(split: Column, a: FirstRounds, b: FirstRounds, bounds: RewardBounds) -> list[Contrast]:
    """Return what the displays of each group that one of two replays alone showed add to the difference of totals."""
    repeats = []
    for shown_a, earned_a, shown_b, earned_b in zip(a.displays, a.rewards, b.displays, b.rewards, strict=True):
        alone_a, alone_b = shown_alone(shown_a, shown_b)
        repeats.append(
            [
                (1, split.code[shown_a[alone_a]], earned_a[alone_a]),
                (-1, split.code[shown_b[alone_b]], earned_b[alone_b]),
            ]
        )
    return [
        contrast_of(
            [[(sign, earned[code == g]) for sign, code, earned in repeat] for repeat in repeats], **bounds._asdict()
        )
        for g in range(len(split.labels))
    ]


def segment_difference_table(found: Iterable[SegmentDifferences]) -> pa.Table:
    """Return one row a variant, column and group: the difference with its ends, n, level, and whether pooled."""
    columns: Columns[tuple[SegmentDifferences, int, GroupDifference]] = {
        "variant": (VARIANT, lambda row: row[0].variant),
        "reference": (VARIANT, lambda row: row[0].reference),
        "column": (TEXT, lambda row: row[0].column),
        "group": (TEXT, lambda row: row[2].label),
        "difference": (None, lambda row: row[2].realised),
        "n": (COUNT, lambda row: row[2].realised.n),
        "level": (NUMBER, lambda row: row[2].realised.level),
        "pooled": (FLAG, lambda row: bool(row[0].pooled) and row[1] == len(row[0].groups) - 1),
        "weighted_difference": (None, lambda row: None if row[2].weighted is None else row[2].weighted.value),
    }
    return table_of(columns, ((of, i, group) for of in found for i, group in enumerate(of.groups)))
