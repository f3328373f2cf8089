"""The realised difference of two replays: what their rewards say of it, its interval and its p-value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.estimates.combine import average
from evaluator.estimates.confidence import ANYTIME, Interval, crossing_boundary, mixture_rho
from evaluator.estimates.contrast import Contrast, contrast
from evaluator.estimates.paired import PAIRED, UNPAIRED, Sums, difference_of_sums, discordant, p_values, sums_of
from evaluator.evaluation.plan import Plan

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

IN_ORDER = f"one sum in the order of the log, {ANYTIME}"
SAME = "both runs showed the same displays: 0 by definition, nothing was measured"


@dataclass(frozen=True)
class Evidence:
    """What the rewards of two replays' first T rounds say of their difference.

    Parameters
    ----------
    sums
        One sum along the log, or two for each repeat where the log was not read in its order, or T is not fixed.
    rounds
        T.
    upper
        Largest possible reward.
    kind
        For reports.
    """

    sums: Contrast | tuple[tuple[Sums, Sums], ...]
    rounds: int
    upper: float
    kind: str

    @property
    def repeats(self) -> int:
        """Repeats behind it."""
        return self.sums.repeats if isinstance(self.sums, Contrast) else len(self.sums)

    @property
    def n(self) -> int:
        """Displays that may add to the difference, summed over repeats."""
        return self.sums.n if isinstance(self.sums, Contrast) else sum(int(s.n) for pair in self.sums for s in pair)

    def interval(self, alpha: float) -> Interval:
        """Return the difference of the mean rewards with its interval, which fails with probability `alpha` at most."""
        if self.n == 0:
            return Interval(0.0, 0.0, 0.0, 0, 1.0 - alpha, SAME)
        of, share = self.sums, self.upper / self.rounds
        if isinstance(of, Contrast):
            radius = of.radius(alpha=alpha)
            low, high = max(of.total - radius, of.least), min(of.total + radius, of.most)
            return Interval(share * of.total, share * low, share * high, of.n, 1.0 - alpha, self.kind)
        return average(
            [
                difference_of_sums(*pair, rounds=self.rounds, upper=self.upper, alpha=alpha / len(of), kind=self.kind)
                for pair in of
            ]
        )


def radii(evidence: Sequence[Evidence], alpha: Floats, *, tuned_at: float, more: float = 0.0) -> Floats:
    """Return the difference that a test tells from 0 by the p-values of `p_values_of`, for each of several logs.

    Parameters
    ----------
    evidence
        Of one pair of policies on logs alike, shape (n,).
    alpha
        Error of the test on each, shape (n,).
    tuned_at
        The error of one test alone, which the mixture is tuned for.
    more
        What the variance of the difference is to have beyond that seen, in squared units of the difference.
    """
    share = np.array([of.upper / of.rounds for of in evidence])
    extra = more / share**2
    one = isinstance(evidence[0].sums, Contrast)
    v = np.array([[of.sums.variation] if isinstance(of.sums, Contrast) else [s.variation for p in of.sums for s in p]
                  for of in evidence])  # fmt: skip
    parts = 2.0 if one else 2.0 * v.shape[1]
    v = np.maximum(v + extra[:, None] / (1 if one else 2), v / 4)
    ends = crossing_boundary(v, threshold=np.log(parts / alpha)[:, None], rho=mixture_rho(tuned_at / parts))
    return np.asarray(share * ends.sum(axis=1) / (1 if one else v.shape[1] / 2))


def p_values_of(evidence: Sequence[Evidence], *, alpha: float) -> Floats:
    """Return the p-value of "no realised difference" of each; below `alpha` just where its interval leaves 0 out."""
    p = np.ones(len(evidence))
    two = []
    for i, of in enumerate(evidence):
        if isinstance(of.sums, Contrast):
            p[i] = of.sums.p(tuned_at=alpha) if of.n else 1.0
        else:
            two.append((i, of.sums))
    if two:
        a, b = (
            Sums(*(np.array([[getattr(of[r][side], name) for _, of in two] for r in range(len(two[0][1]))])
                   for name in Sums._fields))
            for side in (0, 1)
        )  # fmt: skip
        p[[i for i, _ in two]] = p_values(a, b, alpha=alpha)
    return p


def in_order(a: Plan, b: Plan) -> bool:
    """Whether both replays decide on each display of the log in turn: all but those that keep a queue."""
    return "queue" not in (a.sampler, b.sampler)


def weigh(
    shown_a: Sequence[Ints],
    rewards_a: Sequence[Floats],
    shown_b: Sequence[Ints],
    rewards_b: Sequence[Floats],
    *,
    displays: int,
    rounds: int,
    upper: float,
    ordered: bool,
    shared: bool,
) -> Evidence:
    """Return what two replays' rewards say of their difference.

    Parameters
    ----------
    shown_a, rewards_a, shown_b, rewards_b
        Displays and rewards of the first T rounds, repeat by repeat, shape (T,) each.
    displays
        Displays of the log.
    rounds
        T.
    upper
        Largest possible reward.
    ordered
        Whether both were shown in the order of the log, and T was fixed before any outcome.
    shared
        Whether a display earns the same in both.
    """
    if ordered:
        sums = contrast(shown_a, rewards_a, shown_b, rewards_b, displays=displays, upper=upper, shared=shared)
        return Evidence(sums, rounds, upper, f"paired, {IN_ORDER}")
    each = zip(shown_a, rewards_a, shown_b, rewards_b, strict=True)
    pairs = tuple(
        discordant(*of, displays=displays, upper=upper)
        if shared
        else (sums_of(of[1], upper=upper), sums_of(of[3], upper=upper))
        for of in each
    )
    return Evidence(pairs, rounds, upper, PAIRED if shared else UNPAIRED)
