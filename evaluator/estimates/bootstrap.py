"""Interval of an expected value from the values of resampled replays."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from evaluator.errors import ParameterError
from evaluator.estimates.clustered import clusters_text, too_few
from evaluator.estimates.confidence import Interval

# The t quantile and the standard error say little from fewer.
FEWEST = 20


def spread_interval(
    estimate: float, resampled: ArrayLike, *, n: int, level: float, target: str, clusters: float | None = None
) -> Interval:
    """Return the normal interval around an estimate whose standard error is the spread of its resampled values.

        estimate +- t s,    s² = sum_b (V_b - mean V)² / (B - 1),

    t the quantile of Student's law with B - 1 degrees of freedom: s itself is known from B values only. The centre is
    the estimate and not the mean of the resampled values, which is its expectation in another world, where displays
    come twice.

    Where G clusters were drawn whole, s² is a variance with the divisor G of a quantity with G - 1 degrees of freedom:
    it is taken G / (G - 1) times, and s² is known as well as from df draws, 1 / df = 1 / (B - 1) + 1 / (G - 1).

    Parameters
    ----------
    estimate
        Of the log itself.
    resampled
        Shape (B,), the same statistic V_b of B resampled logs; B at least 20.
    n
        Rounds behind the estimate.
    level
        Coverage, e.g. 0.95.
    target
        What it is an interval of, for reports.
    clusters
        G, how many clusters of equal size were drawn from (`evaluator.estimates.clustered.effective`); None where
        displays were drawn one by one. Fewer than its `FEWEST_CLUSTERS` give no interval: the ends are nan.

    Raises
    ------
    ParameterError
        Fewer than 20 resampled values.

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
    from scipy.stats import t

    values = np.asarray(resampled, np.float64)
    if len(values) < FEWEST:
        raise ParameterError(f"There are {len(values)} resampled values.", hint=f"take at least {FEWEST}.")
    kind = f"{target}: bootstrap standard error of {len(values):,} resampled replays (Efron, Tibshirani 1993)"
    if not math.isfinite(estimate):
        return Interval(estimate, math.nan, math.nan, n, level, kind)
    df, grown = len(values) - 1.0, 1.0
    if clusters is not None:
        kind += f", {clusters_text(clusters)} drawn whole (Cameron, Gelbach, Miller 2008)"
        if too_few(clusters):
            return Interval(estimate, math.nan, math.nan, n, level, kind)
        df, grown = 1.0 / (1.0 / df + 1.0 / (clusters - 1.0)), clusters / (clusters - 1.0)
    half = float(t.ppf(0.5 + level / 2, df) * values.std(ddof=1) * math.sqrt(grown))
    return Interval(estimate, estimate - half, estimate + half, n, level, kind)
