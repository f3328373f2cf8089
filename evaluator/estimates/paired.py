"""The difference of two replays of one log: from the displays that only one showed, or by one sum along the log.

*In any order.* Let S_A and S_B be the displays that two replays accepted in their first T rounds, where T does not
depend on outcomes. A display in both earns the same in both, so that it cancels from the difference of the two mean
rewards:

    T (V_A - V_B) = sum of the rewards of S_A without S_B  -  sum of the rewards of S_B without S_A.

Let B run first, to its end. The rounds of A on displays that B did not show then reveal, one after the other, rewards
that nobody has seen, each with conditional mean r(x, a) given all of B's run and A's past: A's choice may depend on
what came before, but not on the reward itself. Their running mean therefore has the anytime-valid interval of
`evaluator.estimates.confidence`, at whatever number of rounds it ends. With the names exchanged the same holds of the
displays that only B showed. Each interval is taken at half the error and scaled by its number of rounds over T; their
difference is an interval for the difference of the mean expected rewards r(x, a) of what the two replays showed. That
is the *realised* difference of these two runs, not of what the policies would earn on another log.

Whatever the sampler, nothing else about how displays were accepted is used: this is the interval where a replay keeps
queues, or ends where the horizon was not fixed. The more displays two replays share, the shorter the interval; of two
that showed the same displays the difference is 0 by definition.

*In the order of the log* there is a shorter one. Replays that match displays (rejection, keep, the logging policy
itself) decide on each logged display before its reward reaches anybody: whether A shows display i in its first T
rounds, and whether B does, depends on the displays before i, on i's context and action, and on draws of their own. With
T fixed beforehand, let Y_i be what display i adds to A's total less what it adds to B's. Its sign is known before its
reward: + where A alone shows it, - where B alone does, 0 where both do and earn the same. Where rewards are those
revealed by the last round, both may show a display and earn differently; then the one that showed it in the earlier
round earns at least as much, and the sign is known again. So

    M_i = sum over displays j <= i of (Y_j - E[Y_j | all before])

is one martingale in the order of the log, and one interval holds for its end: nothing is spent on a second one, and the
errors of the two sides add like the sides of a right angle, not as widths. Each repeat reads the log in an order of its
own, which both replays share. With the means over the repeats of their sums and of their V the interval holds at their
end, whatever the repeats have in common, and at no further error (see *Repeats*).

A display shown by one replay alone adds its reward, in [a, b] with b - a = 1, or takes it away. With a prediction Y^_i
in the same range, |Y_i - Y^_i| <= 1, so that both M and -M, with V = sum (Y_i - Y^_i)^2, stay below the boundary of
`evaluator.estimates.confidence`. What the later of two rounds with one display has not revealed yet has a sign only
where no reward is negative: else the interval of any order takes such differences.

Why no shorter, normal interval, though T is fixed: V is not. Two policies cease to differ when one of them has seen
enough, and that stops the sum as a peeking analyst would. Of equal pairs that differ only until one looks worse by two
standard errors, a normal 95 % interval misses several times as many as it says (`tests/estimates/test_contrast.py`).

*Repeats.* One interval holds for the mean over several replays of the same log, no wider than that of one. Repeat r
plays T_r rounds. Let S_r be the sum of its rewards minus their conditional means, each given the repeat's own past, and
V_r the variation of `evaluator.estimates.confidence.mean_sequence`. For every lambda in [0, 1), exp(lambda S_r -
psi(lambda) V_r) at the end of the repeat has mean at most 1: it is a supermartingale in the repeat's own filtration,
begins at 1, and the repeat ends at a stopping time of it. The repeats show the same displays, so they depend on each
other in ways that nobody knows, and have no common filtration. But exp is convex: with the means over the repeats S, V
and T,

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
49(2), 2021: the boundary, the interval of each sum, and the supermartingales. Zhang, Janson, Murphy. Inference for
batched bandits. NeurIPS 2020: why estimates from adaptive choices are not normal. Vovk, Wang. E-values: calibration,
combination and applications. Annals of Statistics 49(3), 2021: the mean of e-values of any dependence is one. The union
bound over the two sums, the order in which both runs are one martingale, and that the mean may be taken inside exp are
ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import (
    ANYTIME,
    Interval,
    crossing_boundary,
    gamma_exponential_boundary,
    interval_ends,
    log_mixture,
    mean_intervals,
    middle,
    mixture_rho,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
PAIRED = f"paired, {ANYTIME}"
UNPAIRED = f"unpaired, {ANYTIME}"
REPEATED = "empirical Bernstein for the mean of repeats, at their end (Howard et al. 2021; Vovk, Wang 2021)"
# Beyond this a p-value is called 10^-300.
_LARGEST_THRESHOLD = 300 * np.log(10.0)
_HALVINGS = 50
# Rounds summed at a time.
_BLOCK = 65_536
# Displays a round beyond which those shown are looked up and not marked.
_SPARSE = 64
# Below this p-values are not told apart.
_SMALLEST = 1e-300


class RewardSums(NamedTuple):
    """What the interval of some rounds needs of their rewards above the smallest possible, in widths of their range.

    Number of rounds, of any shape; sum of these rewards, and intrinsic time V_n of
    `evaluator.estimates.confidence.mean_sequence`, of the same shape.
    """

    n: npt.NDArray[np.int64]
    total: Floats
    variation: Floats


def sums_of(rewards: Floats, *, upper: float, lower: float = 0.0) -> RewardSums:
    """Return the sums of rewards of rounds in order, shape (n,), each in [`lower`, `upper`]."""
    return SumsOfFirst(rewards, upper=upper, lower=lower).of(rewards.size)


class SumsOfFirst:
    """The sums of any first ones of the rewards of rounds in order, shape (n,), each in [`lower`, `upper`].

    Those of all are found in one pass; memory: 8 bytes a round.
    """

    def __init__(self, rewards: Floats, *, upper: float, lower: float = 0.0) -> None:
        self._rewards, self._lower, self._width = rewards, lower, upper - lower
        self._squares = np.empty(rewards.size)
        # Sums before each block, and at the end.
        self._before = [0.0]
        for start in range(0, rewards.size, _BLOCK):  # so that what is made on the way stays in the cache
            x, sums = self._block(start, start + _BLOCK)
            predicted = 0.5 + sums
            predicted -= x
            predicted /= np.arange(start + 1.0, start + x.size + 1.0)
            x -= predicted
            np.multiply(x, x, out=self._squares[start : start + _BLOCK])
            self._before.append(float(sums[-1]))

    def _block(self, start: int, end: int) -> tuple[Floats, Floats]:
        """Return rewards of a block, in widths of their range, and the sums of all up to each of them."""
        x = self._rewards[start:end] - self._lower
        x /= self._width
        sums = x.copy()
        sums[0] += self._before[start // _BLOCK]
        np.cumsum(sums, out=sums)
        return x, sums

    def of(self, n: int) -> RewardSums:
        """Return the sums of the first n rewards."""
        blocks, rest = divmod(n, _BLOCK)
        total = self._before[-1] if n == self._squares.size else self._before[blocks]
        if rest and n < self._squares.size:
            total = float(self._block(n - rest, n)[1][-1])
        return RewardSums(np.asarray(n), np.asarray(total), np.asarray(self._squares[:n].sum()))


def discordant(
    shown_a: npt.NDArray[np.int64],
    reward_a: Floats,
    shown_b: npt.NDArray[np.int64],
    reward_b: Floats,
    *,
    upper: float,
    lower: float = 0.0,
) -> tuple[RewardSums, RewardSums]:
    """Return the sums of the rewards of the displays that only A and that only B showed.

    Displays and rewards are those of each replay's first T rounds, in the order of its rounds, shape (T,).
    """
    alone_a, alone_b = shown_alone(shown_a, shown_b)
    return (sums_of(reward_a[alone_a], upper=upper, lower=lower), sums_of(reward_b[alone_b], upper=upper, lower=lower))


def shown_alone(
    shown_a: npt.NDArray[np.int64], shown_b: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which rounds of A, and which of B, have displays that the other did not show; arguments as above.

    O(T) time, and memory of a byte for each display up to the last one, where they are no more than `_SPARSE` a round.
    """
    last = int(max(shown_a.max(initial=-1), shown_b.max(initial=-1)))
    if last > _SPARSE * (len(shown_a) + len(shown_b)):
        return rounds_of(shown_a, shown_b) < 0, rounds_of(shown_b, shown_a) < 0
    by = np.zeros(last + 1, np.int8)
    by[shown_a] = 1
    by[shown_b] += 2
    return by[shown_a] == 1, by[shown_b] == 2


def rounds_of(displays: Ints, shown: Ints) -> Ints:
    """Return the round, counted from 0, in which each of some displays was shown, -1 where it was not, shape (n,).

    Displays shown are in the order of the rounds, no two the same, shape (T,). O(T log T) time, nothing where that is
    the order of the log; memory of the rounds, not of the log.
    """
    if not len(shown):
        return np.full(len(displays), -1, np.int64)
    in_order = bool((shown[1:] > shown[:-1]).all())
    order = None if in_order else np.argsort(shown)
    ordered = shown if order is None else shown[order]
    at = np.minimum(np.searchsorted(ordered, displays), len(shown) - 1)
    found: Ints = np.where(ordered[at] == displays, at if order is None else order[at], -1)
    return found


def difference_of_sums(
    a: RewardSums,
    b: RewardSums,
    *,
    rounds: int,
    upper: float,
    lower: float = 0.0,
    alpha: float,
    kind: str = PAIRED,
    displays: int | None = None,
    ratio: float = 1.0,
) -> Interval:
    """Return the difference of the mean rewards of A and B, with its interval.

    Parameters
    ----------
    a, b
        Sums of the rewards of the displays that only A and that only B showed, from `discordant`; or, where rewards of
        one display differ between the two, of all their rounds, which gives the longer, unpaired interval. For several
        repeats, their mean (`evaluator.estimates.paired`). Both have the same number of rounds, so that the smallest
        reward, which they count from, cancels.
    rounds, alpha
        Number of rounds T > 0 of A; probability that the interval fails.
    upper, lower
        Largest and smallest possible reward of a round.
    kind, displays
        `PAIRED` or `UNPAIRED`, for reports; number n that the interval names, None for that of rounds in `a` and `b`.
    ratio
        Number of rounds of A over that of B, where those of B, of all its rounds, are not T, too.

    Examples
    --------
    >>> a, b = discordant(
    ...     np.array([0, 2, 3]), np.array([1.0, 0.0, 1.0]), np.array([0, 1, 3]), np.array([1.0, 1.0, 1.0]),
    ...     upper=1.0,
    ... )  # fmt: skip
    >>> difference = difference_of_sums(a, b, rounds=3, upper=1.0, alpha=0.05)
    >>> round(difference.estimate, 3), difference.n
    (-0.333, 2)
    """
    share = (upper - lower) / rounds
    (low_a, high_a), (low_b, high_b) = (
        interval_ends(s.total, s.variation, s.n, upper=1.0, alpha=alpha / 2) for s in (a, b)
    )
    return Interval(
        estimate=float(share * (a.total - ratio * b.total)),
        low=float(share * (a.n * low_a - ratio * b.n * high_b)),
        high=float(share * (a.n * high_a - ratio * b.n * low_b)),
        n=int(a.n + b.n) if displays is None else displays,
        level=1.0 - alpha,
        kind=kind,
    )


def p_values(a: RewardSums, b: RewardSums, *, alpha: float, ratio: Floats | float = 1.0) -> Floats:
    """Return the anytime-valid p-value of "A and B have the same mean" for each of several pairs, shape (P,).

    The smallest error at which the interval of the difference excludes 0, where the mixture behind its boundary is held
    at the one that the interval uses at `alpha`. Held, so that the intervals are nested: a mixture tuned anew for each
    error would give intervals that are not, and p-values that promise nothing. The interval at `alpha` excludes 0 if
    and only if the p-value is below it.

    Sums and ratio are those of `difference_of_sums`, one entry a pair, shape (P,). The p-values lie in [1e-300, 1], and
    P(p <= x) <= x for every x where the means are the same.
    """
    # Two sides of two intervals.
    parts = 4.0
    rho = mixture_rho(alpha / parts)
    ahead = a.total >= ratio * b.total
    of_more, of_less = np.where(ahead, 1.0, ratio), np.where(ahead, ratio, 1.0)
    more, less = (
        RewardSums(*(np.where(ahead, x, y) for x, y in zip(pair, other, strict=True)))
        for pair, other in ((a, b), (b, a))
    )

    def excluded(threshold: Floats) -> npt.NDArray[np.bool_]:
        low = np.maximum(more.total - crossing_boundary(more.variation, threshold=threshold, rho=rho), 0.0)
        high = np.minimum(less.total + crossing_boundary(less.variation, threshold=threshold, rho=rho), less.n)
        return np.asarray(of_more * low > of_less * high)

    smallest = np.full(len(a.n), np.log(parts))
    low, high = smallest, np.full_like(smallest, np.log(parts) + _LARGEST_THRESHOLD)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        out = excluded(middle)
        low, high = np.where(out, middle, low), np.where(out, high, middle)
    return np.asarray(np.exp(np.log(parts) - low))


class Contrast(NamedTuple):
    """The difference of two totals, in widths of the rewards' range, mean over repeats.

    `total` is the sum of the differences Y_i, `variation` V of the squared errors of their predictions; `least` and
    `most` are the smallest and largest sum that the signs of the differences allow, and `n` is the number of displays
    with a sign, summed over repeats.
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

    Numbers and rewards of the displays are those of each replay's first T rounds, in the order of the rounds, shape
    (T,) each; `shared` says whether a display earns the same in both, as it does unless `lower` is 0.

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
    """Return the sum of differences whose signs are known: of each repeat sign and sizes, in the order they come."""
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
    alone_a, alone_b = shown_alone(shown_a, shown_b)
    kinds = [(1, reward_a[alone_a]), (-1, reward_b[alone_b])]
    if shared:
        return kinds
    own = np.flatnonzero(~alone_a)
    other = rounds_of(shown_a[own], shown_b)
    gain = reward_a[own] - reward_b[other]
    for sign, which in ((1, own < other), (-1, own > other)):
        kinds.append((sign, sign * gain[which]))
    return kinds


def difference(a: Interval, b: Interval) -> Interval:
    """Return the interval of a - b; its level is 1 minus both errors.

    No independence is used: an interval at level 1 - a and one at level 1 - b both hold with probability 1 - a - b, and
    then so does what is computed from their ends.
    """
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


def mean_sums(of: Sequence[RewardSums]) -> RewardSums:
    """Return the mean over repeats of their sums; those of one repeat as they are."""
    if len(of) == 1:
        return of[0]
    return RewardSums(*(np.mean([getattr(each, name) for each in of], axis=0) for name in RewardSums._fields))


def repeated_intervals(
    rewards: Sequence[Floats], *, upper: float, lower: float = 0.0, alphas: Sequence[float], displays: int
) -> list[Interval]:
    """Return the mean reward of all rounds of several repeats, with the interval that fails with each probability.

    Rewards of the rounds of each repeat are in order, shape (T_r,), in [`lower`, `upper`]. Should one have no rounds,
    nothing is known. Of a single repeat the intervals are those of `mean_intervals`. Their n is the number of different
    displays that the repeats showed. One pass over the rewards.
    """
    if len(rewards) == 1 or not all(len(x) for x in rewards):
        x = rewards[0] if len(rewards) == 1 else np.zeros(0)
        return mean_intervals(x, upper=upper, lower=lower, alphas=alphas)
    width = upper - lower
    of = mean_sums([sums_of(x, upper=upper, lower=lower) for x in rewards])
    estimate = float(lower + width * of.total / of.n)
    found = []
    for alpha in alphas:
        low, high = (lower + end for end in interval_ends(of.total, of.variation, of.n, upper=width, alpha=alpha))
        found.append(Interval(estimate, float(low), float(high), displays, 1.0 - alpha, REPEATED))
    return found
