"""The difference of two replays of one log, from the displays that only one of them showed.

Let S_A and S_B be the displays that two replays accepted in their first T rounds, where T does not depend on outcomes.
A display in both earns the same in both, so that it cancels from the difference of the two mean rewards:

    T (V_A - V_B) = sum of the rewards of S_A without S_B  -  sum of the rewards of S_B without S_A.

Let B run first, to its end. The rounds of A on displays that B did not show then reveal, one after the other, rewards
that nobody has seen, each with conditional mean r(x, a) given all of B's run and A's past: A's choice may depend on
what came before, but not on the reward itself. Their running mean therefore has the anytime-valid interval of
`evaluator.estimates.confidence`, at whatever number of rounds it ends. With the names exchanged the same holds of the
displays that only B showed. Each interval is taken at half the error and scaled by its number of rounds over T; their
difference is an interval for the difference of the mean expected rewards r(x, a) of what the two replays showed. That
is the *realised* difference of these two runs, not of what the policies would earn on another log.

Whatever the sampler, nothing else about how displays were accepted is used: this is the interval where a replay keeps
queues, or ends where the horizon was not fixed. Where both read the log in its order, the one of
`evaluator.estimates.contrast` is shorter. The more displays two replays share, the shorter the interval; of two that
showed the same displays the difference is 0 by definition.

References
----------
Howard, Ramdas, McAuliffe, Sekhon. Time-uniform, nonparametric, nonasymptotic confidence sequences. Annals of Statistics
49(2), 2021: the interval of each of the two sums. Their combination by a union bound is ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import ANYTIME, Interval, crossing_boundary, interval_ends, mixture_rho

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
PAIRED = f"paired, {ANYTIME}"
UNPAIRED = f"unpaired, {ANYTIME}"
# Beyond this a p-value is called 10^-300.
_LARGEST_THRESHOLD = 300 * np.log(10.0)
_HALVINGS = 50


class RewardSums(NamedTuple):
    """What the interval of some rounds needs of their rewards above the smallest possible, in widths of their range.

    Parameters
    ----------
    n
        Number of rounds, an array of any shape.
    total
        Sum of the rewards above the smallest, of the shape of `n`.
    variation
        Intrinsic time V_n of `evaluator.estimates.confidence.mean_sequence`, of the shape of `n`.
    """

    n: npt.NDArray[np.int64]
    total: Floats
    variation: Floats


def sums_of(rewards: Floats, *, upper: float, lower: float = 0.0) -> RewardSums:
    """Return the sums of rewards of rounds in order, shape (n,), each in [`lower`, `upper`]."""
    x = (rewards - lower) / (upper - lower)
    sums = np.cumsum(x)
    predicted = (0.5 + sums - x) / np.arange(1, x.size + 1)
    total = sums[-1] if x.size else 0.0
    return RewardSums(np.asarray(x.size), np.asarray(total), np.asarray(((x - predicted) ** 2).sum()))


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

    Parameters
    ----------
    shown_a, shown_b
        Numbers of the displays of each replay's first T rounds, in the order of its rounds, shape (T,).
    reward_a, reward_b
        Rewards of these rounds, shape (T,), in [`lower`, `upper`].
    upper, lower
        Largest and smallest possible reward of a display.
    """
    alone_a, alone_b = shown_alone(shown_a, shown_b)
    return (
        sums_of(reward_a[alone_a], upper=upper, lower=lower),
        sums_of(reward_b[alone_b], upper=upper, lower=lower),
    )


def shown_alone(
    shown_a: npt.NDArray[np.int64], shown_b: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which rounds of A, and which of B, have displays that the other did not show; arguments as above."""
    return rounds_of(shown_a, shown_b) < 0, rounds_of(shown_b, shown_a) < 0


def rounds_of(displays: Ints, shown: Ints) -> Ints:
    """Return the round, counted from 0, in which each of some displays was shown, -1 where it was not, shape (n,).

    O(T log T) time, nothing where displays were shown in the order of the log; memory of the rounds, not of the log.

    Parameters
    ----------
    displays
        Numbers of the displays asked about, shape (n,).
    shown
        Numbers of the displays shown, in the order of the rounds, no two the same, shape (T,).
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
        repeats, their mean (`evaluator.estimates.repeated`). Both have the same number of rounds, so that the smallest
        reward, which they count from, cancels.
    rounds
        Number of rounds T > 0 of A.
    upper, lower
        Largest and smallest possible reward of a round.
    alpha
        Probability that the interval fails.
    kind
        `PAIRED` or `UNPAIRED`, for reports.
    displays
        Number n that the interval names; None for the number of rounds in `a` and `b`.
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
    """Return the anytime-valid p-value of "A and B have the same mean" for each of several pairs.

    The smallest error at which the interval of the difference excludes 0, where the mixture behind its boundary is held
    at the one that the interval uses at `alpha`. Held, so that the intervals are nested: a mixture tuned anew for each
    error would give intervals that are not, and p-values that promise nothing.

    Parameters
    ----------
    a, b
        Sums of the rewards of A and of B, one entry a pair, shape (P,), as in `difference_of_sums`.
    alpha
        Error at which the interval excludes 0 if and only if the p-value is below it.
    ratio
        Number of rounds of A over that of B, shape (P,), as in `difference_of_sums`.

    Returns
    -------
    p
        P-value of each pair, shape (P,), in [1e-300, 1]. P(p <= x) <= x for every x where the means are the same.
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
