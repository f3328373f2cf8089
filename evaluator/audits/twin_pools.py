"""Numbers that a log holds of each action, from which twins and live runs draw theirs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
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
