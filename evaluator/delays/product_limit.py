"""Nonparametric maximum likelihood of the delay CDF when long delays are cut off by the end of the log."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.usable import Floats, Ints, Ticks, checked_delays, seen_within


def product_limit(delays: ArrayLike, limits: ArrayLike | None = None, *, longest: int | None = None) -> DelayCDF:
    """Return the maximum-likelihood CDF of delays seen only when they are no longer than their limit.

    A log holds a conversion only if it came before the log stopped looking: delay D is seen iff D <= L, where
    L is the time left after its display (or the attribution window). The delays seen are too short, and their
    empirical CDF is too high. Each seen delay has likelihood f(D) / F(L), maximised by the product limit in
    reverse time (Lynden-Bell 1971; Woodroofe 1985)

        F(a) = prod over seen delays d > a of (1 - n(d) / r(d)),
        n(d) = #{i: D_i = d},   r(d) = #{i: D_i <= d <= L_i}.

    Consistent when D is independent of L (delays do not drift along the log). Only F(a) / F(m) is identified,
    m being the longest limit: the result is the CDF *given* a delay of at most m, and says nothing about
    longer delays. Nor can it tell how many displays never convert. O(n log n).

    Where r(d) = n(d) at a delay that is not the smallest, no display that converted earlier had been watched
    up to d. The data then fall into blocks (below d, from d on) whose relative weights are not identified,
    and the formula would give all weight to the top block, be it a single conversion. The block with most
    conversions is kept instead, and the result is the CDF given a delay in its range; `source` says how many
    conversions were left out.

    The top of the range rests on the few displays that were watched longest, and its error is carried down to
    every smaller delay: with a heavy tail, `longest` buys precision at the price of a shorter range.

    Parameters
    ----------
    delays
        Delays of the conversions seen, in rounds, shape (n,), int64.
    limits
        Longest delay that could have been seen of each conversion, in rounds, shape (n,), int64; at least the delay.
        None: nothing was cut off, and the result is the empirical CDF.
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
    Lynden-Bell (1971), MNRAS 155; Woodroofe (1985), Annals of Statistics 13(1); Lagakos, Barraj, De Gruttola
    (1988), Biometrika 75(3).

    Examples
    --------
    Three displays were watched for 1 round, two for 9. Of those watched for 9 one converted within 1 round,
    so that F(1) = 1/2, and three of the four that converted within 1 round did so at once.

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


# Delays this many times as far apart as the nearest ones have a tick between them. No two whole numbers have this
# ratio, so that rounding decides nothing where delays are whole numbers of some unit.
_NEAR = math.sqrt(2.0)


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
