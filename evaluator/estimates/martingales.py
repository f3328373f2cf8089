"""Whether displays were accepted as often as they should be, and shown as often as their propensities say.

A replay whose sampler is right accepts each display it reads with a known probability, whatever its policy does. So the
number accepted is tested against it at any time, however the replay ended.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def log_evidence(accepted: Counts, read: Counts, probability: Floats) -> Floats:
    """Return the log of the evidence against an acceptance probability c in (0, 1], shape of the arguments.

    E = B(1 + t, b + n - t) / B(1, b) / (c^t (1 - c)^(n - t)), b = (1 - c) / c: the likelihood of t accepted of n
    displays read under acceptance probabilities drawn from a Beta distribution of mean c, over that under c. Where c is
    right, E is a martingale of mean 1: it ever reaches 1 / alpha with probability alpha at most (Ville), wherever the
    replay stops.
    """
    from scipy.special import betaln, xlog1py, xlogy

    t, n, c = (np.asarray(x, np.float64) for x in (accepted, read, probability))
    certain = c >= 1.0
    c = np.where(certain, 0.5, c)
    b = (1.0 - c) / c
    log_e = betaln(1.0 + t, b + n - t) - betaln(1.0, b) - xlogy(t, c) - xlog1py(n - t, -c)
    return np.where(certain, np.where(t == n, 0.0, np.inf), log_e)


def combined(log_evidences: Floats) -> float:
    """Return the log of the evidence of several: half their product, which adds up small ones, half their mean.

    Both halves are martingales of mean 1 where each evidence moves while the others rest.
    """
    if not len(log_evidences):
        return 0.0
    mean = float(np.logaddexp.reduce(log_evidences)) - np.log(len(log_evidences))
    return float(np.logaddexp(log_evidences.sum(), mean) - np.log(2.0))


def log_tail(total: Floats, squares: Floats, displays: int, *, expected: float | Floats, largest: Floats) -> Floats:
    """Return a bound of the log probability of a mean of 1/p as far off as this one, two-sided, shape (K,).

    Of N displays the mean of 1[a = k] / p_k is 1 where the propensities are right and no context lacks action k, or
    what is expected of each. The bounds are those for sums of numbers in [0, b], b the largest value of 1/p of the
    action, with second moment v: exp(-N d² / 2v) for d below, Bernstein's exp(-N d² / (2v + 2bd/3)) above; v is that of
    the displays, by the sums of 1/p and of 1/p² over those of each action, shape (K,).
    """
    off = total / displays - expected
    # As 1/p is 1 at least, so is its mean over the displays at which the action is eligible: few that were shown with a
    # large p do not say that it hardly varies.
    second = np.maximum(squares / displays, np.maximum(expected, expected**2))
    with np.errstate(over="ignore", invalid="ignore"):  # propensities next to 0 bound nothing
        width = 2.0 * second + np.where(off > 0, 2.0 * largest * off / 3.0, 0.0)
        log_p: Floats = np.log(2.0) - displays * off**2 / width
    return np.where(np.isfinite(width), np.minimum(log_p, 0.0), 0.0)
