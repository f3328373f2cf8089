"""The realised difference of two replays: what their rewards say of it, its interval and its p-value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import ANYTIME, Interval, crossing_boundary, mixture_rho
from evaluator.estimates.contrast import Contrast, contrast
from evaluator.estimates.paired import PAIRED, UNPAIRED, RewardSums, difference_of_sums, discordant, p_values, sums_of
from evaluator.estimates.repeated import mean_sums
from evaluator.replays.plan import ReplayPlan

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

IN_ORDER = f"one sum in the order of the log, {ANYTIME}"
IN_ORDERS = "one sum in the order of each repeat, at its end (Howard et al. 2021; Vovk, Wang 2021)"
SAME = "both runs showed the same displays: 0 by definition, nothing was measured"


@dataclass(frozen=True)
class RealisedEvidence:
    """What the rewards of two replays' first T rounds say of their difference.

    Parameters
    ----------
    sums
        Sum of the differences along the log, or two sums of rewards where the log was not read in its order, or T is
        not fixed; mean over repeats.
    n
        Number of displays that may add to the difference, summed over repeats.
    displays
        Number of different displays among them.
    repeats
        Number of repeats of the replays.
    rounds
        Number of rounds T of each repeat.
    width
        Largest possible reward of a round less the smallest.
    kind
        Name of the method in reports.
    ratio
        Number of rounds of the variant over that of the reference: 1, unless either is the logging policy.
    """

    sums: Contrast | tuple[RewardSums, RewardSums]
    n: int
    displays: int
    repeats: int
    rounds: int
    width: float
    kind: str
    ratio: float = 1.0

    def interval(self, alpha: float) -> Interval:
        """Return the difference of the mean rewards with its interval, which fails with probability `alpha` at most."""
        if self.n == 0:
            return Interval(0.0, 0.0, 0.0, 0, 1.0 - alpha, SAME)
        of, share = self.sums, self.width / self.rounds
        if isinstance(of, Contrast):
            radius = of.radius(alpha=alpha)
            low, high = max(of.total - radius, of.least), min(of.total + radius, of.most)
            return Interval(share * of.total, share * low, share * high, self.displays, 1.0 - alpha, self.kind)
        return difference_of_sums(
            *self.sums, rounds=self.rounds, upper=self.width, alpha=alpha, kind=self.kind, displays=self.displays,
            ratio=self.ratio,
        )  # fmt: skip


def radii(evidence: Sequence[RealisedEvidence], alpha: Floats, *, tuned_at: float, more: float = 0.0) -> Floats:
    """Return the difference that a test tells from 0 by the p-values of `p_values_of`, for each of several logs.

    Parameters
    ----------
    evidence
        Evidence on one pair of policies, from n logs that are alike.
    alpha
        Error of the test on each log, shape (n,).
    tuned_at
        Error of one test alone, for which the mixture is tuned.
    more
        Variance that the difference is to have beyond that seen, in squared units of the difference.
    """
    share = np.array([of.width / of.rounds for of in evidence])
    extra = more / share**2
    one = isinstance(evidence[0].sums, Contrast)
    v = np.array([[of.sums.variation] if isinstance(of.sums, Contrast) else [s.variation for s in of.sums]
                  for of in evidence])  # fmt: skip
    parts = 2.0 if one else 4.0
    v = np.maximum(v + extra[:, None] / (1 if one else 2), v / 4)
    ends = crossing_boundary(v, threshold=np.log(parts / alpha)[:, None], rho=mixture_rho(tuned_at / parts))
    return np.asarray(share * ends.sum(axis=1))


def p_values_of(evidence: Sequence[RealisedEvidence], *, alpha: float) -> Floats:
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
            RewardSums(*(np.array([getattr(of[side], name) for _, of in two]) for name in RewardSums._fields))
            for side in (0, 1)
        )
        ratio = np.array([evidence[i].ratio for i, _ in two])
        p[[i for i, _ in two]] = p_values(a, b, alpha=alpha, ratio=ratio)
    return p


def in_order(a: ReplayPlan, b: ReplayPlan) -> bool:
    """Whether both replays decide on each display of the log in turn: all but those that keep a queue."""
    return "queue" not in (a.sampler, b.sampler)


def weigh(
    shown_a: Sequence[Ints],
    rewards_a: Sequence[Floats],
    shown_b: Sequence[Ints],
    rewards_b: Sequence[Floats],
    *,
    rounds: int,
    upper: float,
    lower: float = 0.0,
    ordered: bool,
    shared: bool,
) -> RealisedEvidence:
    """Return what two replays' rewards say of their difference.

    Parameters
    ----------
    shown_a, rewards_a, shown_b, rewards_b
        Displays and rewards of the first T rounds of both replays, repeat by repeat, shape (T,) each; of the logging
        policy, whose rounds are the log's displays in their order, those of all its rounds.
    rounds
        Number of rounds T of each repeat.
    upper, lower
        Largest and smallest possible reward of a round.
    ordered
        Whether both decided on one display after the other, in an order that they shared, and T was fixed before any
        outcome.
    shared
        Whether a display earns the same in both.
    """
    repeats = len(shown_a)
    width = upper - lower
    ratio = len(shown_a[0]) / len(shown_b[0])
    if ratio != 1.0:
        # Its first rounds would be of other days than those of the other, so nothing is paired.
        ordered = shared = False
    different = 0 if repeats == 1 else _different(shown_a, shown_b, shared=shared)
    # What a later round has not revealed yet may be a sale or a refund.
    if ordered and (shared or lower == 0.0):
        sums = contrast(shown_a, rewards_a, shown_b, rewards_b, upper=upper, lower=lower, shared=shared)
        kind = f"paired, {IN_ORDER if repeats == 1 else IN_ORDERS}"
        return RealisedEvidence(sums, sums.n, different or sums.n, repeats, rounds, width, kind)
    each = zip(shown_a, rewards_a, shown_b, rewards_b, strict=True)
    pairs = [
        discordant(*of, upper=upper, lower=lower)
        if shared
        else (sums_of(of[1], upper=upper, lower=lower), sums_of(of[3], upper=upper, lower=lower))
        for of in each
    ]
    n = sum(int(s.n) for pair in pairs for s in pair)
    a, b = (mean_sums(side) for side in zip(*pairs, strict=True))
    kind = PAIRED if shared else UNPAIRED
    return RealisedEvidence((a, b), n, different or n, repeats, len(shown_a[0]), width, kind, ratio)


def _different(shown_a: Sequence[Ints], shown_b: Sequence[Ints], *, shared: bool) -> int:
    """Return how many different displays may add to the difference in any repeat."""
    told = [np.setxor1d(a, b) if shared else np.union1d(a, b) for a, b in zip(shown_a, shown_b, strict=True)]
    return len(np.unique(np.concatenate(told)))
