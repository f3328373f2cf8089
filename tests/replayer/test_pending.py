"""The heap of conversions on their way is a sorted list that never forgets and never reorders equals."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.replayer.pending import Pending, nothing_pending, pop, push, with_room

# None takes the first out; a number is a due round to put in.
operations = st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=80)


def held(pending: Pending, slot: int) -> tuple:
    of_slot = (pending.due, pending.delay, pending.action, pending.value)
    return (*(array[slot].item() for array in of_slot), pending.vector[slot].tolist())


@settings(deadline=None)
@given(operations=operations, capacity=st.integers(0, 5), dimension=st.integers(0, 2))
def test_equals_a_sorted_list(operations: list[int | None], capacity: int, dimension: int) -> None:
    pending, twin = nothing_pending(capacity, dimension), []
    for number, due in enumerate(operations):
        if due is not None:
            vectors = np.full((3, dimension), float(number))
            vectors[1] += 0.5
            pending = with_room(pending, 1)
            push(pending, due, number % 7, number % 3, number / 8, vectors, 1)
            twin.append((due, number, (due, number % 7, number % 3, number / 8, vectors[1].tolist())))
        elif twin:
            first = min(twin)
            twin.remove(first)
            assert held(pending, pop(pending)) == first[-1]
        assert pending.size[0] == len(twin)
        # Every slot is in the heap or free, none twice.
        assert sorted(pending.heap.tolist()) == list(range(len(pending.heap)))
    for _, _, conversion in sorted(twin):
        assert held(pending, pop(pending)) == conversion
    assert pending.size[0] == 0


def test_growth_keeps_what_is_pending_and_doubles() -> None:
    pending = nothing_pending(4, 1)
    for due in (3, 1, 2):
        push(pending, due, due, 0, 1.0, np.full((1, 1), float(due)), 0)
    assert with_room(pending, 1) is pending
    larger = with_room(pending, 2)
    assert len(larger.heap) == 8
    assert len(with_room(pending, 50).heap) == 53
    assert [held(larger, pop(larger))[0] for _ in range(3)] == [1, 2, 3]


def test_memory_is_what_is_pending() -> None:
    pending = nothing_pending(4, 0)
    for now in range(10_000):
        pending = with_room(pending, 1)
        push(pending, now + 2, 2, 0, 1.0, np.zeros((1, 0)), 0)
        while pending.size[0] and pending.due[pending.heap[0]] <= now:
            pop(pending)
    assert len(pending.heap) == 4
