"""Conversions on their way: a calendar with one list a round; adding and taking cost the same however many wait.

Conversions of one round are delivered in the order in which their displays were shown; those of one display in the
order of the log. Memory is what is pending plus the longest delay that is ever revealed, at most the window and at most
`RING` rounds or as many as there is room for conversions: beyond, a list serves every round that is as many rounds
away, and a conversion whose round has not come yet is passed over, once a turn of the ring.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import compiled, inlinable

# A power of 2. Delays may be longer than any number of rounds that fits into memory, or into a cache.
RING = 1 << 16
FOLLOWING, DUE, DELAY, ACTION = range(4)
_FIRST, _LAST = range(2)


class PendingConversions(NamedTuple):
    """The calendar, and what each of its slots holds.

    `ring` has a row for each round, shape (2^k, 2), longer than any delay, or than `RING` and the number of slots: the
    first and the last slot of the round's list, -1 and anything when it is empty. `slots` has the columns `FOLLOWING`,
    the next slot of the same list, -1 at its end, and of the slot's conversion `DUE`, the round in which it is
    revealed, `DELAY` in rounds, and `ACTION`, shape (slots, 4). Of each conversion, too: its value, shape (slots,), and
    the shown action's vector, shape (slots, d). Slots not in use are ``free[size[0]:]``; `size` is the number of
    conversions that are pending, shape (1,).
    """

    ring: npt.NDArray[np.int32]
    slots: npt.NDArray[np.int64]
    free: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    vector: npt.NDArray[np.float64]

    def waiting(self) -> npt.NDArray[np.int64]:
        """Return the slots in use in the order in which they will be revealed."""
        found = []
        for slot in self.ring[:, _FIRST].tolist():
            while slot >= 0:
                found.append(slot)
                slot = int(self.slots[slot, FOLLOWING])
        order = np.array(found, np.int64)
        return order[np.argsort(self.slots[order, DUE], kind="stable")]


def nothing_pending(slots: int, dimension: int, *, reach: int = 0) -> PendingConversions:
    """Return an empty calendar for delays up to `reach` rounds."""
    return PendingConversions(
        ring=np.full((_lists(slots, reach), 2), -1, np.int32),
        slots=np.zeros((slots, 4), np.int64),
        free=np.arange(slots, dtype=np.int64),
        size=np.zeros(1, np.int64),
        value=np.zeros(slots),
        vector=np.zeros((slots, dimension)),
    )


def _lists(slots: int, reach: int) -> int:
    """Return how many lists serve delays up to `reach` rounds, hardly ever two conversions a list."""
    return min(1 << int(reach).bit_length(), max(RING, 1 << slots.bit_length()))


def with_room(pending: PendingConversions, more: int, *, reach: int) -> PendingConversions:
    """Return the calendar with room for `more` conversions and for delays up to `reach`, grown by doubling."""
    slots, rounds = len(pending.free), len(pending.ring)
    needed = int(pending.size[0]) + more
    room = slots if needed <= slots else max(needed, 2 * slots)
    reach = max(reach, rounds - 1)
    if room == slots and _lists(room, reach) <= rounds:
        return pending
    larger = nothing_pending(room, pending.vector.shape[1], reach=reach)
    if pending.size[0] > 0:
        _move(pending, larger)
    return larger


def _move_all(pending: PendingConversions, larger: PendingConversions) -> None:
    """Enter all that is pending into an empty calendar, list by list, so that the order within a round is kept."""
    for at in range(pending.ring.shape[0]):
        slot = pending.ring[at, _FIRST]
        while slot >= 0:
            own = pending.slots[slot]
            push(larger, own[DUE], own[DELAY], own[ACTION], pending.value[slot], pending.vector, slot)
            slot = own[FOLLOWING]


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
    slots, ring = pending.slots, pending.ring
    slots[slot, FOLLOWING] = -1
    slots[slot, DUE] = due
    slots[slot, DELAY] = delay
    slots[slot, ACTION] = action
    pending.value[slot] = value
    for i in range(vectors.shape[1]):
        pending.vector[slot, i] = vectors[r, i]
    at = due & (ring.shape[0] - 1)
    if ring[at, _FIRST] < 0:
        ring[at, _FIRST] = slot
    else:
        slots[ring[at, _LAST], FOLLOWING] = slot
    ring[at, _LAST] = slot


@inlinable
def take(pending: PendingConversions, now: int) -> int:
    """Remove the next conversion due in round `now`; return its slot, readable until the next push, or -1. O(1).

    Every round must be emptied before the next begins.
    """
    at = now & (pending.ring.shape[0] - 1)
    slot = pending.ring[at, _FIRST]
    if slot < 0:
        return slot
    if pending.slots[slot, DUE] != now:
        return _take_later(pending, at, now)
    pending.ring[at, _FIRST] = pending.slots[slot, FOLLOWING]
    pending.size[0] -= 1
    pending.free[pending.size[0]] = slot
    return slot


@inlinable
def _take_later(pending: PendingConversions, at: int, now: int) -> int:
    """Remove the next conversion due in round `now` from a list whose first one is due in another; -1 if none is."""
    slots = pending.slots
    before = pending.ring[at, _FIRST]
    slot = slots[before, FOLLOWING]
    while slot >= 0 and slots[slot, DUE] != now:
        before, slot = slot, slots[slot, FOLLOWING]
    if slot >= 0:
        slots[before, FOLLOWING] = slots[slot, FOLLOWING]
        if slots[before, FOLLOWING] < 0:
            pending.ring[at, _LAST] = before
        pending.size[0] -= 1
        pending.free[pending.size[0]] = slot
    return slot


_move = compiled(_move_all)
