"""The laws of a twin's events by kind: what they follow, how late they come, what they are worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.log import Log
from evaluator.log.log_tables import EventKind, LogMeta
from evaluator.log.schema import COST
from evaluator.worlds.disk_column import mean_of_columns

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Actions = npt.NDArray[np.integer]

# Pairs of a sale's delay and the wait for what follows it that the law of their sum is taken from: a lattice.
_PAIRS, _GOLDEN = 65_536, (5**0.5 - 1) / 2
# Numbers of all actions that stand for those of an action with too few of its own, at most: evenly spaced quantiles.
_STAND_IN = 1_000


class ActionPools(NamedTuple):
    """Numbers of each action, equally likely among its own: `flat`, those of action 0 first, and where each begins."""

    flat: Floats  # (n,)
    first: Ints  # (K + 1,), the last the end; an action without numbers draws 0

    @property
    def size(self) -> Ints:
        """How many numbers each action has, shape (K,)."""
        return np.diff(self.first)

    @property
    def means(self) -> Floats:
        """Mean of each action's numbers, shape (K,); 0 without any."""
        total = np.concatenate(([0.0], np.cumsum(self.flat)))
        found: Floats = np.diff(total[self.first]) / np.maximum(self.size, 1)
        return found

    def drawn(self, action: Ints, uniform: Floats) -> Floats:
        """Return a number of each of some actions, given uniform numbers in [0, 1), shape (n,)."""
        size = self.size[action]
        place = self.first[action] + (uniform * size).astype(np.int64)
        if not len(self.flat):
            return np.zeros(len(action))
        return np.where(size > 0, self.flat[np.where(size > 0, place, 0)], 0.0)


def pools_of(values: Floats, action: Actions, n_actions: int) -> ActionPools:
    """Return the pools of some numbers, each of an action."""
    order = np.argsort(action, kind="stable")
    return ActionPools(
        np.ascontiguousarray(values[order], np.float64), np.searchsorted(action[order], np.arange(n_actions + 1))
    )


def own_or_all(values: Floats, action: Actions, n_actions: int, *, fewest: int) -> tuple[Floats, Actions]:
    """Return numbers and their actions, those of all in place of the numbers of actions with fewer than `fewest`."""
    rare = np.flatnonzero(np.bincount(action, minlength=n_actions) < fewest)
    if not len(rare):
        return values, action
    own = ~np.isin(action, rare)
    stand_in = np.sort(values)
    if len(values) > _STAND_IN:
        stand_in = stand_in[((np.arange(_STAND_IN) + 0.5) / _STAND_IN * len(values)).astype(np.int64)]
    return (
        np.concatenate([values[own], np.tile(stand_in, len(rare))]),
        np.concatenate([action[own], np.repeat(rare, len(stand_in))]),
    )


@dataclass(frozen=True, eq=False)
class DelayLaws:
    """The delay laws of one kind of events, in ticks of the twins."""

    grid: Ints  # (J,) delays that occur, increasing
    tau: Floats  # (R, J) CDF of each law at these
    of_action: Ints  # (K,) row of `tau` for each action's delays
    said: str

    @cached_property
    def cdfs(self) -> tuple[DelayCDF, ...]:
        """Each law."""
        return tuple(DelayCDF(delays=self.grid[row > 0], cdf=row[row > 0], source=self.said) for row in self.tau)

    def drawn(self, action: Ints, uniform: Floats) -> Ints:
        """Return the delays of events of some actions, by inversion, shape (n,)."""
        law = self.of_action[action]
        out = np.empty(len(action), np.int64)
        for r in np.unique(law):
            mine = law == r
            out[mine] = self.inverse(r, uniform[mine])
        return out

    def inverse(self, law: int, uniform: Floats) -> Ints:
        """Return the quantiles of a law at some uniform numbers, shape (n,)."""
        found: Ints = self.grid[np.minimum(np.searchsorted(self.tau[law], uniform, side="right"), len(self.grid) - 1)]
        return found

    def at(self, ticks: Ints) -> Floats:
        """Return the CDF of each law at some delays, shape (R, n)."""
        padded = np.column_stack((np.zeros(len(self.tau)), self.tau))
        found: Floats = padded[:, np.searchsorted(self.grid, ticks, side="right")]
        return found

    def seen(self, n: int, ages: Callable[[int, int], Ints]) -> Floats:
        """Return the mean chance that an event of each action has come by n ages, shape (K,).

        `ages` returns those from one number to another (excluded), shape (m,).
        """
        share: Floats = mean_of_columns(n, lambda first, end: self.at(ages(first, end)))[self.of_action]
        return share


class DrawnEvents(NamedTuple):
    """Events that were drawn: display of each, its delay in ticks, its value (below 0 of a refund), (c,) each."""

    display: Ints
    wait: Ints
    value: Floats


@dataclass(frozen=True, eq=False)
class EventLaw:
    """The law of the events of a kind, at most one of each display, or of each sale where there are laws of these."""

    kind: EventKind  # as a twin has it, with the attribution window in its ticks: later events are never recorded
    rate: Floats  # (K,) chance that a display of each action, or a sale of it, has one sooner or later
    values: ActionPools  # what an event is worth: below 0 where it takes back
    laws: DelayLaws  # of the delay since the display, or since the sale
    said: str
    after: DelayLaws | None = None  # of the sales that they follow; None where they follow displays
    worth: ActionPools | None = None  # values of these sales, in the order of `values.flat`
    beyond: int | None = None  # ticks that the log was followed for them after its last display, if not as for sales

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Pairs of a law of sales and one of waits that some action has, shape (Q, 2); which of them each has, (K,)."""
        assert self.after is not None
        pairs, of_action = np.unique(
            np.column_stack((self.after.of_action, self.laws.of_action)), axis=0, return_inverse=True
        )
        return pairs, of_action.reshape(-1)

    @cached_property
    def _totals(self) -> list[tuple[DelayCDF, float]]:
        assert self.after is not None
        i, longest, found = np.arange(_PAIRS), self.kind.attribution_window, []
        for sale, wait in self.pairs[0]:
            late = np.asarray((i * _GOLDEN) % 1.0, np.float64)
            total: Ints = self.after.inverse(sale, (i + 0.5) / _PAIRS) + self.laws.inverse(wait, late)
            kept = total if longest is None else total[total <= longest]
            ticks, count = np.unique(kept if len(kept) else total[:1], return_counts=True)
            cdf = np.minimum(np.cumsum(count) / count.sum(), 1.0)
            found.append((DelayCDF(delays=ticks, cdf=cdf, source=self.said), len(kept) / _PAIRS))
        return found

    @property
    def totals(self) -> tuple[DelayCDF, ...]:
        """CDF of the ticks since the display, of the events of sales that are recorded, one for each of the pairs."""
        return tuple(cdf for cdf, _ in self._totals)

    @cached_property
    def recorded(self) -> Floats:
        """Share of each action's events that come within the attribution window, shape (K,)."""
        if self.after is None:
            return np.ones(len(self.rate))
        found: Floats = np.array([share for _, share in self._totals])[self.pairs[1]]
        return found

    @cached_property
    def brought(self) -> Floats:
        """What a display of each action, or a sale of it, is expected to bring by these events, shape (K,)."""
        found: Floats = self.rate * self.recorded * self.values.means
        return found

    def drawn(
        self, of: Ints, action: Ints, uniform: tuple[Floats, Floats, Floats], since: Ints | None = None
    ) -> DrawnEvents:
        """Return the events of displays `of` with an `action` each, shape (c,), given uniform numbers of each.

        These say whether an event comes, how late, and what it is worth; `since` are the ticks from each display to the
        sale that the event follows, None where it follows the display.
        """
        comes, late, worth = uniform
        some = comes < self.rate[action]
        own = action[some]
        wait = self.laws.drawn(own, late[some])
        if since is not None:
            wait = since[some] + wait
        found = DrawnEvents(of[some], wait, self.values.drawn(own, worth[some]))
        longest = self.kind.attribution_window
        if longest is None or self.after is None:  # delays since displays were fitted within the window
            return found
        kept = wait <= longest
        return DrawnEvents(found.display[kept], wait[kept], found.value[kept])


class LogCosts:
    """What the displays of a log cost, read once it is asked for: an audit of revenue never does.

    Once read, it takes 8 bytes a display.
    """

    def __init__(self, log: Log) -> None:
        self._log = log

    @cached_property
    def pools(self) -> ActionPools:
        """Costs of displays, by action."""
        k = self._log.n_actions
        cost, action = (np.concatenate([of[name] for _, of in self._log.batches([name])]) for name in (COST, "action"))
        return pools_of(*own_or_all(cost.astype(np.float64, copy=False), action, k, fewest=1), k)


@dataclass(frozen=True, eq=False)
class TwinMoney:
    """What sales bring where a log has refunds, costs, or outcomes that count: by action, as the log's own."""

    sold: ActionPools  # values of sales that do not come back
    refunds: EventLaw | None
    costing: LogCosts | None
    outcomes: tuple[EventLaw, ...] = ()  # other events that count as rewards, and follow displays

    @property
    def costs(self) -> ActionPools | None:
        """Costs of displays, by action; None where the log has none."""
        return None if self.costing is None else self.costing.pools

    @cached_property
    def worth(self) -> Floats:
        """Expected value of a sale of each action, before its refund, shape (K,)."""
        if self.refunds is None or self.refunds.worth is None:
            return self.sold.means
        rate = self.refunds.rate
        found: Floats = (1.0 - rate) * self.sold.means + rate * self.refunds.worth.means
        return found

    @property
    def owed(self) -> Floats:
        """What a sale of each action is expected to give back, shape (K,)."""
        return np.zeros(len(self.worth)) if self.refunds is None else -self.refunds.brought

    @property
    def brought(self) -> Floats:
        """What the other events of a display of each action are expected to bring, shape (K,)."""
        return sum((one.brought for one in self.outcomes), np.zeros(len(self.worth)))

    @property
    def _left(self) -> Floats:
        """What is left of each sale that comes back, shape (S,); none without refunds."""
        if self.refunds is None or self.refunds.worth is None:
            return np.zeros(0)
        left: Floats = self.refunds.worth.flat + self.refunds.values.flat
        return left

    @property
    def squares(self) -> Floats:
        """Expected square of what is left of a sale of each action, shape (K,)."""
        kept = self.sold._replace(flat=self.sold.flat**2).means
        if self.refunds is None:
            return kept
        left = self.refunds.values._replace(flat=self._left**2).means
        found: Floats = (1.0 - self.refunds.rate) * kept + self.refunds.rate * left
        return found

    @property
    def said(self) -> tuple[str, ...]:
        """Sentences that say what twins have."""
        return (
            "sales are worth what one of the log's was of the same action",
            *([] if self.refunds is None else [self.refunds.said]),
            *([] if self.costing is None else ["displays cost what one of the log's did of the same action"]),
            *(one.said for one in self.outcomes),
        )

    def bounds(self, meta: LogMeta) -> LogMeta:
        """Return metadata whose bounds hold what a sale may bring, and what may be left of it."""
        most, least = meta.reward_max, meta.reward_min
        pools = [self.sold, *([] if self.refunds is None or self.refunds.worth is None else [self.refunds.worth])]
        if most is not None:
            most = max(most, *(float(pool.flat.max(initial=0.0)) for pool in pools))
        if least is not None and self.refunds is not None:
            least = min(least, float(self._left.min(initial=0.0)))
        return replace(meta, reward_max=most, reward_min=least)

    def drawn_sales(
        self, sold: Ints, action: Ints, wait: Ints, worth: Floats, comes_back: Floats, how_late: Floats
    ) -> DrawnEvents:
        """Return some sales and their refunds, display by display, a sale before its refund.

        Given are the displays that sell, increasing, their actions, and the delays of their sales in ticks, shape (c,)
        each; and uniform numbers of each: what the sale is worth, whether it comes back, and how late.
        """
        value, refunds = self.sold.drawn(action, worth), self.refunds
        if refunds is None or refunds.worth is None:
            return DrawnEvents(sold, wait, value)
        back = comes_back < refunds.rate[action]
        value[back] = refunds.worth.drawn(action[back], worth[back])
        returned = refunds.drawn(sold, action, (comes_back, how_late, worth), wait)
        events = [np.concatenate(of) for of in zip((sold, wait, value), returned, strict=True)]
        order = np.argsort(events[0], kind="stable")
        return DrawnEvents(*(of[order] for of in events))
