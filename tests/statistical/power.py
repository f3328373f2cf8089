"""Whether a difference as large as an audit says it could detect is told from 0 on 80 % of logs."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

import evaluator
from evaluator.estimates.confidence import log_mixture, mixture_rho
from evaluator.estimates.simultaneous import holm
from tests.logs import bernoulli_log

# Displays of the log that the truth is fitted to: so many that the truth is all but known.
FITTED = 400_000


class Promised(NamedTuple):
    """What an audit plans for action 0 and each other, and the power there.

    Parameters
    ----------
    difference, ranked_difference
        Planned for the pair alone, and in the ranking of all.
    alone, ranked
        Power at these: of the test of one pair, and by Holm's method.
    alone_in_ranking
        Power by Holm's method at what the twins have for the pair alone.
    at_the_fitted_truth
        Power of one test at mean half-width + .84 spread, both as the twins have them.
    """

    difference: float
    ranked_difference: float
    alone: float
    ranked: float
    alone_in_ranking: float
    at_the_fitted_truth: float


def promised(base: float, gap: float, *, displays: int, others: int, twins: int, runs: int) -> Promised:
    """Audit fixed policies, action 0 of which earns `gap` more, and draw logs where it earns what is planned.

    Parameters
    ----------
    base
        Rate of the other actions.
    gap
        Of the truth that the audit is made on.
    displays, twins
        Of the audit.
    runs
        Logs drawn for each power.
    """
    policies, rounds = [f"fixed:action={i}" for i in range(others + 1)], int(0.8 * displays) // (others + 1)
    log = bernoulli_log(FITTED, [base + gap, *[base] * others], mean_delay=5.0, seed=43)
    (pair, *_) = evaluator.audit(
        log, policies, twins=twins, seed=43, displays=displays, sampler="rejection", horizon=rounds
    ).pairs

    def power(difference: float) -> tuple[float, float]:
        return powers_of([base + difference, *[base] * others], rounds, runs)

    return Promised(
        pair.alone.high,
        pair.ranked.high,
        alone=power(pair.alone.high)[0],
        ranked=power(pair.ranked.high)[1],
        alone_in_ranking=power(pair.alone.difference)[1],
        at_the_fitted_truth=power(pair.coverage.mean_width / 2 + 0.8416 * pair.spread)[0],
    )


def powers_of(rates: list[float], rounds: int, runs: int) -> tuple[float, float]:
    """Return how often action 0, the best, is told from each other: alone, and by Holm's method among all pairs."""
    rng = np.random.default_rng(1)
    totals = np.array([(rng.random((runs, rounds)) < rate).sum(axis=1) for rate in rates], np.float64)
    pairs = list(combinations(range(len(rates)), 2))
    d = np.array([totals[i] - totals[j] for i, j in pairs])
    # V of a sequence of ones and noughts; its first guesses miss by sum 1/(2i)^2 each.
    own = totals * (1 - totals / rounds) + np.pi**2 / 24
    v = np.array([own[i] + own[j] for i, j in pairs])
    p = np.minimum(2 * np.exp(-log_mixture(np.maximum(np.abs(d), 1e-9), v, mixture_rho(0.025))[0]), 1.0)
    right = d > 0
    adjusted = np.array([holm(of_run) for of_run in p.T]).T
    others = slice(0, len(rates) - 1)  # the first pairs are those of action 0
    return float((right & (p <= 0.05))[others].mean()), float((right & (adjusted <= 0.05))[others].mean())
