"""Value and uplift in groups of displays, all their intervals at once, and whether the uplift differs between groups.

*Why a confidence sequence holds in a group whose size is random.* A display's group is known before its action and its
reward. Let G_i be the group of round i, and F_i all that is known after it. For each group g,

    sum over rounds i <= t with G_i = g of (X_i - E[X_i | F_{i-1}, G_i])

is a martingale in t: a round of another group adds 0, and which rounds add is known before they earn. In the clock that
ticks with g's rounds only, it is what `evaluator.estimates.confidence.mean_sequence` takes, and that holds at every
number of rounds at once, and so at the random number at which the replay stops: given the sequence of groups or not,
and however the policy learned from the rewards of all groups. The logged displays of a group are the same case.

*All groups at once.* With m groups each interval has the m-th part of the error (Bonferroni): all hold with the run's
level, whatever they have in common. An uplift is value less logged mean, each at half of its group's error.

*Whether groups differ.* "The realised uplift is the same in all groups" is rejected where no number lies in every
group's interval of the uplift. Where it is true, all intervals hold that number but with probability alpha, so the
test has its level although a learning policy's value drifts, and however unlike the groups' times and sizes. The
p-value is the smallest alpha at which it rejects, the mixture of the boundary held where it is tuned for the run's
level. Realised: a group whose displays come late meets a policy that has learned more, and its uplift is another for
that reason alone; the test then rejects, as it should.

References
----------
Howard, Ramdas, McAuliffe, Sekhon. Time-uniform, nonparametric, nonasymptotic confidence sequences. Annals of Statistics
49(2), 2021. The test by intervals without a common point is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import Interval, crossing_boundary, interval_ends, mixture_rho
from evaluator.estimates.paired import RewardSums

Floats = npt.NDArray[np.float64]

# Below this p-values are not told apart.
_SMALLEST = 1e-300
_HALVINGS = 60


def sums_interval(
    of: RewardSums, *, upper: float, lower: float = 0.0, alpha: float, level: float, n: int, kind: str
) -> Interval:
    """Return the mean reward of some rounds, from their sums.

    Parameters
    ----------
    of
        Sums of the rounds' rewards, mean over repeats.
    upper, lower
        Largest and smallest possible reward of a round.
    alpha
        Probability that this interval fails.
    level
        Level that the interval names: that of all groups at once.
    n
        Number of different displays that the interval names.
    kind
        Name of the method in reports.
    """
    low, high = interval_ends(of.total, of.variation, of.n, upper=upper, lower=lower, alpha=alpha)
    estimate = lower + (upper - lower) * float(of.total) / float(of.n) if of.n > 0 else math.nan
    return Interval(estimate, float(low), float(high), n, level, kind)


def p_of_no_difference(a: Sequence[RewardSums], b: Sequence[RewardSums], *, tuned_at: float) -> float:
    """Return the p-value of "the mean of a less that of b is the same in all groups"; nan with fewer than two.

    Parameters
    ----------
    a, b
        Sums of two samples of each group, G each; groups of which one sample is empty say nothing, and are left out.
        All rewards in one unit of the largest reward, which the p-value does not depend on.
    tuned_at
        Error of the test for which the boundary is tuned, such as 0.05.

    Examples
    --------
    >>> from evaluator.estimates.paired import sums_of
    >>> high, low = (sums_of(np.array(x * 500, float), upper=1.0) for x in ([1, 1, 1, 0], [1, 0, 0, 0]))
    >>> p_of_no_difference([high, low], [low, low], tuned_at=0.05) < 1e-6
    True
    >>> p_of_no_difference([high, high], [low, low], tuned_at=0.05)
    1.0
    """
    both = [(x, y) for x, y in zip(a, b, strict=True) if x.n > 0 and y.n > 0]
    if len(both) < 2:
        return math.nan
    n, total, v = (
        np.array([[getattr(of, name) for of in pair] for pair in both], float) for name in RewardSums._fields
    )
    parts = 4.0 * len(both)
    rho = mixture_rho(tuned_at / parts)

    def rejects(log_alpha: float) -> bool:
        radius = crossing_boundary(v, threshold=math.log(parts) - log_alpha, rho=rho) / n
        low, high = np.maximum(total / n - radius, 0.0), np.minimum(total / n + radius, 1.0)
        return bool((low[:, 0] - high[:, 1]).max() > (high[:, 0] - low[:, 1]).min())

    most, least = 0.0, math.log(_SMALLEST)
    if not rejects(most):
        return 1.0
    if rejects(least):
        return _SMALLEST
    for _ in range(_HALVINGS):
        middle = (most + least) / 2
        most, least = (middle, least) if rejects(middle) else (most, middle)
    return math.exp(most)
