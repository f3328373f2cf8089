"""What a replay was worth in the groups of a column: the rounds of a group are those of its accepted displays.

The policy learned from the displays of all groups; nothing is replayed anew. The uplift's baseline is the mean reward
of the group's logged displays. Each column is a split of its own: groups of two columns are not crossed, for their
number would grow as a product, and few of them would have rounds enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.estimates.confidence import ANYTIME, Interval, SparseRewards, with_honest_kind
from evaluator.estimates.paired import REPEATED, RewardSums, mean_sums, sums_of
from evaluator.estimates.simultaneous import (
    WeightedSum,
    holm,
    mean_of,
    p_of_one_value,
    says_something,
    simultaneous_interval,
)
from evaluator.findings.codes import GROUPS
from evaluator.findings.finding import Finding
from evaluator.log.column import Column
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.values.rewards import RewardBounds, reward_bounds
from evaluator.results.json_documents import Count
from evaluator.results.tabular import COUNT, FLAG, NUMBER, TEXT, arrow_table, interval_cells, interval_columns

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ASSUMED = (
    "groups by {columns}: a group's rounds are those of its accepted displays; the policy learned from the displays of "
    "all groups, and the uplift is over the mean of the group's logged displays. Intervals hold for all groups at once"
)
AT_ONCE = "{kind}; all {total:,} at once"


def segment_values(
    plan: ReplayPlan, displays: Sequence[Ints], logged: SparseRewards
) -> tuple[tuple[SegmentValues, ...], Finding]:
    """Return the values of the groups of a plan's columns, and what they rest on; O(rounds + displays) a group.

    `displays` are those of the rounds of each repeat, in order, shape (T_r,); `logged` the reward of each used display.
    """
    rewards = [logged.taken(one) for one in displays]
    total = sum(len(split.labels) for split in plan.splits)
    found = [_values(plan, split, displays, rewards, logged, total) for split in plan.splits]
    tests = tested_together([one.test for one in found], alpha=1.0 - plan.options.level)
    assumed = GROUPS.found(ASSUMED.format(columns=", ".join(split.by for split in plan.splits)))
    return tuple(replace(one, test=test) for one, test in zip(found, tests, strict=True)), assumed


def _values(
    plan: ReplayPlan,
    split: Column,
    displays: Sequence[Ints],
    rewards: Sequence[Floats],
    logged: SparseRewards,
    total: int,
) -> SegmentValues:
    bounds, level = reward_bounds(plan), plan.options.level
    kind = AT_ONCE.format(kind=ANYTIME if len(displays) == 1 else REPEATED, total=total)

    def interval(of: Sequence[WeightedSum], n: int, *, shift: float) -> Interval:
        made = simultaneous_interval(
            of, alpha=(1.0 - level) / total, width=bounds.upper - bounds.lower, shift=shift, level=level, n=n, kind=kind
        )
        return made if plan.bounded else with_honest_kind(made)

    lived = group_sums(split, displays, rewards, bounds)
    base = [sums_of(logged.taken(own), **bounds._asdict()) for own in _members(split, logged.n)]
    uplifts = [(mean_of(x), mean_of(y, sign=-1)) for x, y in zip(lived, base, strict=True)]
    groups = []
    for label, x, y, uplift, n in zip(
        split.labels, lived, base, uplifts, different_displays(split, displays), strict=True
    ):
        groups.append(
            GroupValue(
                label,
                int(y.n),
                value=interval([mean_of(x)], n, shift=bounds.lower),
                uplift=interval(uplift, n, shift=0.0),
                logging_value=interval([mean_of(y)], int(y.n), shift=bounds.lower),
            )
        )
    return SegmentValues(split.by, tuple(groups), split.pooled, test_of(split, uplifts, level=level))


def test_of(split: Column, groups: Sequence[Sequence[WeightedSum]], *, level: float) -> GroupTest:
    """Return the test of "the number made of these sums is the same in all named groups", not yet adjusted."""
    named = groups[: split.named]
    told = sum(map(says_something, named))
    p = p_of_one_value(named, tuned_at=1.0 - level) if told > 1 else math.nan
    return GroupTest(told, p, p, differ=False)


def group_sums(
    split: Column, displays: Sequence[Ints], rewards: Sequence[Floats], bounds: RewardBounds
) -> list[RewardSums]:
    """Return the sums of each group's rounds, mean over repeats, from their displays and rewards, shape (T_r,) each."""
    codes = [split.code[one] for one in displays]
    return [
        mean_sums([sums_of(x[code == g], **bounds._asdict()) for x, code in zip(rewards, codes, strict=True)])
        for g in range(len(split.labels))
    ]


def different_displays(split: Column, displays: Sequence[Ints]) -> list[int]:
    """Return how many different displays of each group were shown in any repeat."""
    shown = displays[0] if len(displays) == 1 else np.unique(np.concatenate(displays))
    counts: list[int] = np.bincount(split.code[shown], minlength=len(split.labels)).tolist()
    return counts


def _members(split: Column, n: int) -> list[Ints]:
    """Return the displays of each group, in order, among the first n of the log."""
    code = split.code[:n]
    return [np.flatnonzero(code == g) for g in range(len(split.labels))]


@dataclass(frozen=True)
class GroupTest:
    """Test of "this number is the same in all groups" of a column.

    Parameters
    ----------
    groups
        Number of groups that are compared: the named ones with displays behind the number.
    p
        P-value; nan with fewer than two groups.
    p_adjusted
        P-value adjusted for the number of such tests (Holm).
    differ
        Whether the groups are told apart at the run's level.
    """

    groups: Count
    p: float
    p_adjusted: float
    differ: bool


def tested_together(tests: Sequence[GroupTest], *, alpha: float) -> list[GroupTest]:
    """Return tests with p-values adjusted for their number: any wrong rejection has probability `alpha` at most."""
    made = [test for test in tests if test.groups > 1]
    adjusted = iter(holm([test.p for test in made]).tolist())
    return [
        test if test.groups < 2 else replace(test, p_adjusted=(p := next(adjusted)), differ=p <= alpha)
        for test in tests
    ]


@dataclass(frozen=True)
class GroupValue:
    """One group of a column.

    Parameters
    ----------
    label
        Name of the group.
    displays
        Number of its displays in the log that the replay could use.
    value
        Realised value of the rounds in which its displays were shown; n counts different displays.
    uplift
        Value minus the mean reward of the group's logged displays.
    logging_value
        Mean reward of the group's logged displays.
    """

    label: str
    displays: Count
    value: Interval
    uplift: Interval
    logging_value: Interval


@dataclass(frozen=True)
class SegmentValues:
    """The groups of one column.

    Parameters
    ----------
    column
        Column that splits the displays.
    groups
        Groups, the pooled ones last. The level of their intervals is that of all groups of all columns at once.
    pooled
        Number of groups in the last one; 0 where all are named.
    test
        Test of "the realised uplift is the same in all named groups".
    """

    column: str
    groups: tuple[GroupValue, ...]
    pooled: Count
    test: GroupTest


def segment_table(splits: Iterable[SegmentValues]) -> pa.Table:
    """Return one row a group: column, group, displays, n, value, uplift and logged mean with ends, whether pooled."""
    names = ("value", "uplift", "logging_value")
    columns = {
        "column": TEXT, "group": TEXT, "displays": COUNT, "n": COUNT, **interval_columns(*names), "level": NUMBER,
        "pooled": FLAG,
    }  # fmt: skip
    rows = [
        {
            "column": split.column,
            "group": group.label,
            "displays": group.displays,
            "n": group.value.n,
            **{key: cell for name in names for key, cell in interval_cells(name, getattr(group, name)).items()},
            "level": group.value.level,
            "pooled": bool(split.pooled) and i == len(split.groups) - 1,
        }
        for split in splits
        for i, group in enumerate(split.groups)
    ]
    return arrow_table(columns, rows)
