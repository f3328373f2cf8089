"""The difference of two replays that read one log in its order, as a single sum along the log.

Replays that match displays (rejection, keep, the logging policy itself) decide on each logged display before its reward
reaches anybody: whether A shows display i in its first T rounds, and whether B does, depends on the displays before i,
on i's context and action, and on draws of their own. With T fixed beforehand, let Y_i be what display i adds to A's
total less what it adds to B's. Its sign is known before its reward: + where A alone shows it, - where B alone does, 0
where both do and earn the same. Where rewards are those revealed by the last round, both may show a display and earn
differently; then the one that showed it in the earlier round earns at least as much, and the sign is known again. So

    M_i = sum over displays j <= i of (Y_j - E[Y_j | all before])

is one martingale in the order of the log, and one interval holds for its end: nothing is spent on a second one, and the
errors of the two sides add like the sides of a right angle. (`evaluator.estimates.paired`, for any order, takes each
side's interval at half the error and adds their widths.) Each repeat reads the log in an order of its own, which both
replays share. With the means over the repeats of their sums and of their V the interval holds at their end, whatever
the repeats have in common, and at no further error (`evaluator.estimates.repeated`).

A display shown by one replay alone adds its reward, in [a, b] with b - a = 1, or takes it away. With a prediction Y^_i
in the same range, |Y_i - Y^_i| <= 1, so that both M and -M, with V = sum (Y_i - Y^_i)^2, stay below the boundary of
`evaluator.estimates.confidence`. What the later of two rounds with one display has not revealed yet has a sign only
where no reward is negative: else `evaluator.estimates.paired` takes such differences.

Why no shorter, normal interval, though T is fixed: V is not. Two policies cease to differ when one of them has seen
enough, and that stops the sum as a peeking analyst would. Of equal pairs that differ only until one looks worse by two
standard errors, a normal 95 % interval misses several times as many as it says (`tests/estimates/test_contrast.py`).

References
----------
Howard, Ramdas, McAuliffe, Sekhon. Time-uniform, nonparametric, nonasymptotic confidence sequences. Annals of Statistics
49(2), 2021: the boundary. Zhang, Janson, Murphy. Inference for batched bandits. NeurIPS 2020: why estimates from
adaptive choices are not normal. The order in which both runs are one martingale is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import Interval, gamma_exponential_boundary, log_mixture, middle, mixture_rho
from evaluator.estimates.paired import rounds_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Below this p-values are not told apart.
_SMALLEST = 1e-300


class Contrast(NamedTuple):
    """The difference of two totals, in widths of the rewards' range, mean over repeats.

    Parameters
    ----------
    total
        Sum of the differences Y_i, mean over repeats.
    variation
        Sum V of the squared errors of their predictions, mean over repeats.
    least, most
        Smallest and largest sum that the signs of the differences allow.
    n
        Number of displays with a sign, summed over repeats.
    """

    total: float
    variation: float
    least: float
    most: float
    n: int

    def radius(self, *, alpha: float) -> float:
        """Return the half-width of the interval that fails with probability `alpha` at most."""
        return float(gamma_exponential_boundary([self.variation], alpha=alpha / 2)[0])

    def p(self, *, tuned_at: float) -> float:
        """Return the p-value of "the two have the same mean": 2 / m(|sum|, V) of the mixture tuned for this error."""
        if self.total == 0.0:
            return 1.0
        rho = mixture_rho(tuned_at / 2)
        value, _ = log_mixture(np.array([abs(self.total)]), np.array([self.variation]), rho)
        return float(min(max(2.0 * math.exp(-min(float(value[0]), 700.0)), _SMALLEST), 1.0))


def contrast(
    shown_a: Sequence[Ints],
    rewards_a: Sequence[Floats],
    shown_b: Sequence[Ints],
    rewards_b: Sequence[Floats],
    *,
    upper: float,
    lower: float = 0.0,
    shared: bool,
) -> Contrast:
    """Return the difference of two replays that showed these displays, repeat by repeat.

    Parameters
    ----------
    shown_a, shown_b
        Numbers of the displays of each replay's first T rounds, in the order of the rounds, shape (T,) each.
    rewards_a, rewards_b
        Rewards of these rounds, shape (T,) each, in [`lower`, `upper`].
    upper, lower
        Largest and smallest possible reward of a display.
    shared
        Whether a display earns the same in both replays; they do unless `lower` is 0.

    Examples
    --------
    >>> both = contrast(
    ...     [np.array([0, 2, 3])], [np.array([1.0, 0.0, 1.0])], [np.array([0, 1, 3])], [np.array([1.0, 1.0, 1.0])],
    ...     upper=1.0, shared=True,
    ... )  # fmt: skip
    >>> both.total, both.least, both.most, both.n
    (-1.0, -1.0, 1.0, 2)
    """
    each = zip(shown_a, rewards_a, shown_b, rewards_b, strict=True)
    return contrast_of([_signed(*of, shared=shared) for of in each], upper=upper, lower=lower)


def contrast_of(repeats: Sequence[Sequence[tuple[int, Floats]]], *, upper: float, lower: float = 0.0) -> Contrast:
    """Return the sum of differences whose signs are known.

    Parameters
    ----------
    repeats
        Differences of each repeat, in the order in which they come: their sign, and their sizes, shape (n,).
    upper, lower
        Largest and smallest possible reward of a display.
    """
    width, start = upper - lower, middle(lower, upper)
    total, variation, least, most, n = 0.0, 0.0, 0.0, 0.0, 0
    for sign, earned in (one for repeat in repeats for one in repeat):
        y = earned / width
        before = np.cumsum(y) - y
        variation += float(((y - (start + before) / np.arange(1, y.size + 1)) ** 2).sum())
        total += sign * float(y.sum())
        ends = sorted((sign * lower / width, sign * upper / width))
        least, most = least + ends[0] * y.size, most + ends[1] * y.size
        n += y.size
    count = len(repeats)
    return Contrast(total / count, variation / count, least / count, most / count, n)


def _signed(
    shown_a: Ints, reward_a: Floats, shown_b: Ints, reward_b: Floats, *, shared: bool
) -> list[tuple[int, Floats]]:
    """Return (sign, |Y| in order) of each kind of display that may add to the difference."""
    of_a, of_b = rounds_of(shown_a, shown_b), rounds_of(shown_b, shown_a)
    alone_a, alone_b = of_a < 0, of_b < 0
    kinds = [(1, reward_a[alone_a]), (-1, reward_b[alone_b])]
    if shared:
        return kinds
    both = ~alone_a
    own, other = np.flatnonzero(both), of_a[both]
    gain = reward_a[own] - reward_b[other]
    for sign, which in ((1, own < other), (-1, own > other)):
        kinds.append((sign, sign * gain[which]))
    return kinds


# No independence is used: an interval at level 1 - a and one at level 1 - b both hold with probability 1 - a - b,
# and then so does what is computed from their ends.


def difference(a: Interval, b: Interval) -> Interval:
    """Return the interval of a - b; its level is 1 minus both errors."""
    return Interval(
        estimate=a.estimate - b.estimate,
        low=a.low - b.high,
        high=a.high - b.low,
        n=min(a.n, b.n),
        level=a.level + b.level - 1.0,
        kind=a.kind,
    )


def unknown(a: Interval) -> Interval:
    """Return an interval that says nothing, in the place of one that would mislead: all nan."""
    return replace(a, estimate=math.nan, low=math.nan, high=math.nan)


def scaled(a: Interval, factor: float) -> Interval:
    """Return the interval of a times a positive factor."""
    return replace(a, estimate=a.estimate * factor, low=a.low * factor, high=a.high * factor)
