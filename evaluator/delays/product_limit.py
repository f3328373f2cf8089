"""Nonparametric maximum likelihood of the delay CDF under right truncation: of all delays, and of groups.

Delay CDFs of groups (actions, devices, ...), each drawn to that of all as far as its conversions are few.

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

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, NDArray

from evaluator.delays.cdf import DelayCDF
from evaluator.errors import DataError, ParameterError

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
# int64, or float64 where fractions of ticks are welcome.
Ticks: TypeAlias = NDArray[Any]
# Delays this many times as far apart as the nearest ones have a tick between them. No two whole numbers have this
# ratio, so that rounding decides nothing where delays are whole numbers of some unit.
_NEAR = math.sqrt(2.0)
# Levels at which groups are compared; steps of all groups' CDFs together, and the fewest of one of them.
_LEVELS = 64
_CELLS, _FEWEST_STEPS = 4_000_000, 256
# No CDF rests on its own conversions alone: where few were watched for long, their product limit may be anything.
_LEAST_PRIOR = 1.0


def product_limit(delays: ArrayLike, limits: ArrayLike | None = None, *, longest: int | None = None) -> DelayCDF:
    """Return the maximum-likelihood CDF of delays seen only when they are no longer than their limit.

    A log holds a conversion only if it came before the log stopped looking: delay D is seen iff D <= L, where L is the
    time left after its display (or the attribution window). The delays seen are too short, and their empirical CDF is
    too high. Each seen delay has likelihood f(D) / F(L), maximised by the product limit in reverse time (Lynden-Bell
    1971; Woodroofe 1985)

        F(a) = prod over seen delays d > a of (1 - n(d) / r(d)),
        n(d) = #{i: D_i = d},   r(d) = #{i: D_i <= d <= L_i}.

    Consistent when D is independent of L (delays do not drift along the log). Only F(a) / F(m) is identified, m being
    the longest limit: the result is the CDF *given* a delay of at most m, and says nothing about longer delays. Nor can
    it tell how many displays never convert. O(n log n).

    Where r(d) = n(d) at a delay that is not the smallest, no display that converted earlier had been watched up to d.
    The data then fall into blocks (below d, from d on) whose relative weights are not identified, and the formula would
    give all weight to the top block, be it a single conversion. The block with most conversions is kept instead, and
    the result is the CDF given a delay in its range; `source` says how many conversions were left out.

    The top of the range rests on the few displays that were watched longest, and its error is carried down to every
    smaller delay: with a heavy tail, `longest` buys precision at the price of a shorter range.

    Parameters
    ----------
    delays, limits
        Delays of the conversions seen and the longest that could have been seen of each, at least the delay, in rounds,
        shape (n,), int64. Without limits nothing was cut off, and the result is the empirical CDF.
    longest
        Longest delay, in rounds, that the CDF is conditional on; None takes the longest limit.

    Raises
    ------
    DataError
        There are no conversions, a delay is below 0 or above its limit (first index named), or shapes differ.
    ParameterError
        No delay is as short as `longest`.

    References
    ----------
    Lynden-Bell (1971), MNRAS 155; Woodroofe (1985), Annals of Statistics 13(1); Lagakos, Barraj, De Gruttola (1988),
    Biometrika 75(3).

    Examples
    --------
    Three displays were watched for 1 round, two for 9. Of those watched for 9 one converted within 1 round, so that
    F(1) = 1/2, and three of the four that converted within 1 round did so at once.

    >>> import numpy as np
    >>> product_limit([0, 0, 1, 0, 5], [1, 1, 1, 9, 9]).cdf
    array([0.375, 0.5  , 1.   ])
    """
    delays, limits = checked_delays(delays, limits)
    if longest is not None:
        delays, limits = seen_within(delays, limits, longest)
    if limits is None or limits.min() >= delays.max():
        support, counts = tally(delays)
        end = longest if limits is None else int(limits.max())
        given = "" if end is None else f", given at most {end:,} rounds"
        return DelayCDF(
            delays=support,
            cdf=np.cumsum(counts) / delays.size,
            source=f"empirical CDF of {delays.size:,} delays, none cut off{given}",
        )

    table = risk_table(delays, limits)
    support, floor, top, cdf = table.support, table.floor, table.top, table.cdf()
    # A product of thousands of small factors can underflow: such delays have no weight in floating point.
    weighty = cdf > 0
    used = int(table.counts.sum())
    span = f"from {floor:,} to {top:,}" if floor else f"at most {top:,}"
    source = f"product limit under right truncation (Lynden-Bell) of {used:,} delays, given {span} rounds"
    if used < delays.size:
        source += f"; {delays.size - used:,} other delays left out, whose weight the log does not identify"
    return DelayCDF(delays=support[weighty], cdf=cdf[weighty], source=source)


class RiskTable(NamedTuple):
    """Counts of the product limit in reverse time, on the block of delays whose weights are identified.

    `support` (J,) ticks, distinct delays, increasing; `counts` (J,) n(d); `at_risk` (J,) r(d), above n(d) but at the
    smallest delay; the CDF is conditional on a delay in [`floor`, `top`].
    """

    support: Ticks
    counts: Ints
    at_risk: Ints
    floor: float
    top: float

    def cdf(self) -> Floats:
        """Return F at the support, F(a) = prod over d > a of (1 - n(d) / r(d)); shape (J,)."""
        if self.at_risk[-1] == self.counts.sum():  # no limit below the longest delay: the empirical CDF, to the bit
            ecdf: Floats = np.cumsum(self.counts) / self.at_risk[-1]
            return ecdf
        survival = 1.0 - self.counts[1:] / self.at_risk[1:]
        return np.append(np.cumprod(survival[::-1])[::-1], 1.0)


def risk_table(delays: Ticks, limits: Ticks) -> RiskTable:
    """Return n(d) and r(d) of the block with most delays. About a sort; whole ticks in short ranges are counted."""
    support, counts = tally(delays)
    # D <= d <= L fails for D <= d only by L < d, which implies D < d: hence the difference of two ranks.
    at_risk = np.cumsum(counts) - _below(limits, support)
    starts = np.flatnonzero(at_risk == counts)
    sizes = np.add.reduceat(counts, starts)
    biggest = int(sizes.argmax())
    first = int(starts[biggest])
    end = int(starts[biggest + 1]) if biggest + 1 < starts.size else support.size
    top = limits.max() if starts.size == 1 else limits[(delays >= support[first]) & (delays <= support[end - 1])].max()
    # Below the first block there is nothing to be conditional on.
    floor = support[first].item() if biggest else 0
    return RiskTable(support[first:end], counts[first:end], at_risk[first:end], floor, top.item())


def entering(delays: Ticks, limits: Ticks, table: RiskTable) -> Ints:
    """Return how many limits lie between each delay of a risk table and the next, or the end of its range; shape (J,).

    In reverse time these displays come under risk after one event and before the next. Limits at a delay count too,
    unless the next one is so near (the smallest distance of all) that there is no tick between.
    """
    support, last = table.support, table.support[-1]
    ordered = np.sort(limits[limits <= last])
    gaps = np.diff(support)
    before, until = (np.searchsorted(ordered, support, side=side) for side in ("left", "right"))
    since = until[:-1] if gaps.size == 0 else np.where(gaps > _NEAR * gaps.min(), before[:-1], until[:-1])
    above = limits[(limits >= last) & (delays <= last)]
    return np.append(before[1:] - since, (above < table.top).sum())


def tally(values: Ticks) -> tuple[Ticks, Ints]:
    """Return distinct values >= 0, increasing, and how often each occurs."""
    if _countable(values):
        counts = np.bincount(values)
        support = np.flatnonzero(counts)
        return support, counts[support]
    ordered = np.sort(values)
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return ordered[starts], np.diff(starts, append=ordered.size)


def _below(limits: Ticks, support: Ticks) -> Ints:
    """Return how many limits lie below each delay."""
    reach = support[-1]
    if _countable(support, rows=limits.size):
        # A limit between ticks is below the same whole delays as the tick before it.
        counts = np.bincount(np.minimum(limits, reach).astype(np.int64), minlength=int(reach) + 1)
        return (np.cumsum(counts) - counts)[support]
    # Limits that no delay reaches never matter, and a constant limit leaves none to sort.
    return np.searchsorted(np.sort(limits[limits < reach]), support, side="left")


def _countable(values: Ticks, rows: int = 0) -> bool:
    """Say whether an array indexed by value is no larger than a few times the rows."""
    return values.dtype == np.int64 and values.max() < 4 * max(values.size, rows)


class Observed(NamedTuple):
    """Delays of conversions, shape (n,), and the longest that could have been seen of each; None for no cut-off."""

    delay: Ticks
    limit: Ticks | None

    def take(self, rows: NDArray[Any]) -> Observed:
        """Return some of them, by their numbers or by whether they are wanted."""
        return Observed(self.delay[rows], None if self.limit is None else self.limit[rows])

    @property
    def ends(self) -> Ticks:
        """The limits; where nothing was cut off, the longest delay instead."""
        return np.full(self.delay.shape, self.delay.max()) if self.limit is None else self.limit


def checked_delays(delays: ArrayLike, limits: ArrayLike | None = None, *, whole: bool = True) -> Observed:
    """Return delays, shape (n,), and limits, shape (n,) or (), after checking them against each other, in ticks.

    A limit is the longest delay that could have been seen of its conversion, and at least the delay; None is no
    cut-off. With `whole`, fractions of ticks are refused; otherwise both arrays come back as float64 when either holds
    one. Raises DataError where there are no delays, one is below 0, not finite, or above its limit (first row named),
    or shapes differ.
    """
    delay = _ticks(delays, "Delay", whole)
    if not delay.size:
        raise DataError("There are no delays to fit.", remedy="the log needs conversions that were seen.")
    early = delay < 0
    if early.any():
        first = int(early.argmax())
        raise DataError(
            f"Delay {first} is {delay[first]}, below 0 ({early.sum()} such in all).",
            remedy="a conversion cannot precede its display: check which clicks and conversions were joined.",
        )
    if limits is None:
        return Observed(delay, None)
    given = np.asarray(limits)
    limit = _ticks(np.full(delay.shape, given) if given.ndim == 0 else given, "Limit", whole)
    if limit.shape != delay.shape:
        raise DataError(f"There are {delay.size} delays but {limit.size} limits.", remedy="pass one limit a delay.")
    late = delay > limit
    if late.any():
        first = int(late.argmax())
        raise DataError(
            f"Delay {first} is {delay[first]}, above its limit {limit[first]} ({late.sum()} such in all).",
            remedy="a limit is the longest delay that could have been seen: the log's end minus the display.",
        )
    if delay.dtype != limit.dtype:
        delay, limit = delay.astype(np.float64), limit.astype(np.float64)
    return Observed(delay, limit)


def seen_within(delay: Ticks, limit: Ticks | None, longest: float) -> Observed:
    """Return the delays of at most `longest`, shape (m,), and their limits, cut there too.

    Their law is F(a) / F(longest): that of delays which nobody could have seen later than `longest`. Raises
    ParameterError where all delays are longer.
    """
    short = delay <= longest
    if not short.any():
        raise ParameterError(
            f"The shortest of {delay.size} delays is {delay.min()}, above longest={longest}.", remedy="raise `longest`."
        )
    return Observed(delay[short], None if limit is None else np.minimum(limit[short], longest))


def _ticks(values: ArrayLike, name: str, whole: bool) -> Ticks:
    """Return values as int64 or, where fractions are welcome and present, float64."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise DataError(f"{name}s have shape {given.shape}.", remedy="pass shape (n,).")
    if given.dtype == np.int64:
        return given
    with np.errstate(invalid="ignore"):
        ticks = given.astype(np.int64)
    if np.array_equal(ticks, given):
        return ticks
    bad = ticks != given if whole else ~np.isfinite(given)
    if not bad.any():
        return given.astype(np.float64)
    first = int(bad.argmax())
    hint = "count delays in whole rounds." if whole else "leave out conversions without a delay."
    raise DataError(f"{name} {first} is {given[first]}.", remedy=hint)


@dataclass(frozen=True, eq=False)
class GroupCDFs:
    """A delay CDF a group (`group_cdfs`), given a delay of at most `longest`.

    The CDFs rise at the delays of `grid`, in rounds, shape (J,), increasing; `table`, shape (R, J + 1), has them there
    and, first, below all of them (0); row 0 is the common one. `row`, shape (G,), is that of each group, 0 where it has
    no law of its own, and `weight`, shape (G,), that of its own conversions beside the common law, n / (n + kappa).
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
    """Return the delay CDF of each of `n_groups` groups, given a delay of at most the longest limit.

    Delays and limits are of the conversions seen, in rounds, shape (n,), n > 0, as for `product_limit`; `groups` are
    counted from 0. Groups without conversions have the common CDF. O(n log n + R J), where more than `_CELLS` steps in
    all are thinned to evenly spaced quantiles: a conversion then counts as one of the next kept delay, and not at all
    where its limit comes before that, which biases nothing.

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
