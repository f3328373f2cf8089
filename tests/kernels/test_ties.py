"""Ties are broken uniformly, or to the lowest index; without ties no draw is spent."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.kernels.compiling import compiled_uncached
from evaluator.kernels.ties import argmax, lowest_first, shuffle

N = 24_000


@compiled_uncached
def many_argmax(scores: npt.NDArray[np.float64], rng: np.random.Generator, out: npt.NDArray[np.int64]) -> None:
    for i in range(len(out)):
        out[i] = argmax(scores, True, rng)


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


def test_shuffles_are_uniform() -> None:
    rng = np.random.default_rng(1)
    counts = dict.fromkeys(permutations(range(4)), 0)
    for _ in range(N):
        # Anew each time: a walk would be uniform over long times whatever its steps.
        priority = np.arange(4)
        shuffle(priority, rng)
        counts[tuple(priority.tolist())] += 1
    assert within_4_standard_errors(list(counts.values()), N)


def test_lowest_first_prefers_the_lowest() -> None:
    priority = lowest_first(4)
    assert sorted(range(4), key=lambda k: -priority[k]) == [0, 1, 2, 3]
