"""Scores of truncated delays that show best whether delays become longer or shorter by a factor, and by which."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaluator.delays.product_limit import risk_table
from evaluator.delays.usable import Floats, Ticks

# Factors are looked for up to this one, and down to its inverse.
MOST = 20.0
_STEPS = 20
# Steps of the CDF.
_NARROW = 1e-6


@dataclass(frozen=True, eq=False)
class DelayScores:
    """Scores -log(1 - F(D)) of delays, and what their limits L make expected of them under one law F.

    With F the product limit of the delays (`evaluator.delays.product_limit`), the scores of a delay law are those of an
    exponential one, whatever the law: E[-log(1 - F(D)) | D <= L] = 1 + (1/t - 1) log(1 - t) with t = F(L). A distinct
    delay has the mean over its step of F. Delays in ticks.

    Parameters
    ----------
    support, cdf, steps
        Distinct delays, increasing, F at them, and the score of each, shape (J,).
    """

    support: Ticks
    cdf: Floats
    steps: Floats

    @classmethod
    def of(cls, delays: Ticks, limits: Ticks | None) -> DelayScores:
        """Return the scores of the law of these delays, of those whose weight the log identifies; O(n log n)."""
        table = risk_table(delays, np.full(delays.shape, delays.max()) if limits is None else limits)
        cdf = np.maximum(table.cdf(), 1e-300)
        before = np.append(0.0, cdf[:-1])
        mass = cdf - before
        middle = -np.log1p(-0.5 * (before + cdf))
        # Of narrow steps the difference would be rounding.
        steps = np.where(mass > _NARROW, np.diff(_below(np.append(0.0, cdf))) / np.maximum(mass, _NARROW), middle)
        return cls(table.support, cdf, steps)

    def scores(self, delays: Ticks) -> Floats:
        """Return the score of each delay, shape (n,); delays between two of the law's count as the longer one."""
        return self.steps[np.minimum(np.searchsorted(self.support, delays), self.support.size - 1)]

    def moments(self, limits: Ticks | None, rows: int, *, ratio: float = 1.0) -> tuple[Floats, Floats]:
        """Return mean and variance of the scores of delays that are `ratio` times as long, of at most each limit.

        Both of shape (rows,). A limit that no delay is within has none, which counts as 0 and 0.
        """
        mass = np.diff(self.cdf, prepend=0.0)
        moved = self.steps if ratio == 1.0 else np.interp(ratio * self.support, self.support, self.steps)
        if limits is None:
            within = np.full(rows, self.support.size)
        else:
            within = np.searchsorted(self.support, limits / ratio, side="right")
        last = np.maximum(within - 1, 0)
        total = self.cdf[last]
        mean = np.where(within > 0, np.cumsum(mass * moved)[last] / total, 0.0)
        variance = np.maximum(np.cumsum(mass * moved**2)[last] / total - mean**2, 0.0)
        return mean, np.where(within > 0, variance, 0.0)

    def ratio_of(self, limits: Ticks | None, rows: int, total: float) -> float | None:
        """Return the factor by which delays are longer than the law's if their scores add up to so much.

        None where it is above 20; 1 / 20 where it is below.
        """
        low, high = -math.log(MOST), math.log(MOST)
        if self.moments(limits, rows, ratio=MOST)[0].sum() < total:
            return None
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            enough = self.moments(limits, rows, ratio=math.exp(middle))[0].sum() >= total
            low, high = (low, middle) if enough else (middle, high)
        return math.exp(high)


def _below(t: Floats) -> Floats:
    """Return the integral of -log(1 - u) from 0 to t."""
    return t + (1.0 - t) * np.log(np.maximum(1.0 - t, 1e-300))
