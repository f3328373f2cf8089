"""Conversions by period, hour of the day and action when the three only add up: the fit, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.solving import inverted, solved

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Actions beyond this many are not looked at: those shown most are.
MOST_ACTIONS = 64
_STEPS, _CLOSE = 30, 1e-9


@dataclass(eq=False)
class ActionHours:
    """Judged displays of each period, hour of the day and action."""

    # Place of each action among those looked at, shape (K,); `looked_at` for all others.
    rank: Ints
    # Number of judged displays of each period, hour and action looked at, shape (P, H, A + 1), all other actions
    # together in the last place. H is 1 where the log has no hours of the day.
    shown: Floats

    @property
    def looked_at(self) -> int:
        """Number of actions that are looked at, A."""
        return int(self.shown.shape[2]) - 1

    @property
    def actions(self) -> Ints:
        """Number of each action that is looked at, shape (A,)."""
        return np.flatnonzero(self.rank < self.looked_at)

    def count(self, period: Ints, hour: Ints, action: Ints) -> Floats:
        """Return how many of some displays are in each cell, of the shape of `shown`."""
        _, hours, actions = self.shown.shape
        cell = (period * hours + hour) * actions + self.rank[action]
        return np.bincount(cell, minlength=self.shown.size).reshape(self.shown.shape).astype(np.float64)


def action_hours(shown: Ints, periods: int, hours: int) -> ActionHours:
    """Return an empty table for the actions shown most; `shown` are the displays of each, shape (K,)."""
    kept = np.sort(np.argsort(-shown, kind="stable")[:MOST_ACTIONS])
    rank = np.full(len(shown), len(kept), np.int64)
    rank[kept] = np.arange(len(kept))
    return ActionHours(rank, np.zeros((periods, hours, len(kept) + 1)))


@dataclass(frozen=True, eq=False)
class AdditiveFit:
    """Expected conversions under logit P(conversion) = period + hour of the day + action."""

    # Numbers of the periods and of the actions that say anything, shapes (P',) and (A',): those with conversions, and
    # with displays without.
    periods: Ints
    actions: Ints
    # Displays of these periods and actions, their conversions, and the conversions that the fit makes expected, shape
    # (P', A').
    shown: Floats
    seen: Floats
    expected: Floats
    # Variance of the conversions of each period and action under the fit, summed over its hours, shape (P', A').
    spread: Floats
    # Mean square of what is left in the hours of each day over its expectation, by action and of all actions, at least
    # 1: above 1 where outcomes go together, as those of one visitor; taken as 1 where there are no hours.
    dispersion: float
    dispersion_in_all: float
    _inverse: Floats = field(repr=False)

    @property
    def left(self) -> Floats:
        """What is seen beyond what is expected, shape (P', A')."""
        return self.seen - self.expected

    def drawn(self, draws: int, rng: np.random.Generator) -> Floats:
        """Return what is left of conversions drawn from the fit once period and action are fitted to them.

        Shape (draws, P', A'). To first order: efficient scores.
        """
        n = self.shown.astype(np.int64)
        chance = np.divide(self.expected, self.shown, out=np.zeros_like(self.expected), where=self.shown > 0)
        left = rng.binomial(n, chance, (draws, *n.shape)) - self.expected
        score = np.concatenate((left.sum(axis=2), left.sum(axis=1)), axis=1)
        moved = score @ self._inverse
        rows = left.shape[1]
        left -= self.spread * (moved[:, :rows, None] + moved[:, None, rows:])
        return np.asarray(left)


def fit_additive(shown: Floats, seen: Floats) -> AdditiveFit | None:
    """Return the maximum likelihood fit, or None where fewer than two periods or two actions have data.

    `shown` and `seen` count the displays, and those that converted, of each period, hour and action, shape (P, H, A).
    Newton's method works on the sums by period, by hour and by action, and halves steps that go too far. Cost: some
    thirty passes over the cells at most.
    """
    periods, hours, actions = np.arange(shown.shape[0]), np.arange(shown.shape[1]), np.arange(shown.shape[2])
    while True:
        n, y = shown[np.ix_(periods, hours, actions)], seen[np.ix_(periods, hours, actions)]
        kept = []
        for axis in range(3):
            others = tuple(a for a in range(3) if a != axis)
            of, with_one = n.sum(axis=others), y.sum(axis=others)
            kept.append((with_one > 0) & (with_one < of))
        if all(k.all() for k in kept):
            break
        periods, hours, actions = periods[kept[0]], hours[kept[1]], actions[kept[2]]
    if len(periods) < 2 or len(actions) < 2:
        return None
    mean = _fitted(n, y)
    weight = mean * (1.0 - np.divide(mean, n, out=np.zeros_like(mean), where=n > 0))
    of_hours = sum(n.shape[:2]) - 1
    dispersion = _dispersion(y - mean, weight, int(np.count_nonzero(n)), of_hours + n.shape[2] - 1)
    in_all = _dispersion((y - mean).sum(axis=2), weight, int(np.count_nonzero(n.sum(axis=2))), of_hours)
    spread = weight.sum(axis=1)
    rows = np.diag(spread.sum(axis=1))
    columns = np.diag(spread.sum(axis=0))
    information = np.block([[rows, spread], [spread.T, columns]])
    # One constant is free; any ridge that picks it gives the same sums of a row's and a column's number.
    information[np.diag_indices_from(information)] += 1e-9 * np.trace(information)
    inverse = inverted(information)
    return AdditiveFit(
        periods, actions, n.sum(axis=1), y.sum(axis=1), mean.sum(axis=1), spread, dispersion, in_all, inverse
    )  # fmt: skip


def _dispersion(left: Floats, weight: Floats, cells: int, fitted: int) -> float:
    """Return the mean square of what is left over its expectation, at least 1; 1 where there is but one hour."""
    if left.shape[1] == 1 or cells <= fitted:
        return 1.0
    return max(float((left**2).sum() / weight.sum()) * cells / (cells - fitted), 1.0)


def _fitted(n: Floats, y: Floats) -> Floats:
    """Return the expected conversions of each cell, shape (P, H, A)."""
    shape = n.shape
    ends = np.cumsum((0, *shape))
    sums = np.concatenate([_margins(y, axis) for axis in range(3)])
    overall = y.sum() / n.sum()
    theta = np.zeros(ends[-1])
    theta[: shape[0]] = np.log(overall / (1.0 - overall))

    def means(at: Floats) -> Floats:
        parts = [at[low:high] for low, high in pairwise(ends)]
        logit = parts[0][:, None, None] + parts[1][None, :, None] + parts[2][None, None, :]
        return np.asarray(n / (1.0 + np.exp(-np.clip(logit, -30.0, 30.0))))

    mean = means(theta)
    off = sums - np.concatenate([_margins(mean, axis) for axis in range(3)])
    for _ in range(_STEPS):
        weight = mean * (1.0 - np.divide(mean, n, out=np.zeros_like(mean), where=n > 0))
        information = np.zeros((ends[-1], ends[-1]))
        for axis in range(3):
            block = slice(ends[axis], ends[axis + 1])
            information[block, block] = np.diag(_margins(weight, axis))
            for other in range(axis + 1, 3):
                across = slice(ends[other], ends[other + 1])
                rest = ({0, 1, 2} - {axis, other}).pop()
                information[block, across] = weight.sum(axis=rest)
                information[across, block] = information[block, across].T
        # Two constants are free: a ridge far below what the data say picks one of them.
        information[np.diag_indices_from(information)] += 1e-9 * np.trace(information)
        step = solved(information, off)
        size = 1.0
        while True:
            new = means(theta + size * step)
            new_off = sums - np.concatenate([_margins(new, axis) for axis in range(3)])
            if np.abs(new_off).max() < np.abs(off).max() or size < 1e-3:
                break
            size /= 2.0
        theta, mean, off = theta + size * step, new, new_off
        if np.abs(off).max() <= _CLOSE * max(float(y.sum()), 1.0) or size < 1e-3:
            break
    return mean


def _margins(cells: Floats, axis: int) -> Floats:
    return np.asarray(cells.sum(axis=tuple(a for a in range(3) if a != axis)))
