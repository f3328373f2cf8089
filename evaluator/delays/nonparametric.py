"""The delay CDF without a family, with bands, beside the naive one that forgets what the log could not see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.product_limit import Floats, Ints, Ticks, checked_delays, entering, risk_table, seen_within, tally
from evaluator.errors import ParameterError
from evaluator.results.json_documents import (
    Count,
    Level,
    NotNegative,
    NotNegativeOrNull,
    Positive,
    in_document,
    omitted,
)

# Simultaneous bands leave out both ends, where the asymptotic law of their width is not reached.
_BAND_EDGE = 0.05
# A sum of fewer independent terms is not normal: where few displays were watched long enough, bands would be too narrow
# (measured: 92 % coverage instead of 95 % with 350 conversions).
_BAND_TERMS = 20
# From here on both parameters are so large that Paulson's approximation is off by less than .0002 standard deviations.
_LARGE = 100.0


@dataclass(frozen=True, eq=False)
class NonparametricFit:
    """Maximum-likelihood CDF of delays under right truncation, with bands (`fit_nonparametric`).

    Delays and limits in ticks; arrays of shape (J,), one entry a distinct delay, increasing.

    Parameters
    ----------
    delays
        Distinct delays that were seen, in ticks, increasing, shape (J,).
    cdf
        P(D <= delay) at each of `delays`, shape (J,), given a delay in [`shortest`, `longest`].
    naive
        Share of the conversions seen with D <= delay, shape (J,): too high where the log cut delays off.
    low, high
        Pointwise band, shape (J,): each delay's interval covers with probability `confidence`, at the ends of the range
        too.
    unseen
        Upper end of the pointwise band before the first delay.
    band_low, band_high
        Simultaneous band, shape (J,): the whole CDF lies within with probability `confidence`. Calibrated from
        `band_from` to `band_to`, and carried on from there by monotonicity.
    band_from, band_to
        Range of delays, in ticks, on which the width of the simultaneous band is calibrated.
    confidence
        Confidence level of both bands.
    conversions
        Number of conversions that the fit used.
    left_out
        Number of conversions that it could not use, because the log does not identify their weight (`product_limit`).
    shortest, longest
        Range of delays, in ticks, that the CDF is conditional on; beyond `longest` nothing is known. inf where nothing
        was cut off: then the last delay seen is no bound of the delays.
    source
        Sentence for reports that says where the CDF comes from.
    """

    delays: Annotated[Ticks, *omitted]
    cdf: Annotated[Floats, *omitted]
    naive: Annotated[Floats, *omitted]
    low: Annotated[Floats, *omitted]
    high: Annotated[Floats, *omitted]
    unseen: Annotated[float, *omitted]
    band_low: Annotated[Floats, *omitted]
    band_high: Annotated[Floats, *omitted]
    band_from: NotNegativeOrNull
    band_to: NotNegativeOrNull
    confidence: Level
    conversions: Positive
    left_out: Count
    shortest: NotNegative
    longest: NotNegativeOrNull
    source: str

    def __call__(self, ages: ArrayLike) -> Floats:
        """Return P(D <= age), same shape as `ages` (ticks); 0 before the first delay."""
        return self._lookup(self.cdf, 0.0, ages)

    def interval(self, ages: ArrayLike) -> tuple[Floats, Floats]:
        """Return the pointwise band at `ages` (ticks)."""
        return self._lookup(self.low, 0.0, ages), self._lookup(self.high, self.unseen, ages)

    def quantiles(self, levels: ArrayLike) -> Floats:
        """Return the smallest delay whose CDF reaches each level in (0, 1], in ticks."""
        return self._reach(self.cdf, levels)

    def quantile_intervals(self, levels: ArrayLike) -> tuple[Floats, Floats]:
        """Return the delays at which the pointwise band crosses each level (Brookmeyer, Crowley 1982), in ticks.

        The upper end is inf where the lower end of the band reaches the level at no delay: the quantile is at least the
        lower end.
        """
        level = np.asarray(levels, np.float64)
        low = np.where(level <= self.unseen, float(self.shortest), self._reach(self.high, level))
        return low, np.where(level <= self.low[-1], self._reach(self.low, level), np.inf)

    def delay_cdf(self) -> DelayCDF:
        """Return the CDF as replays take it; raises DataError where the delays are fractions of ticks."""
        weighty = self.cdf > 0
        return DelayCDF(delays=self.delays[weighty], cdf=self.cdf[weighty], source=self.source)

    def _lookup(self, values: Floats, before: float, ages: ArrayLike) -> Floats:
        return np.concatenate(([before], values))[np.searchsorted(self.delays, np.asarray(ages), side="right")]

    def _reach(self, values: Floats, levels: ArrayLike) -> Floats:
        at = np.searchsorted(values, np.asarray(levels, np.float64))
        return self.delays[np.minimum(at, self.delays.size - 1)].astype(np.float64)


def fit_nonparametric(
    delays: ArrayLike,
    limits: ArrayLike | None = None,
    *,
    longest: float | None = None,
    confidence: float = 0.95,
) -> NonparametricFit:
    """Return the product limit under right truncation (`product_limit`) with pointwise and simultaneous bands.

    Pointwise: the beta product confidence procedure, which holds at both ends and with few conversions;
    without truncation it is Clopper and Pearson's.

    Simultaneous: with n(d), r(d) as there, the variance of log F(a) is estimated by Greenwood's sum in reverse time,
    s²(a) = sum over d > a of n(d) / (r(d) (r(d) - n(d))) (Lagakos, Barraj, De Gruttola 1988; without truncation,
    the binomial (1 - F) / (n F)). Bands are F^exp(±c s / |log F|), normal for log(-log F), and so stay in [0, 1], with
    c of equal precision (Nair 1984) with that transformation (Borgan, Liestøl 1990): (log F^ - log F)(a) tends to a
    Brownian motion at time s²(a), and c is the quantile of the supremum of |W(t)| / sqrt(t) over the times at which F^
    lies in [.05, .95] and s² is made of at least 20 terms (square of their sum over the sum of their squares), from the
    tail approximation of Miller and Siegmund
    (1982). O(n log n); O(n + range) for whole ticks in a range of a few n.

    Parameters
    ----------
    delays
        Delays of the conversions seen, in ticks, shape (n,), whole or not.
    limits
        Longest delay that could have been seen of each conversion, in ticks, shape (n,) or (): attribution window, or
        time left after the display. None: nothing was cut off.
    longest
        Longest delay, in ticks, that the CDF is conditional on; None takes the longest limit.
    confidence
        Confidence level of the bands, in (0, 1).

    Raises
    ------
    DataError
        There are no conversions, or a delay is below 0 or above its limit (first row named).
    ParameterError
        No delay is as short as `longest`, or the confidence is no level.

    Examples
    --------
    >>> fit = fit_nonparametric([0, 0, 1, 0, 5], [1, 1, 1, 9, 9])
    >>> fit.cdf, fit.naive, fit.longest
    (array([0.375, 0.5  , 1.   ]), array([0.6, 0.8, 1. ]), 9)
    >>> fit.low.round(2), fit.high.round(2)
    (array([0.05, 0.08, 0.16]), array([0.92, 0.99, 1.  ]))
    """
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence is {confidence}.", remedy="a level in (0, 1), such as 0.95.")
    delay, limit = checked_delays(delays, limits, whole=False)
    if longest is not None:
        delay, limit = seen_within(delay, limit, longest)
    endless = limit is None and longest is None
    if limit is None:
        limit = np.full(delay.shape, delay.max() if longest is None else longest)
    table = risk_table(delay, limit)
    top = math.inf if endless else table.top
    used = int(table.counts.sum())
    cdf = table.cdf()
    n, r = table.counts[1:], table.at_risk[1:]
    log_variance = np.append(np.cumsum((n / (r * (r - n).astype(np.float64)))[::-1])[::-1], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_cdf = np.log(cdf)
        # Standard error of log(-log F).
        spread = np.sqrt(log_variance)
        spread /= -log_cdf
    low, high, unseen = beta_product(table.counts, table.at_risk, entering(delay, limit, table), confidence)
    band_low, band_high, first, last = _simultaneous(cdf, log_cdf, spread, log_variance, confidence)
    if table.support[-1] >= top:
        # F is 1 at `longest` by definition.
        low[-1] = band_low[-1] = 1.0
    return NonparametricFit(
        delays=table.support,
        cdf=cdf,
        naive=_naive(delay, table.support, table.counts, used),
        low=low,
        high=high,
        # Below `shortest` there is nothing, by definition.
        unseen=0.0 if table.floor else unseen,
        band_low=band_low,
        band_high=band_high,
        band_from=table.support[first].item(),
        band_to=table.support[last].item(),
        confidence=confidence,
        conversions=used,
        left_out=delay.size - used,
        shortest=table.floor,
        longest=top,
        source=_source(used, delay.size - used, table.floor, top, truncated=bool(limit.min() < delay.max())),
    )


@dataclass(frozen=True)
class Quantile:
    """A quantile of the delays seen, `naive`, and `corrected` for what the log cut off, with its interval, in ticks.

    `high` is inf where the conversions are too few, or the displays that were followed long enough, to bound the
    quantile from above (`bounded` says so): it is at least `low`.
    """

    level: Level
    naive: NotNegative
    corrected: NotNegative
    low: NotNegative
    high: NotNegativeOrNull

    @in_document
    @property
    def bounded(self) -> bool:
        """Whether the interval has an upper end."""
        return math.isfinite(self.high)


def quantiles_of(fit: NonparametricFit, levels: Sequence[float]) -> tuple[Quantile, ...]:
    """Return the quantiles of a fit at some levels in (0, 1)."""
    at = np.minimum(np.searchsorted(fit.naive, levels), fit.delays.size - 1)
    found = zip(levels, fit.delays[at], fit.quantiles(levels), *fit.quantile_intervals(levels), strict=True)
    return tuple(Quantile(*map(float, row)) for row in found)


def _source(used: int, left_out: int, floor: float, top: float, *, truncated: bool) -> str:
    span = f"from {floor:,} to {top:,}" if floor else f"at most {top:,}"
    given = "" if math.isinf(top) else f", given {span} ticks"
    how = "product limit under right truncation (Lynden-Bell)" if truncated else "empirical CDF"
    text = f"{how} of {used:,} delays{given}"
    return f"{text}; {left_out:,} other delays left out, whose weight the log does not identify" if left_out else text


def _naive(delays: Ticks, support: Ticks, counts: Ticks, used: int) -> Floats:
    if used == delays.size:
        return np.cumsum(counts) / used
    every, every_count = tally(delays)
    return np.cumsum(every_count)[np.searchsorted(every, support)] / delays.size


def _band(cdf: Floats, log_cdf: Floats, spread: Floats, width: float) -> tuple[Floats, Floats]:
    """Return F^exp(±width s / |log F|), and 0 or 1 where F has underflowed or is 1."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor = width * spread
        np.exp(factor, out=factor)
        low = log_cdf * factor
        high = np.divide(log_cdf, factor, out=factor)
        np.exp(low, out=low)
        np.exp(high, out=high)
    ones = cdf == 1
    low[ones], high[ones] = 0.0, 1.0
    # Where no mass is left in floating point, the band of the smallest delay that has some still holds.
    empty = int((cdf == 0).sum())
    if empty:
        low[:empty], high[:empty] = 0.0, high[empty]
    # Steps of the band against the slope of the CDF are noise: a CDF within the band is within its monotone hull.
    np.maximum.accumulate(low, out=low)
    np.minimum.accumulate(high[::-1], out=high[::-1])
    return low, high


def _simultaneous(
    cdf: Floats, log_cdf: Floats, spread: Floats, log_variance: Floats, confidence: float
) -> tuple[Floats, Floats, int, int]:
    """Return the equal-precision band and the first and last index of its range."""
    terms = np.append(-np.diff(log_variance), 0.0)
    squares = np.cumsum(terms[::-1] ** 2)[::-1]
    enough = log_variance**2 >= _BAND_TERMS * squares
    inside = np.flatnonzero((cdf >= _BAND_EDGE) & (cdf <= 1.0 - _BAND_EDGE) & enough & (log_variance > 0))
    if not inside.size:
        # All mass but a few hundredths on one delay: nothing is known but that F is in [0, 1].
        return np.zeros_like(cdf), np.ones_like(cdf), cdf.size - 1, cdf.size - 1
    first, last = int(inside[0]), int(inside[-1])
    width = _supremum_quantile(log_variance[first] / log_variance[last], confidence)
    low, high = _band(cdf, log_cdf, spread, width)
    low[:first], high[:first] = 0.0, high[first]
    low[last + 1 :], high[last + 1 :] = low[last], 1.0
    return low, high, first, last


def _supremum_quantile(ratio: float, confidence: float) -> float:
    """Return c with P(sup of |W(t)| / sqrt(t) > c) = 1 - confidence over times t whose extremes have this ratio.

    P = phi(c) ((c - 1/c) log(ratio) + 4/c); at a single time, the normal quantile.
    """
    pointwise = two_sided_quantile(confidence)
    spread = math.log(ratio)
    if spread < 1e-9:
        return pointwise
    low, high = max(pointwise, 1.0), 40.0
    while high - low > 1e-12:
        c = 0.5 * (low + high)
        tail = math.exp(-0.5 * c * c) / math.sqrt(2.0 * math.pi) * ((c - 1.0 / c) * spread + 4.0 / c)
        low, high = (c, high) if tail > 1.0 - confidence else (low, c)
    return low


def two_sided_quantile(confidence: float) -> float:
    """Return z with P(|N(0, 1)| <= z) = confidence."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * confidence))


class Pointwise(NamedTuple):
    """`low`, `high` of shape (J,), one entry a distinct delay; `unseen`, the upper end before the first of them."""

    low: Floats
    high: Floats
    unseen: float


def beta_product(counts: Ints, at_risk: Ints, entering: Ints, confidence: float) -> Pointwise:
    """Return intervals for F(a) = prod over d > a of (1 - n(d) / r(d)), each of which covers with `confidence`.

    In reverse time every event is the first of those at risk, so that the share of the law that it leaves behind is
    Beta(r - n + 1, n). Upper ends are quantiles of the product of these over all d > a; lower ends of that product
    times Beta(r(a), 1), as if the next event were about to come. The product is taken for the beta law of its first two
    moments. Without truncation these are the intervals of Clopper and Pearson (1934), from 0 and from n cases out of n
    too (Fay, Brittain, Proschan 2013, "Pointwise confidence intervals for a survival distribution with small samples or
    heavy censoring", Biostatistics 14(4), here in reverse time).

    Their procedure knows no late entry. Displays that come under risk between two events were not there for all of the
    time between, and with r(d) the lower ends would be too high (measured at the 90 % quantile of 100 delays: above the
    truth on 5.8 % of logs instead of 2.5 %); for lower ends half of them count. O(J).

    `counts` n(d), `at_risk` r(d) (`evaluator.delays.product_limit.RiskTable`) and `entering` have shape (J,), in
    increasing order of delays. Of ten delays none was longer than 3, and nine were shorter:

    >>> low, high, unseen = beta_product(np.array([9, 1]), np.array([9, 10]), np.zeros(2, int), 0.95)
    >>> low.round(3), high.round(3), round(unseen, 3)
    (array([0.555, 0.692]), array([0.997, 1.   ]), 0.308)
    """
    n, r = counts.astype(np.float64), at_risk.astype(np.float64)
    tail = 0.5 * (1.0 - confidence)
    high = np.append(_quantile(*_product(n, r), 1.0 - tail), 1.0)
    fewer = np.maximum(r - 0.5 * entering, n)
    mean, spread = (np.append(of[1:], 0.0) for of in _product(n, fewer))
    low = _quantile(mean - np.log1p(1.0 / fewer), spread + np.log1p(1.0 / (fewer * (fewer + 2.0))), tail)
    # A law within the intervals rises, so that it is within their monotone hull.
    high = np.minimum.accumulate(high[::-1])[::-1]
    return Pointwise(np.maximum.accumulate(low), high[1:], float(high[0]))


def _product(n: Floats, r: Floats) -> tuple[Floats, Floats]:
    """Return log E[P] and log(E[P^2] / E[P]^2) of the product P over the delays from each on, shape (J,) each."""
    mean, spread = np.log1p(-n / (r + 1.0)), np.log1p(n / ((r - n + 1.0) * (r + 2.0)))
    return np.cumsum(mean[::-1])[::-1], np.cumsum(spread[::-1])[::-1]


def _quantile(log_mean: Floats, log_spread: Floats, level: float) -> Floats:
    """Return a quantile of beta laws with these means and second moments, mean^2 exp(log_spread); shape (n,)."""
    from scipy.special import betaincinv

    mean = np.exp(log_mean)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        size = -np.expm1(log_mean) / (mean * np.expm1(log_spread)) - 1.0
        a, b = mean * size, -np.expm1(log_mean) * size
        out = _paulson(a, b, level)
    # Where the mean has underflowed, so have all quantiles.
    out[~(mean > 0)] = 0.0
    few = (mean > 0) & (np.minimum(a, b) < _LARGE)
    out[few] = betaincinv(a[few], b[few], level)
    return out


def _paulson(a: Floats, b: Floats, level: float) -> Floats:
    """Return a quantile of Beta(a, b) for large a, b: the cube root of an F ratio is nearly one of normals (1942)."""
    from scipy.special import ndtri

    z = float(ndtri(level))
    va, vb = 1.0 / (9.0 * a), 1.0 / (9.0 * b)
    square, product, constant = (1.0 - vb) ** 2 - z * z * vb, (1.0 - va) * (1.0 - vb), (1.0 - va) ** 2 - z * z * va
    root = (product + np.sign(z) * np.sqrt(product**2 - square * constant)) / square
    odds = a / b * root**3
    return np.asarray(odds / (1.0 + odds))
