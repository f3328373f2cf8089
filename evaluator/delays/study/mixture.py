"""Lognormal mixtures under right truncation: expectation maximisation from several starts, and the score."""

from __future__ import annotations

import math

import numpy as np

from evaluator.delays.product_limit import Floats
from evaluator.delays.study.likelihood import TruncatedSample
from evaluator.engine.kernels.compiling import compiled
from evaluator.streams import seed_stream

# Below this a component of log delays is a tie, whose density would grow without bound.
SMALLEST_SIGMA = 0.02
_STARTS = 8
_ITERATIONS = 300
_GAIN = 1e-7


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
