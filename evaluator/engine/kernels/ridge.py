"""Ridge regression updated in place: V = ridge·I + Σ a a', B = Σ value·a, theta = V⁻¹B.

V⁻¹ is kept as its factors U D U', U upper triangular with 1 on its diagonal, D diagonal (Bierman 1977). An update of
the inverse itself (Sherman-Morrison) subtracts nearly all of it in the direction of a long vector, and where a column
is a time in milliseconds nothing but rounding is left. The factors' updates multiply D by numbers in (0, 1], and round
alike in whatever unit a column is: theta and norms are within 1e-6 of a dense solve up to a condition of V of
`LARGEST_CONDITION`, and norms are never negative.

The model is *shared* (one block; every action has its own vector, the action sets of Vernade et al. 2020) or *disjoint*
(one block an action; all actions see the display's context). Disjoint is the shared model with vectors e_k ⊗ x, whose V
is block diagonal, so nothing is lost by keeping the blocks apart.

Vectors are long where features are many: then V may be replaced by its *diagonal*, and everything costs O(d) instead of
O(d²). A display moves theta to the minimum of 1/2 Σ V_ii (theta_i - theta_i,before)² + 1/2 (<theta, a> - value)², and
adds a_i² to V_ii: the update of Chapelle and Li 2011, Algorithm 3, for a squared loss. Equal to the whole V where each
vector has one element that is not 0, such as a category; else what is said of correlated features together is lost.

*Normals by number*, for draws of a posterior of which few are ever asked: number n of a key's stream, whichever others
were asked for. Bits are those of SplitMix64 (Steele, Lea, Flood 2014): draw n is the n-th output of the generator that
the key starts. A Weyl sequence passes through a finaliser (Stafford's variant 13) in which each bit of the input flips
each bit of the output with probability near 1/2. Normals are such bits through the inverse of the normal distribution
function, algorithm AS 241, routine PPND16 (Wichura 1988): rational functions of degree 7, of relative accuracy about
1e-16, to which floating point adds a few units in the last place: 1.4e-15 at most of two million p from 1e-300 to 1 -
1e-9, against `scipy.special.ndtri`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable, overloads

# Of V: up to here numbers are those of a dense solve in float64 (`tests/engine/kernels/test_ridge.py`).
LARGEST_CONDITION = 1e8
# Vectors have a norm of about 1: with less, one display is beyond that condition.
LEAST_RIDGE = 1.0 / LARGEST_CONDITION


class Ridge(NamedTuple):
    """State of the regression.

    Parameters
    ----------
    factors
        Factors of the inverse V⁻¹ = U D U' of each block's design matrix, shape (blocks, d, d): D on the diagonal, U'
        below it, nothing above.
    moment
        Sum B of the rewards times vectors of each block, shape (blocks, d).
    theta
        Estimate V⁻¹B of each block, shape (blocks, d).
    scratch
        Vector V⁻¹a of the last update, shape (d,).
    size
        Tuple of length d, whose length compiled code knows (`length`); empty when d is large.
    """

    factors: npt.NDArray[np.float64]
    moment: npt.NDArray[np.float64]
    theta: npt.NDArray[np.float64]
    scratch: npt.NDArray[np.float64]
    size: tuple[int, ...]

    def read_earlier(self, name: str, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Turn V⁻¹, which files of earlier versions hold in place of its factors, into these."""
        if f"{name}.inverse" in saved:
            saved[f"{name}.factors"] = factors_of(saved.pop(f"{name}.inverse"))


class DiagonalRidge(NamedTuple):
    """State of the regression whose V is diagonal.

    Parameters
    ----------
    precision
        Diagonal of V of each block, shape (blocks, d).
    theta
        Estimate of each block, shape (blocks, d).
    size
        Tuple, as that of `Ridge`.
    """

    precision: npt.NDArray[np.float64]
    theta: npt.NDArray[np.float64]
    size: tuple[int, ...]


Regression = Ridge | DiagonalRidge


def start_ridge(blocks: int, dimension: int, ridge: float) -> Ridge:
    """Return the regression before data: V = ridge·I."""
    factors = np.zeros((blocks, dimension, dimension))
    factors[:] = np.eye(dimension) / ridge
    moment = np.zeros((blocks, dimension))
    return Ridge(factors, moment, moment.copy(), np.zeros(dimension), known_length(dimension))


def start_regression(blocks: int, dimension: int, ridge: float, *, diagonal: bool) -> Regression:
    """Return the regression before data, with the whole V or its diagonal alone."""
    if not diagonal:
        return start_ridge(blocks, dimension, ridge)
    theta = np.zeros((blocks, dimension))
    return DiagonalRidge(np.full_like(theta, ridge), theta, known_length(dimension))


def factors_of(inverse: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return D and U' of some V⁻¹, shape (..., d, d), as `Ridge` has them; `LinAlgError` where one is not positive."""
    # Cholesky from the last coordinate to the first: V⁻¹ = (U D^½)(U D^½)'.
    root = np.linalg.cholesky(inverse[..., ::-1, ::-1])[..., ::-1, ::-1]
    diagonal = np.diagonal(root, axis1=-2, axis2=-1)
    factors: npt.NDArray[np.float64] = np.swapaxes(root / diagonal[..., None, :], -2, -1).copy()
    at = np.arange(factors.shape[-1])
    factors[..., at, at] = diagonal**2
    return factors


# The loops over a vector's elements are so short that counting and leaving them costs more than their arithmetic. A
# tuple's length is part of its type, so d is a constant when compiled, and the loops are unrolled. The price is that
# each d is compiled anew; for long vectors it buys nothing.
_UNROLLED = 8


def known_length(dimension: int) -> tuple[int, ...]:
    """Return a tuple of length d; empty where d is better not known when compiling."""
    return (0,) * dimension if dimension <= _UNROLLED else ()


@inlinable
def length(size: tuple[int, ...], vectors: npt.NDArray[np.floating]) -> int:
    """Return d of vectors of shape (..., d), as a constant where `known_length` has made it one."""
    return len(size) if len(size) > 0 else vectors.shape[-1]


@inlinable
def row(vectors: npt.NDArray[np.floating], action: int) -> int:
    """Return the row of an action's vector: its own in shape (K, d), the only one in (1, d)."""
    return action if vectors.shape[0] > 1 else 0


@inlinable
def block(ridge: Regression, action: int) -> int:
    """Return the block of an action: its own in the disjoint model, the only one in the shared model."""
    return action if ridge.theta.shape[0] > 1 else 0


# Vectors come as they are stored, often float32. Each element is cast as it is read: float32 times float32 would be
# rounded to float32.


@inlinable
def predict(
    theta: npt.NDArray[np.float64], size: tuple[int, ...], b: int, vectors: npt.NDArray[np.floating], r: int
) -> float:
    """Return <theta[b], vectors[r]>, summed in index order; theta has shape (blocks, d)."""
    total = 0.0
    for i in range(length(size, vectors)):
        total += theta[b, i] * np.float64(vectors[r, i])
    return total


@inlinable
def estimate_rewards(ridge: Regression, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    """Write <theta, a> of each action into `values`, shape (K,): 0 where nothing is known. O(K d)."""
    for k in range(values.shape[0]):
        values[k] = predict(ridge.theta, ridge.size, block(ridge, k), vectors, row(vectors, k))


def squared_norm(ridge: Regression, b: int, vectors: npt.NDArray[np.floating], r: int) -> float:
    """Return ||vectors[r]||² in V⁻¹ of block b, a sum of D (U' vectors[r])²: never negative. O(d²), diagonal O(d)."""
    found: float = _kernels(ridge).squared_norm(ridge, b, vectors, r)
    return found


def mean_and_norm(ridge: Regression, b: int, vectors: npt.NDArray[np.floating], r: int) -> tuple[float, float]:
    """Return <theta[b], vectors[r]> and the squared norm, formed in one pass. O(d²), diagonal O(d)."""
    found: tuple[float, float] = _kernels(ridge).mean_and_norm(ridge, b, vectors, r)
    return found


def add_display(ridge: Regression, b: int, vectors: npt.NDArray[np.floating], r: int) -> None:
    """Add the display of vectors[r] to V (Bierman's update of the factors); theta follows. O(d²), diagonal O(d)."""
    _kernels(ridge).add_display(ridge, b, vectors, r)


def add_reward(ridge: Regression, b: int, vector: npt.NDArray[np.float64], value: float) -> None:
    """Add the value of a conversion of a display that is in V; theta follows. O(d²), diagonal O(d)."""
    _kernels(ridge).add_reward(ridge, b, vector, value)


def sample_theta(
    ridge: Regression, b: int, scale: float, rng: np.random.Generator, out: npt.NDArray[np.float64]
) -> None:
    """Write a draw of N(theta, scale²·V⁻¹) of block b into `out`, shape (d,): U D^½ is a root of V⁻¹. O(d²)."""
    _kernels(ridge).sample_theta(ridge, b, scale, rng, out)


def _squared_norm(ridge: Ridge, b: int, vectors: npt.NDArray[np.floating], r: int) -> float:
    factors = ridge.factors
    total = 0.0
    for i in range(length(ridge.size, vectors)):
        x = np.float64(vectors[r, i])
        for j in range(i):
            x += factors[b, i, j] * np.float64(vectors[r, j])
        total += x * factors[b, i, i] * x
    return total


def _mean_and_norm(ridge: Ridge, b: int, vectors: npt.NDArray[np.floating], r: int) -> tuple[float, float]:
    theta, factors = ridge.theta, ridge.factors
    mean = 0.0
    norm = 0.0
    for i in range(length(ridge.size, vectors)):
        x = np.float64(vectors[r, i])
        mean += theta[b, i] * x
        for j in range(i):
            x += factors[b, i, j] * np.float64(vectors[r, j])
        norm += x * factors[b, i, i] * x
    return mean, norm


def _add_display(ridge: Ridge, b: int, vectors: npt.NDArray[np.floating], r: int) -> None:
    d = length(ridge.size, vectors)
    gain = ridge.scratch
    factors = ridge.factors
    error = 0.0
    # 1 + ||vectors[r]||² over the coordinates so far.
    total = 1.0
    for i in range(d):
        x = np.float64(vectors[r, i])
        error += ridge.theta[b, i] * x
        for j in range(i):
            x += factors[b, i, j] * np.float64(vectors[r, j])
        own = factors[b, i, i] * x
        before, total = total, total + x * own
        factors[b, i, i] *= before / total
        step = x / before
        for j in range(i):
            old = factors[b, i, j]
            factors[b, i, j] = old - step * gain[j]
            gain[j] += own * old
        gain[i] = own
    error /= total
    for i in range(d):
        ridge.theta[b, i] -= error * gain[i]


def _add_reward(ridge: Ridge, b: int, vector: npt.NDArray[np.float64], value: float) -> None:
    d = length(ridge.size, vector)
    factors = ridge.factors
    for i in range(d):
        ridge.moment[b, i] += value * vector[i]
    for i in range(d):
        x = vector[i]
        for j in range(i):
            x += factors[b, i, j] * vector[j]
        x *= value * factors[b, i, i]
        ridge.theta[b, i] += x
        for j in range(i):
            ridge.theta[b, j] += factors[b, i, j] * x


def _sample_theta(ridge: Ridge, b: int, scale: float, rng: np.random.Generator, out: npt.NDArray[np.float64]) -> None:
    d = out.shape[0]
    for i in range(d):
        x = rng.standard_normal() * math.sqrt(ridge.factors[b, i, i])
        out[i] = x
        for j in range(i):
            out[j] += ridge.factors[b, i, j] * x
    for i in range(d):
        out[i] = ridge.theta[b, i] + scale * out[i]


def _diagonal_norm(ridge: DiagonalRidge, b: int, vectors: npt.NDArray[np.floating], r: int) -> float:
    total = 0.0
    for i in range(length(ridge.size, vectors)):
        x = np.float64(vectors[r, i])
        total += x / ridge.precision[b, i] * x
    return total


def _diagonal_mean_and_norm(
    ridge: DiagonalRidge, b: int, vectors: npt.NDArray[np.floating], r: int
) -> tuple[float, float]:
    mean = 0.0
    norm = 0.0
    for i in range(length(ridge.size, vectors)):
        x = np.float64(vectors[r, i])
        mean += ridge.theta[b, i] * x
        norm += x / ridge.precision[b, i] * x
    return mean, norm


def _add_diagonal_display(ridge: DiagonalRidge, b: int, vectors: npt.NDArray[np.floating], r: int) -> None:
    theta, precision = ridge.theta, ridge.precision
    mean, norm = mean_and_norm(ridge, b, vectors, r)
    error = mean / (1.0 + norm)
    for i in range(length(ridge.size, vectors)):
        x = np.float64(vectors[r, i])
        theta[b, i] -= error * x / precision[b, i]
        precision[b, i] += x * x


def _add_diagonal_reward(ridge: DiagonalRidge, b: int, vector: npt.NDArray[np.float64], value: float) -> None:
    # As if the value had come with the display: from V without it.
    norm = 0.0
    for i in range(length(ridge.size, vector)):
        norm += vector[i] / _before(ridge.precision[b, i], vector[i]) * vector[i]
    for i in range(length(ridge.size, vector)):
        ridge.theta[b, i] += value / (1.0 + norm) * vector[i] / _before(ridge.precision[b, i], vector[i])


@inlinable
def _before(precision: float, x: float) -> float:
    """Return an element of V before a display whose vector has x there; more than 0 whatever rounding has left."""
    return max(precision - x * x, precision * 2.0**-52)


def _sample_diagonal_theta(
    ridge: DiagonalRidge, b: int, scale: float, rng: np.random.Generator, out: npt.NDArray[np.float64]
) -> None:
    for i in range(out.shape[0]):
        out[i] = ridge.theta[b, i] + scale * (rng.standard_normal() / math.sqrt(ridge.precision[b, i]))


class _Kernels(NamedTuple):
    """What is done in another way by each kind of regression."""

    squared_norm: Callable[..., Any]
    mean_and_norm: Callable[..., Any]
    add_display: Callable[..., Any]
    add_reward: Callable[..., Any]
    sample_theta: Callable[..., Any]


_WHOLE = _Kernels(_squared_norm, _mean_and_norm, _add_display, _add_reward, _sample_theta)
_DIAGONAL = _Kernels(
    _diagonal_norm, _diagonal_mean_and_norm, _add_diagonal_display, _add_diagonal_reward, _sample_diagonal_theta
)


def _kernels(ridge: Regression) -> _Kernels:
    return _DIAGONAL if isinstance(ridge, DiagonalRidge) else _WHOLE


def _compile(name: str) -> Callable[..., Any]:
    """Return what finds, at compile time, a kernel of a kind of regression."""

    def find(ridge: Any, *asked: Any) -> Any:
        return getattr(_DIAGONAL if ridge.instance_class is DiagonalRidge else _WHOLE, name)

    return find


for _name in _Kernels._fields:
    overloads(globals()[_name])(_compile(_name))


_WORD = 0xFFFF_FFFF_FFFF_FFFF
_STEP, _FIRST, _SECOND = 0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB
_KEYS = 2.0**53


@inlinable
def stream_key(rng: np.random.Generator) -> int:
    """Return the key of a stream of numbered draws, one of 2^53: one draw of the generator."""
    return int(rng.random() * _KEYS)


def numbered_bits(key: int, number: int) -> int:
    """Return 64 random bits: output `number`, from 0, of SplitMix64 started with the key."""
    x = (int(key) + (int(number) + 1) * _STEP) & _WORD
    x = ((x ^ (x >> 30)) * _FIRST) & _WORD
    x = ((x ^ (x >> 27)) * _SECOND) & _WORD
    return x ^ (x >> 31)


@overloads(numbered_bits)
def _compile_numbered_bits(key: Any, number: Any) -> Any:
    step, first, second = np.uint64(_STEP), np.uint64(_FIRST), np.uint64(_SECOND)

    def bits(key: Any, number: Any) -> Any:
        x = np.uint64(key) + (np.uint64(number) + np.uint64(1)) * step
        x = (x ^ (x >> np.uint64(30))) * first
        x = (x ^ (x >> np.uint64(27))) * second
        return x ^ (x >> np.uint64(31))

    return bits


@inlinable
def numbered_normal(key: int, number: int) -> float:
    """Return standard normal `number`, from 0, of a key's stream; within 8.3 of 0, as 52 bits are."""
    # The middle of one of 2^52 equal parts of (0, 1): never 0 or 1, and as far from 0 as its mirror image from 1.
    upper = np.int64(numbered_bits(key, number) >> np.uint64(12))
    return normal_quantile((np.float64(upper) + 0.5) * 2.0**-52)


@inlinable
def normal_quantile(p: float) -> float:
    """Return the number below which a standard normal lies with probability p, 0 < p < 1 (AS 241, PPND16)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * _ratio(
            r,
            (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
             1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080),
            (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
             5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
        )  # fmt: skip
    r = math.sqrt(-math.log(min(p, 1.0 - p)))
    if r <= 5.0:
        tail = _ratio(
            r - 1.6,
            (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
             3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734),
            (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
             6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0),
        )  # fmt: skip
    else:
        tail = _ratio(
            r - 5.0,
            (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
             2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720),
            (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
             7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
             5.99832206555887937690e-1, 1.0),
        )  # fmt: skip
    return tail if q > 0.0 else -tail


@inlinable
def _ratio(x: float, above: tuple[float, ...], below: tuple[float, ...]) -> float:
    """Return the ratio of two polynomials of degree 7, coefficients from the highest power down."""
    top, bottom = above[0], below[0]
    for i in range(1, 8):
        top = top * x + above[i]
        bottom = bottom * x + below[i]
    return top / bottom
