"""Tail index of delays: the alpha of 1 - tau(m) <= m^-alpha (Manegueu et al. 2020), with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evaluator.delays.nonparametric import two_sided_quantile
from evaluator.delays.product_limit import Floats, Ints, checked_delays
from evaluator.delays.study.delay_jobs import HERE, DelayJob, DelayWorkers
from evaluator.errors import DataError, ParameterError
from evaluator.results.json_documents import Count, Level, NotNegative

# Thresholds that are tried.
CANDIDATES = 60
# Delays above the thresholds of a job, together.
_WORK = 1_000_000
_FEWEST = 50


@dataclass(frozen=True)
class TailIndex:
    """Tail index above a threshold (`tail_index`): P(D > x) ~ x^-alpha.

    Parameters
    ----------
    alpha, low, high
        Maximum likelihood estimate under truncation, and its likelihood-ratio interval. An interval that reaches 0
        means that the log does not show a power tail: too few delays above the threshold, or too short a look beyond
        it.
    hill, hill_low, hill_high
        Hill's estimator, blind to truncation (too large under it), and its normal interval.
    threshold, exceedances, rule
        Delay in ticks above which the tail is fitted, number of delays above it, and how it was chosen.
    confidence
        Confidence level of the intervals.
    distance
        Kolmogorov-Smirnov distance of the exceedances from the fitted tail.
    notes
        Sentences that the reader should know.
    """

    alpha: float
    low: float
    high: float
    hill: float
    hill_low: float
    hill_high: float
    threshold: NotNegative
    exceedances: Count
    rule: str
    confidence: Level
    distance: float
    notes: tuple[str, ...] = ()


class TailDelays(NamedTuple):
    """Delays whose tail is looked for, shortest first, and the `end` of what could be seen of each, shape (n,)."""

    x: Floats
    end: Floats

    def above(self, first: int) -> tuple[Floats, Floats]:
        """Return logarithms of the delays from one on, and of their ends, in units of the delay before it."""
        u = self.x[first - 1]
        return np.log(self.x[first:] / u), np.log(self.end[first:] / u)

    @property
    def candidates(self) -> Ints:
        """Numbers of delays up to and with each threshold that may be taken, the lowest first, shape (c,)."""
        ranks = np.unique(np.geomspace(_FEWEST, self.x.size // 2, CANDIDATES).astype(int))
        found = np.searchsorted(self.x, np.unique(self.x[self.x.size - 1 - ranks]), side="right")
        return found[self.x.size - found >= 10]


def tail_delays(delays: ArrayLike, limits: ArrayLike | None = None, *, width: float = 1.0) -> TailDelays:
    """Return the delays whose tail `tail_index` looks for, given as to `fit_family`, in ticks.

    Whole delays are taken half of `width` later, the ticks of whose multiples they were rounded down to one.
    """
    delay, limit = checked_delays(delays, limits, whole=False)
    half = 0.5 * width if delay.dtype == np.int64 else 0.0
    x = delay + half
    # A floored delay is seen when it is below the end of its limit's cell.
    end = np.full(x.shape, np.inf) if limit is None else limit + 2.0 * half
    order = np.argsort(x)
    return TailDelays(x[order], end[order])


@dataclass(frozen=True)
class ThresholdsJob(DelayJob):
    """Distances of the tails above some thresholds, from one number up to another among those that may be taken."""

    of: ClassVar[str] = "tail"

    first: int
    stop: int

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        return f"Thresholds {self.first + 1:,} to {self.stop:,} of the tail"

    @property
    def items(self) -> range:
        """Numbers of the thresholds."""
        return range(self.first, self.stop)

    def compute(self, opened: TailDelays, item: int) -> float:
        """Return the distance of the tail above a threshold from the law that is fitted to it."""
        y, ends = opened.above(int(opened.candidates[item]))
        return _distance(y, ends, _alpha(y, ends))


def tail_index(
    sample: TailDelays, *, threshold: float | None = None, confidence: float = 0.95, workers: DelayWorkers = HERE
) -> TailIndex:
    """Return the tail index of delays seen only up to their limits (`tail_delays`).

    Above the threshold u, y = log(D / u) is exponential with rate alpha, truncated at l = log(L / u): log likelihood
    sum_i log alpha - alpha y_i - log(1 - exp(-alpha l_i)), concave in alpha (Aban, Meerschaert, Panorska 2006, with a
    limit a row). Without limits its maximum is Hill's 1 / mean(y) (Hill 1975). The interval holds every alpha whose
    log likelihood is within half a chi-squared quantile of the largest.

    Without a threshold, in ticks, the one of some sixty between the median and the 50th largest delay is taken whose
    Kolmogorov-Smirnov distance between exceedances and fitted tail is smallest (Clauset, Shalizi, Newman 2009,
    Section 3.3); workers try them. The interval takes the threshold as given.

    Raises DataError where fewer than 10 delays are above the threshold, and ParameterError where it is 0 or less, or
    the confidence is not in (0, 1).

    >>> x = (np.arange(1, 1000) / 1000.0) ** (-1 / 0.7)
    >>> tail = tail_index(tail_delays(x), threshold=1.0)
    >>> round(tail.alpha, 3), round(tail.low, 3), round(tail.high, 3)
    (0.702, 0.66, 0.747)
    """
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence is {confidence}.", remedy="a level in (0, 1), such as 0.95.")
    x, end = sample
    if threshold is None:
        u, rule = _automatic(sample, workers), "smallest Kolmogorov-Smirnov distance (Clauset, Shalizi, Newman 2009)"
    else:
        if not threshold > 0:
            raise ParameterError(f"threshold is {threshold}.", remedy="a delay above 0 ticks.")
        u, rule = float(threshold), "given"
    above = x > u
    k = int(above.sum())
    if k < 10:
        raise DataError(f"Only {k} of {x.size} delays lie above {u:g} ticks.", remedy="lower the threshold.")
    y, ends = np.log(x[above] / u), np.log(end[above] / u)
    alpha = _alpha(y, ends)
    low, high = _interval(y, ends, alpha, confidence)
    hill = 1.0 / float(y.mean())
    width = two_sided_quantile(confidence) * hill / math.sqrt(k)
    notes = [] if low > 0 else ["no power tail shown: the interval of alpha reaches 0"]
    return TailIndex(
        alpha=alpha,
        low=low,
        high=high,
        hill=hill,
        hill_low=hill - width,
        hill_high=hill + width,
        threshold=u,
        exceedances=k,
        rule=rule,
        confidence=confidence,
        distance=_distance(y, ends, alpha),
        notes=tuple(notes),
    )


def _automatic(sample: TailDelays, workers: DelayWorkers) -> float:
    """Return the threshold with the smallest distance, of candidates from the median to the 50th largest delay."""
    x = sample.x
    if x.size <= 2 * _FEWEST:
        return float(np.median(x))
    candidates = sample.candidates
    # Where ties leave ten delays above no candidate, the longest, above which there is none.
    best, smallest = float(x[-1]), math.inf
    distances = [one for results in workers.found(_jobs(x.size - candidates), sample) for one in results]
    for first, distance in zip(candidates.tolist(), distances, strict=True):
        if distance < smallest:
            best, smallest = float(x[first - 1]), distance
    return best


def _jobs(sizes: Ints) -> list[ThresholdsJob]:
    """Return jobs of thresholds that have so many delays above them, each a second of work or one threshold."""
    edges, work = [0], 0
    for at, size in enumerate(sizes.tolist()):
        if work and work + size > _WORK:
            edges.append(at)
            work = 0
        work += size
    return [ThresholdsJob(*pair) for pair in pairwise([*edges, sizes.size])] if sizes.size else []


def _log_likelihood(y: Floats, ends: Floats, alpha: float) -> float:
    """Return sum log(alpha exp(-alpha y) / (1 - exp(-alpha end))), whose limit at alpha = 0 is uniform on [0, end]."""
    if math.isinf(ends[0]):
        return y.size * math.log(alpha) - alpha * float(y.sum())
    z = alpha * ends
    size = np.abs(z)
    # log(|z| / (1 - exp(-|z|))), by its series near 0; for z < 0 the density is that of end - y.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(size < 1e-5, 0.5 * size, np.log(size / -np.expm1(-size)))
    return float((ratio - alpha * y + np.minimum(z, 0.0) - np.log(ends)).sum())


def _score(y: Floats, ends: Floats, alpha: float) -> float:
    """Return the derivative of the mean log likelihood: E[y | alpha] - mean y."""
    z = alpha * ends
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.where(np.abs(z) < 1e-4, ends * (0.5 - z / 12.0), ends * (1.0 / z - 1.0 / np.expm1(z)))
    return float(mean.mean() - y.mean())


def _alpha(y: Floats, ends: Floats) -> float:
    """Return the maximum-likelihood tail index; below 0 where the density of log delays rises."""
    if math.isinf(ends[0]):
        return 1.0 / float(y.mean())
    return _root(lambda a: _score(y, ends, a), start=1.0 / float(y.mean()))


def _interval(y: Floats, ends: Floats, alpha: float, confidence: float) -> tuple[float, float]:
    least = _log_likelihood(y, ends, alpha) - 0.5 * two_sided_quantile(confidence) ** 2
    step = max(abs(alpha), 1.0 / float(y.mean())) / math.sqrt(y.size)

    def lacking(a: float) -> float:
        if math.isinf(ends[0]) and a <= 0:
            return -math.inf
        return _log_likelihood(y, ends, a) - least

    return _edge(lacking, alpha, -step), _edge(lacking, alpha, step)


def _edge(lacking: Any, inside: float, step: float) -> float:
    """Return where a concave function that is positive at `inside` falls to 0, going by `step`."""
    outside = inside + step
    while lacking(outside) > 0:
        inside, step = outside, 2.0 * step
        outside = inside + step
    for _ in range(80):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if lacking(middle) > 0 else (inside, middle)
    return inside


def _root(falling: Any, *, start: float) -> float:
    """Return the root of a falling function."""
    step = start
    low = high = start
    while falling(low) < 0:
        low, step = low - step, 2.0 * step
    step = start
    while falling(high) > 0:
        high, step = high + step, 2.0 * step
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return 0.5 * (low + high)


def _distance(y: Floats, ends: Floats, alpha: float) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        u = np.expm1(-alpha * y) / np.expm1(-alpha * ends) if alpha != 0 else y / ends
    u = np.sort(u)
    i = np.arange(1, u.size + 1)
    return float(max((i / u.size - u).max(), (u - (i - 1) / u.size).max()))
