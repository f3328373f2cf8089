"""Values of a policy that does not learn, from displays that another policy chose: IPS, SNIPS and DR.

Display i has context x_i, action a_i, shown with probability p_i > 0, and reward Y_i. The target policy shows a with
probability pi(a|x). With w_i = pi(a_i|x_i) / p_i and a model q^ of the reward,

    IPS    (1/n) sum w_i Y_i
    SNIPS  sum w_i Y_i / sum w_i
    DR     (1/n) sum [ sum_a pi(a|x_i) q^(x_i, a) + w_i (Y_i - q^(x_i, a_i)) ]

estimate the target's value E[sum_a pi(a|x) r(x, a)]. All three need displays that are independent and identically
distributed, rewards that do not depend on other displays, and p_i > 0 wherever pi(a_i|x_i) > 0. IPS is then unbiased if
the propensities are right. So is DR, whatever the model, if q^ was fitted without the reward it is compared with
(`evaluator.replays.values.doubly_robust`); a good model makes it more precise, a bad one less. DR is consistent also
with wrong propensities if the model is right. SNIPS has a bias of order 1/n, lies within the rewards' range, and is
often the more precise of the first two.

Intervals are normal, shifted by the skewness of the terms (Hall 1983): rare rewards are missed on one side more often
than on the other, and the shift makes good for that. They are given where enough rewards count, and not otherwise
(`evaluator.estimates.standard_errors`), and without an interval there is no estimate: both are nan.

IPS and DR are linear in pi: drawn choices in the place of exact probabilities leave them unbiased, however few the
draws, if each display has its own; what the draws add to the variance is then part of the standard error.

Where displays hang together (``clusters``), standard errors are those of sums over clusters, and the intervals are
Student's (`evaluator.estimates.standard_errors`); the skewness is that of these sums, times the square root of the
displays of a cluster: so skewed would single displays be whose mean is as skewed.

References
----------
Hall. Inverting an Edgeworth expansion. Annals of Statistics 11, 1983.
Horvitz, Thompson. A generalization of sampling without replacement from a finite universe. JASA 47, 1952.
Strehl, Langford, Li, Kakade. Learning from logged implicit exploration data. NIPS 2010.
Swaminathan, Joachims. The self-normalized estimator for counterfactual learning. NIPS 2015.
Dudik, Langford, Li. Doubly robust policy evaluation and learning. ICML 2011; with Erhan, Statistical Science 29, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluator.errors import DataError, ParameterError
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
from evaluator.results.json_documents import Count, NotNegative

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]
NORMAL = "asymptotic normal, shifted for skewness"
# A mean weight this many standard errors from 1 is no accident.
CALIBRATED = 4.0


@dataclass(frozen=True)
class WeightedValue:
    """An estimate with its standard error.

    Parameters
    ----------
    value
        Estimate with its interval: right at one time only, and given from
        `evaluator.estimates.standard_errors.NEEDED` rewards on; nan below. Not cut at the rewards' range.
    standard_error
        Standard error of the estimate; nan where the estimate is.
    skewness
        Skewness of the terms whose mean the estimate is (for SNIPS of their linear parts): rare rewards and heavy
        weights make it large; nan for terms all alike.
    rewards
        Number of rewards of equal weight that would be as skewed.
    withheld
        Clause that says why neither estimate nor error is given; empty where both are.
    target
        Policy whose value it is, where that is not said elsewhere.
    """

    value: Interval
    standard_error: float
    skewness: float
    rewards: NotNegative
    withheld: str = ""
    target: str = ""

    @property
    def given(self) -> bool:
        """Whether there are an estimate and an interval."""
        return not self.withheld


@dataclass(frozen=True)
class Weights:
    """How the weights w = pi(a|x) / p of some displays are distributed.

    Parameters
    ----------
    n
        Number of displays that are weighted.
    mean, mean_error
        Mean weight, and its standard error. Right propensities give a mean of 1, up to chance.
    effective_sample_size
        Effective number of displays, (sum w)² / sum w²: about so many displays chosen by the target itself would tell
        as much.
    largest
        Largest weight of any display.
    """

    n: Count
    mean: float
    mean_error: float
    effective_sample_size: float
    largest: float

    @property
    def calibrated(self) -> bool:
        """Whether the mean weight is within 4 standard errors of 1; true where that cannot be told."""
        # Weights that are all alike have no standard error, only rounding.
        return not abs(self.mean - 1.0) > CALIBRATED * self.mean_error + 1e-9


def weights_of(target: ArrayLike, propensity: ArrayLike) -> Weights:
    """Return how the weights of some displays are distributed.

    Parameters
    ----------
    target
        Probability pi(a_i|x_i) with which the target shows the logged action of each display, shape (n,).
    propensity
        Propensity p_i of each display, shape (n,), in (0, 1].

    Raises
    ------
    DataError
        Shapes differ, or a number is out of range; the first such index is named.

    Examples
    --------
    >>> found = weights_of([0.5, 0.5, 0.0, 1.0], [0.25, 0.5, 0.5, 1.0])
    >>> found.mean, round(found.mean_error, 3), round(found.effective_sample_size, 3), found.largest
    (1.0, 0.408, 2.667, 2.0)
    """
    w = _weights(target, propensity)
    if not w.size:
        return Weights(0, math.nan, math.nan, 0.0, math.nan)
    squares = float((w**2).sum())
    effective = float(w.sum()) ** 2 / squares if squares > 0 else 0.0
    return Weights(w.size, float(w.mean()), _mean_error(w), effective, float(w.max()))


def ips(
    reward: ArrayLike, target: ArrayLike, propensity: ArrayLike, *, level: float = 0.95, clusters: Codes | None = None
) -> WeightedValue:
    """Return the inverse-propensity-scored value (1/n) sum w_i Y_i.

    Standard error: the standard deviation of w_i Y_i over sqrt(n). Conditions, and when there is an interval: see the
    module. O(n).

    Parameters
    ----------
    reward
        Reward Y_i of each display, shape (n,).
    target, propensity
        Probabilities under the target, and propensities, shape (n,), as in `weights_of`.
    level
        Confidence level of the interval, in (0, 1).
    clusters
        Cluster of each display, from 0, shape (n,); None where they are independent. Clusters that are worth fewer than
        `evaluator.estimates.standard_errors.FEWEST_CLUSTERS` of equal size give no interval: its ends are nan.

    Raises
    ------
    DataError, ParameterError
        The displays are not as `weights_of` takes them, or the level is not in (0, 1).

    Examples
    --------
    >>> found = ips([1, 0, 1, 0] * 50, [0.8, 0.2, 0.8, 0.8] * 50, [0.5] * 200)
    >>> round(found.value.estimate, 6), round(found.standard_error, 4), found.withheld
    (0.8, 0.0567, '')
    >>> ips([1, 0, 1, 0], [0.8, 0.2, 0.8, 0.8], [0.5, 0.5, 0.5, 0.5]).given
    False
    """
    w = _weights(target, propensity)
    y = _like(w, "reward", reward)
    return _mean_of(w * y, w, y, level, clusters)


def snips(
    reward: ArrayLike, target: ArrayLike, propensity: ArrayLike, *, level: float = 0.95, clusters: Codes | None = None
) -> WeightedValue:
    """Return the self-normalised value V = sum w_i Y_i / sum w_i; withheld where no display has weight.

    Standard error, by the delta method: sqrt(sum w_i² (Y_i - V)²) / sum w_i, times sqrt(n / (n - 1)). O(n).
    Parameters and errors as in `ips`; conditions: see the module.

    Examples
    --------
    >>> found = snips([1, 0, 1, 0] * 50, [0.8, 0.2, 0.8, 0.8] * 50, [0.5] * 200)
    >>> round(found.value.estimate, 6), round(found.standard_error, 4)
    (0.615385, 0.0365)
    """
    w = _weights(target, propensity)
    y = _like(w, "reward", reward)
    total = float(w.sum())
    if total <= 0:
        return _estimate(math.nan, math.nan, np.zeros(0), 0.0, level, n=w.size)
    value = float(w @ y) / total
    n, terms = w.size, w * (y - value)
    rewards = equal_rewards(w, y, terms)
    if clusters is not None:  # the terms' mean is 0
        error = clustered_error(terms, clusters) * n / total
        return _estimate(value, error, terms, rewards, level, n=n, clusters=clusters)
    error = math.sqrt(float((terms**2).sum()) * n / (n - 1)) / total if n > 1 else math.nan
    return _estimate(value, error, terms, rewards, level, n=n)


def doubly_robust(
    reward: ArrayLike,
    target: ArrayLike,
    propensity: ArrayLike,
    model: ArrayLike,
    model_value: ArrayLike,
    *,
    level: float = 0.95,
    clusters: Codes | None = None,
) -> WeightedValue:
    """Return the doubly robust value (1/n) sum [sum_a pi(a|x_i) q^(x_i, a) + w_i (Y_i - q^(x_i, a_i))].

    Standard error: the standard deviation of the terms over sqrt(n). Where the target learns on the way, its terms are
    a martingale's: see `evaluator.replays.values.doubly_robust`. O(n). Errors are those of `ips`.

    Parameters
    ----------
    reward, target, propensity
        Reward Y_i, probability under the target, and propensity of each display, shape (n,), as in `ips`.
    model
        Predicted reward q^(x_i, a_i) of each display's logged action, shape (n,).
    model_value
        Predicted reward of the target at each display, sum_a pi(a|x_i) q^(x_i, a), shape (n,).
    level, clusters
        Confidence level of the interval, and cluster of each display, shape (n,), as in `ips`.

    Examples
    --------
    >>> target, model = [0.8, 0.2, 0.8, 0.8] * 50, [0.5, 0.25, 0.5, 0.5] * 50
    >>> found = doubly_robust([1, 0, 1, 0] * 50, target, [0.5] * 200, model, [0.45] * 200)
    >>> round(found.value.estimate, 6), round(found.standard_error, 4)
    (0.625, 0.0477)
    """
    w = _weights(target, propensity)
    y, q, v = (_like(w, *given) for given in (("reward", reward), ("model", model), ("model_value", model_value)))
    return _mean_of(v + w * (y - q), w, y, level, clusters)


def mean_value(reward: ArrayLike, *, level: float = 0.95, clusters: Codes | None = None) -> WeightedValue:
    """Return the mean reward, the value of the logging policy itself (all weights 1), shape (n,) given."""
    y = np.asarray(reward, np.float64)
    return _mean_of(y, np.ones(y.shape), y, level, clusters)


def _mean_of(terms: Floats, weight: Floats, reward: Floats, level: float, clusters: Codes | None) -> WeightedValue:
    if not terms.size:
        return _estimate(math.nan, math.nan, terms, 0.0, level, n=0)
    error = _mean_error(terms) if clusters is None else clustered_error(terms, clusters)
    rewards = equal_rewards(weight, reward, terms)
    return _estimate(float(terms.mean()), error, terms, rewards, level, n=terms.size, clusters=clusters)


def _estimate(
    estimate: float, error: float, terms: Floats, rewards: float, level: float, *, n: int, clusters: Codes | None = None
) -> WeightedValue:
    from scipy.special import ndtri

    if not 0.0 < level < 1.0:
        raise ParameterError(f"level is {level:g}.", remedy="take a level in (0, 1), such as 0.95.")
    skewness = _skewness(terms)
    if rewards < NEEDED:
        value = Interval(math.nan, math.nan, math.nan, n, level, NORMAL)
        return WeightedValue(value, math.nan, skewness, rewards, withheld=missing(rewards))
    if clusters is not None:
        return _of_clusters(estimate, error, terms, rewards, level, clusters)
    z = float(ndtri(0.5 + level / 2.0))
    middle = estimate + error * skewness * (1.0 + 2.0 * z**2) / (6.0 * math.sqrt(n))
    value = Interval(estimate, middle - z * error, middle + z * error, n, level, NORMAL)
    return WeightedValue(value, error, skewness, rewards)


def _of_clusters(
    estimate: float, error: float, terms: Floats, rewards: float, level: float, clusters: Codes
) -> WeightedValue:
    from scipy.special import stdtrit

    worth = effective(clusters)
    sums = cluster_sums(terms - terms.mean(), clusters)
    reach = math.nan if too_few(worth) else float(stdtrit(worth - 1.0, 0.5 + level / 2.0)) * error
    kind = f"Student's t by {clusters_text(worth)} of equal size (Liang, Zeger 1986)"
    value = Interval(estimate, estimate - reach, estimate + reach, terms.size, level, kind)
    return WeightedValue(value, error, _skewness(sums) * math.sqrt(terms.size / len(sums)), rewards)


def _skewness(terms: Floats) -> float:
    if not terms.size or np.ptp(terms) == 0:
        return math.nan
    off = terms - terms.mean()
    squares = off * off
    return float((squares @ off) / terms.size / squares.mean() ** 1.5)


def _mean_error(z: Floats) -> float:
    return float(z.std(ddof=1)) / math.sqrt(z.size) if z.size > 1 else math.nan


def _weights(target: ArrayLike, propensity: ArrayLike) -> Floats:
    pi = np.asarray(target, np.float64)
    p = _like(pi, "propensity", propensity)
    _refuse(~((pi >= 0) & (pi <= 1 + 1e-9)), "target", pi, "a probability in [0, 1]")
    _refuse(~((p > 0) & (p <= 1)), "propensity", p, "a probability in (0, 1]")
    return pi / p


def _like(array: Floats, name: str, given: ArrayLike) -> Floats:
    out = np.asarray(given, np.float64)
    if array.ndim != 1 or out.shape != array.shape:
        raise DataError(
            f"{name} has shape {out.shape}, target {array.shape}.", remedy="give one number a display, (n,)."
        )
    return out


def _refuse(wrong: NDArray[np.bool_], name: str, array: Floats, expected: str) -> None:
    if wrong.any():
        first = int(wrong.argmax())
        raise DataError(f"{name}[{first}] is {array[first]:g} ({int(wrong.sum())} such in all).", remedy=f"{expected}.")


# Adding one is its function and its line here.


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """An estimator as results name it, with its names in sentences and in tables.

    `estimate` is a function of the rewards, the target's probabilities and the propensities of the displays, each of
    shape (n,), and by name ``level`` and ``clusters``, such as `ips`; `models` says whether it takes the model of the
    rewards, too: its values of the actions shown, and of the target, shape (n,).
    """

    name: str
    short: str
    title: str
    estimate: Callable[..., WeightedValue]
    models: bool = False


# In the order of results; tables begin with the last.
ESTIMATORS = (
    Estimator(name="ips", short="IPS", title="inverse propensity (IPS)", estimate=ips),
    Estimator(name="snips", short="SNIPS", title="self-normalised (SNIPS)", estimate=snips),
    Estimator(name="dr", short="DR", title="doubly robust (DR)", estimate=doubly_robust, models=True),
)
