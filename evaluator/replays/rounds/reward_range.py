"""Between which bounds displays earn, in the log's own unit: policies are told rewards as shares of their distance."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.log.reward_kinds import cost_events, extremes
from evaluator.log.schema import firsts, to_numpy
from evaluator.replays.rounds.survey import Survey

RewardEnd = Literal["largest", "smallest"]
# A display that earns so many times what those that earn something do on average sets a scale on which all others are
# next to nothing. Measured with five arms, the best worth twice the others, one display in twenty converting, 12,000
# rounds: klucb shows the best in .79 of them where all rewards are alike, in .45 at 10 times, .31 at 30, .25 at 100.
HEAVY = 30.0
# Displays that earn something from which it says something that all earn the same: of as many, less than a tenth earn
# otherwise, all but surely (.9^44 < .01).
_MANY = 44
# Sums of money are rounded.
_ROUNDING = 1e-9


class RewardRange(NamedTuple):
    """Rewards of a log's displays, all conversions of a display together.

    `largest` and `smallest` are the largest and smallest sum that a display can have at any time: the log's
    `reward_max` and `reward_min`, else the extremes seen (and the largest seen where refunds come after more), the
    smallest 0 at most. Where nothing was earned the largest is 1, unless the log says that nothing can be, and
    something can be lost: rewards are shares of the distance between the bounds, which is never 0. `known` and
    `smallest_known` say whether the log says them itself; a log without refunds knows its smallest.

    `mean` is the mean sum of the displays that earn something, nan without any; `alike` says whether many do, and all
    of them the same: conversions that are counted. `taken_back` and `sold` are the largest sums of the refunds and of
    the sales of one display, 0 without refunds; `least_cost` and `most_cost` the smallest and largest cost of a
    display, 0 where costs are none of the objective. `of_told` is the range of the events that policies are told of;
    None where these are all.
    """

    largest: float
    known: bool
    mean: float
    alike: bool
    smallest: float = 0.0
    smallest_known: bool = True
    taken_back: float = 0.0
    sold: float = 0.0
    least_cost: float = 0.0
    most_cost: float = 0.0
    of_told: RewardRange | None = None

    @property
    def ends_seen(self) -> tuple[RewardEnd, ...]:
        """Which of the bounds, ``largest`` and ``smallest``, are only what was seen, so that more may be possible.

        The largest is known where the log says it, or counts conversions of one value.
        """
        return (*(() if self.known or self.alike else ("largest",)), *(() if self.smallest_known else ("smallest",)))

    @property
    def wide(self) -> bool:
        """Whether a display can earn something, as far as is known; or can earn nothing, as the log says, but lose."""
        return self.largest > 0.0 or (self.known and self.smallest < 0.0)

    @property
    def bounded(self) -> bool:
        """Whether nothing beyond the bounds is possible."""
        return not self.ends_seen

    @property
    def heavy(self) -> bool:
        """Whether the largest reward is far from all others."""
        return self.largest > HEAVY * self.mean

    @property
    def least(self) -> float:
        """Smallest reward of a display, its cost taken off."""
        return self.weighted(1.0)[0]

    @property
    def most(self) -> float:
        """Largest reward of a display, its cost taken off."""
        return self.weighted(1.0)[1]

    def without_costs(self) -> RewardRange:
        """Return the range of the revenue alone."""
        return self._replace(least_cost=0.0, most_cost=0.0)

    def told(self, *, costs: bool) -> RewardRange:
        """Return the range of what a policy is told: with costs, or of the revenue alone."""
        known = self.of_told or self
        return known if costs else known.without_costs()

    def plus(self, other: RewardRange) -> RewardRange:
        """Return the range of a display's sum where events of another kind, of the range `other`, come on top."""
        return self._replace(
            largest=self.largest + other.largest,
            known=self.known and other.known,
            alike=self.alike and other.known,
            smallest=self.smallest + other.smallest,
            smallest_known=self.smallest_known and other.smallest_known,
            taken_back=self.taken_back + other.taken_back,
            sold=(self.sold or self.largest) + (other.sold or other.largest),
        )

    def weighted(self, heaviest: float) -> tuple[float, float]:
        """Return the bounds where young displays' sales and refunds weigh up to `heaviest` times, and costs once.

        Where weights are not all 1, sales and refunds weigh differently, so that it no longer helps that a refund
        follows a sale: each is bounded by itself.
        """
        low, high = self.smallest * heaviest, self.largest * heaviest
        if self.taken_back and heaviest > 1.0:
            low = -heaviest * max(self.largest - self.smallest, self.taken_back)
            high = heaviest * max(self.largest, self.sold)
        if not (self.taken_back or self.most_cost):
            return low, high
        # Sums in another order are rounded otherwise.
        room = _ROUNDING * (high - low + self.most_cost)
        return low - self.most_cost - room, high - self.least_cost + room


def reward_range(survey: Survey, used: int) -> RewardRange:
    """Return the range of the rewards of the first `used` displays. Cost: once a pass over the events of each kind."""
    return survey.once(("reward range", used), lambda: _found_range(survey, used))


def _found_range(survey: Survey, used: int) -> RewardRange:
    log, c = survey.log, int(np.searchsorted(survey.display, used))
    display = survey.display[:c]
    value = to_numpy(log.conversions["value"])[:c].astype(np.float64, copy=False)
    costs, others = cost_events(log.conversions), [kind for kind in survey.kinds if not kind.of_conversions]
    besides = [kind.marked(c)[:c] for kind in others] + ([] if costs is None else [costs[:c]])
    own = ~np.any(besides, axis=0) if besides else slice(None)
    found = told = _range_of(display[own], value[own], log.meta.reward_min, log.meta.reward_max)
    for kind, mine in zip(others, besides, strict=False):
        added = _range_of(display[mine], value[mine], kind.value_min, kind.value_max)
        added = added._replace(known=added.known or not added.largest)
        found, told = found.plus(added), told.plus(added) if kind.told else told
    found, told = (of if of.wide else of._replace(largest=1.0) for of in (found, told))
    if costs is not None:
        spent = -value[costs[:c]]
        least = float(spent.min()) if len(spent) == used else 0.0
        most = float(spent.max(initial=0.0))
        found, told = (of._replace(least_cost=least, most_cost=most) for of in (found, told))
    return found if told == found else found._replace(of_told=told)


def _range_of(
    display: npt.NDArray[np.int64], value: npt.NDArray[np.float64], least: float | None, most: float | None
) -> RewardRange:
    """Return the range of a display's sum of events that go with no others, the bounds of which may be known."""
    first = firsts(display)
    reward = value if first is None else np.add.reduceat(value, first)
    smallest, taken_back, sold, seen = 0.0, 0.0, 0.0, float(reward.max(initial=0.0))
    if (value < 0.0).any():
        begins = np.arange(len(value)) if first is None else first
        taken_back, sold = (float(np.add.reduceat(np.maximum(sign * value, 0.0), begins).max()) for sign in (-1.0, 1.0))
        _, lows, highs = extremes(display, value)
        smallest, seen = float(lows.min()), float(highs.max(initial=0.0))
    # What is bounded is the sum of all; a window may cut a refund off, and so count more than that.
    largest = seen if most is None else max(seen, most) if taken_back else most
    earned = reward if reward.min(initial=1.0) > 0.0 else reward[reward > 0.0]
    alike = len(earned) >= _MANY and bool(earned.min() == earned.max())
    return RewardRange(
        largest=float(largest),
        known=most is not None,
        mean=float(earned.mean()) if len(earned) else float("nan"),
        alike=alike and seen == float(reward.max(initial=0.0)),
        smallest=smallest if least is None else min(smallest, least),
        smallest_known=not taken_back or least is not None,
        taken_back=taken_back,
        sold=sold,
    )
