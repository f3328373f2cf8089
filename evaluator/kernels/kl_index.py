"""Upper confidence indices by Kullback-Leibler divergence, to 1e-12."""

from __future__ import annotations

import math

from evaluator.kernels.compiling import inlinable

_STEPS = 100
_PRECISION = 1e-13


@inlinable
def poisson_index(mean: float, budget: float) -> float:
    """Return max{q in [mean, 1]: d_Pois(mean, q) <= budget}, d_Pois(p, q) = p log(p/q) + q - p; 1 when mean >= 1.

    Newton from the right of the root: d is convex and increasing there, so the steps fall monotonically onto it.
    The start follows from d_Pois(p, q) >= (q - p)² / (2q). Vernade et al. 2017, Section 4.2.
    """
    if mean >= 1.0:
        return 1.0
    if mean <= 0.0:
        return min(budget, 1.0)
    if mean * math.log(mean) + 1.0 - mean <= budget:
        return 1.0
    q = min(1.0, mean + budget + math.sqrt(2.0 * mean * budget + budget * budget))
    for _ in range(_STEPS):
        if q <= mean:
            return mean
        step = (mean * math.log(mean / q) + q - mean - budget) / (1.0 - mean / q)
        q -= step
        if abs(step) <= _PRECISION * q:
            break
    return max(q, mean)


@inlinable
def bernoulli_index(mean: float, budget: float) -> float:
    """Return max{q in [mean, 1]: d(mean, q) <= budget}, d the Bernoulli divergence; 1 when mean >= 1.

    Newton within a bracket that Pinsker's inequality starts (q <= mean + sqrt(budget / 2)); bisection when a step
    leaves it. Garivier and Cappe 2011.
    """
    if mean >= 1.0:
        return 1.0
    if mean <= 0.0:
        return 1.0 - math.exp(-budget)
    low = mean
    high = min(1.0, mean + math.sqrt(0.5 * budget))
    q = 0.5 * (low + high)
    for _ in range(_STEPS):
        if q >= 1.0:  # the bracket is one rounding wide
            return 1.0
        excess = mean * math.log(mean / q) + (1.0 - mean) * math.log((1.0 - mean) / (1.0 - q)) - budget
        if excess > 0.0:
            high = q
        else:
            low = q
        slope = (q - mean) / (q * (1.0 - q))
        following = q - excess / slope if slope > 0.0 else 0.5 * (low + high)
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - q) <= _PRECISION:
            q = following
            break
        q = following
    return q
