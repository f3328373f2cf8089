"""How much more one policy that does not learn would earn than another, from displays that a third one chose.

Both policies are weighted on the same displays, so what they share cancels display by display. With the weights w_i of
`evaluator.estimates.weighted` (all 1 for the logging policy itself) and its self-normalised values V_A and V_B, the
difference V_A - V_B has, display by display, the influence

    z_i = w_i^A (Y_i - V_A) / mean(w^A)  -  w_i^B (Y_i - V_B) / mean(w^B),

whose mean is 0; the standard error of the difference is that of the mean of z. So it is much shorter than the intervals
of the two values are together: where both show the logged action alike, z_i is next to 0.

*Intervals* rest on the normal law and are good for one look. Rare rewards and heavy weights make z skewed, and then
the normal interval misses on one side more than on the other. Its shift by the skewness (Hall 1983) mends that where
the skewness is known well, and takes from the other end what may be needed there. Each end here is the wider one of
the normal interval's and the shifted one's: the two reach s g (1 + 2 z²) / (6 sqrt(n)) further on the side of the long
tail, g the skewness of the n terms. An interval that is shifted is not symmetrical. Where displays hang together, s and
g are those of sums over clusters, n is their number, and the law is Student's.

*When there is one.* From `evaluator.estimates.standard_errors.NEEDED` rewards on, counted on the weights of each
policy. Not on the differences z: most of these are of displays that neither policy makes heavy, and a count of them
promises much. Of money, whose large values are the rare ones, the end on the side of the long tail is hardly known
below `NEEDED_OF_MONEY` rewards: the largest values have perhaps not been seen yet. Nothing is to be concluded from it
then.

References
----------
Hall. Inverting an Edgeworth expansion. Annals of Statistics 11, 1983.
Hampel. The influence curve and its role in robust estimation. JASA 69, 1974.
Swaminathan, Joachims. The self-normalized estimator for counterfactual learning. NIPS 2015.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from evaluator.estimates.confidence import Interval
from evaluator.estimates.standard_errors import (
    NEEDED,
    cluster_sums,
    clustered_error,
    clusters_text,
    effective,
    equal_rewards,
    missing,
    too_few,
)
from evaluator.estimates.weighted import CALIBRATED, Codes, Floats, WeightedValue
from evaluator.results.json_documents import ShareOrNull

# Rewards of equal weight from which on both ends hold where rewards differ in size: `python -m tests.bench.frozen`.
NEEDED_OF_MONEY = 200
SAME = "both show every action with the same probability at every display: 0 by definition, nothing was measured"
# Weights that differ by less differ by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class WeightedDifference(WeightedValue):
    """A difference of two weighted values with its standard error.

    Parameters
    ----------
    p
        P-value of "the two policies earn the same", for this one test; 1 where nothing is concluded from the end
        towards 0, nan where there is no difference.
    low_known, high_known
        Whether there are rewards enough to conclude anything from this end of the interval.
    """

    p: ShareOrNull = math.nan
    low_known: bool = True
    high_known: bool = True

    def turned(self) -> WeightedDifference:
        """Return the difference seen from the other side."""
        of = self.value
        value = replace(of, estimate=0.0 - of.estimate, low=0.0 - of.high, high=0.0 - of.low)
        return replace(
            self, value=value, skewness=0.0 - self.skewness, low_known=self.high_known, high_known=self.low_known
        )


@dataclass(frozen=True, eq=False)
class Influence:
    """A policy's value, nan where no display has weight, and how much each display moves it, of mean 0, shape (n,).

    `rewards` is the number of rewards of equal weight that the value rests on (`evaluator.estimates.standard_errors`);
    `off` is a clause that says that the weights are not those of the policy, as their mean tells; empty where they may
    be.
    """

    value: float
    terms: Floats
    rewards: float
    off: str = ""


def influence(reward: Floats, weight: Floats | None, *, clusters: Codes | None = None) -> Influence:
    """Return the self-normalised value of a policy on some displays, with the influence of each.

    Rewards, weights, None for the policy that showed the displays, and clusters, None where displays are independent,
    have shape (n,).
    """
    if weight is None:
        value = float(reward.mean()) if reward.size else math.nan
        terms = reward - value
        return Influence(value, terms, equal_rewards(np.ones(reward.size), reward, terms))
    total = float(weight.sum())
    if not total > 0.0:
        return Influence(math.nan, np.zeros(reward.size), 0.0)
    value = float(weight @ reward) / total
    terms = reward - value
    terms *= weight
    rewards = equal_rewards(weight, reward, terms)
    terms *= reward.size / total
    return Influence(value, terms, rewards, _off(weight, clusters))


def _off(weight: Floats, clusters: Codes | None) -> str:
    mean, n = float(weight.mean()), weight.size
    error = float(weight.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    if clusters is not None:
        error = max(error, clustered_error(weight, clusters))
    if not abs(mean - 1.0) > CALIBRATED * error + _ROUNDING:
        return ""
    return (
        f"the mean weight is {mean:.3g} (standard error {error:.2g}), where it is 1 if propensities are right and each "
        "action that it shows was shown"
    )


@dataclass(frozen=True)
class PairedValues:
    """What some displays say of the difference of two policies' values, at any level.

    Parameters
    ----------
    estimate, error
        Difference, and its standard error.
    displays, terms
        Number of displays; and of displays, or of clusters, whose sums are independent.
    skewness, freedom
        Skewness of the influence of a display, or of a cluster; degrees of freedom of Student's law, inf for the normal
        one.
    rewards
        Number of rewards of equal weight that the value of either policy rests on, the less of both.
    off
        Clause that says that weights are wrong; empty where they may be right.
    money, same
        Whether rewards differ in size; whether both policies show every action with the same probability at every
        display.
    """

    estimate: float
    error: float
    displays: int
    skewness: float
    terms: int
    freedom: float
    rewards: float
    off: str
    money: bool
    same: bool

    @property
    def withheld(self) -> str:
        """Clause that says why there is no difference; empty where there is one."""
        if self.same:
            return ""
        if self.rewards < NEEDED:
            return missing(self.rewards)
        if self.off:
            return self.off
        return "the displays are worth too few clusters to tell how much these vary" if self.freedom <= 0 else ""

    def difference(self, level: float) -> WeightedDifference:
        """Return the difference with its interval at a level, as good as one look at it."""
        if self.same:
            nothing = Interval(0.0, 0.0, 0.0, 0, level, SAME)
            return WeightedDifference(nothing, 0.0, math.nan, self.rewards, p=1.0)
        if withheld := self.withheld:
            none = Interval(math.nan, math.nan, math.nan, self.displays, level, self._kind)
            return WeightedDifference(none, math.nan, self.skewness, self.rewards, withheld)
        z = self._quantile(0.5 + level / 2.0)
        shift = self._shift * (1.0 + 2.0 * z**2)
        low, high = -z + min(shift, 0.0), z + max(shift, 0.0)
        value = Interval(
            self.estimate,
            self.estimate + self.error * low,
            self.estimate + self.error * high,
            self.displays,
            level,
            self._kind,
        )
        few = self.money and self.rewards < NEEDED_OF_MONEY
        known = (not few or self.skewness >= 0.0, not few or self.skewness < 0.0)
        return WeightedDifference(
            value,
            self.error,
            self.skewness,
            self.rewards,
            p=self._p() if known[self.estimate < 0.0] else 1.0,
            low_known=known[0],
            high_known=known[1],
        )

    @property
    def _kind(self) -> str:
        law = "normal" if math.isinf(self.freedom) else f"Student's t by {clusters_text(self.freedom + 1.0)}"
        return f"paired weighted difference (SNIPS), {law}, widened for skewness (Hall 1983)"

    @property
    def _shift(self) -> float:
        """Shift of an end, in standard errors, per (1 + 2 z²)."""
        return 0.0 if math.isnan(self.skewness) else self.skewness / (6.0 * math.sqrt(self.terms))

    def _quantile(self, share: float) -> float:
        from scipy.special import ndtri, stdtrit

        return float(ndtri(share) if math.isinf(self.freedom) else stdtrit(self.freedom, share))

    def _p(self) -> float:
        """Return the error at which an end of the interval is 0: z + k (1 + 2 z²) standard errors from the estimate."""
        from scipy.special import ndtr, stdtr

        far = abs(self.estimate) / self.error
        # The end that lies towards 0 is moved only where the long tail is on its side.
        k = max(-math.copysign(1.0, self.estimate) * self._shift, 0.0)
        z = far if k == 0.0 else (math.sqrt(max(1.0 + 8.0 * k * (far - k), 0.0)) - 1.0) / (4.0 * k)
        if z <= 0.0:
            return 1.0
        return min(2.0 * float(ndtr(-z) if math.isinf(self.freedom) else stdtr(self.freedom, -z)), 1.0)


def paired_values(reward: ArrayLike, a: Influence, b: Influence, *, clusters: Codes | None = None) -> PairedValues:
    """Return what some displays, shape (n,), say of the value of A less that of B, in O(n).

    >>> reward, shown = np.array([1.0, 0.0, 1.0, 0.0] * 50), np.array([0, 0, 1, 1] * 50)
    >>> own = influence(reward, np.where(shown == 0, 0.9, 0.1) / 0.5)
    >>> found = paired_values(reward, own, influence(reward, None)).difference(0.95)
    >>> abs(round(found.value.estimate, 6)), round(found.standard_error, 4)
    (0.0, 0.0284)
    """
    y = np.asarray(reward, np.float64)
    z, n = a.terms - b.terms, y.size
    size = float(np.abs(a.terms).max(initial=0.0))
    # Rewards differ from their mean, so equal influence is equal weight.
    same = size > 0.0 and float(np.abs(z).max()) <= _ROUNDING * size
    sizes = y[y != 0.0]
    if clusters is None:
        sums, freedom = z, math.inf
        error = float(z.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    else:
        worth = effective(clusters)
        freedom = 0.0 if too_few(worth) else worth - 1.0
        sums, error = cluster_sums(z - z.mean(), clusters), clustered_error(z, clusters)
    return PairedValues(
        estimate=a.value - b.value,
        error=error,
        displays=n,
        skewness=_skewness(sums),
        terms=len(sums),
        freedom=freedom,
        rewards=min(a.rewards, b.rewards),
        off=a.off or b.off,
        money=bool(sizes.size) and bool((sizes != sizes[0]).any()),
        same=same,
    )


def _skewness(z: Floats) -> float:
    if not z.size or np.ptp(z) == 0.0:
        return math.nan
    off = z - z.mean()
    squares = off * off
    return float((squares @ off) / z.size / squares.mean() ** 1.5)
