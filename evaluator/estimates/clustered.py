"""Standard errors of means whose terms hang together within clusters, such as the displays of one user.

With terms z_i, their mean z and clusters g = 1..G, the variance of the mean is estimated by

    G / (G - 1)  (1 / n²)  sum_g (sum_{i in g} (z_i - z))²,

whatever the dependence within a cluster, as long as clusters are independent (Liang, Zeger. Longitudinal data analysis
using generalized linear models. Biometrika 73(1), 1986; G / (G - 1) and Student's law with G - 1 degrees of freedom:
Cameron, Miller. A practitioner's guide to cluster-robust inference. Journal of Human Resources 50(2), 2015).

G is everywhere the number of clusters of equal size that the clusters are worth, `effective`: a log of which one user
has half the displays knows little, however many others there are.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# With fewer clusters no interval holds that rests on their spread, and none is given.
FEWEST_CLUSTERS = 10.0


def effective(code: NDArray[np.integer]) -> float:
    """Return how many clusters of equal size the clusters of some displays are worth: (sum n)² / sum n².

    For equal sizes it is their number. For the degrees of freedom of unequal ones see Carter, Schnepel, Steigerwald.
    Asymptotic behavior of a t-test robust to cluster heterogeneity. Review of Economics and Statistics 99(4), 2017;
    this is the fewest that they allow, where the displays of a cluster are as one.

    Parameters
    ----------
    code
        Cluster of each display, from 0, shape (n,).

    Examples
    --------
    >>> effective(np.array([0, 0, 1, 1])), effective(np.array([0, 0, 0, 1]))
    (2.0, 1.6)
    """
    sizes = np.bincount(code).astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum()) if len(code) else 0.0


def too_few(clusters: float | None) -> bool:
    """Whether so many clusters give no interval; None stands for independent displays."""
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
