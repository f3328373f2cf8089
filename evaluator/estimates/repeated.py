"""One interval for the mean over several replays of the same log, no wider than that of one.

Repeat r plays T_r rounds. Let S_r be the sum of its rewards minus their conditional means, each given the repeat's own
past, and V_r the variation of `evaluator.estimates.confidence.mean_sequence`. For every lambda in [0, 1),
exp(lambda S_r - psi(lambda) V_r) at the end of the repeat has mean at most 1: it is a supermartingale in the repeat's
own filtration, begins at 1, and the repeat ends at a stopping time of it. The repeats show the same displays, so they
depend on each other in ways that nobody knows, and have no common filtration. But exp is convex: with the means over
the repeats S, V and T,

    E exp(lambda S - psi(lambda) V) <= mean over r of E exp(lambda S_r - psi(lambda) V_r) <= 1,

whatever their dependence. So is the mean over lambda, the mixture m(S, V) of `gamma_exponential_boundary`, and by
Markov's inequality P(m(S, V) >= 1/alpha) <= alpha. The interval

    mean reward of all rounds +- (b / T) u(V / b^2),    u = `gamma_exponential_boundary` at alpha/2,

holds with probability 1 - alpha for the mean, over all rounds of all repeats, of the expected reward given the past.
It is that of a single repeat with their mean variation: not wider, as a union bound over repeats would be; nor
narrower, although the mean varies less, for how much less depends on that unknown dependence.

The price: Ville's inequality, which holds at all times at once, is Markov's here. The interval holds where the repeats
ended, not all along.

References
----------
Howard, Ramdas, McAuliffe, Sekhon. Time-uniform, nonparametric, nonasymptotic confidence sequences. Annals of Statistics
49(2), 2021: the supermartingales. Vovk, Wang. E-values: calibration, combination and applications. Annals of Statistics
49(3), 2021: the mean of e-values of any dependence is one. That the mean may be taken inside exp is ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import Interval, interval_ends, mean_interval
from evaluator.estimates.paired import RewardSums, sums_of

Floats = npt.NDArray[np.float64]

REPEATED = "empirical Bernstein for the mean of repeats, at their end (Howard et al. 2021; Vovk, Wang 2021)"


def mean_sums(of: Sequence[RewardSums]) -> RewardSums:
    """Return the mean over repeats of their sums; those of one repeat as they are."""
    if len(of) == 1:
        return of[0]
    return RewardSums(*(np.mean([getattr(each, name) for each in of], axis=0) for name in RewardSums._fields))


def repeated_interval(
    rewards: Sequence[Floats], *, upper: float, lower: float = 0.0, alpha: float, displays: int
) -> Interval:
    """Return the mean reward of all rounds of several repeats, with an interval, which fails with probability `alpha`.

    Rewards of the rounds of each repeat are in order, shape (T_r,), in [`lower`, `upper`]. Should one have no rounds,
    nothing is known. Of a single repeat the interval is that of `mean_interval`. Its n is the number of different
    displays that the repeats showed.
    """
    if len(rewards) == 1:
        return mean_interval(rewards[0], upper=upper, lower=lower, alpha=alpha)
    if not all(len(x) for x in rewards):
        return mean_interval([], upper=upper, lower=lower, alpha=alpha)
    width = upper - lower
    of = mean_sums([sums_of(x, upper=upper, lower=lower) for x in rewards])
    low, high = (lower + end for end in interval_ends(of.total, of.variation, of.n, upper=width, alpha=alpha))
    estimate = float(lower + width * of.total / of.n)
    return Interval(estimate, float(low), float(high), displays, 1.0 - alpha, REPEATED)
