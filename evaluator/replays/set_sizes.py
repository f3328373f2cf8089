"""Whether the sets of the accepted rounds are those of the log: every replay compares their mean sizes.

Rejection accepts each display with one probability whatever its set, so that accepted rounds are a random part of the
displays read, and so are their sets. Where propensities are 1/K instead of 1/|E|, where each set has a c of its own, or
where a choice is held until it is eligible, they are not: values are off, in some worlds not at all, but the mean size
always is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from evaluator.log.eligible import sizes
from evaluator.log.schema import ELIGIBLE
from evaluator.replays.plan import ReplayPlan

# Probability with which a right replay is said to be wrong.
ALARM = 1e-4
# Relative difference of the means that no decision hangs on, and rounds that a normal law needs.
_NEGLIGIBLE, _FEW = 0.005, 30


class SetSizes(NamedTuple):
    """Sizes of the sets of the displays that a replay read, and of those that it accepted.

    Parameters
    ----------
    read, accepted
        Mean number of eligible actions.
    z
        Difference of the two in standard errors of a random part of so many displays; nan where there is nothing to
        compare.
    """

    read: float
    accepted: float
    z: float

    @property
    def sentence(self) -> str:
        """What was compared."""
        return (
            f"displays have their own eligible actions: {self.read:.4g} on average of the displays read, "
            f"{self.accepted:.4g} of the rounds, which are a random part of them"
        )

    @property
    def warning(self) -> str:
        """Sentence on a difference that chance does not explain; empty without."""
        if math.isnan(self.z) or 2.0 * ndtr(-abs(self.z)) > ALARM or abs(self.accepted / self.read - 1.0) < _NEGLIGIBLE:
            return ""
        return (
            f"The rounds have {self.accepted:.4g} eligible actions on average and the displays read {self.read:.4g}: "
            f"{abs(self.z):.0f} standard errors apart, so the rounds are no sample of the traffic and the value may be "
            "far off. Likely causes: propensities of 1/K instead of one over the number of eligible actions; clipped "
            "ones (`accept_quantile`); sets that are not those the logger chose among."
        )


def compare_sizes(read: npt.NDArray[np.int64], accepted: npt.NDArray[np.int64]) -> SetSizes:
    """Return how the set sizes of accepted displays compare with those of all displays read, shapes (n,) and (T,)."""
    n, t = len(read), len(accepted)
    if t < _FEW or n <= t:
        return SetSizes(float(read.mean()) if n else math.nan, float(accepted.mean()) if t else math.nan, math.nan)
    error = float(read.std()) * math.sqrt((1.0 - t / n) / t)
    apart = float(accepted.mean() - read.mean())
    return SetSizes(float(read.mean()), float(accepted.mean()), apart / error if error > 0.0 else math.nan)


def all_sizes(plan: ReplayPlan) -> npt.NDArray[np.int64]:
    """Return the number of eligible actions of each used display, shape (n,), in one scan of the sets."""
    found = np.empty(len(plan.log), np.int64)
    for first, batch in plan.log.batches([ELIGIBLE], coded=True):
        found[first : first + len(batch[ELIGIBLE])] = sizes(batch[ELIGIBLE])
    return found[: plan.rounds.used]
