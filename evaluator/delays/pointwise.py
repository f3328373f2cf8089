"""Pointwise intervals of a product limit that hold at its ends too: the beta product confidence procedure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluator.delays.usable import Floats, Ints

# From here on both parameters are so large that Paulson's approximation is off by less than .0002 standard deviations.
_LARGE = 100.0


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

    Parameters
    ----------
    counts, at_risk
        Number of conversions n(d) and number at risk r(d) at each distinct delay, in increasing order of delays, shape
        (J,) (`evaluator.delays.product_limit.RiskTable`).
    entering
        Number of limits that lie between each delay and the next, shape (J,)
        (`evaluator.delays.product_limit.entering`).
    confidence
        Confidence level of both sides together, in (0, 1).

    Examples
    --------
    Of ten delays none was longer than 3, and nine were shorter:

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
