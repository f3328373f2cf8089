"""Numbered draws: bits as published, quantiles as SciPy's, normals that are normal and independent of each other."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from scipy.special import ndtri

from evaluator.engine.kernels.compiling import compiled_uncached
from evaluator.engine.kernels.ridge import normal_quantile, numbered_bits, numbered_normal, stream_key

Floats = npt.NDArray[np.float64]
ROUNDS, ACTIONS = 2_000, 50


@compiled_uncached
def many_bits(keys: npt.NDArray[np.int64], out: npt.NDArray[np.uint64]) -> None:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = numbered_bits(keys[i], j)


@compiled_uncached
def many_normals(keys: npt.NDArray[np.int64], out: Floats) -> None:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = numbered_normal(keys[i], j)


@compiled_uncached
def many_quantiles(p: Floats, out: Floats) -> None:
    for i in range(len(p)):
        out[i] = normal_quantile(p[i])


def drawn_keys() -> npt.NDArray[np.int64]:
    rng = np.random.default_rng(1)
    return np.array([stream_key(rng) for _ in range(ROUNDS)])


def normals(keys: npt.NDArray[np.int64]) -> Floats:
    """Return the normals of each key's actions, shape (keys, ACTIONS)."""
    out = np.empty((len(keys), ACTIONS))
    many_normals(keys, out)
    return out


def test_bits_are_the_published_ones() -> None:
    # The first outputs of SplitMix64 from 1234567, which its ports check themselves with.
    published = [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip
    assert [numbered_bits(1234567, number) for number in range(5)] == published


def test_compiled_and_interpreted_draws_agree() -> None:
    keys = np.array([0, 1, 2**53 - 1, 2**63 - 1, *drawn_keys()[:20]])
    bits = np.empty((len(keys), ACTIONS), np.uint64)
    many_bits(keys, bits)
    assert bits.tolist() == [[numbered_bits(key, j) for j in range(ACTIONS)] for key in keys.tolist()]
    assert normals(keys).tolist() == [[numbered_normal(key, j) for j in range(ACTIONS)] for key in keys.tolist()]


def test_quantiles_are_those_of_scipy() -> None:
    tails = 10.0 ** -np.linspace(0.31, 300, 20_001)
    p = np.concatenate([np.linspace(1e-9, 1 - 1e-9, 200_001), 0.5 + np.linspace(-1e-3, 1e-3, 10_001), tails])
    out = np.empty_like(p)
    many_quantiles(p, out)
    np.testing.assert_allclose(out, ndtri(p), rtol=2e-15, atol=1e-16)
    assert normal_quantile(0.5) == 0.0
    assert out[np.argsort(p, kind="stable")].tolist() == sorted(out.tolist())


def test_the_farthest_draws_are_finite_and_mirror_images() -> None:
    # The middles of the first and of the last of 2^52 parts.
    low, high = normal_quantile(2.0**-53), normal_quantile(1 - 2.0**-53)
    assert low == -high
    assert high == pytest.approx(-ndtri(2.0**-53), rel=2e-15)
    assert high < 8.3


@pytest.mark.parametrize("over", ["rounds", "rounds and actions"])
def test_draws_are_normal(over: str) -> None:
    drawn = normals(drawn_keys())
    # Those of each action over the rounds, or all of them.
    parts = list(drawn.T) if over == "rounds" else [drawn.ravel()]
    p = [stats.kstest(part, "norm").pvalue for part in parts]
    # The smallest of so many p-values, at a level of 1/1000 for all together.
    assert min(p) > 1e-3 / len(p)
    n = drawn.size
    # Standard errors of the moments of n normals: 1, 2, 15 and 96 are the variances of z, z², z³ and z⁴.
    for power, mean, variance in ((1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)):
        assert abs((drawn**power).mean() - mean) < 4 * math.sqrt(variance / n)


def correlations(one: Floats, other: Floats) -> Floats:
    """Return the correlations of the columns of two samples, in standard errors of independent ones."""
    found: Floats = one.T @ other / math.sqrt(len(one))
    return found


def test_actions_and_rounds_are_independent() -> None:
    drawn = normals(drawn_keys())
    apart = ~np.eye(ACTIONS, dtype=np.bool_)
    for power in (drawn, (drawn**2 - 1) / math.sqrt(2)):
        within = correlations(power, power)[np.triu(apart)]
        # So many correlations at a time: their largest by Bonferroni at 1/1000, their mean square by 4 standard errors.
        lagged = correlations(power[:-1], power[1:]).ravel()
        for found in (within, lagged):
            assert abs(found).max() < stats.norm.isf(1e-3 / 2 / len(found))
            assert abs((found**2).mean() - 1) < 4 * math.sqrt(2 / len(found))


def test_keys_and_numbers_that_differ_in_a_bit_share_nothing() -> None:
    keys = drawn_keys()
    drawn = normals(keys)
    n = drawn.size
    for bit in (0, 1, 7, 26, 52):
        other = normals(keys ^ (1 << bit))
        assert abs((drawn * other).sum()) < 4 * math.sqrt(n)
    # Each of the 64 bits flips half of the time.
    one, other = np.empty((2, ROUNDS, ACTIONS), np.uint64)
    many_bits(keys, one)
    for bit in (0, 26, 52):
        many_bits(keys ^ (1 << bit), other)
        flipped = np.unpackbits((one ^ other).view(np.uint8).reshape(-1, 8), axis=1).mean(axis=0)
        assert (abs(flipped - 0.5) < stats.norm.isf(1e-3 / 2 / 64) * 0.5 / math.sqrt(n)).all()


def test_a_key_is_one_draw() -> None:
    rng, other = np.random.default_rng(3), np.random.default_rng(3)
    keys = [stream_key(rng) for _ in range(1000)]
    assert [int(u * 2**53) for u in other.random(1000)] == keys
    assert rng.bit_generator.state == other.bit_generator.state
