"""Standard normals by number: number n of a key's stream, whichever others were asked for.

Bits are those of SplitMix64 (Steele, Lea, Flood 2014): draw n is the n-th output of the generator that the key starts.
A Weyl sequence passes through a finaliser (Stafford's variant 13) in which each bit of the input flips each bit of the
output with probability near 1/2. Normals are such bits through the inverse of the normal distribution function,
algorithm AS 241, routine PPND16 (Wichura 1988): rational functions of degree 7, of relative accuracy about 1e-16, to
which floating point adds a few units in the last place: 1.4e-15 at most of two million p from 1e-300 to 1 - 1e-9,
against `scipy.special.ndtri`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evaluator.engine.kernels.compiling import inlinable, overloads

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
