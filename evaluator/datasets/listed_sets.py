"""Eligible actions in a column of the displays that lists them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.datasets.labels import Labels, value_texts
from evaluator.datasets.row_breaches import CheckedRows
from evaluator.datasets.set_sources import NOT_ELIGIBLE, SET, KeptMembers, Members, kept_members

_REPAIR = "list the actions that could have been shown, or quarantine the row"


class ListedSets:
    """The sets of a column of lists.

    Parameters
    ----------
    column
        Name of the column, which lists labels.
    action
        Name of the column of the action that was shown.
    """

    def __init__(self, column: str, action: str) -> None:
        self._column, self._action = column, action

    def check(self, rows: CheckedRows, frame: pl.DataFrame) -> pl.DataFrame:
        """Report displays without a set, with an empty one, with a missing label in it, or without their own action."""
        lists, shown = frame[self._column], value_texts(frame[self._action])
        none = pl.repeat(None, frame.height, dtype=pl.String, eager=True)
        gaps = frame.select(pl.col(self._column).list.eval(pl.element().is_null()).list.any()).to_series()
        held = frame.select(pl.col(self._column).list.contains(shown)).to_series()
        for bad, problem, values, repair in (
            (lists.is_null(), "missing", none, _REPAIR),
            (lists.list.len() == 0, "no action is eligible", none, _REPAIR),
            (gaps, "a label is missing among the eligible actions", none, _REPAIR),
            (
                ~held,
                NOT_ELIGIBLE,
                shown,
                "add it to the list, written as in the column of actions, or quarantine the row",
            ),
        ):
            rows.add(self._column, rows.sound & bad.fill_null(False), problem, repair, values=values)
        return frame

    def codes(self, frame: pl.DataFrame, labels: Labels) -> pl.Series:
        """Return the codes of the labels of each row, as lists."""
        lists = frame[self._column]
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(lists.list.len().to_numpy(), dtype=np.int64)])
        code = labels.codes(lists.explode()) if frame.height else np.zeros(0, np.int32)
        return pl.Series(SET, pa.LargeListArray.from_arrays(pa.array(first), pa.array(code, pa.int32())))

    def offered(self, sets: pl.Series) -> npt.NDArray[np.integer]:
        """Return the codes of the labels that some displays have in their sets, each once."""
        return sets.explode().unique().to_numpy()

    def kept(self, sets: pl.Series, new_action: npt.NDArray[np.int32], n_actions: int) -> KeptMembers:
        """Return the eligible actions of displays of the spool among those that are kept."""
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(sets.list.len().to_numpy(), dtype=np.int64)])
        code = sets.explode().to_numpy() if len(sets) else np.zeros(0, np.int32)
        return kept_members(Members(first, code), new_action, n_actions)
