"""Tests of counts against propensities, and their p-values when there are many."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.finding import Verdict, judged
from evaluator.estimates.multiplicity import holm

Floats = npt.NDArray[np.float64]

# Cells of fewer expected displays are pooled, pooled ones of fewer still left out: the chi-square law needs them.
FEWEST = 10.0
# Third moment over the 3/2 power of the second, summed: a mean of heavier weights is not normal enough to be tested.
LOPSIDED = 0.2


class GroupTest(NamedTuple):
    """A chi-square statistic of one group of displays.

    Parameters
    ----------
    what
        Name of the group or groups, or of the action, in words.
    family
        Tests of one family are of disjoint displays, and their effects add up.
    statistic, df
        Chi-square statistic of the test, and its degrees of freedom.
    n
        Number of displays of the group.
    rows
        Rows of `Tables.groups` that are tested; none where it is no group of these.
    """

    what: str
    family: Hashable
    statistic: float
    df: float
    n: float
    rows: tuple[int, ...] = ()

    @property
    def p_value(self) -> float:
        """P-value of this test alone."""
        return chi_square_tail(self.statistic, self.df)


class TestOutcome(NamedTuple):
    """What many tests say together.

    Parameters
    ----------
    worst
        The test with the gravest verdict, the most significant of these.
    p_value
        P-value of the worst test, adjusted for the number of tests.
    effect
        Root mean square relative error of the propensities, over the displays of the worst test's family.
    verdict
        Verdict on the p-value and the effect together.
    tests
        Number of tests that were made.
    """

    worst: GroupTest
    p_value: float
    effect: float
    verdict: Verdict
    tests: int


def chi_square_tail(statistic: float, df: float) -> float:
    """Return P(chi-square with `df` degrees of freedom > statistic)."""
    from scipy.special import chdtrc

    return float(chdtrc(df, max(statistic, 0.0))) if df > 0 else 1.0


def normal_tail(z: float) -> float:
    """Return P(|normal| > |z|)."""
    return math.erfc(abs(z) / math.sqrt(2.0))


def upper_normal_quantile(tail: float) -> float:
    """Return z with P(normal > z) = tail."""
    from scipy.special import ndtri

    return -float(ndtri(tail))


def poisson_tail(count: float, mean: float) -> float:
    """Return P(Poisson >= count)."""
    from scipy.special import gammainc

    return float(gammainc(count, mean)) if count > 0 else 1.0


def relative_error(statistic: float, df: float, n: float) -> float:
    """Return the root mean square relative error of the propensities that a statistic shows, 0 within its noise.

    A chi-square statistic exceeds its degrees of freedom by n times sum_a (q_a - p_a)^2 / p_a on average, where actions
    have probability q_a and propensity p_a: the mean square of the weights' relative error.
    """
    return math.sqrt(max(statistic - df, 0.0) / n) if n > 0 else 0.0


def judge(tests: Sequence[GroupTest], level: float) -> TestOutcome | None:
    """Return what many tests say together, by Holm's method; None without tests.

    The chance of any verdict but pass is at most `level` when all propensities are right.
    """
    tests = [test for test in tests if test.df > 0 and test.n > 0]
    if not tests:
        return None
    adjusted = holm([test.p_value for test in tests])
    outcomes = []
    for test, p_value in zip(tests, adjusted.tolist(), strict=True):
        family = [other for other in tests if other.family == test.family]
        effect = relative_error(*(sum(getattr(other, part) for other in family) for part in ("statistic", "df", "n")))
        outcomes.append(TestOutcome(test, p_value, effect, judged(p_value, effect, level), len(tests)))
    grave = {"pass": 2, "warn": 1, "fail": 0}
    return min(outcomes, key=lambda o: (grave[o.verdict], o.p_value, o.worst.df - o.worst.statistic))


def pearson(counts: Floats, expected: Floats) -> tuple[float, float]:
    """Return Pearson's statistic of one group and its degrees of freedom; rare actions are pooled.

    Parameters
    ----------
    counts, expected
        Number of displays of each action, and how many the propensities make expected, shape (K,). What the expected
        ones leave of the group is one more cell.
    """
    rest = counts.sum() - expected.sum()
    if rest > 0.5:  # a remainder is expected, and nothing of it was shown
        counts, expected = np.append(counts, 0.0), np.append(expected, rest)
    rare = expected < FEWEST
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < FEWEST:
        counts, expected = counts[:-1], expected[:-1]
    if len(counts) < 2:
        return 0.0, 0.0
    return float(((counts - expected) ** 2 / expected).sum()), len(counts) - 1.0


def lopsided(s2: Floats, s3: Floats) -> npt.NDArray[np.bool_]:
    """Return for which actions a few displays carry so much of the weight that no mean is normal, shape (K,)."""
    return s3 >= LOPSIDED * np.maximum(s2, 1e-300) ** 1.5


def weighted_homogeneity(s1: Floats, s2: Floats, s3: Floats, tested: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return the statistic that sums of 1 / p are the same for all actions, and its degrees of freedom.

    For displays that are no even sample of the traffic: what the sums are is then unknown, but it is the same for all
    actions. Their variances are at most s2, that of sums over a Poisson number of displays; arguments as those of
    `weighted_pearson`.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        used = tested & (s2 > 0) & ~lopsided(s2, s3) & (s1**2 / s2 >= FEWEST)
    if used.sum() < 2:
        return 0.0, 0.0
    level = (s1[used] / s2[used]).sum() / (1.0 / s2[used]).sum()
    return float(((s1[used] - level) ** 2 / s2[used]).sum()), float(used.sum() - 1)


def weighted_pearson(
    n: float, s1: Floats, s2: Floats, s3: Floats, tested: npt.NDArray[np.bool_]
) -> tuple[float, float]:
    """Return the same for propensities that change from display to display.

    m_a = mean of 1{A = a} / p - 1 is 0 when the propensities are right, with variance (E[1/p_a] - 1) / n. The statistic
    n sum_a m_a^2 / E[1/p_a] is Pearson's where propensities are constant; its law lies between chi-squares with K - 1
    and K degrees of freedom, of which the larger is taken.

    Parameters
    ----------
    n
        Number of displays of the group.
    s1, s2, s3
        Sums of p^-1, p^-2 and p^-3 over the displays of each action, shape (K,).
    tested
        Whether each action can be tested in the whole log, shape (K,).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.maximum(s2 / n, s2 / s1)
        m = s1 / n - 1.0
    used = tested & (s2 > 0) & ~lopsided(s2, s3) & (n / np.where(s2 > 0, spread, 1.0) >= FEWEST)
    if used.sum() < 2:
        return 0.0, 0.0
    return float((n * m[used] ** 2 / spread[used]).sum()), float(used.sum())
