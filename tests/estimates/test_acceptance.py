"""Evidence against an acceptance probability is a martingale of mean 1; the bound on means of 1/p holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from evaluator.estimates.confidence import combined, log_evidence, log_tail


@pytest.mark.parametrize("n", [1, 7, 300])
@pytest.mark.parametrize("c", [0.5, 0.1, 0.003])
def test_the_mean_of_the_evidence_is_1_where_the_probability_is_right(n: int, c: float) -> None:
    t = np.arange(n + 1)
    log_e = log_evidence(t, np.full(n + 1, n), np.full(n + 1, c))
    assert logsumexp(binom.logpmf(t, n, c) + log_e) == pytest.approx(0.0, abs=1e-9)
    if n == 300:
        assert logsumexp(binom.logpmf(t, n, 1.2 * c) + log_e) > 0.01


def test_the_mean_of_several_combined_is_1() -> None:
    n, c = np.array([5, 3]), np.array([0.3, 0.6])
    total = 0.0
    for t in np.ndindex(6, 4):
        likely = float(np.prod(binom.pmf(t, n, c)))
        total += likely * np.exp(combined(log_evidence(np.array(t), n, c)))
    assert total == pytest.approx(1.0, rel=1e-9)


def test_certain_acceptance_allows_no_rejection() -> None:
    found = log_evidence(np.array([5, 4]), np.array([5, 5]), np.ones(2))
    assert found.tolist() == [0.0, np.inf]
    assert combined(np.zeros(0)) == 0.0


@pytest.mark.parametrize("p", [(0.5, 0.5), (0.9, 0.02)])
def test_means_of_inverse_propensities_are_bounded(p: tuple[float, float]) -> None:
    # Half the displays have each propensity. Bounds are cautious, and so alarms rarer than their level.
    rng, n, runs, level = np.random.default_rng(1), 2000, 2000, 0.05
    shown = rng.binomial(n // 2, p, (runs, 2))
    total, squares = shown @ (1 / np.array(p)), shown @ (1 / np.square(p))
    largest = np.full(runs, 1 / min(p))
    log_p = log_tail(total, squares, n, expected=1.0, largest=largest)
    assert np.mean(log_p < np.log(level)) < level + 3 * (level / runs) ** 0.5
    # Where half the contexts never show it, or propensities are told half as large, nearly all of them alarm.
    holed = log_tail(total - shown[:, 1] / p[1], squares, n, expected=1.0, largest=largest)
    assert np.mean(holed < np.log(level)) > 0.9
    doubled = log_tail(2 * total, 4 * squares, n, expected=1.0, largest=2 * largest)
    assert np.mean(doubled < np.log(level)) > 0.9
