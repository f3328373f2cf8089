"""Borrowed arrays are the arrays themselves, and leave no trace in anyone's reference counts."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.engine.kernels.compiling import compiled_uncached
from evaluator.engine.kernels.intrinsics import borrowed, one_row, prefetch
from evaluator.replays.rounds.stream import Batch

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


class Whole(NamedTuple):
    """A tuple of somebody else, in which one of the package lies."""

    factor: float
    batch: Batch


@compiled_uncached
def add_by_hand(whole: Whole) -> float:
    factor, batch = borrowed(whole)
    batch.value[0] += factor
    return whole[0] * batch.value[0] + batch.delay[1]


def test_tuples_of_others_are_taken_apart_and_those_of_the_package_know_their_fields() -> None:
    batch = Batch(np.zeros(1, np.int32), np.zeros((1, 1, 1)), np.zeros(2, np.int64), np.arange(2), np.ones(1))
    assert add_by_hand(Whole(2.0, batch)) == 2.0 * 3.0 + 1.0
    assert batch.value[0] == 3.0


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


@compiled_uncached
def rows_of(vectors: npt.NDArray[np.float32], shapes: npt.NDArray[np.int64], sums: Floats) -> None:
    for r in range(vectors.shape[0]):
        row = one_row(vectors, r)
        shapes[r] = row.shape
        sums[r] = row.sum() + 100 * row[0, -1]


@compiled_uncached
def rows_of_lent(vectors: npt.NDArray[np.float32], shapes: npt.NDArray[np.int64], sums: Floats) -> None:
    vectors = borrowed(vectors)
    for r in range(vectors.shape[0]):
        row = one_row(vectors, r)
        shapes[r] = row.shape
        sums[r] = row.sum() + 100 * row[0, -1]


@pytest.mark.parametrize("lent", [False, True])
@pytest.mark.parametrize("order", ["C", "F", "every other row"])
def test_a_row_is_a_view_of_it_whoever_owns_it_and_however_it_lies(order: str, lent: bool) -> None:
    vectors = np.random.default_rng(2).normal(size=(14, 3)).astype(np.float32)
    vectors = np.asfortranarray(vectors) if order == "F" else vectors if order == "C" else vectors[::2]
    before = sys.getrefcount(vectors)
    shapes, sums = np.zeros((len(vectors), 2), np.int64), np.zeros(len(vectors))
    (rows_of_lent if lent else rows_of)(vectors, shapes, sums)
    assert shapes.tolist() == [[1, 3]] * len(vectors)
    expected = [row.sum() + 100 * row[0, -1] for row in (one_row(vectors, r) for r in range(len(vectors)))]
    np.testing.assert_allclose(sums, expected, rtol=1e-6)
    assert sys.getrefcount(vectors) == before


@compiled_uncached
def double_row(vectors: Floats, r: int) -> None:
    one_row(borrowed(vectors), r)[0] *= 2.0


def test_a_row_is_written_where_it_lies() -> None:
    vectors = np.ones((4, 2))
    double_row(vectors, 2)
    assert vectors.tolist() == [[1.0, 1.0], [1.0, 1.0], [2.0, 2.0], [1.0, 1.0]]
