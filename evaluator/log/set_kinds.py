"""Whether the eligible actions of a log move with time: on a calendar, and not by chance nor by context."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# Sets that are drawn anew at each display are said to move with time with this probability at most.
LEVEL = 1e-4
# Displays of an action, eligible and not, that a block needs at least for the chi-square law to hold so far out.
_EXPECTED = 20.0


def moves_with_time(by_block: npt.NDArray[np.int64], displays: npt.NDArray[np.int64]) -> bool:
    """Return whether some action's eligible displays are concentrated in time, at `LEVEL` over all actions.

    Where sets are exchangeable over the displays, an action is eligible at the same share of every block of time: each
    action's chi-square test at LEVEL / K. Contexts that drift move the sets that depend on them, and are found as well.

    Parameters
    ----------
    by_block
        Number of displays at which each action was eligible, by block of successive displays, shape (B, K).
    displays
        Number of displays of each block, shape (B,).
    """
    from scipy.stats import chi2

    share = by_block.sum(axis=0) / displays.sum()
    variance = displays[:, None] * share * (1.0 - share)
    known = variance.min(axis=0) >= _EXPECTED
    if len(displays) < 2 or not known.any():
        return False
    off = ((by_block - displays[:, None] * share)[:, known] ** 2 / variance[:, known]).sum(axis=0)
    return bool(chi2.sf(off.max(), len(displays) - 1) < LEVEL / by_block.shape[1])
