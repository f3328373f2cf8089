"""Nonparametric maximum likelihood of the delay CDF when long delays are cut off by the end of the log."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluator.delays.cdf import DelayCDF
from evaluator.errors import DataError, ParameterError

Ints = NDArray[np.int64]


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
        Shape (n,) int64, delays of the conversions seen, in rounds.
    limits
        Shape (n,) int64, the longest delay that could have been seen for each, in rounds; at least the delay.
        None: nothing was cut off, and the result is the empirical CDF.
    longest
        Estimate the CDF given a delay of at most this many rounds; None takes the longest limit.

    Raises
    ------
    DataError
        No conversions; a delay below 0 or above its limit (first index named); arrays of different shapes.
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
    delays, limits = _checked(delays, limits)
    if longest is not None:
        # F(a)/F(longest) is the law of the delays seen within `longest`, truncated there too.
        short = delays <= longest
        if not short.any():
            raise ParameterError(
                f"The shortest of {delays.size} delays is {delays.min()}, above longest={longest}.",
                hint="raise `longest`.",
            )
        delays = delays[short]
        limits = None if limits is None else np.minimum(limits[short], longest)
    if limits is None or limits.min() >= delays.max():
        support, counts = np.unique(delays, return_counts=True)
        end = longest if limits is None else int(limits.max())
        given = "" if end is None else f", given at most {end} rounds"
        return DelayCDF(
            delays=support,
            cdf=np.cumsum(counts) / delays.size,
            source=f"empirical CDF of {delays.size:,} delays, none cut off{given}",
        )

    support, counts, at_risk, floor, top = _largest_block(delays, limits)
    survival = 1.0 - counts[1:] / at_risk[1:]
    cdf = np.append(np.cumprod(survival[::-1])[::-1], 1.0)
    # A product of thousands of small factors can underflow: such delays have no weight in floating point.
    weighty = cdf > 0
    used = int(counts.sum())
    span = f"from {floor} to {top}" if floor else f"at most {top}"
    source = f"product limit under right truncation (Lynden-Bell) of {used:,} delays, given {span} rounds"
    if used < delays.size:
        source += f"; {delays.size - used:,} other delays left out, whose weight the log does not identify"
    return DelayCDF(delays=support[weighty], cdf=cdf[weighty], source=source)


def _largest_block(delays: Ints, limits: Ints) -> tuple[Ints, Ints, Ints, int, int]:
    """Return support, n(d), r(d) of the block with most delays, and the range it is conditional on."""
    support, counts = np.unique(delays, return_counts=True)
    # D <= d <= L fails for D <= d only by L < d, which implies D < d: hence the difference of two ranks.
    at_risk = np.cumsum(counts) - np.searchsorted(np.sort(limits), support, side="left")
    starts = np.flatnonzero(at_risk == counts)
    sizes = np.add.reduceat(counts, starts)
    biggest = int(sizes.argmax())
    first = int(starts[biggest])
    end = int(starts[biggest + 1]) if biggest + 1 < starts.size else support.size
    inside = (delays >= support[first]) & (delays <= support[end - 1])
    # Below the first block there is nothing to be conditional on.
    floor = int(support[first]) if biggest else 0
    return support[first:end], counts[first:end], at_risk[first:end], floor, int(limits[inside].max())


def _checked(delays: ArrayLike, limits: ArrayLike | None) -> tuple[Ints, Ints | None]:
    """Return whole delays and limits after checking them against each other."""
    delay = _whole(delays, "Delay")
    if not delay.size:
        raise DataError("There are no delays to fit.", hint="the log needs conversions that were seen.")
    if delay.min() < 0:
        first = int((delay < 0).argmax())
        raise DataError(
            f"Delay {first} is {delay[first]}, below 0 ({(delay < 0).sum()} such in all).",
            hint="a conversion cannot precede its display: check which clicks and conversions were joined.",
        )
    if limits is None:
        return delay, None
    limit = _whole(limits, "Limit")
    if limit.shape != delay.shape:
        raise DataError(f"There are {delay.size} delays but {limit.size} limits.", hint="pass one limit a delay.")
    late = delay > limit
    if late.any():
        first = int(late.argmax())
        raise DataError(
            f"Delay {first} is {delay[first]}, above its limit {limit[first]} ({late.sum()} such in all).",
            hint="a limit is the longest delay that could have been seen: the log's end minus the display.",
        )
    return delay, limit


def _whole(values: ArrayLike, name: str) -> Ints:
    """Return values as int64, refusing fractions instead of cutting them off."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise DataError(f"{name}s have shape {given.shape}.", hint="pass shape (n,).")
    with np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)
    if not np.array_equal(whole, given):
        first = int((whole != given).argmax())
        raise DataError(f"{name} {first} is {given[first]}.", hint="count delays in whole rounds.")
    return whole
