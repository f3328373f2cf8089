"""What policies earn on the traffic: known, because each display's expected rewards are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from tests.untidy.defects import REFUND
from tests.untidy.traffic import Traffic, seen_within

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def expected_rewards(traffic: Traffic, *, window_s: float | None = None, shown: float = 0.0) -> Floats:
    """Return the expected reward of each action at each display, shape (n, K).

    Parameters
    ----------
    traffic
        The traffic.
    window_s
        Seconds within which a conversion is a reward where the log names no attribution window; None for all.
    shown
        Where actions wear out: chance with which the action was shown at each earlier display of the user.
    """
    untidy = traffic.untidy
    cut = untidy.attribution_s if untidy.attribution_s is not None else window_s
    within = np.ones(untidy.n_actions) if cut is None else seen_within(untidy, float(cut))
    worn = _worn_out(untidy.wear_out, traffic.earlier, shown)[:, None]
    return np.asarray(traffic.rates * traffic.values * within * worn * (1.0 - REFUND * untidy.refunded))


def _worn_out(wear_out: float, earlier: Ints, shown: float) -> Floats:
    """Return the mean of exp(-wear_out sqrt(S)), S binomial: of `earlier` displays with chance `shown`, shape (n,)."""
    times = np.arange(earlier.max() + 1)
    left = binom.pmf(times, times[:, None], shown) @ np.exp(-wear_out * np.sqrt(times))
    return np.asarray(left[earlier])


def value_of_fixed(expected: Floats, displays: Ints, action: int) -> float:
    """Return what one action would have earned at some displays, on average, had it been shown at all of them."""
    return float(expected[displays, action].mean())


def value_of_preferred(traffic: Traffic, expected: Floats, displays: Ints, action: int) -> float:
    """Return what one action would have earned where it is eligible, and elsewhere any that is, at random."""
    could = traffic.available[displays]
    others = (expected[displays] * could).sum(axis=1) / could.sum(axis=1)
    return float(np.where(could[:, action], expected[displays, action], others).mean())


def value_of_random(traffic: Traffic, expected: Floats, displays: Ints) -> float:
    """Return what a uniform choice among the actions that could be shown would have earned at some displays."""
    could = traffic.available[displays]
    return float(((expected[displays] * could).sum(axis=1) / could.sum(axis=1)).mean())


def value_of_logger(traffic: Traffic, expected: Floats, displays: Ints) -> float:
    """Return what the logger is expected to earn at some displays."""
    return float((traffic.logger[displays] * expected[displays]).sum(axis=1).mean())


def value_shown(expected: Floats, displays: Ints, action: Ints) -> float:
    """Return what a replay's rounds are expected to earn: what its realised value estimates; nan without rounds."""
    return float(expected[displays, action].mean()) if len(displays) else float("nan")
