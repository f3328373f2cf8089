"""What the index policies share: the arm with the largest index, found without computing those that cannot win.

A policy gives ``index(state, k, log_t) -> (value, slope)`` to `implement_index`: arm k's index at the decision of round
t, and its derivative in log t, from which `begin` and `score` follow. Indices are concave in log t, so value and slope
of an earlier round bound the index from above for as long as the arm is neither shown nor converts. From below it is
bounded by ``weight(state, k)``, the pulls or effective pulls that the index divides by: index times weight never falls,
whether the arm is shown, converts, or time passes. Most rounds compute no index: the arm that won last wins again where
its lower bound lies above all other bounds.

What is relied on: while an arm is left alone its index, for a given t, never rises, and its weight never falls. `touch`
it whenever the first may fail, at least when it is shown or converts, and `forget` it where a conversion is worth less
than nothing. Where displays have their own eligible actions, only those asked are computed.

Policies that compute every index each round, into an array `indices`, choose by `evaluator.engine.kernels.argmax`.
Indices by Kullback-Leibler divergence are exact to 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.argmax import argmax, check_score
from evaluator.engine.kernels.compiling import inlinable
from evaluator.policies.dispatch import implement

Vectors = npt.NDArray[np.floating]
# ``index(state, k, log_t) -> (value, slope)``: arm k's index at the decision of round t, its derivative in log t.
Index = Callable[..., tuple[float, float]]
Weight = Callable[..., float]

# Far above the rounding of an index and of its bound, far below what tells arms apart. Arms within it are computed.
_ROUNDING = 1e-11
# The same of a product of index and weight that is divided by the weight of some other round.
_ROUNDING_OF_LEAST = 1e-10
# A pulled arm whose effective pulls are still 0 has an infinite index, yet comes after the arms never pulled.
NOTHING_DUE = 1e300
# The greedy policy of what was learned shows the action with the largest estimate (`evaluator.engine.frozen`),
# actions with the same one with equal chance. An arm of which nothing is known has no estimate, and is shown only
# where none has one. Models with a prior (Beta, ridge) have an estimate of every action, the prior's where nothing
# is known.
# Below every estimate.
NO_ESTIMATE = -np.inf


class Indices(NamedTuple):
    """The last computed index of each arm.

    `value` and `slope` are index and its derivative in log t when last computed, and `log_t` the log t of that round,
    shape (K,); a value is infinite when the arm has changed since. `least` is the product of index and weight when last
    computed, shape (K,), -inf when it may have fallen. `leader` is the arm that won last, shape (1,): looked at first,
    which changes how fast, never what is answered. Equals are drawn from with `random_ties`; else the lowest index
    wins.
    """

    value: npt.NDArray[np.float64]
    slope: npt.NDArray[np.float64]
    log_t: npt.NDArray[np.float64]
    least: npt.NDArray[np.float64]
    leader: npt.NDArray[np.int64]
    random_ties: bool

    @property
    def later_fields(self) -> tuple[str, ...]:
        """Arrays that files of earlier versions lack: their bounds from below are as they were started, unknown."""
        return ("least",)


def start_indices(n_actions: int, *, ties: str) -> Indices:
    """Return indices of which none is computed yet."""
    zeros = np.zeros(n_actions)
    return Indices(
        np.full(n_actions, np.inf), zeros, zeros.copy(), np.full(n_actions, -np.inf), np.zeros(1, np.int64),
        ties == "random",
    )  # fmt: skip


@inlinable
def touch(indices: Indices, action: int) -> None:
    """Have an arm's index, which may have risen, computed anew before another arm is said to lie above it."""
    indices.value[action] = np.inf


@inlinable
def forget(indices: Indices, action: int) -> None:
    """Have an arm's index, which may have risen or fallen, computed anew."""
    indices.value[action] = np.inf
    indices.least[action] = -np.inf


@inlinable
def convert(indices: Indices, action: int, value: float) -> None:
    """Have an arm's index computed anew after a conversion: it has fallen where that is worth less than nothing."""
    if value < 0.0:
        forget(indices, action)
    else:
        touch(indices, action)


@inlinable
def largest_index(
    state: Any, indices: Indices, index: Index, weight: Weight, log_t: float, rng: np.random.Generator
) -> int:
    """Return the arm with the largest index; among equals a uniformly random one, or the lowest. O(K).

    Exact: an arm is left out only when its bound lies below the largest index. `index` and `weight` are the policy's.
    """
    leader = indices.leader[0]
    if _leads(state, indices, weight, log_t):
        return leader
    largest = _computed(state, indices, index, weight, leader, log_t)
    winner, equals = -1, 0
    for k in range(indices.value.shape[0]):
        if k != leader:
            bound = _bound(indices, k, log_t)
            if bound + _ROUNDING * (1.0 + abs(bound)) < largest:
                continue
            _computed(state, indices, index, weight, k, log_t)
        value = indices.value[k]
        if value > largest or (value == largest and winner < 0):
            largest, winner, equals = value, k, 1
        elif value == largest and indices.random_ties:
            # Reservoir sampling among equals: one draw for each further equal, none without ties.
            equals += 1
            if rng.random() * equals < 1.0:
                winner = k
    indices.leader[0] = winner
    return winner


@inlinable
def _leads(state: Any, indices: Indices, weight: Weight, log_t: float) -> bool:
    """Return whether the index of the arm that won last is sure to be larger than any other."""
    leader = indices.leader[0]
    least = indices.least[leader] / weight(state, leader)
    for k in range(indices.value.shape[0]):
        bound = _bound(indices, k, log_t)
        if k != leader and not bound + _ROUNDING_OF_LEAST * (1.0 + abs(bound)) < least:
            return False
    return True


@inlinable
def _bound(indices: Indices, k: int, log_t: float) -> float:
    """Return what an arm's index is at most."""
    return indices.value[k] + indices.slope[k] * (log_t - indices.log_t[k])


@inlinable
def _computed(state: Any, indices: Indices, index: Index, weight: Weight, k: int, log_t: float) -> float:
    value, slope = index(state, k, log_t)
    check_score(value, k)
    divisor = weight(state, k)
    indices.least[k] = value * divisor if divisor > 0.0 else -np.inf
    indices.value[k] = value
    indices.slope[k] = slope
    indices.log_t[k] = log_t
    return value


@inlinable
def delayed_index(conversions: float, effective: float, stretch: float, beta: float, kl: bool) -> float:
    """Return the index of an arm that has been pulled.

    S and N~ are the value of its conversions and the effective number of its pulls; `stretch` is the ratio N / N~ for
    DelayedUCB, 1 for the discarding policies, whose pulls are all of one weight. Without `kl` the index is
    S/N~ + sqrt(stretch beta / (2 N~)), with it max{q in [S/N~, 1]: N~ d_Pois(S/N~, q) <= beta}.
    """
    if effective <= 0.0:
        return 1.0 if kl else NOTHING_DUE
    mean = conversions / effective
    if kl:
        return poisson_index(mean, beta / effective)
    return mean + math.sqrt(stretch) * math.sqrt(beta / (2.0 * effective))


@inlinable
def estimate_rates(
    conversions: npt.NDArray[np.float64], trials: npt.NDArray[np.float64], values: npt.NDArray[np.float64]
) -> None:
    """Write conversions / trials of each arm into `values`, all of shape (K,); `NO_ESTIMATE` without trials."""
    for k in range(values.shape[0]):
        values[k] = conversions[k] / trials[k] if trials[k] > 0.0 else NO_ESTIMATE


def mean_conversions(state: Any, vectors: Vectors, values: npt.NDArray[np.float64]) -> None:
    """Write conversions seen / pulls of each arm, as an `estimate` does, of states with `conversions` and `pulls`."""
    estimate_rates(state.conversions, state.pulls, values)


def count_pull(state: Any, vectors: Vectors, action: int) -> None:
    """Count a display, as `shown` does, of states with `pulls`."""
    state.pulls[action] += 1.0


def count_conversion(state: Any, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    """Add a conversion to its arm's, as `told` does, of states with `conversions`."""
    state.conversions[action] += value


def computed_index(state: Any, vectors: Vectors, action: int) -> float:
    """Return the arm's index of this round, as a `score` does, of states with an array `indices`."""
    return state.indices[action]


@inlinable
def _begin_nothing(state: Any, rng: np.random.Generator) -> None:
    pass


def implement_index(
    state: type,
    *,
    index: Index,
    weight: Weight,
    log_t: Callable[..., float],
    begin: Callable[..., None] = _begin_nothing,
    **own: Any,
) -> None:
    """Register a state with `indices` and a `choice`: its index, weight, log t, and what it does in a way of its own.

    ``log_t(state)`` is that of the round's decision, and ``begin(state, rng)`` is called before the arm with the
    largest index is found. Other functions are as `evaluator.policies.dispatch.implement` takes them.
    """
    index = inlinable(index)

    def begin_and_choose(state: Any, rng: np.random.Generator) -> None:
        begin(state, rng)
        state.choice[0] = largest_index(state, state.indices, index, weight, log_t(state), rng)

    def score(state: Any, vectors: Vectors, action: int) -> float:
        value, _ = index(state, action, log_t(state))
        return value

    def is_settled(state: Any) -> bool:
        return _leads(state, state.indices, weight, log_t(state))

    implement(state, begin=begin_and_choose, begin_among=begin, score=score, is_settled=is_settled, **own)


def implement_computed(state: type, *, index: Callable[..., float], begin: Callable[..., float], **own: Any) -> None:
    """Register a state with an array `indices` that each round computes anew, and a `choice` of the largest.

    ``begin(state)`` begins the round, and returns what ``index(state, k, shared)`` of each arm k takes from it.
    """

    def begin_and_choose(state: Any, rng: np.random.Generator) -> None:
        shared = begin(state)
        for k in range(state.indices.shape[0]):
            state.indices[k] = index(state, k, shared)
        state.choice[0] = argmax(state.indices, state.random_ties, rng)

    implement(state, **{"begin": begin_and_choose, "score": computed_index, **own})


_STEPS = 100
_PRECISION = 1e-13
# Of an index that has not left its mean; finite, so that it vanishes where no time has passed.
_STEEP = 1e300


@inlinable
def poisson_index(mean: float, budget: float) -> float:
    """Return max{q in [mean, 1]: d_Pois(mean, q) <= budget}, d_Pois(p, q) = p log(p/q) + q - p; 1 when mean >= 1.

    Newton from the right of the root: d is convex and increasing there, so the steps fall monotonically onto it.
    Vernade et al. 2017, Section 4.2.
    """
    if mean >= 1.0:
        return 1.0
    if mean <= 0.0:
        return min(budget, 1.0)
    q = _beyond(mean, budget)
    if q >= 1.0:
        if mean * math.log(mean) + 1.0 - mean <= budget:
            return 1.0
        q = 1.0
    for _ in range(_STEPS):
        if q <= mean:
            return mean
        step = (mean * math.log(mean / q) + q - mean - budget) / (1.0 - mean / q)
        q -= step
        if abs(step) <= _PRECISION * q or _next_step_is_nothing(step, q - mean):
            break
    return max(q, mean)


@inlinable
def _next_step_is_nothing(step: float, room: float) -> bool:
    """Return whether Newton has arrived: near the root it leaves an error of step² over the distance to a pole of d."""
    return abs(step) <= 0.01 * room and step * step <= _PRECISION * room


@inlinable
def _beyond(mean: float, budget: float) -> float:
    """Return a q at or right of the root, tight to third order: d_Pois(p, q) >= 3 (q - p)² / (2 (2q + p))."""
    return mean + (2.0 * budget + math.sqrt(4.0 * budget * budget + 18.0 * budget * mean)) / 3.0


@inlinable
def poisson_slope(mean: float, q: float) -> float:
    """Return the derivative in the budget of q = poisson_index(mean, budget); 0 where q has reached 1."""
    if q >= 1.0:
        return 0.0
    return q / (q - mean) if q > mean else _STEEP


@inlinable
def bernoulli_index(mean: float, budget: float) -> float:
    """Return max{q in [mean, 1]: d(mean, q) <= budget}, d the Bernoulli divergence; 1 when mean >= 1.

    Newton within a bracket that Pinsker's inequality starts (q <= mean + sqrt(budget / 2)), or the Poisson divergence,
    which is smaller; bisection when a step leaves it. The first q solves the expansion of d around the mean to third
    order. Garivier and Cappe 2011.
    """
    if mean >= 1.0:
        return 1.0
    if mean <= 0.0:
        return 1.0 - math.exp(-budget)
    low = mean
    high = min(1.0, mean + math.sqrt(0.5 * budget), _beyond(mean, budget))
    skew = 2.0 * budget * (1.0 - 2.0 * mean) / 3.0
    q = min(high, mean + skew + math.sqrt(skew * skew + 2.0 * mean * (1.0 - mean) * budget))
    if not low < q < 1.0:
        q = 0.5 * (low + high)
    for _ in range(_STEPS):
        if q >= 1.0:  # the bracket is one rounding wide
            return 1.0
        excess = mean * math.log(mean / q) + (1.0 - mean) * math.log((1.0 - mean) / (1.0 - q)) - budget
        if excess > 0.0:
            high = q
        else:
            low = q
        slope = (q - mean) / (q * (1.0 - q))
        following = q - excess / slope if slope > 0.0 else 0.5 * (low + high)
        if not low < following < high:
            following = 0.5 * (low + high)
        step = following - q
        q = following
        if abs(step) <= _PRECISION or _next_step_is_nothing(step, min(q - mean, 1.0 - q)):
            break
    return q


@inlinable
def bernoulli_slope(mean: float, q: float) -> float:
    """Return the derivative in the budget of q = bernoulli_index(mean, budget); 0 where q has reached 1."""
    if q >= 1.0:
        return 0.0
    return q * (1.0 - q) / (q - mean) if q > mean else _STEEP
