"""Threads change neither results nor their order, and hold no more of them than is said."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from evaluator.threads import ahead, behind, in_threads


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(jobs: int) -> None:
    assert list(in_threads(lambda i: i * i, range(40), jobs)) == [i * i for i in range(40)]


def test_no_more_results_wait_than_is_said() -> None:
    asked: list[int] = []

    def items() -> Iterator[int]:
        for i in range(30):
            asked.append(i)
            yield i

    for taken, _ in enumerate(in_threads(lambda i: i, items(), 2, ready=3), start=1):
        assert len(asked) <= taken + 3


def test_one_job_stays_in_this_thread() -> None:
    assert set(in_threads(lambda _: threading.current_thread(), range(3), 1)) == {threading.current_thread()}


def test_an_error_is_raised_in_its_turn() -> None:
    results = in_threads(lambda i: 1 // (3 - i), range(100), 2)
    assert [next(results) for _ in range(3)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_ahead_yields_all_and_behind_does_all() -> None:
    done: list[int] = []
    with behind(done.append) as later:
        for i in ahead(iter(range(20))):
            later(i)
    assert done == list(range(20))
