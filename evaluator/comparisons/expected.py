"""The difference of two expected values, from common resampled logs: interval, p-value, and when there is neither."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evaluator.estimates.confidence import Interval
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.expected_values import LOGGED, expected_differences

# Resampled logs on which two replays must have earned differently: the spread of fewer is known to a quarter at best.
FEWEST_DIFFERENT = 10
# Share of the log that a replay is to have read where eligible actions change with time, to be compared with all of it.
_WHOLE = 0.9
FIRST_PART = (
    "what is eligible changes with time, and the logging policy's value is of the whole calendar, the other's of its "
    "first part"
)


class ExpectedDifference(NamedTuple):
    """A difference of expected values.

    Parameters
    ----------
    interval
        Difference with its interval, from the spread over resampled logs; None where there is none.
    p
        P-value of "no difference", two-sided, by the same law; nan where there is none.
    why_not
        Reason why there is no interval; empty otherwise.
    """

    interval: Interval | None
    p: float
    why_not: str


def expected_difference(
    variant: ReplayResult, reference: ReplayResult, *, level: float | None = None
) -> ExpectedDifference:
    """Return what a variant is expected to earn per round beyond a reference, at a level, None for the replays' own.

    None without a bootstrap; where the two ended after different numbers of rounds, so that these are expectations at
    different horizons, unless one is the logging policy, which learns in no round; and where they earned alike on all
    but a few resampled logs: a spread of 0 would be read as a difference known to be 0, and says only that it was not
    seen.
    """
    from scipy.special import stdtr, stdtrit

    if not (variant.resampled and reference.resampled):
        return ExpectedDifference(None, math.nan, "")
    if LOGGED not in (variant.plan["sampler"], reference.plan["sampler"]) and variant.rounds != reference.rounds:
        return ExpectedDifference(None, math.nan, "the two ended after different numbers of rounds")
    gaps = np.subtract(variant.resampled, reference.resampled)
    size = max(float(np.abs([variant.resampled, reference.resampled]).max()), 1e-300)
    different = int((np.abs(gaps) > 1e-12 * size).sum())
    if different < FEWEST_DIFFERENT:
        return ExpectedDifference(
            None,
            math.nan,
            f"the two earned differently on {different:,} of {len(gaps):,} resampled logs only: how far their expected "
            "values differ is not known from so few",
        )
    (_, interval) = expected_differences([reference, variant], level=level)
    freedom = len(gaps) - 1
    half = (interval.high - interval.low) / 2
    t = abs(interval.estimate) / half * float(stdtrit(freedom, 0.5 + interval.level / 2))
    return ExpectedDifference(interval, float(2.0 * stdtr(freedom, -t)), "")


def why_not_expected(plans: Sequence[ReplayPlan], results: Sequence[ReplayResult]) -> str:
    """Return why two values are not comparable though both are expected ones; empty if they may be.

    The logging policy's is of the whole log, and the other's of what it read for its rounds.
    """
    sets = plans[0].sets
    logged = [plan.sampler == LOGGED for plan in plans]
    if sets is None or sets.moving < 0 or logged.count(True) != 1 or not results[0].resampled:
        return ""
    other = logged.index(False)
    read = min(results[other].read, default=0) / max(len(plans[other].rounds), 1)
    return "" if read >= _WHOLE else FIRST_PART
