"""Borrowed arrays are the arrays themselves, and leave no trace in anyone's reference counts."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import compiled_uncached
from evaluator.kernels.memory import borrowed, prefetch

Floats = npt.NDArray[np.float64]


class Inner(NamedTuple):
    total: Floats
    factor: float


class Outer(NamedTuple):
    inner: Inner
    values: Floats


@compiled_uncached
def add_up(outer: Outer, rng: np.random.Generator) -> float:
    outer, rng = borrowed((outer, rng))
    for i in range(outer.values.shape[0]):
        outer.inner.total[0] += outer.inner.factor * outer.values[i] * rng.random()
    return outer.inner.total[0]


def test_compiled_code_reads_and_writes_the_lenders_arrays() -> None:
    outers = [Outer(Inner(np.zeros(1), 2.0), np.arange(100.0)) for _ in range(2)]
    found = add_up(outers[0], np.random.default_rng(1))
    assert found == add_up.py_func(outers[1], np.random.default_rng(1)) == outers[0].inner.total[0]


def test_references_are_neither_kept_nor_dropped() -> None:
    outer, rng = Outer(Inner(np.zeros(1), 2.0), np.arange(100.0)), np.random.default_rng(1)
    owned = [outer.inner.total, outer.values, rng]
    before = [sys.getrefcount(x) for x in owned]
    for _ in range(1000):
        add_up(outer, rng)
    assert [sys.getrefcount(x) for x in owned] == before


@compiled_uncached
def first_of_either(values: Floats, fresh: bool) -> float:
    values = borrowed(values)
    if fresh:
        values = np.full(2, 7.0)
    return values[1:][0]


def test_a_borrowed_array_may_stand_where_another_may() -> None:
    values = np.arange(2.0)
    before = sys.getrefcount(values)
    assert [first_of_either(values, fresh) for fresh in (False, True)] == [1.0, 7.0]
    assert sys.getrefcount(values) == before


@compiled_uncached
def prefetch_everywhere(vectors: npt.NDArray[np.float32], ahead: int) -> None:
    for r in range(vectors.shape[0]):
        prefetch(vectors, ahead, r)


def test_a_prefetch_changes_nothing_and_may_miss() -> None:
    vectors = np.ones((3, 4), np.float32)
    # Up to a terabyte beyond the array, where no memory is.
    for ahead in (0, 8, 10**6, 10**10):
        prefetch_everywhere(vectors, ahead)
        prefetch(vectors, ahead, 0)
    np.testing.assert_array_equal(vectors, 1.0)
