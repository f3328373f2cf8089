"""What displays earn at most, in the log's own unit: policies are told rewards as shares of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluator.errors import LogError
from evaluator.log.schema import to_numpy
from evaluator.replays.rounds.survey import Survey

# A display that earns so many times what those that earn something do on average sets a scale on which all others are
# next to nothing. Measured with five arms, the best worth twice the others, one display in twenty converting, 12,000
# rounds: klucb shows the best in .79 of them where all rewards are alike, in .45 at 10 times, .31 at 30, .25 at 100.
HEAVY = 30.0
# Displays that earn something from which it says something that all earn the same: of as many, less than a tenth earn
# otherwise, all but surely (.9^44 < .01).
_MANY = 44


class RewardRange(NamedTuple):
    """Rewards of a log's displays, all conversions of a display together.

    Parameters
    ----------
    largest
        Largest reward that a display can have: the log's `reward_max`, else the largest seen; 1 where nothing was
        earned.
    known
        Whether the log says the largest reward itself.
    mean
        Mean reward of the displays that earn something; nan without any.
    alike
        Whether many displays earn something, and all of them the same: conversions that are counted.
    """

    largest: float
    known: bool
    mean: float
    alike: bool

    @property
    def bounded(self) -> bool:
        """Whether more than `largest` is impossible: the log says so, or it counts conversions of one value."""
        return self.known or self.alike

    @property
    def heavy(self) -> bool:
        """Whether the largest reward is far from all others."""
        return self.largest > HEAVY * self.mean


def reward_range(survey: Survey, used: int) -> RewardRange:
    """Return the range of the rewards of the first `used` displays. Cost: one pass over their conversions.

    Raises
    ------
    LogError
        A display earns less than 0.
    """
    c = int(np.searchsorted(survey.display, used))
    value = to_numpy(survey.log.conversions["value"])[:c].astype(np.float64, copy=False)
    first = np.flatnonzero(np.diff(survey.display[:c], prepend=-1))
    reward = np.add.reduceat(value, first) if c else np.zeros(0)
    negative = np.flatnonzero(reward < 0.0)
    if len(negative):
        display = int(survey.display[first[negative[0]]])
        raise LogError(
            f"conversions.value: {len(negative):,} displays earn less than 0 in all (display {display}: "
            f"{reward[negative[0]]:g}).",
            hint="intervals and policies take rewards from 0 up: leave out costs and refunds beyond the sale.",
        )
    most, earned = survey.log.meta.reward_max, reward[reward > 0.0]
    largest = float(reward.max(initial=0.0) if most is None else most) or 1.0
    alike = len(earned) >= _MANY and bool(earned.min() == earned.max())
    return RewardRange(largest, most is not None, float(earned.mean()) if len(earned) else float("nan"), alike)
