"""KL indices by bisection: the largest q whose divergence fits the budget."""

from __future__ import annotations

import math
from collections.abc import Callable


def poisson_divergence(p: float, q: float) -> float:
    return q - p + (p * math.log(p / q) if p > 0 else 0.0)


def bernoulli_divergence(p: float, q: float) -> float:
    """Return d(p, q); infinite where q leaves out an outcome that p has."""
    if q <= 0.0 or q >= 1.0:
        return 0.0 if p == q else math.inf
    success = p * math.log(p / q) if p > 0 else 0.0
    failure = (1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0
    return success + failure


def index_by_bisection(divergence: Callable[[float, float], float], mean: float, budget: float) -> float:
    """Return max{q in [mean, 1]: divergence(mean, q) <= budget}; 1 when mean >= 1."""
    if mean >= 1.0 or divergence(mean, 1.0) <= budget:
        return 1.0
    low, high = mean, 1.0
    while (middle := 0.5 * (low + high)) not in (low, high):
        if divergence(mean, middle) <= budget:
            low = middle
        else:
            high = middle
    return low
