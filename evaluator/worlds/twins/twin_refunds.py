"""The refunds of twins, fitted to a log: which sales come back, how late after the sale, and what they take back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.delays.by_group import group_cdfs
from evaluator.delays.cdf import DelayCDF
from evaluator.worlds.twins.rates import rates_by_action
from evaluator.worlds.twins.twin_delays import DelayLaws

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Refunds of an action from which its own are drawn; of fewer, its sales come back by the share of all. Of as few sales
# of its own, those of all stand for them.
_FEWEST = 10
# Pairs of a sale's delay and the wait for its refund that the law of their sum is taken from: a lattice.
_PAIRS, _GOLDEN = 65_536, (5**0.5 - 1) / 2
Actions = npt.NDArray[np.integer]

# Numbers of all actions that stand for those of an action with too few of its own, at most: evenly spaced quantiles.
_STAND_IN = 1_000


class ActionPools(NamedTuple):
    """Numbers of each action, equally likely among its own.

    Parameters
    ----------
    flat
        The numbers, those of action 0 first, shape (n,).
    first
        Place of each action's first number, and the end, shape (K + 1,). An action without numbers draws 0.
    """

    flat: Floats
    first: Ints

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
class SoldDisplays:
    """The displays of a log that sold something.

    Parameters
    ----------
    action
        Action of each, shape (n,).
    sold, taken
        Sum of its sales and of what its refunds took back, at least 0, shape (n,).
    wait
        Delay of its first sale, in ticks of the twins, shape (n,).
    lag
        Ticks between the first sale and the first refund; -1 without a refund, shape (n,).
    watched
        Ticks for which it was followed after its first sale, shape (n,).
    """

    action: Ints
    sold: Floats
    taken: Floats
    wait: Ints
    lag: Ints
    watched: Ints


@dataclass(frozen=True, eq=False)
class TwinRefunds:
    """Refunds of a truth.

    Parameters
    ----------
    rate
        Chance that a sale of each action comes back, sooner or later, shape (K,).
    sold
        Values of sales that come back, by action.
    taken
        What the refund of each of these takes back, above 0, in the order of ``sold.flat``, shape (S,).
    lags
        Law of the ticks between a sale and its refund, by action.
    sales
        Law of the delays of sales, by action.
    longest
        Attribution window in ticks: a refund later than that after its display is never recorded; None where there is
        none.
    said
        Sentence that says what the refunds are.
    """

    rate: Floats
    sold: ActionPools
    taken: Floats
    lags: DelayLaws
    sales: DelayLaws
    longest: int | None
    said: str

    @cached_property
    def laws(self) -> tuple[Ints, Ints]:
        """Pairs of a law of sales and one of lags that some action has, shape (Q, 2); which of them each has, (K,)."""
        pairs, of_action = np.unique(
            np.column_stack((self.sales.of_action, self.lags.of_action)), axis=0, return_inverse=True
        )
        return pairs, of_action.reshape(-1)

    @cached_property
    def _totals(self) -> list[tuple[DelayCDF, float]]:
        i = np.arange(_PAIRS)
        found = []
        for sale, lag in self.laws[0]:
            at = np.searchsorted(self.sales.tau[sale], (i + 0.5) / _PAIRS, side="right")
            then = np.searchsorted(self.lags.tau[lag], (i * _GOLDEN) % 1.0, side="right")
            last = len(self.sales.grid) - 1, len(self.lags.grid) - 1
            total = self.sales.grid[np.minimum(at, last[0])] + self.lags.grid[np.minimum(then, last[1])]
            kept = total if self.longest is None else total[total <= self.longest]
            share = len(kept) / _PAIRS
            ticks, count = np.unique(kept if len(kept) else total[:1], return_counts=True)
            cdf = np.minimum(np.cumsum(count) / count.sum(), 1.0)
            found.append((DelayCDF(delays=ticks, cdf=cdf, source=self.said), share))
        return found

    @property
    def totals(self) -> tuple[DelayCDF, ...]:
        """CDF of the ticks between a display and its refund, of those that are recorded, one for each pair of laws."""
        return tuple(cdf for cdf, _ in self._totals)

    @cached_property
    def recorded(self) -> Floats:
        """Share of each action's refunds that come within the attribution window, shape (K,)."""
        found: Floats = np.array([share for _, share in self._totals])[self.laws[1]]
        return found

    @cached_property
    def owed(self) -> Floats:
        """What a sale of each action is expected to give back, shape (K,)."""
        found: Floats = self.rate * self.recorded * ActionPools(self.taken, self.sold.first).means
        return found


def fit_refunds(shown: SoldDisplays, sales: DelayLaws, longest: int | None, left_out: int, k: int) -> TwinRefunds:
    """Return the refunds of the twins.

    A sale's chance to come back is the number of refunds seen over that of sales, each counted with the chance that its
    refund would have been seen by now: by action, drawn towards the mean as rates of conversions are
    (`evaluator.worlds.twins.rates.rates_by_action`). Lags are fitted as delays are, right-truncated where a display was
    not followed to its end, by action where the log can tell these apart (`evaluator.delays.by_group`).

    Parameters
    ----------
    shown
        Displays that sold something, of which one at least has a refund.
    sales
        Delay laws of the sales.
    longest
        Attribution window in ticks of the twins; None where there is none.
    left_out
        Number of displays with refunds and without a sale.
    k
        Number of actions K.
    """
    back = shown.lag >= 0
    action = shown.action[back]
    lag = shown.lag[back]
    found = group_cdfs(lag, np.maximum(shown.watched[back], lag), action, n_groups=k)
    chance = found(shown.watched, shown.action)
    sold: Floats = np.bincount(shown.action, weights=chance, minlength=k).astype(np.float64)
    returned: Floats = np.bincount(action, minlength=k).astype(np.float64)
    rates = rates_by_action(np.minimum(returned, sold), sold)
    value, taken = shown.sold[back], shown.taken[back]
    rare = np.flatnonzero(returned < _FEWEST)
    own = ~np.isin(action, rare)
    # Its own sales, or all, come back by the share that all refunds take.
    spare, of = own_or_all(shown.sold, shown.action, k, fewest=_FEWEST)
    few = np.isin(of, rare)
    taken = np.concatenate([taken[own], float(taken.sum() / value.sum()) * spare[few]])
    value = np.concatenate([value[own], spare[few]])
    of = np.concatenate([action[own], of[few]])
    drawn = int((found.weight > 0).sum())
    said = (
        f"of sales, {returned.sum() / max(sold.sum(), 1e-300):.3g} come back, by action from {rates.table.min():.3g} "
        f"to {rates.table.max():.3g}; waits between a sale and its refund "
        + ("by laws that depend on the action" if drawn else "by one law for all actions")
    )
    if left_out:
        said += f" ({left_out:,} displays have refunds without a sale, which twins have not)"
    return TwinRefunds(
        rate=rates.table[0],
        sold=pools_of(value, of, k),
        taken=pools_of(taken, of, k).flat,
        lags=DelayLaws(found.grid, found.table[:, 1:], found.row, said),
        sales=sales,
        longest=longest,
        said=said,
    )
