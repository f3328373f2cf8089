"""Mean, variance and bound of the delays that come in time, taken before a CDF is given fewer steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Delays up to here are summed one by one; later ones in bins, each shorter than a part in 2,000 of its delays for as
# long as the last delay is below 2^30.
_EXACT = 2**16
_BINS = 2**14


class DelayMoments(NamedTuple):
    """Mean, variance and bound (the largest) of the delays that come in time, given that they do, in rounds."""

    mean: float
    variance: float
    bound: float


def step_moments(delays: NDArray[np.float64], weights: NDArray[np.float64], bound: float) -> DelayMoments:
    """Return the moments of delays with these weights, not all 0, shape (J,) each."""
    total = weights.sum()
    mean = float(delays @ weights / total)
    return DelayMoments(mean, float((delays - mean) ** 2 @ weights / total), float(bound))


def law_moments(tau: Callable[[NDArray[np.int64]], NDArray[np.float64]], bound: int) -> DelayMoments:
    """Return the moments of the delays <= `bound` of a law, given that they are, from its CDF at whole rounds.

    Exact but for rounding up to 65,536 rounds. Later delays count as the middle of their bin. Costs 2^16 + 2^14 values
    of the CDF at most, however late the bound.

    Parameters
    ----------
    tau
        Function from ages a >= 0 in rounds, an int64 array of any shape, to tau_a = P(D <= a) of the same shape.
    bound
        The largest delay of interest; tau is above 0 there.

    Examples
    --------
    >>> law_moments(lambda ages: (ages + 1) / 10, 4)
    DelayMoments(mean=2.0, variance=2.0, bound=4.0)
    """
    ends = np.arange(min(bound, _EXACT) + 1)
    if bound > _EXACT:
        far = np.geomspace(_EXACT, bound, _BINS + 1)[1:].astype(np.int64)
        far[-1] = bound
        ends = np.append(ends, np.unique(far))
    starts = np.append(0, ends[:-1] + 1)
    # Where tau has come to rest, rounding may let it fall.
    weights = np.maximum(np.diff(tau(ends), prepend=0.0), 0.0)
    return step_moments((starts + ends) / 2.0, weights, bound)
