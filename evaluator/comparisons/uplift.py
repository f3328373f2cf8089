"""Uplift in the words of who decides: what a variant earns beyond the baseline, as a share of what the baseline earns.

With the difference D and the value B > 0 of the baseline, a share r is in the interval of the uplift where 0 is in that
of D - r B. So a rule of r per cent is met where the interval of D - r B lies above 0.

*Expected values* have the interval of D - r B from the same resampled logs as that of D: exact, as both are paired
(Fieller. Some problems in interval estimation. Journal of the Royal Statistical Society B 16(2), 1954).

*Other differences* come with no such pairs. There B is anywhere in its own interval: D - r B lies above 0 where the
lower end of D lies above r times the upper end of B. Nine tenths of the error are left to D and one to B, so that both
hold together: conservative, as much as B is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from evaluator.estimates.confidence import Interval
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.expected_values import expected_differences

# Part of the error that is left to the baseline's value.
_OF_BASELINE = 0.1
# Shares beyond this are none: the baseline's value is not told from 0.
_MOST = 1e6


def share_of_baseline(difference: Callable[[float], Interval], baseline: Interval, *, level: float) -> Interval | None:
    """Return a difference as a share of the baseline's value; None where that value is not told to lie above 0.

    Parameters
    ----------
    difference
        Function that returns the difference to the baseline with its interval at a level.
    baseline
        Value of the baseline.
    level
        Probability with which the interval holds.

    Examples
    --------
    >>> known, value = Interval(0.1, 0.05, 0.15, 100, 0.95, "known"), Interval(0.5, 0.5, 0.5, 100, 0.95, "known")
    >>> found = share_of_baseline(lambda level: known, value, level=0.95)
    >>> round(found.low, 3), round(found.estimate, 3), round(found.high, 3)
    (0.1, 0.2, 0.3)
    """
    error = 1.0 - level
    of, value = difference(1.0 - (1.0 - _OF_BASELINE) * error), _at_error(baseline, _OF_BASELINE * error)
    if not value.low > 0.0:
        return None
    low = of.low / (value.high if of.low > 0.0 else value.low)
    high = of.high / (value.low if of.high > 0.0 else value.high)
    return Interval(of.estimate / value.estimate, low, high, of.n, level, f"{of.kind}, by the baseline's interval")


def _at_error(of: Interval, error: float) -> Interval:
    """Return an interval that fails less often than one that is there, at this error at most.

    Half-widths grow with the logarithm of the error no faster than in proportion: those of the normal law, and of
    mixtures, whose boundaries are concave in it.
    """
    wider = max(math.log(2.0 / error) / math.log(2.0 / (1.0 - of.level)), 1.0)
    low, high = (of.estimate + wider * (end - of.estimate) for end in (of.low, of.high))
    return replace(of, low=low, high=high, level=1.0 - error)


def expected_share(variant: ReplayResult, baseline: ReplayResult, *, level: float) -> Interval | None:
    """Return the difference of two expected values as a share of the baseline's; None where that may be 0 or less.

    Parameters
    ----------
    variant, baseline
        Replays with an expected difference (`evaluator.comparisons.expected`).
    level
        Probability with which the interval holds.
    """
    from scipy.optimize import brentq

    def beyond(share: float) -> Interval:
        return expected_differences([baseline, variant], level=level, times=1.0 + share)[1]

    value = baseline.value.estimate
    if not (value > 0.0 and beyond(_MOST).high < 0.0 < beyond(-_MOST).low):
        return None
    found = beyond(0.0)
    estimate = found.estimate / value
    low = brentq(lambda share: beyond(share).low, -_MOST, estimate)
    high = brentq(lambda share: beyond(share).high, estimate, _MOST)
    return replace(found, estimate=estimate, low=low, high=high)
