"""The calendar of conversions on their way: round by round it gives back what a plain list of events would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.engine import pending as pending_module
from evaluator.engine.pending import (
    ACTION,
    DELAY,
    DUE,
    RING,
    PendingConversions,
    nothing_pending,
    push,
    take,
    with_room,
)


def held(pending: PendingConversions, slot: int) -> tuple:
    numbers = pending.slots[slot, [DUE, DELAY, ACTION]].tolist()
    return (*numbers, pending.value[slot].item(), pending.vector[slot].tolist())


def taken(pending: PendingConversions, now: int) -> list[tuple]:
    out = []
    while (slot := take(pending, now)) >= 0:
        out.append(held(pending, slot))
    return out


# The delays of the conversions that each round's display brings.
rounds = st.lists(st.lists(st.integers(0, 20), max_size=3), max_size=40)


@given(rounds=rounds, slots=st.integers(0, 5), reach=st.integers(0, 5), dimension=st.integers(0, 2))
def test_equals_a_list_of_events(rounds: list[list[int]], slots: int, reach: int, dimension: int) -> None:
    pending, events = nothing_pending(slots, dimension, reach=reach), []
    for now in range(1, len(rounds) + 25):
        for number, delay in enumerate(rounds[now - 1] if now <= len(rounds) else []):
            vectors = np.full((3, dimension), float(now))
            vectors[1] += 0.5
            pending = with_room(pending, 1, reach=delay)
            push(pending, now + delay, delay, number, now / 8, vectors, 1)
            events.append((now + delay, delay, number, now / 8, vectors[1].tolist()))
        assert taken(pending, now) == [e for e in events if e[0] == now]
        assert pending.size[0] == len([e for e in events if e[0] > now])
        # A slot is in use or free, never both nor twice.
        slots = [*pending.waiting().tolist(), *pending.free[pending.size[0] :].tolist()]
        assert sorted(slots) == list(range(len(pending.free)))
    assert pending.size[0] == 0


def test_growth_keeps_what_is_pending_and_doubles() -> None:
    pending = nothing_pending(4, 1, reach=3)
    for due in (3, 1, 2):
        push(pending, due, due, 0, 1.0, np.full((1, 1), float(due)), 0)
    assert with_room(pending, 1, reach=3) is pending
    more, longer = with_room(pending, 2, reach=3), with_room(pending, 1, reach=100)
    assert (len(more.free), len(more.ring)) == (8, 4)
    assert (len(longer.free), len(longer.ring)) == (4, 128)
    assert len(with_room(pending, 50, reach=3).free) == 53
    for larger in (more, longer):
        assert [[e[0] for e in taken(larger, now)] for now in (1, 2, 3)] == [[1], [2], [3]]


def test_memory_is_what_is_pending() -> None:
    pending = nothing_pending(4, 0, reach=2)
    for now in range(10_000):
        pending = with_room(pending, 1, reach=2)
        push(pending, now + 2, 2, 0, 1.0, np.zeros((1, 0)), 0)
        taken(pending, now)
    assert (len(pending.free), len(pending.ring)) == (4, 4)


def test_delays_beyond_the_ring_come_in_their_round() -> None:
    # Rounds that meet in one list of the ring, out of order, and one that never comes.
    far = [RING + 3, 3, 2 * RING + 3, 2**60, RING + 3]
    pending = nothing_pending(0, 0)
    for number, due in enumerate(far):
        pending = with_room(pending, 1, reach=due)
        push(pending, due, due, number, 1.0, np.zeros((1, 0)), 0)
    assert len(pending.ring) == RING
    came = [(now, [e[2] for e in taken(pending, now)]) for now in (3, RING + 3, 2 * RING + 3)]
    assert came == [(3, [1]), (RING + 3, [0, 4]), (2 * RING + 3, [2])]
    # The end of a list that others were taken from still takes new ones.
    push(pending, 3 * RING + 3, 0, 9, 1.0, np.zeros((1, 0)), 0)
    assert [e[2] for e in taken(pending, 3 * RING + 3)] == [9]
    assert pending.size[0] == 1


def test_there_are_as_many_lists_as_conversions_may_wait() -> None:
    assert len(nothing_pending(4 * RING, 0, reach=2**60).ring) == 8 * RING
    assert len(with_room(nothing_pending(4, 0, reach=2**60), 4 * RING, reach=2**60).ring) == 8 * RING
    assert len(nothing_pending(4 * RING, 0, reach=5).ring) == 8


@given(
    rounds=st.lists(st.lists(st.integers(0, 40), max_size=3), max_size=40),
    ring=st.sampled_from([1, 2, 4, 8]),
)
def test_a_short_ring_gives_back_the_same_events(rounds: list[list[int]], ring: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending_module, "_lists", lambda slots, reach: min(1 << reach.bit_length(), ring))
        pending, events = nothing_pending(0, 0), []
        for now in range(1, len(rounds) + 45):
            for number, delay in enumerate(rounds[now - 1] if now <= len(rounds) else []):
                pending = with_room(pending, 1, reach=delay)
                push(pending, now + delay, delay, number, now / 8, np.zeros((1, 0)), 0)
                events.append((now + delay, delay, number, now / 8, []))
            assert taken(pending, now) == [e for e in events if e[0] == now]
        assert len(pending.ring) <= ring
