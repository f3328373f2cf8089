"""Conversions on their way: a calendar with one list a round; adding and taking cost the same however many wait.

Conversions of one round are delivered in the order in which their displays were shown; those of one display in the
order of the log. Memory is what is pending plus the longest delay that is ever revealed, at most the window and at most
`LONGEST_RING` rounds: beyond, a list serves every round that is as many rounds away, and a conversion whose round has
not come yet is passed over, once a turn of the ring.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import compiled, inlinable

# A power of 2. Delays may be longer than any number of rounds that fits into memory.
LONGEST_RING = 1 << 20


class PendingConversions(NamedTuple):
    """The calendar, and what each of its slots holds.

    A ring of rounds, shape (2^k,), longer than any delay or as long as `LONGEST_RING`: the first slot of each round's
    list, -1 when empty, and the last one of those that are not. Of each slot, shape (slots,): the next of the same
    list, -1 at its end (`following`), and of its conversion the round in which it is revealed (`due`), its delay in
    rounds, action and value, and the shown action's vector, shape (slots, d). Slots not in use are ``free[size[0]:]``;
    `size` is the number of conversions that are pending, shape (1,).
    """

    first: npt.NDArray[np.int32]
    last: npt.NDArray[np.int32]
    following: npt.NDArray[np.int64]
    free: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    due: npt.NDArray[np.int64]
    delay: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    vector: npt.NDArray[np.float64]


def nothing_pending(slots: int, dimension: int, *, reach: int = 0) -> PendingConversions:
    """Return an empty calendar for delays up to `reach` rounds."""
    rounds = min(1 << int(reach).bit_length(), LONGEST_RING)
    return PendingConversions(
        first=np.full(rounds, -1, np.int32),
        last=np.zeros(rounds, np.int32),
        following=np.full(slots, -1, np.int64),
        free=np.arange(slots, dtype=np.int64),
        size=np.zeros(1, np.int64),
        due=np.zeros(slots, np.int64),
        delay=np.zeros(slots, np.int64),
        action=np.zeros(slots, np.int64),
        value=np.zeros(slots),
        vector=np.zeros((slots, dimension)),
    )


def with_room(pending: PendingConversions, more: int, *, reach: int) -> PendingConversions:
    """Return the calendar with room for `more` conversions and for delays up to `reach`, grown by doubling."""
    slots, rounds = len(pending.free), len(pending.first)
    needed = int(pending.size[0]) + more
    if needed <= slots and min(reach, LONGEST_RING - 1) < rounds:
        return pending
    larger = nothing_pending(
        slots if needed <= slots else max(needed, 2 * slots), pending.vector.shape[1], reach=max(reach, rounds - 1)
    )
    if pending.size[0] > 0:
        _move(pending, larger)
    return larger


def _move_all(pending: PendingConversions, larger: PendingConversions) -> None:
    """Enter all that is pending into an empty calendar, list by list, so that the order within a round is kept."""
    for at in range(pending.first.shape[0]):
        slot = pending.first[at]
        while slot >= 0:
            push(
                larger,
                pending.due[slot],
                pending.delay[slot],
                pending.action[slot],
                pending.value[slot],
                pending.vector,
                slot,
            )
            slot = pending.following[slot]


@inlinable
def push(
    pending: PendingConversions,
    due: int,
    delay: int,
    action: int,
    value: float,
    vectors: npt.NDArray[np.floating],
    r: int,
) -> None:
    """Add a conversion of a display that showed vectors[r]. O(d)."""
    slot = pending.free[pending.size[0]]
    pending.size[0] += 1
    pending.due[slot] = due
    pending.delay[slot] = delay
    pending.action[slot] = action
    pending.value[slot] = value
    for i in range(vectors.shape[1]):
        pending.vector[slot, i] = vectors[r, i]
    pending.following[slot] = -1
    at = due & (pending.first.shape[0] - 1)
    if pending.first[at] < 0:
        pending.first[at] = slot
    else:
        pending.following[pending.last[at]] = slot
    pending.last[at] = slot


@inlinable
def take(pending: PendingConversions, now: int) -> int:
    """Remove the next conversion due in round `now`; return its slot, readable until the next push, or -1. O(1).

    Every round must be emptied before the next begins.
    """
    at = now & (pending.first.shape[0] - 1)
    slot = pending.first[at]
    if slot < 0:
        return slot
    if pending.due[slot] != now:
        return _take_later(pending, at, now)
    pending.first[at] = pending.following[slot]
    pending.size[0] -= 1
    pending.free[pending.size[0]] = slot
    return slot


@inlinable
def _take_later(pending: PendingConversions, at: int, now: int) -> int:
    """Remove the next conversion due in round `now` from a list whose first one is due in another; -1 if none is."""
    before, slot = pending.first[at], pending.following[pending.first[at]]
    while slot >= 0 and pending.due[slot] != now:
        before, slot = slot, pending.following[slot]
    if slot >= 0:
        pending.following[before] = pending.following[slot]
        if pending.following[before] < 0:
            pending.last[at] = before
        pending.size[0] -= 1
        pending.free[pending.size[0]] = slot
    return slot


_move = compiled(_move_all)
