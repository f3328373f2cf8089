"""Delays as terms of a truncated likelihood: cells of ticks, or points, and limits. Newton's method for it.

Of lognormal mixtures also the starting values, by expectation maximisation from several starts, and the score.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from evaluator.delays.families import Family, Parameters, Rounding, StartingMoments
from evaluator.delays.product_limit import Floats, Ints, checked_delays, tally
from evaluator.engine.kernels.compiling import compiled
from evaluator.errors import DataError, ParameterError
from evaluator.streams import seed_stream

ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)
# From here on a cell's probability is the three-point Gauss quadrature of its density. The relative error is
# f^(6) / (2,016,000 f): below 1e-12 for densities that vary on the scale of x, where F(d + 1) - F(d) would cancel.
_QUADRATURE_FROM = 32
_NODES = 0.5 + 0.5 * np.sqrt(0.6) * np.array([-1.0, 0.0, 1.0])
_COARSE_BINS = 1024
_SMALLEST = 1e-300
# Errors of the differences: step^4 by truncation, 1e-16 / step (gradient) and 1e-16 / step^2 (Hessian) by rounding.
_STEP = 1e-3
_LONGEST_MOVE = 1.5
# Below this a component of log delays is a tie, whose density would grow without bound.
SMALLEST_SIGMA = 0.02
_STARTS = 8
_ITERATIONS = 300
_GAIN = 1e-7


class WeightedDelays(NamedTuple):
    """Weighted delays as if exact: `x`, `log_x`, `weights` of shape (b,)."""

    x: Floats
    log_x: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class TruncatedSample:
    """Delays under right truncation, aggregated (`sample_of`), in ticks.

    The likelihood of row i is P(delay_i) / F(limit_i); its logarithm is a sum over delays minus a sum over limits, so
    that distinct delays and distinct limits are counted apart. With `rounding` ``"floor"`` a delay of d ticks stands
    for [d, d + 1), seen if below its limit + 1, so that a delay of 0 and ties are ordinary; with ``"none"`` delays are
    exact, each with its density.

    Distinct floored delays below 32 ticks are `short`, shape (S,), as their cells are differences of the CDF; the
    others have quadrature `nodes`, shape (J, 3), or (J, 1) for exact delays; and `limits`, shape (L,), are upper ends
    of what could be seen, none when nothing was cut off. Counts say how often each occurs. `smallest` is a delay and
    `longest` a limit, inf when nothing was cut off.
    """

    rounding: Rounding
    short: Floats
    short_counts: Floats
    nodes: Floats
    log_nodes: Floats
    node_counts: Floats
    limits: Floats
    limit_counts: Floats
    conversions: int
    smallest: float
    longest: float

    def log_likelihood(self, family: Family, parameters: Parameters) -> float:
        """Return the log likelihood; -inf where a delay is impossible."""
        total = 0.0
        if self.short.size:
            low, high = self.short, self.short + 1.0
            below, above = family.cdf(low, parameters), family.survival(high, parameters)
            mass = np.where(below < 0.5, family.cdf(high, parameters) - below, family.survival(low, parameters) - above)
            with np.errstate(divide="ignore", invalid="ignore"):
                total += _dot(self.short_counts, np.log(mass))
        if self.nodes.size:
            density = family.log_density(self.nodes, self.log_nodes, parameters)
            if self.nodes.shape[1] == 1:
                total += _dot(self.node_counts, density[:, 0])
            else:
                middle = density[:, 1]
                with np.errstate(invalid="ignore", over="ignore"):
                    ends = np.exp(density[:, 0] - middle) + np.exp(density[:, 2] - middle)
                    total += _dot(self.node_counts, middle + np.log((5.0 * ends + 8.0) / 18.0))
        if self.limits.size:
            seen = np.maximum(family.cdf(self.limits, parameters), _SMALLEST)
            total -= _dot(self.limit_counts, np.log(seen))
        return total if np.isfinite(total) else -np.inf

    def points(self) -> WeightedDelays:
        """Return the delays as points, each cell at its middle."""
        middle, log_middle = self.nodes[:, self.nodes.shape[1] // 2], self.log_nodes[:, self.nodes.shape[1] // 2]
        x = np.concatenate((self.short + 0.5, middle))
        log_x = np.concatenate((np.log(self.short + 0.5), log_middle))
        return WeightedDelays(x, log_x, np.concatenate((self.short_counts, self.node_counts)))

    def moments(self) -> StartingMoments:
        """Return the moments that starting values are made of, those of the delays seen."""
        x, log_x, weights = self.points()
        log_mean = _dot(weights, log_x) / self.conversions
        log_variance = _dot(weights, (log_x - log_mean) ** 2) / self.conversions
        return StartingMoments(
            _dot(weights, x) / self.conversions, log_mean, max(log_variance, 1e-6) ** 0.5, self.smallest
        )

    def coarse(self) -> TruncatedSample:
        """Return about a thousand points instead: near enough for starting values, whatever the number of rows."""
        _, log_x, weights = self.points()
        at, counts = _bins(log_x[:, None], weights, _COARSE_BINS)
        limits, limit_counts = _binned_limits(self, _COARSE_BINS)
        empty = np.empty(0)
        return TruncatedSample(
            "none", empty, empty, np.exp(at), at, counts, limits, limit_counts,
            self.conversions, self.smallest, self.longest,
        )  # fmt: skip

    def binned(self, bins: int) -> TruncatedSample:
        """Return the sample with its long cells and its limits in equal bins of their logarithms, each at its mean.

        A bin of width h moves the log likelihood of a law of spread sigma by the order of (h / sigma)^2 / 24 a row.
        """
        log_nodes, node_counts = self.log_nodes, self.node_counts
        if len(log_nodes) > bins:
            log_nodes, node_counts = _bins(log_nodes, node_counts, bins)
        limits, limit_counts = _binned_limits(self, bins)
        return replace(
            self, nodes=np.exp(log_nodes), log_nodes=log_nodes, node_counts=node_counts, limits=limits,
            limit_counts=limit_counts,
        )  # fmt: skip

    @property
    def size(self) -> int:
        """Number of terms of the log likelihood."""
        return int(self.short.size + self.nodes.shape[0] + self.limits.size)


def sample_of(
    delays: ArrayLike, limits: ArrayLike | None = None, *, rounding: Rounding | None = None
) -> TruncatedSample:
    """Return delays aggregated for fitting; delays have shape (n,), limits (n,) or (), in ticks.

    Limits are None where nothing was cut off. The rounding is ``"floor"`` or ``"none"`` (`TruncatedSample`); None takes
    ``"floor"`` for whole numbers. Raises DataError where there are no delays, or impossible ones, or an exact delay of
    0, of which no density is known, and ParameterError where the rounding is neither of the two.
    """
    if rounding not in (None, *ROUNDINGS):
        raise ParameterError(f"rounding is {rounding!r}.", remedy=f"one of {', '.join(ROUNDINGS)}.")
    delay, limit = checked_delays(delays, limits, whole=rounding == "floor")
    if rounding is None:
        rounding = "floor" if delay.dtype == np.int64 else "none"
    if rounding == "floor":
        support, counts = tally(delay)
        nodes = support[support >= _QUADRATURE_FROM, None] + _NODES
        cut = support.size - nodes.shape[0]
        short, short_counts, node_counts = support[:cut].astype(np.float64), counts[:cut], counts[cut:]
    else:
        if delay.min() == 0:
            first = int((delay == 0).argmax())
            raise DataError(
                f"Delay {first} is 0 ({(delay == 0).sum()} such in all), which no density allows.",
                remedy='count whole ticks and use rounding="floor".',
            )
        # Exact delays hardly ever tie: sorting them would gain nothing.
        short, short_counts = np.empty(0), np.empty(0, np.int64)
        nodes, node_counts = delay.astype(np.float64)[:, None], np.ones(delay.size, np.int64)
    ends, end_counts = np.empty(0), np.empty(0, np.int64)
    if limit is not None:
        ends, end_counts = _distinct_limits(limit)
        ends = ends + (1.0 if rounding == "floor" else 0.0)
    return TruncatedSample(
        rounding=rounding,
        short=short,
        short_counts=short_counts.astype(np.float64),
        nodes=nodes,
        log_nodes=np.log(nodes),
        node_counts=node_counts.astype(np.float64),
        limits=ends,
        limit_counts=end_counts.astype(np.float64),
        conversions=delay.size,
        smallest=float(delay.min()),
        longest=np.inf if limit is None else float(limit.max()),
    )


def _dot(weights: Floats, values: Floats) -> float:
    """Return the sum of products, pairwise: unlike BLAS, the same to the bit on any number of threads."""
    return float((weights * values).sum())


def _distinct_limits(limit: Floats) -> tuple[Floats, Ints]:
    if limit[0] == limit.max() == limit.min():
        return limit[:1].astype(np.float64), np.array([limit.size])
    ends, counts = tally(limit)
    return ends.astype(np.float64), counts


def _binned_limits(sample: TruncatedSample, bins: int) -> tuple[Floats, Floats]:
    if sample.limits.size <= bins:
        return sample.limits, sample.limit_counts
    log_limits, counts = _bins(np.log(sample.limits)[:, None], sample.limit_counts, bins)
    return np.exp(log_limits[:, 0]), counts


def _bins(log_x: Floats, weights: Floats, bins: int) -> tuple[Floats, Floats]:
    """Return means (b, q) and weights (b,) of at most `bins` equal bins of the rows of `log_x` (n, q)."""
    low, high = float(log_x[:, 0].min()), float(log_x[:, 0].max())
    width = max((high - low) / (bins - 1), 1e-12)
    at = ((log_x[:, 0] - low) / width).astype(np.int64)
    total = np.bincount(at, weights, bins)
    kept = total > 0
    means = [(np.bincount(at, weights * column, bins)[kept] / total[kept]) for column in log_x.T]
    return np.stack(means, axis=1), total[kept].astype(np.float64)


class Optimum(NamedTuple):
    """`theta` (p,), the `value` there, its `hessian` (p, p), and whether Newton's steps came to rest."""

    theta: Floats
    value: float
    hessian: Floats
    converged: bool


def maximise(
    function: Callable[[Floats], float],
    theta: Floats,
    *,
    gradient: Callable[[Floats], Floats] | None = None,
    curvature: Callable[[Floats], Floats] | None = None,
    hessian: Floats | None = None,
    tolerance: float = 1e-14,
    iterations: int = 100,
) -> Optimum:
    """Return a local maximum of `function`, by Newton's method with halved steps.

    The function takes theta, shape (p,), and gives the log likelihood, -inf where impossible. It starts from `theta`,
    scaled such that a change of 1 is large. Without `gradient`, shape (p,), fourth-order differences are taken, 2 p^2 +
    2 p evaluations a step; without `curvature`, which gives the Hessian, shape (p, p), differences too. `hessian` is
    one near enough to step with, computed at the start if None; it is renewed as soon as the squared decrement falls by
    less than a factor of 10 a step, and at the end. The search stops where the squared Newton decrement, the squared
    distance to the optimum in standard errors, is below `tolerance`. If the value still rises along a ridge after
    `iterations` steps, there is no strict maximum.
    """
    value = function(theta)

    def bend(at: Floats) -> Floats:
        if curvature is not None:
            return curvature(at)
        return _curvature(function, at) if gradient is None else _differences(gradient, at)

    last = np.inf
    fresh = hessian is None
    if hessian is None:
        hessian = bend(theta)
    for _ in range(iterations):
        slope = _slope(function, theta) if gradient is None else gradient(theta)
        if not (np.isfinite(slope).all() and np.isfinite(hessian).all()):
            return Optimum(theta, value, hessian, False)
        move, concave = _newton_step(slope, hessian)
        decrement = float(slope @ move)
        moved, better = False, value
        # Steps this small that no longer shrink are rounding.
        if decrement >= tolerance and not (decrement < 1e-8 and decrement > 0.5 * last):
            move /= max(1.0, float(np.abs(move).max()) / _LONGEST_MOVE)
            # The value cannot tell steps this near the top apart by more than its rounding; the gradient can.
            least = value if decrement > 1e-6 else value - 1e-12 * abs(value)
            better = function(theta + move)
            while not better > least and np.abs(move).max() > 1e-9:
                move = 0.5 * move
                better = function(theta + move)
            moved = better > value or (better > least and decrement < last)
        if not moved:
            # At rest, or no gain is left that floating point can see.
            if fresh:
                return Optimum(theta, value, hessian, concave and decrement < 1e-6)
            hessian, fresh, last = bend(theta), True, np.inf
            continue
        slow = decrement > 0.1 * last
        theta, value, last = theta + move, better, decrement
        fresh = slow
        if slow:
            hessian = bend(theta)
    return Optimum(theta, value, hessian, False)


def _newton_step(slope: Floats, hessian: Floats) -> tuple[Floats, bool]:
    """Return the step uphill, and whether the Hessian is negative definite."""
    curvature, axes = np.linalg.eigh(-hessian)
    largest = max(float(np.abs(curvature).max()), 1e-300)
    concave = bool(curvature[0] > 1e-10 * largest)
    return axes @ ((axes.T @ slope) / np.maximum(np.abs(curvature), 1e-10 * largest)), concave


def _slope(function: Callable[[Floats], float], theta: Floats) -> Floats:
    """Return the gradient by central differences of fourth order."""
    out = np.empty(theta.size)
    for i, unit in enumerate(np.eye(theta.size) * _STEP):
        f1, f2, g1, g2 = (function(theta + k * unit) for k in (1, 2, -1, -2))
        out[i] = (8.0 * (f1 - g1) - (f2 - g2)) / (12.0 * _STEP)
    return out


def _curvature(function: Callable[[Floats], float], theta: Floats) -> Floats:
    """Return the Hessian by central differences."""
    units = np.eye(theta.size) * _STEP
    out = np.empty((theta.size, theta.size))
    value = function(theta)
    for i, unit in enumerate(units):
        f1, f2, g1, g2 = (function(theta + k * unit) for k in (1, 2, -1, -2))
        out[i, i] = (16.0 * (f1 + g1) - (f2 + g2) - 30.0 * value) / (12.0 * _STEP**2)
        for j in range(i):
            corners = [function(theta + a * unit + b * units[j]) for a, b in ((1, 1), (-1, -1), (1, -1), (-1, 1))]
            out[i, j] = out[j, i] = (corners[0] + corners[1] - corners[2] - corners[3]) / (4.0 * _STEP**2)
    return out


def _differences(gradient: Callable[[Floats], Floats], theta: Floats) -> Floats:
    """Return the Hessian by central differences of the gradient."""
    out = np.array(
        [(gradient(theta + unit) - gradient(theta - unit)) / (2.0 * _STEP) for unit in np.eye(theta.size) * _STEP]
    )
    symmetric: Floats = 0.5 * (out + out.T)
    return symmetric


@compiled
def _em(
    y: Floats, counts: Floats, ends: Floats, end_counts: Floats, start: Floats, steps: int, gain: float, floor: float
) -> tuple[Floats, float]:
    """Return parameters (3, k) after EM on log delays `y` truncated at `ends`, and the log likelihood of the last step.

    The unseen delays beyond each limit are completed too: (1 - F(L)) / F(L) for each row seen under L, with the moments
    of a normal law above L (McLachlan and Jones 1988, Biometrics 44, for the truncated case).
    """
    k = start.shape[1]
    theta = start.copy()
    part = np.empty(k)
    before = -np.inf
    total = 0.0
    for _ in range(steps):
        mass, first, second = np.zeros(k), np.zeros(k), np.zeros(k)
        total = 0.0
        for i in range(y.size):
            density = 0.0
            for j in range(k):
                z = (y[i] - theta[1, j]) / theta[2, j]
                part[j] = theta[0, j] / theta[2, j] * math.exp(-0.5 * z * z)
                density += part[j]
            if density < 1e-300:
                density = 1e-300
            total += counts[i] * math.log(density)
            for j in range(k):
                share = counts[i] * part[j] / density
                mass[j] += share
                first[j] += share * y[i]
                second[j] += share * y[i] * y[i]
        for i in range(ends.size):
            seen = 0.0
            for j in range(k):
                z = (ends[i] - theta[1, j]) / theta[2, j]
                seen += theta[0, j] * 0.5 * math.erfc(-z * math.sqrt(0.5))
            if seen < 1e-300:
                seen = 1e-300
            total -= end_counts[i] * math.log(seen)
            for j in range(k):
                mu, sigma = theta[1, j], theta[2, j]
                z = (ends[i] - mu) / sigma
                beyond = 0.5 * math.erfc(z * math.sqrt(0.5))
                phi = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
                unseen = end_counts[i] * theta[0, j] / seen
                mass[j] += unseen * beyond
                first[j] += unseen * (mu * beyond + sigma * phi)
                second[j] += unseen * (
                    (mu * mu + sigma * sigma) * beyond + (2.0 * mu * sigma + sigma * sigma * z) * phi
                )
        everything = mass.sum()
        for j in range(k):
            weight = max(mass[j], 1e-12 * everything)
            mean = first[j] / weight
            theta[0, j] = weight / everything
            theta[1, j] = mean
            theta[2, j] = math.sqrt(max(second[j] / weight - mean * mean, floor * floor))
        if total - before < gain * abs(total) and total >= before:
            break
        before = total
    return theta, total


def mixture_start(sample: TruncatedSample, components: int, *, seed: int = 0) -> Floats:
    """Return the best parameters (3, k), rows weight, mu, sigma, of EM from several starts on about a thousand points.

    The first start splits the log delays evenly; the others draw centres among them as k-means++ does (Arthur and
    Vassilvitskii 2007). The same seed gives the same answer.
    """
    coarse = sample.coarse()
    y, counts = coarse.log_nodes[:, 0], coarse.node_counts
    ends = np.log(coarse.limits)
    rng = seed_stream(seed)
    best, best_value = np.empty((3, components)), -np.inf
    for start in range(_STARTS):
        theta = _quantile_start(y, counts, components) if not start else _drawn_start(rng, y, counts, components)
        fitted, value = _em(y, counts, ends, coarse.limit_counts, theta, _ITERATIONS, _GAIN, 2.0 * SMALLEST_SIGMA)
        if value > best_value:
            best, best_value = fitted, value
    return best


def _quantile_start(y: Floats, counts: Floats, k: int) -> Floats:
    levels = np.cumsum(counts) / counts.sum()
    centres = y[np.minimum(np.searchsorted(levels, (np.arange(k) + 0.5) / k), y.size - 1)]
    return _around(centres, y, counts)


def _drawn_start(rng: np.random.Generator, y: Floats, counts: Floats, k: int) -> Floats:
    centres = [float(rng.choice(y, p=counts / counts.sum()))]
    while len(centres) < k:
        distance = np.min([(y - c) ** 2 for c in centres], axis=0) * counts
        spread = distance.sum()
        centres.append(float(rng.choice(y, p=distance / spread)) if spread > 0 else centres[0])
    return _around(np.array(centres), y, counts)


def _around(centres: Floats, y: Floats, counts: Floats) -> Floats:
    mean = counts @ y / counts.sum()
    sd = math.sqrt(max(counts @ (y - mean) ** 2 / counts.sum(), 1e-4))
    return np.array([np.full(centres.size, 1.0 / centres.size), centres, np.full(centres.size, sd / centres.size)])


@compiled
def _score(
    short: Floats, short_counts: Floats, log_nodes: Floats, node_counts: Floats,
    ends: Floats, end_counts: Floats, theta: Floats,
) -> Floats:  # fmt: skip
    """Return the derivative of the log likelihood by (weight, mu, sigma), shape (3, k), weights taken as free."""
    k = theta.shape[1]
    out = np.zeros((3, k))
    part = np.zeros((3, k))
    width = log_nodes.shape[1]
    for i in range(log_nodes.shape[0]):
        part[:] = 0.0
        density = 0.0
        for q in range(width):
            # exp(-y) turns the density of log x into that of x; within a cell it varies.
            share = (1.0 if width == 1 else (8.0 if q == 1 else 5.0)) * math.exp(log_nodes[i, 0] - log_nodes[i, q])
            for j in range(k):
                sigma = theta[2, j]
                z = (log_nodes[i, q] - theta[1, j]) / sigma
                f = share * math.exp(-0.5 * z * z) / sigma
                part[0, j] += f
                part[1, j] += theta[0, j] * f * z / sigma
                part[2, j] += theta[0, j] * f * (z * z - 1.0) / sigma
                density += theta[0, j] * f
        scale = node_counts[i] / max(density, 1e-300)
        for j in range(k):
            for row in range(3):
                out[row, j] += scale * part[row, j]
    for i in range(short.size + ends.size):
        # Cells that are differences of the CDF, then the limits.
        inside = i < short.size
        high = math.log(short[i] + 1.0) if inside else math.log(ends[i - short.size])
        low = math.log(short[i]) if inside and short[i] > 0.0 else -math.inf
        count = short_counts[i] if inside else -end_counts[i - short.size]
        probability = 0.0
        part[:] = 0.0
        for side in range(2):
            y = high if side == 0 else low
            if y == -math.inf:
                continue
            sign = 1.0 if side == 0 else -1.0
            for j in range(k):
                sigma = theta[2, j]
                z = (y - theta[1, j]) / sigma
                cdf = sign * 0.5 * math.erfc(-z * math.sqrt(0.5))
                phi = sign * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
                part[0, j] += cdf
                part[1, j] -= theta[0, j] * phi / sigma
                part[2, j] -= theta[0, j] * phi * z / sigma
                probability += theta[0, j] * cdf
        scale = count / max(probability, 1e-300)
        for j in range(k):
            for row in range(3):
                out[row, j] += scale * part[row, j]
    return out


def mixture_score(sample: TruncatedSample, theta: Floats) -> Floats:
    """Return the derivative of the log likelihood by weight, mu and sigma of each component, shape (3, k)."""
    return _score(
        sample.short, sample.short_counts, sample.log_nodes, sample.node_counts,
        sample.limits, sample.limit_counts, np.ascontiguousarray(theta),
    )  # fmt: skip
