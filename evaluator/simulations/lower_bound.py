"""The least regret that any uniformly efficient policy pays on a Bernoulli problem (Vernade et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import rel_entr

from evaluator.errors import ParameterError


def lower_bound(means: Sequence[float], tau_window: float = 1.0) -> float:
    """Return C such that the observed regret L(T) of any uniformly efficient policy is at least C log T for large T.

    C = sum over suboptimal k of tau_m (theta* - theta_k) / d(tau_m theta_k, tau_m theta*), d the Kullback-Leibler
    divergence of Bernoulli laws. The bound on the eventual regret R(T) is C / tau_m, since each pull then costs the
    whole gap. It is asymptotic: at small T it may exceed a good policy's regret.

    Parameters
    ----------
    means
        Conversion rates theta of the arms, shape (K,).
    tau_window
        Share tau_m of conversions that come within the window; 1 in the uncensored model.

    Raises
    ------
    ParameterError
        A rate is outside [0, 1], or tau_m outside (0, 1].

    References
    ----------
    Vernade, Cappe, Perchet 2017, Theorem 3 (censored) and Theorem 4 (uncensored).

    Examples
    --------
    >>> round(lower_bound([0.5, 0.4, 0.3]), 2)
    7.4
    """
    theta = np.asarray(means, np.float64)
    if not (theta.size and (theta >= 0).all() and (theta <= 1).all() and 0 < tau_window <= 1):
        raise ParameterError(f"Rates {list(means)}, tau {tau_window:g}.", remedy="rates in [0, 1], tau in (0, 1].")
    best = tau_window * theta.max()
    worse = tau_window * theta[theta < theta.max()]
    divergence = rel_entr(worse, best) + rel_entr(1.0 - worse, 1.0 - best)
    return float(((best - worse) / divergence).sum())
