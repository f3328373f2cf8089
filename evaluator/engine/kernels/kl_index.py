"""Upper confidence indices by Kullback-Leibler divergence, to 1e-12."""

from __future__ import annotations

import math

from evaluator.engine.kernels.compiling import inlinable

_STEPS = 100
_PRECISION = 1e-13
# Of an index that has not left its mean; finite, so that it vanishes where no time has passed.
_STEEP = 1e300


@inlinable
def poisson_index(mean: float, budget: float) -> float:
    """Return max{q in [mean, 1]: d_Pois(mean, q) <= budget}, d_Pois(p, q) = p log(p/q) + q - p; 1 when mean >= 1.

    Newton from the right of the root: d is convex and increasing there, so the steps fall monotonically onto it.
    Vernade et al. 2017, Section 4.2.
    """
    if mean >= 1.0:
        return 1.0
    if mean <= 0.0:
        return min(budget, 1.0)
    q = _beyond(mean, budget)
    if q >= 1.0:
        if mean * math.log(mean) + 1.0 - mean <= budget:
            return 1.0
        q = 1.0
    for _ in range(_STEPS):
        if q <= mean:
            return mean
        step = (mean * math.log(mean / q) + q - mean - budget) / (1.0 - mean / q)
        q -= step
        if abs(step) <= _PRECISION * q or _next_step_is_nothing(step, q - mean):
            break
    return max(q, mean)


@inlinable
def _next_step_is_nothing(step: float, room: float) -> bool:
    """Return whether Newton has arrived: near the root it leaves an error of step² over the distance to a pole of d."""
    return abs(step) <= 0.01 * room and step * step <= _PRECISION * room


@inlinable
def _beyond(mean: float, budget: float) -> float:
    """Return a q at or right of the root, tight to third order: d_Pois(p, q) >= 3 (q - p)² / (2 (2q + p))."""
    return mean + (2.0 * budget + math.sqrt(4.0 * budget * budget + 18.0 * budget * mean)) / 3.0


@inlinable
def poisson_slope(mean: float, q: float) -> float:
    """Return the derivative in the budget of q = poisson_index(mean, budget); 0 where q has reached 1."""
    if q >= 1.0:
        return 0.0
    return q / (q - mean) if q > mean else _STEEP


@inlinable
def bernoulli_index(mean: float, budget: float) -> float:
    """Return max{q in [mean, 1]: d(mean, q) <= budget}, d the Bernoulli divergence; 1 when mean >= 1.

    Newton within a bracket that Pinsker's inequality starts (q <= mean + sqrt(budget / 2)), or the Poisson divergence,
    which is smaller; bisection when a step leaves it. The first q solves the expansion of d around the mean to third
    order. Garivier and Cappe 2011.
    """
    if mean >= 1.0:
        return 1.0
    if mean <= 0.0:
        return 1.0 - math.exp(-budget)
    low = mean
    high = min(1.0, mean + math.sqrt(0.5 * budget), _beyond(mean, budget))
    skew = 2.0 * budget * (1.0 - 2.0 * mean) / 3.0
    q = min(high, mean + skew + math.sqrt(skew * skew + 2.0 * mean * (1.0 - mean) * budget))
    if not low < q < 1.0:
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
        step = following - q
        q = following
        if abs(step) <= _PRECISION or _next_step_is_nothing(step, min(q - mean, 1.0 - q)):
            break
    return q


@inlinable
def bernoulli_slope(mean: float, q: float) -> float:
    """Return the derivative in the budget of q = bernoulli_index(mean, budget); 0 where q has reached 1."""
    if q >= 1.0:
        return 0.0
    return q * (1.0 - q) / (q - mean) if q > mean else _STEEP
