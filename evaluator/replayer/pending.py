"""Conversions on their way: a binary heap ordered by the round that reveals them, then by age.

Conversions of one round are delivered oldest display first; conversions of one display in the order of the log.
Memory is what is pending, never the log.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import inlinable


class Pending(NamedTuple):
    """Heap of slots and what each slot holds.

    Parameters
    ----------
    heap
        Slots in heap order, then the free slots; shape (capacity,).
    size
        Conversions pending, and pushed so far (their order breaks ties), shape (2,).
    due, order, delay, action, value
        Of each slot: revealing round, order of arrival, delay in rounds, action, value; shape (capacity,).
    vector
        The shown action's vector of each slot, shape (capacity, d).
    """

    heap: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    due: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    delay: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    vector: npt.NDArray[np.float64]


def nothing_pending(capacity: int, dimension: int) -> Pending:
    """Return an empty heap."""
    whole = (np.zeros(capacity, np.int64) for _ in range(4))
    due, order, delay, action = whole
    value, vector = np.zeros(capacity), np.zeros((capacity, dimension))
    return Pending(np.arange(capacity), np.zeros(2, np.int64), due, order, delay, action, value, vector)


def with_room(pending: Pending, more: int) -> Pending:
    """Return the heap with room for `more` conversions, grown by doubling."""
    needed = int(pending.size[0]) + more
    capacity = len(pending.heap)
    if needed <= capacity:
        return pending
    larger = nothing_pending(max(needed, 2 * capacity), pending.vector.shape[1])
    for old, new in zip(pending, larger, strict=True):
        new[: len(old)] = old
    return larger


@inlinable
def _before(pending: Pending, a: int, b: int) -> bool:
    if pending.due[a] != pending.due[b]:
        return pending.due[a] < pending.due[b]
    return pending.order[a] < pending.order[b]


@inlinable
def push(
    pending: Pending, due: int, delay: int, action: int, value: float, vectors: npt.NDArray[np.float64], r: int
) -> None:
    """Add a conversion of a display that showed vectors[r]. O(log pending + d)."""
    heap = pending.heap
    at = pending.size[0]
    slot = heap[at]
    pending.due[slot] = due
    pending.order[slot] = pending.size[1]
    pending.delay[slot] = delay
    pending.action[slot] = action
    pending.value[slot] = value
    for i in range(vectors.shape[1]):
        pending.vector[slot, i] = vectors[r, i]
    pending.size[0] += 1
    pending.size[1] += 1
    while at > 0:
        parent = (at - 1) // 2
        if not _before(pending, slot, heap[parent]):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = slot


@inlinable
def pop(pending: Pending) -> int:
    """Remove the first conversion and return its slot, which stays readable until the next push. O(log pending)."""
    heap = pending.heap
    first = heap[0]
    pending.size[0] -= 1
    size = pending.size[0]
    moved = heap[size]
    heap[size] = first
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(pending, heap[child + 1], heap[child]):
            child += 1
        if not _before(pending, heap[child], moved):
            break
        heap[at] = heap[child]
        at = child
    if size > 0:
        heap[at] = moved
    return first
