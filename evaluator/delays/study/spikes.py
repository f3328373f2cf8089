"""Delays at which many conversions come at once: the rule of a system, a timeout, a nightly job, and no law's doing."""

from __future__ import annotations

from math import exp
from typing import NamedTuple

from evaluator.delays.fitted_law import DelayFit
from evaluator.delays.product_limit import tally
from evaluator.delays.study.fitting import MIXTURE
from evaluator.delays.study.mixture import SMALLEST_SIGMA
from evaluator.delays.usable import Ints

# A delay of fewer stamps is shared by many for no other reason than that stamps are coarse.
_TOLD_APART = 50
_FEWEST = 10
# Beside a spike: delays that differ by a tenth at most.
_NEAR = 0.1


class Spike(NamedTuple):
    """A delay (ticks), and the share of the conversions seen that have exactly it, or that a mixture gives it."""

    delay: float
    share: float


def spikes(delays: Ints, stamp: int) -> tuple[Spike, ...]:
    """Return delays that ten conversions or more share, and more than have any other delay within a tenth of it.

    Parameters
    ----------
    delays
        Delays of the conversions in ticks, shape (n,).
    stamp
        Ticks that the time stamps tell apart; only delays of at least fifty of them are looked at.

    Examples
    --------
    >>> import numpy as np
    >>> spikes(np.concatenate((np.full(40, 3600), np.arange(1, 61) * 97)), 1)
    (Spike(delay=3600.0, share=0.4),)
    """
    support, counts = tally(delays)
    below = counts.cumsum()
    found = []
    for at in (counts >= _FEWEST).nonzero()[0].tolist():
        delay = float(support[at])
        low, high = support.searchsorted([(1.0 - _NEAR) * delay, (1.0 + _NEAR) * delay], side="right")
        near = int(below[high - 1] - (below[low - 1] if low else 0)) - int(counts[at])
        if delay >= _TOLD_APART * stamp and counts[at] > near:
            found.append(Spike(delay, float(counts[at] / delays.size)))
    return tuple(found)


def narrow_components(fit: DelayFit) -> tuple[Spike, ...]:
    """Return the components of a mixture that are as narrow as the fit lets them be: ties, no subpopulation.

    Those with a sigma of log delay below twice the least one, or narrower than a time stamp.
    """
    if not fit.family.startswith(MIXTURE):
        return ()
    k = len(fit.parameters) // 3
    of = list(fit.parameters.values())
    return tuple(
        Spike(exp(mu), weight)
        for weight, mu, sigma in zip(of[:k], of[k : 2 * k], of[2 * k :], strict=True)
        if sigma < 2.0 * SMALLEST_SIGMA or sigma * exp(mu) < fit.width
    )
