"""Ties are broken uniformly, or to the lowest index; without ties no draw is spent."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.engine.kernels.argmax import LOWEST_FIRST, argmax, goes_first, tie_key
from evaluator.engine.kernels.compiling import compiled_uncached

N = 24_000


@compiled_uncached
def many_argmax(scores: npt.NDArray[np.float64], rng: np.random.Generator, out: npt.NDArray[np.int64]) -> None:
    for i in range(len(out)):
        out[i] = argmax(scores, True, rng)


@compiled_uncached
def many_goes_first(
    a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], keys: npt.NDArray[np.int64], out: npt.NDArray[np.bool_]
) -> None:
    for i in range(len(out)):
        out[i] = goes_first(a[i], b[i], keys[i])


def within_4_standard_errors(counts: npt.ArrayLike, n: int) -> bool:
    """Whether counts are those of a uniform draw: each is binomial(n, 1/k)."""
    k = len(np.asarray(counts))
    return bool((abs(np.asarray(counts) - n / k) < 4 * np.sqrt(n / k * (1 - 1 / k))).all())


@pytest.mark.parametrize("top", [1.0, np.inf, -np.inf])
@pytest.mark.parametrize("equals", [[0, 1, 2, 3], [1, 3], [0, 4], [2, 3, 4]])
def test_random_ties_are_uniform(equals: list[int], top: float) -> None:
    scores = np.full(5, -np.inf if top == np.inf else -2.0)
    if top == -np.inf:
        scores = scores[: len(equals)]
        equals = list(range(len(equals)))
    scores[equals] = top
    out = np.empty(N, np.int64)
    many_argmax(scores, np.random.default_rng(len(equals)), out)
    counts = np.bincount(out, minlength=5)
    assert counts.sum() == counts[equals].sum()
    assert within_4_standard_errors(counts[equals], N)


def test_lowest_ties_draw_nothing() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert argmax(np.array([0.0, 3.0, 1.0, 3.0]), False, rng) == 1
    assert argmax(np.array([np.inf, np.inf]), False, rng) == 0
    # Random ties spend a draw for each further equal only.
    assert argmax(np.array([0.0, 3.0, 1.0, 2.0]), True, rng) == 1
    assert rng.bit_generator.state == before
    argmax(np.array([3.0, 3.0, 1.0, 3.0]), True, rng)
    spent = np.random.default_rng(0)
    spent.random(2)
    assert rng.bit_generator.state == spent.bit_generator.state


@pytest.mark.parametrize("tied", [[0, 1], [3, 7], [0, 1, 2], [2, 5, 674], [0, 1, 2, 3], [1, 10, 100, 1000]])
def test_random_orders_are_uniform(tied: list[int]) -> None:
    rng = np.random.default_rng(len(tied))
    counts = dict.fromkeys(permutations(tied), 0)
    for _ in range(N):
        key = tie_key(rng)
        # Sorting by wins is an order only if `goes_first` is one: never both, never neither, no cycles.
        wins = {a: sum(goes_first(a, b, key) for b in tied if b != a) for a in tied}
        assert sorted(wins.values()) == list(range(len(tied)))
        counts[tuple(sorted(tied, key=lambda a: -wins[a]))] += 1
    assert within_4_standard_errors(list(counts.values()), N)


def test_orders_of_successive_rounds_are_independent() -> None:
    rng = np.random.default_rng(1)
    keys = [tie_key(rng) for _ in range(N + 1)]
    first = np.array([goes_first(0, 1, key) for key in keys])
    pairs = 2 * first[:-1] + first[1:]
    assert within_4_standard_errors(np.bincount(pairs, minlength=4), N)


def test_compiled_and_interpreted_orders_agree() -> None:
    rng = np.random.default_rng(2)
    a, b, keys = rng.integers(0, 700, 500), rng.integers(0, 700, 500), rng.integers(-1, 2**32, 500)
    out = np.empty(500, np.bool_)
    many_goes_first(a, b, keys, out)
    plain = [goes_first(*map(int, one)) for one in zip(a, b, keys, strict=True)]
    np.testing.assert_array_equal(out, plain)


def test_without_a_key_the_lowest_goes_first() -> None:
    assert goes_first(2, 3, LOWEST_FIRST)
    assert not goes_first(3, 2, LOWEST_FIRST)
