"""The difference of two expected values, from common resampled logs: interval, p-value, and when there is neither.

The normal interval estimate ± t s takes the differences V_b of resampled logs to scatter like a bell. Those of policies
that lock in do not: most of the time both find the same action, now and then one of them does not, and the rare gap is
many s wide. Of a greedy policy and the best action a normal 95 % interval held on 86 of 100 logs, this one on 96
(`tests/statistical/test_paired_differences.py`). So s is widened until the normal law has as much beyond the V_b's own
quantile, and beyond the largest of them, as they have:

    s max(1, q / t s, m / t' s),

q the level's quantile and m the largest of the |V_b - mean V|, t and t' Student's quantiles for the level and for 1/B.
That of a bell is widened by chance too, by some 8 %.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import Interval
from evaluator.evaluation.bootstrap import expected_differences
from evaluator.evaluation.result import ReplayResult

# Resampled logs on which two replays must have earned differently: the spread of fewer is known to a quarter at best.
FEWEST_DIFFERENT = 10


class Expected(NamedTuple):
    """A difference of expected values.

    Parameters
    ----------
    interval
        From the spread over resampled logs; None where there is none.
    p
        Of "no difference", two-sided, by the same law; nan where there is none.
    why_not
        Why there is none; empty otherwise.
    """

    interval: Interval | None
    p: float
    why_not: str


def expected_difference(variant: ReplayResult, reference: ReplayResult) -> Expected:
    """Return what a variant is expected to earn per round beyond a reference.

    None without a bootstrap; where the two ended after different numbers of rounds, so that these are expectations at
    different horizons; and where they earned alike on all but a few resampled logs: a spread of 0 would be read as a
    difference known to be 0, and says only that it was not seen.
    """
    from scipy.special import stdtr, stdtrit

    if not (variant.resampled and reference.resampled):
        return Expected(None, math.nan, "")
    if variant.rounds != reference.rounds:
        return Expected(None, math.nan, "the two ended after different numbers of rounds")
    gaps = np.subtract(variant.resampled, reference.resampled)
    size = max(float(np.abs([variant.resampled, reference.resampled]).max()), 1e-300)
    different = int((np.abs(gaps) > 1e-12 * size).sum())
    if different < FEWEST_DIFFERENT:
        return Expected(
            None,
            math.nan,
            f"the two earned differently on {different:,} of {len(gaps):,} resampled logs only: how far their expected "
            "values differ is not known from so few",
        )
    (_, normal) = expected_differences([reference, variant])
    half, widened = (normal.high - normal.low) / 2, widened_by(gaps, level=normal.level)
    interval = replace(
        normal,
        low=normal.estimate - widened * half,
        high=normal.estimate + widened * half,
        kind=normal.kind + (f", {widened:.2f} times as wide for its tails" if widened > 1.0 else ""),
    )
    freedom = len(gaps) - 1
    t = abs(normal.estimate) / (widened * half) * float(stdtrit(freedom, 0.5 + normal.level / 2))
    return Expected(interval, float(2.0 * stdtr(freedom, -t)), "")


def widened_by(gaps: npt.NDArray[np.float64], *, level: float) -> float:
    """Return by how much the normal interval is too short for tails like those of these differences."""
    from scipy.special import stdtrit

    n, s = len(gaps), float(gaps.std(ddof=1))
    off = np.abs(gaps - gaps.mean())
    inner = float(np.quantile(off, level, method="higher")) / float(stdtrit(n - 1, 0.5 + level / 2))
    outer = float(off.max()) / float(stdtrit(n - 1, 1.0 - 0.5 / n))
    return max(1.0, inner / s, outer / s)
