"""Intervals of differences and multiples, from intervals that each hold.

No independence is used: an interval at level 1 - a and one at level 1 - b both hold with probability 1 - a - b, and
then so does what is computed from their ends.
"""

from __future__ import annotations

import math
from dataclasses import replace

from evaluator.estimates.confidence import Interval


def difference(a: Interval, b: Interval) -> Interval:
    """Return the interval of a - b; its level is 1 minus both errors."""
    return Interval(
        estimate=a.estimate - b.estimate,
        low=a.low - b.high,
        high=a.high - b.low,
        n=min(a.n, b.n),
        level=a.level + b.level - 1.0,
        kind=a.kind,
    )


def unknown(a: Interval) -> Interval:
    """Return an interval that says nothing, in the place of one that would mislead: all nan."""
    return replace(a, estimate=math.nan, low=math.nan, high=math.nan)


def scaled(a: Interval, factor: float) -> Interval:
    """Return the interval of a times a positive factor."""
    return replace(a, estimate=a.estimate * factor, low=a.low * factor, high=a.high * factor)
