"""The indices of Vernade et al. 2017 from sums."""

from __future__ import annotations

import math

from evaluator.kernels.compiling import inlinable
from evaluator.kernels.kl_index import poisson_index

# A pulled arm whose effective pulls are still 0 has an infinite index, yet comes after the arms never pulled.
NOTHING_DUE = 1e300


@inlinable
def delayed_index(conversions: float, effective: float, stretch: float, beta: float, kl: bool) -> float:
    """Return the index of an arm that has been pulled.

    Parameters
    ----------
    conversions, effective
        Value S of the arm's conversions, and effective number N~ of its pulls.
    stretch
        Ratio N / N~ for DelayedUCB, 1 for the discarding policies, whose pulls are all of one weight. Without effect on
        KL.
    beta
        Exploration term beta.
    kl
        Whether the index is max{q in [S/N~, 1]: N~ d_Pois(S/N~, q) <= beta} instead of S/N~ + sqrt(stretch beta / (2
        N~)).
    """
    if effective <= 0.0:
        return 1.0 if kl else NOTHING_DUE
    mean = conversions / effective
    if kl:
        return poisson_index(mean, beta / effective)
    return mean + math.sqrt(stretch) * math.sqrt(beta / (2.0 * effective))
