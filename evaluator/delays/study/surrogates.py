"""Outcomes that may stand in for the reward: how much earlier they come, and how often the reward follows them.

A policy that learns from clicks is told sooner than one that waits for sales. That helps where clicks foretell sales,
and misleads where an action is clicked on and not bought. Both show in two shares: of the displays with the outcome,
those that a reward follows, and of the displays with a reward, those where the outcome comes first. An outcome
foretells the reward if the first share is larger than that of all displays which have a reward. If one of the two
depends on the action, the action with the most outcomes need not be that with the most rewards (for surrogates of one
endpoint see Prentice 1989, "Surrogate endpoints in clinical trials", Statistics in Medicine 8).

Only displays that were followed for the windows of both kinds of events count, as later events of younger ones are not
known yet. A window is the attribution window of the log; where the log names none and stops looking, it is the
recommended one of the study of these events.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import Interval, share_interval
from evaluator.log import Log
from evaluator.log.log_tables import EventKind
from evaluator.log.schema import WEIGHT, to_numpy
from evaluator.log.times import COARSE_S
from evaluator.results.json_documents import Count, NotNegative, NotNegativeOrNull, in_document

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ActionShare:
    """A share of the displays of one action, with an interval that holds for all actions at once."""

    action: str
    share: Interval


@dataclass(frozen=True)
class SurrogateShare:
    """How often the outcome and the reward come together, among the displays that have the one of them.

    Parameters
    ----------
    pooled
        Share of the displays of all actions.
    actions
        Number of actions that have enough such displays to be compared.
    least, most
        Smallest and largest share of these actions; None where fewer than two are compared.
    """

    pooled: Interval
    actions: Count
    least: ActionShare | None
    most: ActionShare | None

    @in_document
    @property
    def differs(self) -> bool | None:
        """Whether the share depends on the action, beyond chance; None where no actions are compared."""
        if self.least is None or self.most is None:
            return None
        return self.least.share.high < self.most.share.low


@dataclass(frozen=True)
class Surrogate:
    """What an outcome says of the reward. Delays and windows in ticks.

    Parameters
    ----------
    outcome
        Name of the outcome.
    median, reward_median
        Delay by which half of its events have come, and half of the rewards, corrected for what the log cut off.
    window, reward_window
        Longest delay of its events that count, and of the rewards; inf where displays were followed to their end.
    displays, followed
        Number of displays of the traffic, and of those that were followed for both windows. The rest is of these.
    with_outcome, with_reward, with_both
        Number of displays that have the outcome, that have a reward, and whose first such outcome comes no later than
        their last reward.
    followed_by_reward
        Share of the displays with the outcome that a reward follows.
    reward_preceded
        Share of the displays with a reward that the outcome precedes.
    """

    outcome: str
    median: NotNegative
    reward_median: NotNegative
    window: NotNegativeOrNull
    reward_window: NotNegativeOrNull
    displays: Count
    followed: Count
    with_outcome: Count
    with_reward: Count
    with_both: Count
    followed_by_reward: SurrogateShare
    reward_preceded: SurrogateShare

    @in_document
    @property
    def earlier(self) -> bool:
        """Whether the outcome comes earlier than the reward, by the medians of their delays."""
        return self.median < self.reward_median

    @in_document
    @property
    def foretells(self) -> bool:
        """Whether the reward follows the outcome more often than it comes on all displays, beyond chance."""
        return self.with_reward < self.followed_by_reward.pooled.low * self.followed

    @property
    def differs(self) -> bool:
        """Whether a share depends on the action: then the outcome may mislead a policy that learns from it."""
        return bool(self.followed_by_reward.differs or self.reward_preceded.differs)


class StudiedKind(NamedTuple):
    """Events of one kind: the log whose conversions they are, and what the study of their delays says.

    These are the median delay, the recommended window, and what the time stamps tell apart, all in ticks.
    """

    name: str
    log: Log
    median: float
    recommended: float
    stamp: int

    @property
    def window(self) -> float:
        """Longest delay of the events that count; inf where displays were followed to their end."""
        kind = self._about
        if kind.attribution_window is not None:
            return kind.attribution_window
        return math.inf if kind.observed_until is None else self.recommended

    @property
    def last_followed(self) -> float:
        """Time of the last display that was followed for the whole window."""
        until, meta = self._about.observed_until, self.log.meta
        if until is None:
            return math.inf
        # A display that is stamped with a day may be of its last minute, and the log may end in the first of another.
        coarse = self.stamp * (meta.tick_seconds or 0.0) >= COARSE_S
        return until - self.window - (self.stamp if coarse else 0)

    @property
    def _about(self) -> EventKind:
        return self.log.meta.conversions


def find_surrogates(
    log: Log, reward: StudiedKind, outcomes: Sequence[StudiedKind], *, displays: int, fewest: int, level: float
) -> tuple[Surrogate, ...]:
    """Return what each outcome of a log says of the reward; actions with `fewest` displays are compared.

    The log stands for so many `displays` of the traffic. One pass over their times where there are outcomes; memory
    grows with the events only.
    """
    ends = [min(of.last_followed, reward.last_followed) for of in outcomes]
    followed, total = np.zeros(len(ends)), 0.0
    if any(map(math.isfinite, ends)):
        weighted = WEIGHT in log.schema.names
        for _, batch in log.batches(["time", *[WEIGHT] * weighted]):
            until = np.searchsorted(batch["time"], ends, side="right")
            counts = np.cumsum(np.append(0.0, batch[WEIGHT] if weighted else np.ones(len(batch["time"]))))
            followed, total = followed + counts[until], total + counts[-1]
    shares = [float(count / total) if math.isfinite(end) else 1.0 for count, end in zip(followed, ends, strict=True)]
    found = []
    for of, end, share in zip(outcomes, ends, shares, strict=True):
        rewards = _one_each(reward, end, last=True)
        events = _one_each(of, end, last=False)
        _, at, at_reward = np.intersect1d(events.display, rewards.display, assume_unique=True, return_indices=True)
        both = events.delay[at] <= rewards.delay[at_reward]
        foretold, preceded = np.zeros(len(events.display), np.bool_), np.zeros(len(rewards.display), np.bool_)
        foretold[at], preceded[at_reward] = both, both
        found.append(
            Surrogate(
                outcome=of.name, median=of.median, reward_median=reward.median, window=of.window,
                reward_window=reward.window, displays=displays, followed=round(share * displays),
                with_outcome=len(foretold), with_reward=len(preceded), with_both=int(both.sum()),
                followed_by_reward=_by_action(log.labels, events.action, foretold, fewest=fewest, level=level),
                reward_preceded=_by_action(log.labels, rewards.action, preceded, fewest=fewest, level=level),
            )
        )  # fmt: skip
    return tuple(found)


class _OneEach(NamedTuple):
    """One event of each display that has some: the display, the delay of the event, and the action."""

    display: Ints
    delay: Ints
    action: Ints


def _one_each(kind: StudiedKind, end: float, *, last: bool) -> _OneEach:
    """Return the first or the last event within its window of each display that was shown up to a time."""
    events = kind.log.conversions
    display = to_numpy(events["display_id"]).astype(np.int64, copy=False)
    distinct, code = np.unique(display, return_inverse=True)
    rows = kind.log.take(distinct, ["time", "action"])
    shown, action = (to_numpy(rows[name]).astype(np.int64, copy=False) for name in ("time", "action"))
    delay = to_numpy(events["time"]).astype(np.int64, copy=False) - shown[code]
    inside = (delay <= kind.window) & (shown[code] <= end)
    # Events are sorted by display.
    kept, first = np.unique(code[inside], return_index=True)
    reduce = np.maximum.reduceat if last else np.minimum.reduceat
    return _OneEach(distinct[kept], reduce(delay[inside], first) if len(first) else delay[:0], action[kept])


def _by_action(labels: Sequence[str], action: Ints, case: Mask, *, fewest: int, level: float) -> SurrogateShare:
    """Return the share of displays that are cases, and the smallest and the largest of the actions."""
    pooled = share_interval(int(case.sum()), len(case), alpha=1.0 - level)
    n = np.bincount(action, minlength=len(labels))
    cases = np.bincount(action[case], minlength=len(labels))
    large = np.flatnonzero(n >= fewest)
    if len(large) < 2:
        return SurrogateShare(pooled, len(large), None, None)
    shares = cases[large] / n[large]
    least, most = (
        ActionShare(labels[a], share_interval(int(cases[a]), int(n[a]), alpha=(1.0 - level) / len(large)))
        for a in (large[shares.argmin()], large[shares.argmax()])
    )
    return SurrogateShare(pooled, len(large), least, most)
