"""Delay CDFs of groups (actions, devices, ...), each drawn to that of all as far as its conversions are few.

The CDF of a group is the posterior mean under a Dirichlet process prior around the common CDF F, worth `kappa`
conversions: the product limit in reverse time with kappa conversions of the common law, followed to the end, added,

    F_g(a) = prod over d > a of (1 - h_g(d)),   h_g(d) = (kappa f(d) + n_g(d)) / (kappa F(d) + r_g(d)).

Seen delays have likelihood f(D) / F(L) = h(D) prod over D < d <= L of (1 - h(d)), in which the process's reverse
hazards are independent and of beta law, so that this is exact. With nothing cut off it is Buehlmann's credibility
formula: n/(n + kappa) times the group's own empirical CDF, and the rest times the common one.

How much groups differ is estimated from all of them (empirical Bayes). Under the prior two conversions of a group are
on the same side of a quantile more often than those of two groups: with correlation 1/(1 + kappa), found by moments
from the places F(D) / F(L), uniform whatever the limits. No group is drawn by more than one standard error of its own
(limited translation), so that a single one that differs from many alike keeps its own law.

References
----------
Ferguson (1973), Annals of Statistics 1(2); Susarla, Van Ryzin (1976), JASA 71: Dirichlet prior and censored data;
Lynden-Bell (1971); Buehlmann, Straub (1970): credibility; Efron, Morris (1972), JASA 67: limited translation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.product_limit import product_limit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Levels at which groups are compared; steps of all groups' CDFs together, and the fewest of one of them.
_LEVELS = 64
_CELLS, _FEWEST_STEPS = 4_000_000, 256
# No CDF rests on its own conversions alone: where few were watched for long, their product limit may be anything.
_LEAST_PRIOR = 1.0


@dataclass(frozen=True, eq=False)
class GroupCDFs:
    """A delay CDF a group (`group_cdfs`).

    Parameters
    ----------
    common
        CDF of all groups together, given a delay of at most `longest`.
    grid
        Delays at which CDFs rise, in rounds, shape (J,), increasing.
    table
        CDFs at the delays of `grid` and, first, below all of them (0), shape (R, J + 1); row 0 is the common one.
    row
        Row of `table` for each group, shape (G,); 0 where it has no law of its own.
    weight
        Weight of each group's own conversions beside the common law, n / (n + kappa), shape (G,).
    """

    common: DelayCDF
    grid: Ints
    table: Floats
    row: Ints
    weight: Floats

    def __call__(self, age: npt.ArrayLike, group: npt.ArrayLike) -> Floats:
        """Return P(D <= age) of each group, of the common shape of the two."""
        found: Floats = self.table[self.row[np.asarray(group)], np.searchsorted(self.grid, age, side="right")]
        return found

    def smallest(self, age: int) -> float:
        """Return the smallest P(D <= age) of any group."""
        return float(self.table[:, np.searchsorted(self.grid, age, side="right")].min())

    def reached(self, level: float) -> int:
        """Return the smallest delay by which so large a share of every group's conversions has come."""
        return int(self.grid[(self.table[:, 1:] >= level).argmax(axis=1).max()])


def group_cdfs(delays: Ints, limits: Ints, groups: Ints, *, n_groups: int) -> GroupCDFs:
    """Return the delay CDF of each group, given a delay of at most the longest limit.

    Parameters
    ----------
    delays, limits
        Delay and limit of each conversion seen, in rounds, shape (n,), n > 0, as for
        `evaluator.delays.product_limit.product_limit`.
    groups
        Group of each conversion, counted from 0, shape (n,).
    n_groups
        Number of groups G. Groups without conversions have the common CDF.

    Notes
    -----
    O(n log n + R J), where more than `_CELLS` steps in all are thinned to evenly spaced quantiles: a conversion then
    counts as one of the next kept delay, and not at all where its limit comes before that, which biases nothing.

    Examples
    --------
    >>> delays = np.array([0, 1, 2, 3] * 2)
    >>> alike = group_cdfs(delays, np.full(8, 3), np.repeat([0, 1], 4), n_groups=2)
    >>> alike(1, [0, 1]).tolist(), alike.weight.tolist()
    ([0.5, 0.5], [0.0, 0.0])
    """
    common = product_limit(delays, limits)
    present, own = np.unique(groups, return_inverse=True)
    steps = max(_CELLS // (len(present) + 1), _FEWEST_STEPS)
    grid, tau = common.delays, common.cdf
    if len(grid) > steps:
        kept = np.unique(np.searchsorted(tau, tau[-1] * np.arange(1, steps + 1) / steps))
        kept = np.minimum(kept, len(grid) - 1)
        grid, tau = grid[kept], tau[kept]
    at, ends = np.searchsorted(grid, delays), np.searchsorted(grid, limits, side="right")
    # What the common law leaves out (`product_limit`) is left out here too; its weight is not identified.
    known = (delays >= common.delays[0]) & (at < ends)
    at, ends, own = at[known], ends[known], own[known]
    count = np.bincount(own, minlength=len(present)).astype(np.float64)
    drawn = _drawn(at, ends, own, count, tau)
    order = np.argsort(own, kind="stable")
    bounds = np.searchsorted(own[order], np.arange(len(present) + 1))
    rows, row, weight = [tau], np.zeros(n_groups, np.int64), np.zeros(n_groups)
    for g, share in enumerate(drawn.tolist()):
        if share >= 1.0 or not count[g]:
            continue
        mine = order[bounds[g] : bounds[g + 1]]
        kappa = max(count[g] * share / (1.0 - share), _LEAST_PRIOR)
        rows.append(_posterior(at[mine], ends[mine], tau, kappa))
        row[present[g]], weight[present[g]] = len(rows) - 1, count[g] / (count[g] + kappa)
    table = np.column_stack((np.zeros(len(rows)), np.stack(rows)))
    return GroupCDFs(common, grid, table, row, weight)


def _drawn(at: Ints, ends: Ints, own: Ints, count: Floats, tau: Floats) -> Floats:
    """Return the weight of the common law in each group's, kappa / (n + kappa), shape (R,).

    With H_g(u), H(u) the shares of a group's and of all places at most u, and p = H(u), the mean over u of
    n_g (H_g - H)² / (p (1 - p)) is (1 - rho)(1 - n_g/n) + rho n_g (...) in expectation, rho the correlation of two
    conversions of a group: its sum over the groups is (K - 1)(1 - rho) + rho (n - sum n_g²/n).
    """
    k, n = len(count), count.sum()
    if (count > 0).sum() < 2:
        return np.ones(k)
    padded = np.concatenate(([0.0], tau))
    place = 0.5 * (padded[at] + padded[at + 1]) / padded[ends]
    cells = np.bincount(own * _LEVELS + np.minimum((place * _LEVELS).astype(np.int64), _LEVELS - 1),
                        minlength=k * _LEVELS).reshape(k, _LEVELS)  # fmt: skip
    mean = np.cumsum(cells.sum(axis=0))[:-1] / n
    split = (mean > 0) & (mean < 1)
    if not split.any():
        return np.ones(k)
    gap = (np.cumsum(cells, axis=1)[:, :-1] / np.maximum(count, 1.0)[:, None] - mean)[:, split]
    excess = count * (gap**2 / (mean * (1.0 - mean))[split]).mean(axis=1)
    alike = float((count > 0).sum() - 1)
    rho = (float(excess.sum()) - alike) / max(n - float((count**2).sum()) / n - alike, 1.0)
    rho = min(max(rho, 0.0), 1.0)
    drawn = (1.0 - rho) / (1.0 - rho + rho * np.maximum(count, 1.0))
    # Squared standard errors between the group and the others.
    apart = excess / np.maximum(1.0 - count / n, 1e-9)
    return np.asarray(np.minimum(drawn, 1.0 / np.sqrt(np.maximum(apart, 1.0))))


def _posterior(at: Ints, ends: Ints, tau: Floats, kappa: float) -> Floats:
    """Return the CDF at the grid of one group's conversions and `kappa` of the common law, shape (J,)."""
    seen = np.bincount(at, minlength=len(tau)).astype(np.float64)
    at_risk = np.cumsum(seen) - np.cumsum(np.bincount(ends, minlength=len(tau) + 1))[:-1]
    before = np.concatenate(([0.0], tau[:-1]))
    survival = (kappa * before + at_risk - seen) / (kappa * tau + at_risk)
    return np.append(np.cumprod(survival[:0:-1])[::-1], 1.0)
