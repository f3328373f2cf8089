"""Value and uplift of a replay in each group of a column, and whether the groups differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from evaluator.estimates.confidence import Interval
from evaluator.estimates.simultaneous import holm
from evaluator.results.json_documents import Count
from evaluator.results.tabular import COUNT, FLAG, NUMBER, TEXT, arrow_table, interval_cells, interval_columns


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
