"""Standard errors of means of terms in clusters, such as a user's displays, and of means of few rewards.

With terms z_i, their mean z and clusters g = 1..G, the variance of the mean is estimated by

    G / (G - 1)  (1 / n²)  sum_g (sum_{i in g} (z_i - z))²,

whatever the dependence within a cluster, as long as clusters are independent (Liang, Zeger. Longitudinal data analysis
using generalized linear models. Biometrika 73(1), 1986; G / (G - 1) and Student's law with G - 1 degrees of freedom:
Cameron, Miller. A practitioner's guide to cluster-robust inference. Journal of Human Resources 50(2), 2015).

G is everywhere the number of clusters of equal size that the clusters are worth, `effective`: a log of which one user
has half the displays knows little, however many others there are.

*Few rewards.* Whether a weighted mean has an interval at all depends on how many rewards of equal weight are as skewed.
A normal interval of a mean of rare rewards rests on the rewards, not on the displays: 38 clicks on 10,000 impressions
are 38 events. Without any, every term is alike, and the interval would be [0, 0]. The sum of m rewards of equal weight
has skewness 1 / sqrt(m); so an m can be given to any terms z_i, whatever their weights, by their skewness:

    m = (sum z_i²)³ / (sum z_i³)².

It is m for m equal terms, and less where few carry much. Three such numbers are looked at, and the least of them
counts, `equal_rewards`:

- of what was seen: z_i = w_i |Y_i - median|, the rewards that are not the usual one (conversions where these are rare,
  failures where those are), each with its weight;
- of what could have been seen: z_i = w_i, times the share of such rewards: heavy weights that by luck met no reward;
- of the estimate itself: its terms less their mean (Cochran's rule is about this one).

Below `NEEDED` the interval is withheld. `python -m tests.bench.doubly_robust` measures how often intervals hold by
these numbers, and so prints why `NEEDED` is what it is.

References
----------
Cochran. Sampling Techniques, 3rd edition, 1977, Section 2.15: n > 25 skewness² for a normal interval.
Hall. Inverting an Edgeworth expansion. Annals of Statistics 11, 1983.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluator.errors import ParameterError
from evaluator.estimates.confidence import Interval

Floats = NDArray[np.float64]
# With fewer clusters no interval holds that rests on their spread, and none is given.
FEWEST_CLUSTERS = 10.0
# The t quantile and the standard error say little from fewer.
FEWEST = 20
# Rewards of equal weight from which on intervals held their level: `python -m tests.bench.doubly_robust`.
NEEDED = 25


def effective(code: NDArray[np.integer]) -> float:
    """Return how many clusters of equal size the clusters of some displays, shape (n,), are worth: (sum n)² / sum n².

    For equal sizes it is their number. For the degrees of freedom of unequal ones see Carter, Schnepel, Steigerwald.
    Asymptotic behavior of a t-test robust to cluster heterogeneity. Review of Economics and Statistics 99(4), 2017;
    this is the fewest that they allow, where the displays of a cluster are as one.

    >>> effective(np.array([0, 0, 1, 1])), effective(np.array([0, 0, 0, 1]))
    (2.0, 1.6)
    """
    sizes = np.bincount(code).astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum()) if len(code) else 0.0


def too_few(clusters: float | None) -> bool:
    """Whether these clusters are too few for an interval; None stands for independent displays."""
    return clusters is not None and clusters < FEWEST_CLUSTERS


def clusters_text(clusters: float) -> str:
    """Return a number of clusters as reports write it."""
    return f"{clusters:,.0f} clusters" if clusters >= FEWEST_CLUSTERS else f"{clusters:.1f} clusters"


def few_clusters(what: str, clusters: float | None, by: str) -> str:
    """Return the sentence that says why there is no interval."""
    worth = clusters_text(clusters or 0.0)
    return (
        f"No interval for {what}: its displays are worth {worth} of equal size (`cluster_by='{by}'`), and fewer than "
        f"{FEWEST_CLUSTERS:.0f} do not tell how much they vary."
    )


def cluster_sums(terms: Floats, code: NDArray[np.integer]) -> Floats:
    """Return the sum of the terms of each cluster that has any, shape (G,)."""
    sizes = np.bincount(code)
    return np.asarray(np.bincount(code, terms, len(sizes))[sizes > 0])


def clustered_error(terms: Floats, code: NDArray[np.integer]) -> float:
    """Return the standard error of the mean of some terms, shape (n,), by their clusters; nan below two clusters.

    O(n). Formula: see the module.

    Examples
    --------
    >>> z = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    >>> alone = clustered_error(z, np.arange(8))
    >>> bool(np.isclose(alone, z.std(ddof=1) / 8**0.5)), round(clustered_error(z, np.arange(8) // 2) / alone, 3)
    (True, 1.528)
    """
    worth = effective(code)
    if worth <= 1.0:
        return math.nan
    sums = cluster_sums(terms - terms.mean(), code)
    return math.sqrt(float((sums**2).sum()) * worth / (worth - 1.0)) / len(terms)


def spread_interval(
    estimate: float, resampled: ArrayLike, *, n: int, level: float, target: str, clusters: float | None = None
) -> Interval:
    """Return the interval around an estimate whose standard error is the spread of its resampled values.

        estimate +- f t s,    s² = sum_b (V_b - mean V)² / (B - 1),

    t the quantile of Student's law with B - 1 degrees of freedom: s itself is known from B values only; f at least 1,
    from `widened_by`. The centre is the estimate and not the mean of the resampled values, which is its expectation in
    another world, where displays come twice.

    Where G clusters were drawn whole, s² is a variance with the divisor G of a quantity with G - 1 degrees of freedom:
    it is taken G / (G - 1) times, and s² is known as well as from df draws, 1 / df = 1 / (B - 1) + 1 / (G - 1).

    Parameters
    ----------
    estimate
        Estimate that the interval is around, from the log itself.
    resampled
        Values V_b of the same statistic on B resampled logs, shape (B,); B at least 20.
    n
        Number of rounds behind the estimate.
    level
        Probability with which the interval should hold, such as 0.95.
    target
        Name, in reports, of what the interval is of.
    clusters
        Number G of clusters of equal size that resampled logs were drawn from
        (`evaluator.estimates.standard_errors.effective`); None where displays were drawn one by one. Fewer than its
        `FEWEST_CLUSTERS` give no interval: the ends are nan.

    Raises
    ------
    ParameterError
        There are fewer than 20 resampled values.

    References
    ----------
    Efron, Tibshirani. An Introduction to the Bootstrap, 1993: Sections 6.2 and 12.5. Resampled replays: Mary, Preux,
    Nicol. Improving offline evaluation of contextual bandit algorithms via bootstrapping techniques. ICML 2014.
    Clusters: Cameron, Gelbach, Miller. Bootstrap-based improvements for inference with clustered errors. Review of
    Economics and Statistics 90(3), 2008.

    Examples
    --------
    >>> interval = spread_interval(0.4, [0.38, 0.42] * 50, n=1000, level=0.95, target="expected value")
    >>> f"[{interval.low:.3f}, {interval.high:.3f}]"
    '[0.360, 0.440]'
    """
    from scipy.special import stdtrit

    values = np.asarray(resampled, np.float64)
    if len(values) < FEWEST:
        raise ParameterError(f"There are {len(values)} resampled values.", remedy=f"take at least {FEWEST}.")
    kind = f"{target}: bootstrap standard error of {len(values):,} resampled replays (Efron, Tibshirani 1993)"
    if not math.isfinite(estimate):
        return Interval(estimate, math.nan, math.nan, n, level, kind)
    df, grown = len(values) - 1.0, 1.0
    if clusters is not None:
        kind += f", {clusters_text(clusters)} drawn whole (Cameron, Gelbach, Miller 2008)"
        if too_few(clusters):
            return Interval(estimate, math.nan, math.nan, n, level, kind)
        df, grown = 1.0 / (1.0 / df + 1.0 / (clusters - 1.0)), clusters / (clusters - 1.0)
    wide = widened_by(values, level=level)
    kind += f", {wide:.2f} times as wide for their tails" if wide > 1.0 else ""
    half = wide * float(stdtrit(df, 0.5 + level / 2) * values.std(ddof=1) * math.sqrt(grown))
    return Interval(estimate, estimate - half, estimate + half, n, level, kind)


def error_of_spread(resampled: ArrayLike) -> float:
    """Return the Monte Carlo standard error of the spread s of resampled values, as a share of s.

        sqrt((k - 1) / 4 B),    k the kurtosis of the values, no less than a bell's 3,

    the delta method's (Cramer. Mathematical Methods of Statistics, 1946: Section 27.4). A bell's is 11 % after 40
    values, 7 % after 100 and 5 % after 200. With other B resampled logs both ends of `estimate +- t s` would move by
    about this share of the half-width. Those of `estimate +- f t s` move by more, for `widened_by` scatters, too: by 13
    and 10 % after 100 and 200 values of a bell, by 34 % after either of Student's law with 5 degrees of freedom. Of
    policies that lock in, whose rare gap is what f is for, they move by less than the spread: by 5 and 3 % where it is
    once in 10 values.

    Parameters
    ----------
    resampled
        Values V_b of a statistic on B resampled logs, shape (B,).

    Examples
    --------
    >>> round(error_of_spread([0.0, 1.0] * 50), 3), round(error_of_spread([0.0] * 90 + [1.0] * 10), 3)
    (0.071, 0.133)
    """
    values = np.asarray(resampled, np.float64)
    off = values - values.mean()
    variance = float((off**2).mean())
    kurtosis = float((off**4).mean()) / variance**2 if variance > 0.0 else 3.0
    return math.sqrt((max(kurtosis, 3.0) - 1.0) / (4.0 * len(values)))


def widened_by(values: ArrayLike, *, level: float) -> float:
    """Return f >= 1, by how much estimate +- t s is too short for tails like those of these resampled values.

    Values of policies that lock in do not scatter like a bell: most of the time they find the best action, now and then
    they do not, and the rare gap is many s wide. Of a greedy policy and the best action a normal 95 % interval of the
    difference held on 86 of 100 logs, the widened one on 96. f is the least for which the normal law has as much beyond
    the values' own quantile q at the level, and beyond the largest of them, m, as they have:

        f = max(1, q / t s, m / t' s),    of the |V_b - mean V|,

    t and t' Student's quantiles for the level and for 1/B. That of a bell is widened by chance, too: by some 8 %.

    Parameters
    ----------
    values
        Resampled values of the statistic, shape (B,).
    level
        Probability with which the interval should hold, such as 0.95.

    Examples
    --------
    >>> rare = [0.0] * 180 + [1.0] * 20
    >>> round(widened_by(rare, level=0.95), 2)
    1.52
    """
    from scipy.special import stdtrit

    of = np.asarray(values, np.float64)
    n, s = len(of), float(of.std(ddof=1))
    if not s > 0:
        return 1.0
    off = np.abs(of - of.mean())
    inner = float(np.quantile(off, level, method="higher")) / float(stdtrit(n - 1, 0.5 + level / 2))
    outer = float(off.max()) / float(stdtrit(n - 1, 1.0 - 0.5 / n))
    return max(1.0, inner / s, outer / s)


def equal_rewards(weight: Floats, reward: Floats, terms: Floats) -> float:
    """Return how many rewards of equal weight would be as skewed as these; 0 where no reward differs from another.

    Weights w_i >= 0 and rewards Y_i of the displays, and the terms whose mean the estimate is, have shape (n,).

    Ten rewards among 1,000 displays of equal weight are ten; make a display 100 times as heavy, and what is left is the
    share of the rewards times the little that so uneven weights are worth.

    >>> weight, reward = np.ones(1000), np.zeros(1000)
    >>> reward[:10] = 1.0
    >>> round(equal_rewards(weight, reward, weight * reward), 6)
    10.0
    >>> weight[0] = 100.0
    >>> round(equal_rewards(weight, reward, weight * reward), 2)
    0.13
    """
    own = weight > 0
    w, y = weight[own], reward[own]
    if not w.size:
        return 0.0
    off = np.abs(y - np.median(y))
    share = float(w[off > 0].sum() / w.sum())
    if share == 0.0:
        return 0.0
    # Terms that differ all the same, by rounding or by a model, are no more than the rewards behind them.
    return min(_alike(w * off), share * _alike(w), _alike(terms - terms.mean()))


def expected_rewards(rewards: Floats, displays: int, rounds: float) -> float:
    """Return how many rewards of equal weight so many rounds have on average, if they are as a log's displays.

    The rewards are those of the displays that earn something, shape (m,). Where most displays earn something, those
    count that earn nothing.

    >>> round(expected_rewards(np.ones(38), 10_000, 125.0), 3)
    0.475
    """
    if not len(rewards):
        return 0.0
    alike = _alike(rewards)
    return rounds / displays * (min(alike, displays - len(rewards)) if 2 * len(rewards) > displays else alike)


def missing(found: float) -> str:
    """Return why an interval that rests on so few rewards is not given, as a clause."""
    if found == 0.0:
        return f"no reward tells it (only displays count whose logged action it shows), and {NEEDED} are needed"
    least = math.floor(found) if found >= 1 else round(found, 2)
    times = math.ceil(NEEDED / found * 10) / 10
    return (
        f"its rewards are worth {least:,} of equal weight (only displays count whose logged action it shows), and "
        f"{NEEDED} are needed: about {times:,.3g} times as many displays"
    )


def _alike(z: Floats) -> float:
    largest = float(np.abs(z).max())
    if largest == 0.0:
        return 0.0
    z = z / largest
    squares = z * z
    third = float(squares @ z) ** 2
    return float(squares.sum()) ** 3 / third if third > 0 else math.inf
