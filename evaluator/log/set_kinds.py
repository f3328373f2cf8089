"""Whether displays differ in their eligible actions, and whether these move with time: on a calendar, not by chance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.log.contract import Log
from evaluator.log.eligible import SetCodes, members
from evaluator.log.schema import ELIGIBLE

# Sets that are drawn anew at each display are said to move with time with this probability at most.
LEVEL = 1e-4
# Displays of an action, eligible and not, that a block needs at least for the chi-square law to hold so far out.
_EXPECTED = 20.0
# Parts of the log, by the number of the display, in which an action's share of the sets is compared.
_PARTS = 20
# Difference between an action's shares of two parts from which it matters what a calendar means: contexts that drift
# move sets a little, too.
_MUCH = 0.25


class EligibleByPart:
    """Number of displays at which each action was eligible, in parts of a log, added up batch by batch.

    Parameters
    ----------
    n_displays, n_actions
        Number of displays of the log, and of its actions K.
    """

    def __init__(self, n_displays: int, n_actions: int) -> None:
        self._n = n_displays
        self._counts = np.zeros((_PARTS, n_actions), np.int64)
        self._sizes = np.zeros(_PARTS, np.int64)

    def add(
        self, first: int, of: npt.NDArray[np.integer], begins: npt.NDArray[np.int64], actions: npt.NDArray[np.integer]
    ) -> None:
        """Add the displays of one batch.

        Parameters
        ----------
        first
            Number of its first display.
        of
            Distinct set of each display of the batch, in [0, S), shape (n,).
        begins, actions
            The actions of each distinct set, as `evaluator.log.eligible.members` has them: shape (S + 1,), and theirs.
        """
        part = np.arange(first, first + len(of)) * _PARTS // self._n
        for p in np.unique(part):
            shown = np.bincount(of[part == p], minlength=len(begins) - 1)
            self._counts[p] += np.bincount(
                actions, np.repeat(shown, np.diff(begins)), minlength=self._counts.shape[1]
            ).astype(np.int64)
            self._sizes[p] += int(shown.sum())

    @property
    def displays(self) -> npt.NDArray[np.int64]:
        """Number of displays at which each action was eligible, shape (K,)."""
        found: npt.NDArray[np.int64] = self._counts.sum(axis=0)
        return found

    def moving(self) -> int:
        """Return the action whose eligibility changes most with time, or -1 if no action's changes much."""
        known = self._sizes > 0
        counts, sizes = self._counts[known], self._sizes[known]
        if len(counts) < 2:
            return -1
        spread = np.ptp(counts / sizes[:, None], axis=0)
        if spread.max() <= _MUCH or not moves_with_time(counts, sizes):
            return -1
        return int(spread.argmax())


def moves_with_time(by_block: npt.NDArray[np.int64], displays: npt.NDArray[np.int64]) -> bool:
    """Return whether some action's eligible displays are concentrated in time, at `LEVEL` over all actions.

    Where sets are exchangeable over the displays, an action is eligible at the same share of every block of time: each
    action's chi-square test at LEVEL / K. Contexts that drift move the sets that depend on them, and are found as well.
    `by_block` counts the displays at which each action was eligible, by block of successive displays, shape (B, K);
    `displays` counts those of each block, shape (B,).
    """
    from scipy.stats import chi2

    share = by_block.sum(axis=0) / displays.sum()
    variance = displays[:, None] * share * (1.0 - share)
    known = variance.min(axis=0) >= _EXPECTED
    if len(displays) < 2 or not known.any():
        return False
    off = ((by_block - displays[:, None] * share)[:, known] ** 2 / variance[:, known]).sum(axis=0)
    return bool(chi2.sf(off.max(), len(displays) - 1) < LEVEL / by_block.shape[1])


def has_eligibility(log: Log) -> bool:
    """Whether some action is not eligible at some display; a log may say of every display that all are.

    One pass over the sets, up to the first that lacks an action.
    """
    if ELIGIBLE not in log.schema.names:
        return False
    for _, batch in log.batches([ELIGIBLE], coded=True):
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        first, _ = members(sets.distinct)
        if (np.diff(first)[np.asarray(sets)] < log.n_actions).any():
            return True
    return False
