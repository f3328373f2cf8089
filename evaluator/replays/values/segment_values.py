"""Value and uplift of a replay in each group of a column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from evaluator.estimates.confidence import Interval
from evaluator.results.json_values import json_values
from evaluator.results.tabular import COUNT, FLAG, NUMBER, TEXT, arrow_table, interval_cells, interval_columns


@dataclass(frozen=True)
class GroupValue:
    """One group of a split.

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
    displays: int
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
    tested
        Number of groups that the test compares: the named ones with rounds and logged displays.
    p
        P-value of "the realised uplift is the same in all named groups"; nan with fewer than two of them.
    p_adjusted
        The same, adjusted for the number of columns (Holm).
    differ
        Whether the groups are told apart at the run's level.
    """

    column: str
    groups: tuple[GroupValue, ...]
    pooled: int
    tested: int
    p: float
    p_adjusted: float
    differ: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the split as JSON values: nan becomes None."""
        out: dict[str, Any] = json_values(asdict(self))
        return out


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
