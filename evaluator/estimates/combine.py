"""Intervals of sums, differences and averages, from intervals that each hold.

No independence is used: an interval at level 1 - a and one at level 1 - b both hold with probability 1 - a - b, and
then so does what is computed from their ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

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


def scaled(a: Interval, factor: float) -> Interval:
    """Return the interval of a times a positive factor."""
    return replace(a, estimate=a.estimate * factor, low=a.low * factor, high=a.high * factor)


def average(intervals: Sequence[Interval], *, same_data: bool = False) -> Interval:
    """Return the interval of the mean over repeats; its level is 1 minus all their errors (Bonferroni).

    Its n is the sum of theirs, or the smallest where the repeats look at the same data.
    """
    if len(intervals) == 1:
        return intervals[0]
    return Interval(
        estimate=float(np.mean([i.estimate for i in intervals])),
        low=float(np.mean([i.low for i in intervals])),
        high=float(np.mean([i.high for i in intervals])),
        n=min(i.n for i in intervals) if same_data else sum(i.n for i in intervals),
        level=1.0 - sum(1.0 - i.level for i in intervals),
        kind=intervals[0].kind,
    )
