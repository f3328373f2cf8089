"""Which difference two policies must have for a comparison to tell them apart: measured on twins, planned from them.

On each twin the comparison tells the difference d from 0 if it lies beyond the half-width h of its test: at the error
of one test for the pair alone, at the one that Holm's method leaves it for a ranking, given the other pairs of that
twin. The share of the twins on which it does is the power at the truth's own difference.

For another difference D, let the pair choose as it does on the twins, and what is chosen by the better policy pay more
(or less) by D - |d_live| on average. The margin d - h then moves with D, and a fifth of the twins fall short where

    D = mean h + max(z_.8 s, what a fifth of the twins fall short of the mean margin by),   s the spread of the margins.

Neither h nor s stays as it was. With conversions worth w = E[v^2]/E[v], those that the better policy has more of add
e = (D - |d|) (w - 2r - c) / T to the variance of the difference: r is the reward per round, c what each display that
only the better one showed earns more. So D is solved for with s^2 + e, and with V as e makes it. At small rates this is
most of the variance, and a spread taken at the fitted truth promises too much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.audits.replays import MeasuredDifference
from evaluator.audits.result import DetectableDifference
from evaluator.comparisons.differences import p_values_of, radii
from evaluator.estimates.standard_errors import widened_by

Floats = npt.NDArray[np.float64]

POWER, _Z80 = 0.8, 0.8416212335729143
# One-sided, for what is promised and what is denied.
_SURE = 0.95
_Z95 = 1.6448536269514722
_STEPS = 8


class LargerDifference(NamedTuple):
    """What a larger difference would be made of: the reward per round, and w of its conversions."""

    reward: float
    worth: float


class PairPower(NamedTuple):
    """What is detectable of one pair, alone and in the ranking of all: by what the runs showed, and by expected values.

    Expected values are those of a bootstrap.
    """

    alone: DetectableDifference
    ranked: DetectableDifference
    expected: DetectableDifference
    expected_ranked: DetectableDifference


def powers(
    pairs: Sequence[Sequence[MeasuredDifference]],
    live: Sequence[float],
    worlds: Sequence[LargerDifference],
    *,
    level: float,
) -> list[PairPower]:
    """Return what a comparison of these policies could tell.

    `pairs` are the differences measured between the two policies of each pair, one a twin; `live` is the live
    difference of each pair in reward per round, and `worlds` the reward and conversions that a larger one would be made
    of. `level` is the confidence level of each test alone, and of all tests of the ranking at once.
    """
    from scipy.special import ndtri

    alpha = 1.0 - level
    measured = [[of for of in pair if of.evidence is not None] for pair in pairs]
    p = np.array([p_values_of([of.evidence for of in pair if of.evidence], alpha=alpha) for pair in measured])
    left = alpha / left_by_holm(p, alpha=alpha) if len(pairs) else p
    z, z_ranked = (float(ndtri(1.0 - alpha / (2 * m))) for m in (1, max(len(pairs), 1)))
    found = []
    for i, (pair, difference, world) in enumerate(zip(measured, live, worlds, strict=True)):
        plan = _Plan(pair, difference, world, alpha=alpha)
        alone = np.full(len(pair), alpha)
        found.append(PairPower(plan.realised(alone), plan.realised(left[i]), plan.expected(z), plan.expected(z_ranked)))
    return found


def left_by_holm(p: Floats, *, alpha: float) -> Floats:
    """Return by how much the error alpha of each of m tests is divided once the others are tested.

    Holm's method rejects the l smallest of the others while they are at most alpha / m, alpha / (m - 1), ...; this one
    then needs alpha / (m - l), wherever it stands among them. P-values, and what is returned, are of shape (m, n), n
    logs.

    >>> left_by_holm(np.array([[0.001], [0.02], [0.5]]), alpha=0.05).ravel()
    array([3., 2., 1.])
    """
    m = len(p)
    limits = alpha / np.arange(m, 1, -1.0)[:, None]
    divisors = np.empty_like(p)
    for i in range(m):
        others = np.sort(np.delete(p, i, axis=0), axis=0)
        divisors[i] = m - np.cumprod(others <= limits, axis=0).sum(axis=0)
    return divisors


class _Plan:
    """One pair on all twins."""

    def __init__(
        self, pair: Sequence[MeasuredDifference], live: float, world: LargerDifference, *, alpha: float
    ) -> None:
        self._evidence = [of.evidence for of in pair if of.evidence]
        self._alpha = alpha
        self._world = world
        self._found = np.array([of.interval.estimate for of in pair])
        self._live = abs(live)
        sign = float(np.sign(live))
        # Where neither is better, a difference of either sign is planned for: the one that needs more.
        self._signs = (sign,) if sign else (1.0, -1.0)
        self._rounds = float(np.mean([of.rounds for of in self._evidence]))
        repeats = np.maximum([of.repeats for of in self._evidence], 1)
        self._alone = float(np.mean([of.n for of in self._evidence] / repeats)) / 2

    def realised(self, alpha: Floats) -> DetectableDifference:
        """Return it for tests at these errors, one a twin."""

        def half_width(more: float) -> Floats:
            return radii(self._evidence, alpha, tuned_at=self._alpha, more=more)

        return self._solve(half_width)

    def expected(self, z: float) -> DetectableDifference:
        """Return it for a test by a bootstrap, whose values scatter as those of the twins nearly do."""
        variance = float(self._found.var(ddof=1))
        wide = z * (widened_by(self._found, level=1.0 - self._alpha) if variance else 1.0)

        def half_width(more: float) -> Floats:
            return np.full(len(self._found), wide * max(variance + more, variance / 4) ** 0.5)

        return self._solve(half_width, estimated=wide)

    def _solve(self, half_width: Any, *, estimated: float = 0.0) -> DetectableDifference:
        from scipy.special import chdtri

        if not self._alone:  # both showed the same displays on every twin: nothing says what they could differ by
            return DetectableDifference(math.nan, math.nan, math.nan, math.nan, 0.0)
        seen, twins = half_width(0.0), len(self._found)
        short, spread = max(_short(sign * self._found - seen) for sign in self._signs)
        more, h = 0.0, seen
        for _ in range(_STEPS):
            scale = max(1.0 + more / spread**2, 0.25) ** 0.5 if spread > 0 else 1.0
            difference = float(h.mean()) + scale * short
            more = self._more(difference)
            h = half_width(more)
        z = (short / spread if spread > 0 else 0.0) + estimated
        spread *= scale
        error = float(np.hypot(h.std(ddof=1) / twins**0.5, z * spread / (2.0 * (twins - 1)) ** 0.5))
        sure = _Z95 * float(h.std(ddof=1)) / twins**0.5
        # Bounds of a standard deviation, from the chi-squared law.
        low, high = (((twins - 1) / float(chdtri(twins - 1, tail))) ** 0.5 - 1.0 for tail in (1.0 - _SURE, _SURE))
        told = np.mean(np.any([sign * self._found > seen for sign in self._signs], axis=0))
        return DetectableDifference(
            difference, error, difference - sure + z * spread * low, difference + sure + z * spread * high, float(told)
        )

    def _more(self, difference: float) -> float:
        """Return what the variance of the difference has more of where it is this large."""
        gap = difference - self._live
        each = gap * self._rounds / self._alone if self._alone else 0.0
        return gap / self._rounds * max(self._world.worth - 2.0 * self._world.reward - each, 0.0)


def _short(margin: Floats) -> tuple[float, float]:
    """Return by how much a fifth of the margins fall short of their mean, and their spread."""
    spread = float(margin.std(ddof=1))
    return max(_Z80 * spread, float(margin.mean() - np.quantile(margin, 1.0 - POWER))), spread
