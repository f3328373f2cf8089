"""Numbers of several groups of displays, all their intervals at once, and whether the groups differ.

*Why a confidence sequence holds in a group whose size is random.* A display's group is known before its action and its
reward. Let G_i be the group of round i, and F_i all that is known after it. For each group g,

    sum over rounds i <= t with G_i = g of (X_i - E[X_i | F_{i-1}, G_i])

is a martingale in t: a round of another group adds 0, and which rounds add is known before they earn. In the clock that
ticks with g's rounds only, it is what `evaluator.estimates.confidence.mean_sequence` takes, and that holds at every
number of rounds at once, and so at the random number at which the replay stops: however the policy learned from the
rewards of all groups. The logged displays of a group are the same case, and so are the differences of two replays that
read the log in its order (`evaluator.estimates.paired`), of which a display of another group adds 0.

*All groups at once.* With m groups each interval has the m-th part of the error (Bonferroni): all hold with the run's
level, whatever they have in common. Within a group, what is computed of J sums has the J-th part of that for each.

*The difference of two replays in a group.* They have n_A and n_B rounds there, with rewards of S_A and S_B in all. With
h = (1/n_A + 1/n_B)/2 and k = (1/n_A - 1/n_B)/2,

    S_A/n_A - S_B/n_B  =  h (S_A - S_B)  +  k S_A  +  k S_B.

From S_A - S_B whatever both showed cancels; k is small, for how many rounds a group has depends on the group's traffic.

*Whether groups differ.* "The number is the same in all groups" is rejected where no number lies in all groups'
intervals. Where it is true, all intervals hold that number but with probability alpha, so the test has its level
although a learning policy's value drifts, and however unlike the groups' times and sizes. The p-value is the smallest
alpha at which it rejects, the mixture of the boundary held where it is tuned for the run's level. Realised: a group
whose displays come late meets a policy that has learned more, and its uplift is another for that reason alone; the test
then rejects, as it should.

References
----------
Howard, Ramdas, McAuliffe, Sekhon. Time-uniform, nonparametric, nonasymptotic confidence sequences. Annals of Statistics
49(2), 2021: the interval of each sum. What is made of them by union bounds is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import Interval, crossing_boundary, mixture_rho
from evaluator.estimates.paired import Contrast, RewardSums

Floats = npt.NDArray[np.float64]

# Below this p-values are not told apart.
_SMALLEST = 1e-300
_HALVINGS = 60


class WeightedSum(NamedTuple):
    """A sum of rewards and the weight with which it counts, in widths of the rewards' range.

    `total` is the sum of the rewards above the smallest possible, or of their differences, nan where there are none;
    `variation` the intrinsic time of `evaluator.estimates.confidence.mean_sequence`; `least` and `most` the smallest
    and largest sum that is possible.
    """

    weight: float
    total: float
    variation: float
    least: float
    most: float


def mean_of(of: RewardSums, *, sign: int = 1) -> WeightedSum:
    """Return the mean of some rounds' rewards above the smallest, or its negative; rounds that are none say nothing."""
    if of.n == 0:
        return WeightedSum(float(sign), math.nan, 0.0, 0.0, 1.0)
    return WeightedSum(sign / float(of.n), float(of.total), float(of.variation), 0.0, float(of.n))


def difference_in_group(
    a: RewardSums, b: RewardSums, sides: Contrast | None, *, lower_in_widths: float = 0.0
) -> tuple[WeightedSum, ...]:
    """Return the sums of which the difference of two replays' mean rewards in a group is made.

    `sides` is what displays of the group that one of them alone showed add to the difference of their totals, where
    both read the log in an order that they shared; None where not: nothing cancels then. The sums of each are means
    over repeats, and count from the smallest possible reward over the width of the range; `sides` does not.
    """
    if sides is None:
        return mean_of(a), mean_of(b, sign=-1)
    if a.n == 0 or b.n == 0:
        return WeightedSum(1.0, math.nan, 0.0, -1.0, 1.0), mean_of(a), mean_of(b, sign=-1)
    n_a, n_b = float(a.n), float(b.n)
    half, rest, shift = (1 / n_a + 1 / n_b) / 2, (1 / n_a - 1 / n_b) / 2, lower_in_widths * (n_a - n_b)
    both = WeightedSum(half, sides.total - shift, sides.variation, sides.least - shift, sides.most - shift)
    return both, *(mean_of(of)._replace(weight=rest) for of in (a, b))


def simultaneous_interval(
    of: Sequence[WeightedSum], *, alpha: float, width: float, shift: float = 0.0, level: float, n: int, kind: str
) -> Interval:
    """Return the interval of a sum of weighted sums, which fails with probability `alpha`.

    It is in units of rewards: the width of their range times the sum, plus `shift`. Its level and n are those that it
    names: of all groups at once, and of different displays.

    >>> from evaluator.estimates.paired import sums_of
    >>> rewards = sums_of(np.array([0, 1, 0, 0, 1] * 200, float), upper=1.0)
    >>> found = simultaneous_interval([mean_of(rewards)], alpha=0.05, width=1.0, level=0.95, n=1000, kind="")
    >>> f"{found.estimate:.3f} in [{found.low:.3f}, {found.high:.3f}]"
    '0.400 in [0.349, 0.451]'
    """
    sums = np.array(of, float)[None]
    parts = 2.0 * len(of)
    low, high = _ends(sums, threshold=math.log(parts / alpha), rho=mixture_rho(alpha / parts))
    estimate = float((sums[..., 0] * sums[..., 1]).sum())
    return Interval(
        shift + width * estimate, shift + width * float(low[0]), shift + width * float(high[0]), n, level, kind
    )


def p_of_one_value(groups: Sequence[Sequence[WeightedSum]], *, tuned_at: float) -> float:
    """Return the p-value of "the sum of weighted sums is the same in all groups"; nan with fewer than two that say it.

    Each group has as many sums; the boundary is tuned for an error of the test, such as 0.05.

    >>> from evaluator.estimates.paired import sums_of
    >>> high, low = (sums_of(np.array(x * 500, float), upper=1.0) for x in ([1, 1, 1, 0], [1, 0, 0, 0]))
    >>> p_of_one_value([[mean_of(high)], [mean_of(low)]], tuned_at=0.05) < 1e-6
    True
    >>> p_of_one_value([[mean_of(high)], [mean_of(high)]], tuned_at=0.05)
    1.0
    """
    sums = np.array([of for of in groups if says_something(of)], float)
    if len(sums) < 2:
        return math.nan
    parts = 2.0 * sums.shape[1] * len(groups)
    rho = mixture_rho(tuned_at / parts)

    def rejects(log_alpha: float) -> bool:
        low, high = _ends(sums, threshold=math.log(parts) - log_alpha, rho=rho)
        return bool(low.max() > high.min())

    most, least = 0.0, math.log(_SMALLEST)
    if not rejects(most):
        return 1.0
    if rejects(least):
        return _SMALLEST
    for _ in range(_HALVINGS):
        middle = (most + least) / 2
        most, least = (middle, least) if rejects(middle) else (most, middle)
    return math.exp(most)


def says_something(of: Sequence[WeightedSum]) -> bool:
    """Return whether there are rewards behind each sum."""
    return not any(math.isnan(one.total) for one in of)


def _ends(sums: Floats, *, threshold: float, rho: float) -> tuple[Floats, Floats]:
    """Return the ends of the interval of each group's number, shape (G,), from its sums, shape (G, J, 5)."""
    weight, total, variation, least, most = np.moveaxis(sums, -1, 0)
    radius = crossing_boundary(variation, threshold=threshold, rho=rho)
    # fmax and fmin: what is not known may be anything that is possible.
    ends = np.stack([weight * np.fmax(total - radius, least), weight * np.fmin(total + radius, most)])
    return ends.min(axis=0).sum(axis=-1), ends.max(axis=0).sum(axis=-1)


def holm(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return p-values adjusted for their number: rejecting those <= alpha errs at all with probability <= alpha.

    The i-th smallest of m is multiplied by m - i + 1, and never falls below a smaller one's. Valid whatever the
    dependence of the tests (Holm. A simple sequentially rejective multiple test procedure. Scandinavian Journal of
    Statistics 6(2), 1979).

    >>> holm([0.01, 0.04, 0.03]).round(3)
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return adjusted
