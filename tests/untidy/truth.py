"""What policies earn on the traffic: known, because each display's expected rewards are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.untidy.defects import REFUND
from tests.untidy.traffic import Traffic, seen_within

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def expected_rewards(traffic: Traffic, *, window_s: float | None = None) -> Floats:
    """Return the expected reward of each action at each display, shape (n, K).

    Parameters
    ----------
    traffic
        The traffic.
    window_s
        Seconds within which a conversion is a reward where the log names no attribution window; None for all.
    """
    untidy = traffic.untidy
    cut = untidy.attribution_s if untidy.attribution_s is not None else window_s
    within = np.ones(untidy.n_actions) if cut is None else seen_within(untidy, float(cut))
    return np.asarray(traffic.rates * traffic.values * within * (1.0 - REFUND * untidy.refunded))


def value_of_fixed(expected: Floats, displays: Ints, action: int) -> float:
    """Return what one action would have earned at some displays, on average, had it been shown at all of them."""
    return float(expected[displays, action].mean())


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
