"""Tests of counts against propensities, and their p-values when there are many."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from evaluator.checks.result import CheckResult, Verdict, judged
from evaluator.checks.tables import Flags, Floats, Ints
from evaluator.estimates.simultaneous import holm

# Cells of fewer expected displays are pooled, pooled ones of fewer still left out: the chi-square law needs them.
FEWEST = 10.0
# Third moment over the 3/2 power of the second, summed: a mean of heavier weights is not normal enough to be tested.
LOPSIDED = 0.2
# Draws times the level: so many are as extreme by chance as what is just found.
_DRAWS = 5.0
# Draws after which a p-value above this is taken as it is: no more of them make it small.
_FIRST, _PLAIN = 300, 0.1


class GroupTest(NamedTuple):
    """A chi-square statistic of one group of displays."""

    what: str  # Name of the group or groups, or of the action, in words
    # Tests of one family are of disjoint displays, and their effects add up.
    family: Hashable
    # Chi-square statistic of the test, and its degrees of freedom.
    statistic: float
    df: float
    n: float  # Number of displays of the group
    # Rows of `Tables.groups` that are tested; none where it is no group of these.
    rows: tuple[int, ...] = ()

    @property
    def p_value(self) -> float:
        """P-value of this test alone."""
        return chi_square_tail(self.statistic, self.df)


class TestOutcome(NamedTuple):
    """What many tests say together."""

    worst: GroupTest  # The test with the gravest verdict, the most significant of these
    p_value: float  # P-value of the worst test, adjusted for the number of tests
    # Root mean square relative error of the propensities, over the displays of the worst test's family.
    effect: float
    verdict: Verdict  # Verdict on the p-value and the effect together
    tests: int  # Number of tests that were made

    def result(self, number: str, what: str, remedy: str = "") -> CheckResult:
        """Return it as the result of a check, in these words."""
        numbers: dict[str, float | str] = {
            "where": self.worst.what, "chi_square": self.worst.statistic, "degrees_of_freedom": self.worst.df,
            "relative_error": self.effect, "tests": self.tests,
        }  # fmt: skip
        return CheckResult(
            verdict=self.verdict, number=number, statistic=self.worst.statistic, p_value=self.p_value,
            effect=self.effect, numbers=numbers, what=what, remedy=remedy,
        )  # fmt: skip


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
    families: dict[Hashable, list[GroupTest]] = {}
    for test in tests:
        families.setdefault(test.family, []).append(test)
    effects = {
        name: relative_error(*(sum(getattr(test, part) for test in family) for part in ("statistic", "df", "n")))
        for name, family in families.items()
    }
    outcomes = []
    for test, p_value in zip(tests, adjusted.tolist(), strict=True):
        effect = effects[test.family]
        outcomes.append(TestOutcome(test, p_value, effect, judged(p_value, effect, level), len(tests)))
    grave = {"pass": 2, "warn": 1, "fail": 0}
    return min(outcomes, key=lambda o: (grave[o.verdict], o.p_value, o.worst.df - o.worst.statistic))


def pearson(counts: Floats, expected: Floats) -> tuple[float, float]:
    """Return Pearson's statistic of one group and its degrees of freedom; rare actions are pooled.

    Both arguments are numbers of displays of each action, shape (K,). The displays of the group that the expected
    numbers leave over are one more cell.
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


def _pearson_of_each(counts: Floats, expected: Floats) -> tuple[list[float], list[float]]:
    """Return what `pearson` says of each group, counts and expected numbers of shape (G, K).

    As many displays are expected of a group as it has, in the same shares for all groups.
    """
    statistic, df = np.zeros(len(counts)), np.zeros(len(counts))
    rare = expected < FEWEST
    number = rare.sum(axis=1)
    for of in np.unique(number).tolist():
        rows = np.flatnonzero(number == of)  # as many rare actions are the same ones, as shares are
        pooled = rare[rows[0]]
        cells = [
            np.column_stack((np.compress(~pooled, table, axis=1), np.compress(pooled, table, axis=1).sum(axis=1)))
            for table in (counts[rows], expected[rows])
        ]
        enough = cells[1][:, -1] >= FEWEST
        for some, last in ((enough, None), (~enough, -1)):
            shown, usual = (np.ascontiguousarray(table[some, :last]) for table in cells)
            if shown.shape[1] > 1:
                statistic[rows[some]] = ((shown - usual) ** 2 / usual).sum(axis=1)
                df[rows[some]] = shown.shape[1] - 1.0
    return statistic.tolist(), df.tolist()


def lopsided(s2: Floats, s3: Floats) -> Flags:
    """Return for which actions a few displays carry so much of the weight that no mean is normal, shape (K,)."""
    return s3 >= LOPSIDED * np.maximum(s2, 1e-300) ** 1.5


def weighted_homogeneity(s1: Floats, s2: Floats, s3: Floats, tested: Flags) -> tuple[float, float]:
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


def weighted_pearson(n: float | Floats, s1: Floats, s2: Floats, s3: Floats, tested: Flags) -> tuple[float, float]:
    """Return Pearson's statistic and its degrees of freedom for propensities that change from display to display.

    m_a = mean of 1{A = a} / p - 1 is 0 when the propensities are right, with variance (E[1/p_a] - 1) / n. The statistic
    n sum_a m_a^2 / E[1/p_a] is Pearson's where propensities are constant; its law lies between chi-squares with K - 1
    and K degrees of freedom, of which the larger is taken. Here n counts the displays of the group, or those at which
    each action was there, shape (K,); s1, s2 and s3 are the sums of p^-1, p^-2 and p^-3 over the displays of each
    action, shape (K,); `tested` says which actions can be tested in the whole log, shape (K,).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.maximum(s2 / n, s2 / s1)
        m = s1 / n - 1.0
    used = tested & (s2 > 0) & ~lopsided(s2, s3) & (n / np.where(s2 > 0, spread, 1.0) >= FEWEST)
    if used.sum() < 2:
        return 0.0, 0.0
    of = np.broadcast_to(n, used.shape)[used]
    return float((of * m[used] ** 2 / spread[used]).sum()), float(used.sum())


class SmallestP(NamedTuple):
    """The p-value of the smallest p-value of several statistics."""

    p: float  # P-value of the smallest one, all statistics considered
    which: int  # Which statistic has the smallest one
    # Value of the statistic that was asked for from which on its p-value is small.
    critical: float


def smallest_p(found: Floats, draw: Callable[[int], Floats], level: float, *, of: int) -> SmallestP:
    """Test several statistics, shape (S,), at once against draws of them under the hypothesis.

    Each is compared with the draws (as a gamma law of the draws' moments). The smallest of these p-values is compared
    with that of the draws, of which there are `_DRAWS` over the level, or `_FIRST` where a tenth of these is as
    extreme. `draw(m)` returns m draws of the statistics, shape (S, m); `level` is the probability of a false alarm; the
    critical value returned is that of statistic number `of`.
    """
    from scipy.special import gammainccinv

    draws = math.ceil(_DRAWS / level)
    first = min(_FIRST, draws)
    drawn = draw(first)
    p, which, others = _compared(drawn, found)
    if p <= _PLAIN and first < draws:
        drawn = np.concatenate((drawn, draw(draws - first)), axis=1)
        p, which, others = _compared(drawn, found)
    # The smallest of m independent p-values has the median 1 - 2^(-1/m).
    median = float(np.exp(np.quantile(others, 0.5)))
    tail = -math.expm1(math.log1p(-level) * -math.log1p(-median) / math.log(2.0))
    mean, variance = _moments(drawn)
    critical = gammainccinv(mean[of] ** 2 / variance[of], tail) * variance[of] / mean[of]
    return SmallestP(p, which, float(critical))


def _moments(drawn: Floats) -> tuple[Floats, Floats]:
    return drawn.mean(axis=1), np.maximum(drawn.var(axis=1), 1e-12)


def _compared(drawn: Floats, found: Floats) -> tuple[float, int, Floats]:
    """Return the p-value of the smallest p-value, which statistic has it, and the logarithms of those of the draws."""
    mean, variance = _moments(drawn)

    def smallest(values: Floats) -> tuple[Floats, Ints]:
        logs = np.array([_log_tail(v, m, s) for v, m, s in zip(values, mean, variance, strict=True)])
        return logs.min(axis=0), logs.argmin(axis=0)

    least, which = smallest(found)
    others, _ = smallest(drawn)
    return float((1 + np.count_nonzero(others <= least)) / (len(others) + 1)), int(which), others


def _log_tail(values: Floats, mean: float, variance: float) -> Floats:
    """Return the logarithm of a gamma law's upper tail, by its moments; further out than doubles reach, in order."""
    from scipy.special import gammaincc

    shape, scale = mean**2 / variance, variance / mean
    tail = gammaincc(shape, values / scale)
    return np.asarray(np.where(tail > 1e-290, np.log(np.maximum(tail, 1e-300)), -700.0 - values / scale))


def homogeneity(counts: Floats, *, what: str, rows: Sequence[int] = ()) -> GroupTest:
    """Return the test that several groups show the actions in the same shares, as a family of its own.

    `counts` are the displays of each group and action, shape (G, K), and `what` says in words how the groups differ.
    `rows` are the rows of `Tables.groups` that hold the groups, if any do.
    """
    sizes, n = counts.sum(axis=1), counts.sum()
    shares = counts.sum(axis=0) / n
    statistic = df = 0.0
    for found, of, size in zip(*_pearson_of_each(counts, sizes[:, None] * shares), sizes.tolist(), strict=True):
        statistic += found
        df += of * (1.0 - size / n)  # the shares are those of all groups together
    return GroupTest(what, ("homogeneity", what), statistic, df, float(n), tuple(rows))


def trend(counts: Floats, along: Floats | None = None) -> tuple[float, float]:
    """Return the score statistic for shares that change along the bins (rows), and its degrees of freedom.

    `counts` are the displays of each bin and action, shape (G, K), and `along` the value of each bin, shape (G,); with
    None the value of a bin is its middle among the displays.
    """
    size, shown = counts.sum(axis=1), counts.sum(axis=0)
    n = size.sum()
    middle = (np.cumsum(size) - size / 2.0) / n if along is None else along
    middle = middle - (size * middle).sum() / n
    spread = float((size * middle**2).sum() / n)
    score = middle @ counts
    rare = shown < 2.5 * FEWEST
    shown, score = np.append(shown[~rare], shown[rare].sum()), np.append(score[~rare], score[rare].sum())
    used = shown >= 2.5 * FEWEST
    if spread <= 0.0 or used.sum() < 2:
        return 0.0, 0.0
    return float((score[used] ** 2 / shown[used]).sum() / spread), float(used.sum() - 1)


def p_words(p: float) -> str:
    """Return a p-value as people read it.

    >>> p_words(0.0312), p_words(1e-30)
    ('0.031', '< 1e-9')
    """
    return "< 1e-9" if p < 1e-9 else f"{p:.2g}"
