"""Newton's method for log likelihoods of a few parameters, by differences where no gradient is at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from evaluator.delays.usable import Floats

# Errors of the differences: step^4 by truncation, 1e-16 / step (gradient) and 1e-16 / step^2 (Hessian) by rounding.
_STEP = 1e-3
_LONGEST_MOVE = 1.5


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
    """Return a local maximum, by Newton's method with halved steps.

    Parameters
    ----------
    function
        Function of theta, shape (p,), that gives the log likelihood; -inf where impossible.
    theta
        Starting point, shape (p,), scaled such that a change of 1 is large.
    gradient
        Function of theta that gives the gradient, shape (p,); None takes fourth-order differences, 2 p^2 + 2 p
        evaluations a step.
    curvature
        Function of theta that gives the Hessian, shape (p, p); None takes differences.
    hessian
        Hessian near enough to step with, shape (p, p); None computes it at the start. It is renewed as soon as the
        squared decrement falls by less than a factor of 10 a step, and at the end.
    tolerance
        Squared Newton decrement, the squared distance to the optimum in standard errors, below which to stop.
    iterations
        Number of steps after which, the value still rising along a ridge, there is no strict maximum.
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
